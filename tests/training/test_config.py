"""Configurations: layers of settings, wrong files, and the way to TOML and back."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ihgnn_cli.data.features import Features
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.entries.gin import GINSettings
from ihgnn_cli.models.entries.pgcn import Operator
from ihgnn_cli.models.settings import (
    IHGNNSettings,
    SortKey,
    SortOrder,
    ThetaInit,
    Variant,
    WeightInit,
)
from ihgnn_cli.studies.crossval.protocol import own_grid
from ihgnn_cli.training.config import (
    DataSettings,
    RunConfig,
    TrainingSettings,
    configure,
    from_plain,
    parse_setting,
    read_config,
    recipe_grid,
    write_config,
)
from ihgnn_cli.training.kinds import Recipe


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def read(path: Path, text: str) -> RunConfig:
    path.write_text(text, encoding="utf-8")
    return configure(file=path)


def message(path: Path, text: str) -> str:
    """What this content is refused with, without the path that it starts with."""
    with pytest.raises(InputError) as caught:
        read(path, text)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path))


# Recipes and layers


def test_the_defaults_are_the_paper_s() -> None:
    assert configure() == configure(Recipe.PAPER) == RunConfig()


def test_the_paper_s_recipe_spells_out_every_setting_of_the_model() -> None:
    text = (files("ihgnn_cli") / "recipes" / "paper.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["model"] == RunConfig().as_plain()["model"]


def test_the_documented_table_of_recipes_has_their_settings() -> None:
    page = Path(__file__).parents[2] / "docs" / "training.md"
    rows = [line.strip("| ").split(" | ") for line in page.read_text(encoding="utf-8").splitlines()]
    names = [recipe.value for recipe in Recipe]
    table = rows.index(["setting", *(f"`{name}`" for name in names)]) + 2
    found = {row[0].strip("`"): row[1:] for row in rows[table:] if row[0].startswith("`")}
    settings = [
        {
            key: value
            for part in configure(recipe).as_plain().values()
            for key, value in part.items()
        }
        for recipe in Recipe
    ]
    for key in settings[0]:
        values = [json.dumps(each[key]).strip('"') or "none" for each in settings]
        assert found.get(key, values[:1] * len(values)) == values


def test_the_authors_recipe_is_their_code_where_it_differs() -> None:
    assert configure(Recipe.AUTHORS) == RunConfig(
        model=IHGNNSettings(
            layers=4,
            sort_key=SortKey.LAST_LAYER,
            sort_order=SortOrder.DESCENDING,
            readout_relu=True,
            theta_init=ThetaInit.GLOROT,
            weight_init=WeightInit.GLOROT,
        )
    )


def test_the_grid_of_the_authors_recipe_is_that_of_their_script() -> None:
    grid = own_grid(configure(Recipe.AUTHORS), recipe_grid(Recipe.AUTHORS))
    assert len(grid) == 18
    assert {each["layers"] for each in grid} == {2, 4}
    assert {each["lr"] for each in grid} == {0.01, 0.001, 0.0001}
    assert {each["batch_size"] for each in grid} == {32, 64, 128}
    assert recipe_grid(Recipe.PAPER) == recipe_grid(None) == {}


def test_the_file_wins_over_the_recipe_and_options_over_both(path: Path) -> None:
    path.write_text("[model]\nlayers = 7\nwidth = 8\n[training]\nlr = 0.5\n")
    config = configure(Recipe.AUTHORS, path, {"width": 9, "seed": 3})
    assert config.model.layers == 7  # 4 in the recipe
    assert config.model.width == 9  # 8 in the file
    assert config.model.readout_relu is True  # the recipe's
    assert config.training.lr == 0.5
    assert config.training.seed == 3
    assert config.training.epochs == 350  # the default


def test_a_file_that_leaves_nothing_of_the_recipe_is_refused(path: Path) -> None:
    write_config(configure(Recipe.AUTHORS), path)
    with pytest.raises(InputError, match="sets everything that the recipe robust sets"):
        configure(Recipe.ROBUST, path)


def test_epochs_of_a_file_replace_the_steps_of_a_recipe(path: Path) -> None:
    path.write_text("[training]\nepochs = 7\n")
    training = configure(Recipe.ROBUST, path).training
    assert (training.epochs_for(10_000), training.snapshots) == (7, 10)


def test_crossval_of_a_recipe_that_chooses_nothing_has_the_settings_of_the_file(path: Path) -> None:
    path.write_text("[model]\nlayers = 5\n")
    (only,) = own_grid(configure(Recipe.ROBUST, path), recipe_grid(Recipe.ROBUST))
    assert (only["layers"], only["lr"]) == (5, 0.001)


def test_false_and_0_on_the_command_line_are_given() -> None:
    config = configure(Recipe.AUTHORS, overrides={"readout_relu": False, "layers": 0})
    assert config.model.readout_relu is False
    assert config.model.layers == 0


# Wrong names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[trainig]\n", ": no section [trainig]. Did you mean training?"),
        ("[zzz]\n", ": no section [zzz]. There are data, model, training."),
        ("lr = 1\n", ": no section [lr]. There are data, model, training."),
        ("training = 1\n", ": training must be a section, [training]."),
        ("[[training]]\n", ": training must be a section, [training]."),
        (
            "[training]\nbatchsize = 1\n",
            ": no setting batchsize in [training]. Did you mean batch_size?",
        ),
        (
            "[data]\nzzz = 1\n",
            ": no setting zzz in [data]. There are dataset, features, split, split_from, inputs, "
            "edge_labels, background_edge_label, edge_bins.",
        ),
        (
            "[model]\nname = 'gcn'\n",
            ": No model 'gcn'. Did you mean pgcn? If another package provides it, install that "
            "package.",
        ),
    ],
)
def test_a_wrong_name_is_refused_with_a_hint(path: Path, text: str, expected: str) -> None:
    assert message(path, text) == expected


# Wrong values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[model]\nlayers = true", "layers must be a whole number, not True."),
        ("[model]\nlayers = 2.0", "layers must be a whole number, not 2.0."),
        ("[model]\nlayers = '2'", "layers must be a whole number, not '2'."),
        ("[model]\ndropout = true", "dropout must be a number, not True."),
        ("[training]\nlr = '0.1'", "lr must be a number, not '0.1'."),
        ("[model]\nreadout_relu = 1", "readout_relu must be true or false, not 1."),
        ("[data]\ndataset = 5", "dataset must be a text, not 5."),
        ("[data]\nfeatures = 1", "features must be one of auto, labels, attributes, both, not 1."),
        (
            "[model]\nsort_order = 'Ascending'",
            "sort_order must be one of ascending, descending, not 'Ascending'.",
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(path: Path, text: str, expected: str) -> None:
    assert message(path, text) == f": {expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[model]\nlayers = -1", "layers must be at least 0, not -1."),
        ("[model]\nwidth = 0", "width must be at least 1, not 0."),
        ("[model]\nhidden = 0", "hidden must be at least 1, not 0."),
        ("[model]\ndropout = 1", "dropout must be at least 0 and below 1, not 1."),
        ("[model]\ndropout = -0.1", "dropout must be at least 0 and below 1, not -0.1."),
        ("[model]\ndropout = nan", "dropout must be at least 0 and below 1, not nan."),
        ("[training]\nlr = 0", "lr must be a finite number above 0, not 0."),
        ("[training]\nlr = -0.1", "lr must be a finite number above 0, not -0.1."),
        ("[training]\nlr = nan", "lr must be a finite number above 0, not nan."),
        ("[training]\nlr = inf", "lr must be a finite number above 0, not inf."),
        ("[training]\nbatch_size = 0", "batch_size must be at least 1, not 0."),
        ("[training]\nepochs = 0", "epochs must be at least 1, not 0."),
        ("[training]\npatience = -1", "patience must be at least 0, not -1."),
        ("[training]\nseed = -1", "seed must be from 0 to 2^63 - 1, not -1."),
        (
            "[training]\nseed = 9223372036854775808",
            "seed must be from 0 to 2^63 - 1, not 9223372036854775808.",
        ),
    ],
)
def test_a_value_out_of_its_range_is_refused(path: Path, text: str, expected: str) -> None:
    assert message(path, text) == f": {expected}"


# Wrong files


@pytest.mark.parametrize(
    "content",
    [
        b"[model",
        b"layers: 3",
        b"[model]\nlayers = 3\nlayers = 4",
        b"\xff\xfe[\x00",
        b"[data]\ndataset = '\xe9'",
        b"x = " + b"[" * 5000 + b"]" * 5000,
        b"[training]\nseed = 1" + b"0" * 5000,
    ],
)
def test_what_is_no_toml_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a TOML file"):
        configure(file=path)


# Files that a configuration names


def test_files_are_looked_for_beside_the_configuration(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "splits.json").touch()
    (tmp_path / "data.jsonl").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    config = read(path, '[data]\ndataset = "data.jsonl"\nsplit = "splits.json"\n')
    assert config.data.dataset == str(tmp_path / "data.jsonl")
    assert config.data.split == str(tmp_path / "splits.json")


@pytest.mark.parametrize("number", ["3", "3:1"])
def test_a_fold_of_a_file_beside_the_configuration_keeps_its_number(
    tmp_path: Path, path: Path, number: str
) -> None:
    (tmp_path / "splits.json").touch()
    config = read(path, f'[data]\nsplit = "splits.json:{number}"\n')
    assert config.data.split == f"{tmp_path / 'splits.json'}:{number}"


@pytest.mark.parametrize("split", ["holdout", "fold:3", "splits.json", "splits.json:3", "", ":3"])
def test_what_is_no_file_beside_the_configuration_stays_as_it_is(path: Path, split: str) -> None:
    assert read(path, f'[data]\nsplit = "{split}"\n').data.split == split


def test_names_come_before_files_of_the_same_name(tmp_path: Path, path: Path) -> None:
    for name in ("holdout", "MUTAG"):
        (tmp_path / name).touch()
    data = read(path, '[data]\nsplit = "holdout"\ndataset = "MUTAG"\n').data
    assert (data.split, data.dataset) == ("holdout", "MUTAG")


def test_files_on_the_command_line_are_not_moved(tmp_path: Path, path: Path) -> None:
    (tmp_path / "splits.json").touch()
    path.write_text("")
    config = configure(file=path, overrides={"split": "splits.json"})
    assert config.data.split == "splits.json"


# The way to TOML and back


EVERY = RunConfig(
    DataSettings("DD", Features.ATTRIBUTES, "fold:9"),
    IHGNNSettings(
        layers=5,
        width=7,
        hidden=9,
        dropout=0.25,
        variant=Variant.NO_SEPARATION,
        sort_key=SortKey.LAST_LAYER,
        sort_order=SortOrder.DESCENDING,
        readout_relu=True,
        theta_init=ThetaInit.ONES,
    ),
    TrainingSettings(lr=1e-5, batch_size=64, epochs=5, patience=3, seed=2**63 - 1, device="cuda:1"),
)


@pytest.mark.parametrize("config", [RunConfig(), EVERY], ids=["defaults", "every setting"])
def test_what_is_written_is_read_again(path: Path, config: RunConfig) -> None:
    write_config(config, path)
    assert configure(file=path) == config


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("configs")


@given(st.text(), st.floats(min_value=0, exclude_min=True, allow_infinity=False))
def test_any_name_and_any_learning_rate_survive(folder: Path, name: str, lr: float) -> None:
    config = RunConfig(
        data=DataSettings(dataset=f"no file {name}"), training=TrainingSettings(lr=lr)
    )
    write_config(config, folder / "config.toml")
    assert configure(file=folder / "config.toml") == config


def test_a_file_name_that_is_no_unicode_is_refused(path: Path) -> None:
    """As Python has it: the byte FF of a name on Linux is the surrogate DCFF."""
    with pytest.raises(InputError, match="Rename the file"):
        write_config(RunConfig(data=DataSettings(dataset="/data/\udcff")), path)
    assert not path.exists()


def test_sections_that_are_plain_but_wrong_are_refused_by_their_origin() -> None:
    with pytest.raises(InputError, match=r"^last\.pt: epochs must be a whole number"):
        from_plain({"training": {"epochs": None}}, "last.pt")


# Other models


def refusal(**arguments: object) -> str:
    with pytest.raises(InputError) as caught:
        configure(**arguments)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_model_comes_with_its_own_defaults() -> None:
    config = configure(model="gin")
    assert config.model_name == config.spec.name == "gin"
    assert config.model == GINSettings()
    assert (config.data, config.training) == (DataSettings(), TrainingSettings())
    assert configure(model="ihgnn") == RunConfig()


@pytest.mark.parametrize(
    "config",
    [
        configure(overrides={"layers": 2, "learn_eps": True, "weight_decay": 1e-4}, model="gin"),
        configure(overrides={"operator": "laplacian", "project": False}, model="pgcn"),
    ],
    ids=["gin", "pgcn"],
)
def test_another_model_is_written_with_its_name_and_read_again(
    path: Path, config: RunConfig
) -> None:
    write_config(config, path)
    assert next(iter(tomllib.loads(path.read_text(encoding="utf-8"))["model"])) == "name"
    assert configure(file=path) == read_config(path) == config
    assert configure(file=path, model=config.model_name) == config
    assert type(configure(file=path).model) is type(config.model)
    assert from_plain(config.as_plain(), "a test") == config


def test_a_file_without_a_name_is_of_the_model_that_is_asked_for(path: Path) -> None:
    path.write_text("[model]\nwidth = 7\n[training]\nlr = 0.5\n")
    config = configure(file=path, model="gin")
    assert config.model == GINSettings(width=7)
    assert config.training.lr == 0.5
    assert configure(file=path).model == IHGNNSettings(width=7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[model]\nname = 'gin'\nlearneps = true\n",
            ": no setting learneps in [model]. Did you mean learn_eps?",
        ),
        (
            "[model]\nname = 'gin'\nvariant = 'full'\n",
            ": no setting variant in [model]. There are layers, width, hidden, dropout, learn_eps, "
            "name.",
        ),
        ("[model]\nlearn_eps = true\n", ": no setting learn_eps in [model]. There are "),
        ("[model]\nname = 'gin'\nlearn_eps = 1\n", ": learn_eps must be true or false, not 1."),
        ("[model]\nname = 'gin'\nwidth = 0\n", ": width must be at least 1, not 0."),
        (
            "[model]\nname = 'pgcn'\noperator = 'no'\n",
            ": operator must be one of adjacency, laplacian, not 'no'.",
        ),
        ("[model]\nname = 3\n", ": No model '3'. There are "),
        ("[model]\nname = ['gin']\n", ": No model "),
    ],
)
def test_what_is_no_setting_of_the_file_s_model_is_refused(
    path: Path, text: str, expected: str
) -> None:
    assert message(path, text).startswith(expected)


def test_a_file_of_another_model_than_is_asked_for_is_refused(path: Path) -> None:
    write_config(configure(model="gin"), path)
    assert refusal(file=path, model="pgcn") == (
        f"{path} is for the model gin, not pgcn. Leave out --model, or give another file."
    )
    assert "is for the model gin, not ihgnn" in refusal(file=path, model="ihgnn")


def test_recipes_are_of_ihgnn(path: Path) -> None:
    expected = "The model gin has no recipe authors. Leave out --recipe or --model."
    assert refusal(recipe=Recipe.AUTHORS, model="gin") == expected
    write_config(configure(model="gin"), path)
    assert refusal(recipe=Recipe.AUTHORS, file=path) == expected
    assert configure(Recipe.AUTHORS, model="ihgnn") == configure(Recipe.AUTHORS)


@pytest.mark.parametrize(
    ("model", "text", "found"),
    [
        ("gin", "learn_eps=true", ("learn_eps", True)),
        ("gin", " learn_eps = False ", ("learn_eps", False)),
        ("gin", "width=7", ("width", 7)),
        ("gin", "dropout=1e-1", ("dropout", 0.1)),
        ("pgcn", "operator=laplacian", ("operator", Operator.LAPLACIAN)),
        ("ihgnn", "variant=no-concat", ("variant", Variant.NO_CONCAT)),
    ],
)
def test_a_setting_as_text_becomes_what_its_type_says(
    model: str, text: str, found: tuple[str, object]
) -> None:
    key, value = parse_setting(configure(model=model), text)
    assert (key, value) == found
    assert type(value) is type(found[1])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("learn_eps", "--set takes NAME=VALUE, not 'learn_eps'."),
        ("", "--set takes NAME=VALUE, not ''."),
        ("learn_eps=yes", "learn_eps must be true or false, not 'yes'."),
        ("learn_eps=", "learn_eps must be true or false, not ''."),
        ("width=7.5", "width must be a whole number, not '7.5'."),
        ("width=", "width must be a whole number, not ''."),
        ("dropout=much", "dropout must be a number, not 'much'."),
        ("lear_eps=true", "The model gin has no setting lear_eps. Did you mean learn_eps?"),
        ("name=pgcn", "The model gin has no setting name. There are layers, "),
        ("=3", "The model gin has no setting . There are layers, "),
    ],
)
def test_a_text_that_is_no_setting_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_setting(configure(model="gin"), text)
    assert str(caught.value).startswith(told)


def test_sections_of_the_wrong_kind_are_refused() -> None:
    with pytest.raises(InputError, match="training must be TrainingSettings, not None"):
        RunConfig(training=None)  # type: ignore[arg-type]
