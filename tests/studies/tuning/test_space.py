"""What is searched: texts, files, which of them counts, and what no training could have."""

import json
from pathlib import Path

import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.tuning.space import (
    Choice,
    Part,
    Range,
    SearchSpace,
    default_space,
    kinds_of,
    make_space,
)
from ihgnn_cli.training.config import RunConfig, configure
from ihgnn_cli.training.kinds import ClassWeights

CONFIG = RunConfig()
PAPER: dict[str, Part] = {
    "lr": Range(1e-4, 1e-2, log=True),
    "batch_size": Choice((32, 64, 128)),
    "layers": Choice((3, 4, 5)),
}


def made(file: Path | None = None, *, grid: bool = False, **texts: str | None) -> SearchSpace:
    return make_space(CONFIG, texts, file, grid=grid)[0]


def written(folder: Path, text: str) -> Path:
    path = folder / "space.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(file: Path | None = None, *, grid: bool = False, **texts: str) -> str:
    with pytest.raises(InputError) as caught:
        made(file, grid=grid, **texts)
    told = str(caught.value)
    assert "\n" not in told
    return told


def test_without_a_word_it_is_the_papers_ranges() -> None:
    space, config = make_space(CONFIG, {"lr": None, "width": None}, grid=False)
    assert space.parts == PAPER
    assert config == CONFIG


def test_the_papers_grid_has_its_three_learning_rates() -> None:
    assert made(grid=True).parts["lr"] == Choice((0.01, 0.001, 0.0001))
    assert made(grid=True).size() == 3 * 3 * 3


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("lr", "0.001:0.1", Range(0.001, 0.1, log=True)),
        ("lr", "0.001:0.1:linear", Range(0.001, 0.1)),
        ("lr", " 1e-3 : 1e-1 : linear ", Range(0.001, 0.1)),
        ("lr", "1,0.5", Choice((1.0, 0.5))),
        ("width", "8:64", Range(8, 64)),
        ("width", "8:64:log", Range(8, 64, log=True)),
        ("batch_size", " 16, 32 ", Choice((16, 32))),
        ("dropout", "0:0.7", Range(0.0, 0.7)),
        ("dropout", "0,0.5", Choice((0.0, 0.5))),
        ("variant", "full, no-concat", Choice(("full", "no-concat"))),
        ("readout_relu", "true,false", Choice((True, False))),
    ],
)
def test_texts(name: str, text: str, part: Part) -> None:
    found = made(**{name: text}).parts[name]
    assert found == part
    if isinstance(found, Choice) and isinstance(part, Choice):
        assert [type(each) for each in found.values] == [type(each) for each in part.values]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lr", ""),
        ("lr", " "),
        ("lr", ","),
        ("lr", "0.1,"),
        ("lr", ":"),
        ("lr", "0.1:"),
        ("lr", ":0.1"),
        ("lr", "1:2:3"),
        ("lr", "1:2:3:4"),
        ("lr", "1:2:log:log"),
        ("lr", "1:2:"),
        ("lr", "1:2:LOG"),
        ("lr", "a:b"),
        ("lr", "0.1:0.2,0.3"),
        ("lr", "nan"),
        ("lr", "nan:1"),
        ("lr", "0.1,inf"),
        ("lr", "0.1:inf"),
        ("lr", "1e400"),
        ("width", "8.0"),
        ("width", "8.5:9"),
        ("width", "9" * 400),
        ("width", f"8:{'9' * 400}"),
        ("width", "9" * 5000),
        ("width", "true"),
    ],
)
def test_nonsense_is_refused_with_the_option_and_an_example(name: str, text: str) -> None:
    told = refusal(**{name: text})
    assert told.startswith(f"{name} must be a range as ")
    assert f"or a list as {'0.01,0.001' if name == 'lr' else '32,64'}, not '{text}'." in told


@pytest.mark.parametrize("text", ["nothing", "full:no-concat", "full,", "", "FULL"])
def test_words_that_are_none_are_refused_with_those_there_are(text: str) -> None:
    told = refusal(variant=text)
    assert told.startswith("variant must be a list, each one of full, no-integration, ")
    assert "range" not in told
    assert told.endswith(f"not '{text}'.")


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ({"lr": "0.1:0.01"}, "lr must go from a smaller to a larger number, not 0.1 to 0.01"),
        ({"lr": "0.1:0.1"}, "lr must go from a smaller to a larger number"),
        ({"lr": "0:0.1"}, "lr must start above 0 on a log scale, not at 0."),
        ({"lr": "-1:0.1:linear"}, "lr must be a finite number above 0, not -1."),
        ({"lr": "0.1,0"}, "lr must be a finite number above 0, not 0."),
        ({"batch_size": "0:8"}, "batch_size must be at least 1, not 0."),
        ({"batch_size": "32,32"}, "batch_size names 32 twice. Name it once."),
        ({"batch_size": "1234567,1234567"}, "batch_size names 1234567 twice."),
        ({"lr": "0.1,1e-1"}, "lr names 0.1 twice."),
        ({"readout_relu": "true,true"}, "readout_relu names true twice."),
        ({"dropout": "0:1"}, "dropout must be at least 0 and below 1, not 1."),
        ({"layers": "-1,2"}, "layers must be at least 0, not -1."),
    ],
)
def test_what_no_training_could_have_is_refused(texts: dict[str, str], told: str) -> None:
    assert refusal(**texts).startswith(told)


def test_a_single_value_is_settled_and_searched_no_more() -> None:
    space, config = make_space(CONFIG, {"lr": "0.5", "layers": "4"}, grid=False)
    assert space.parts == {"batch_size": PAPER["batch_size"]}
    assert (config.training.lr, config.model.layers) == (0.5, 4)


def test_where_all_is_settled_nothing_is_left_to_search() -> None:
    told = refusal(lr="0.5", layers="4", batch_size="32")
    assert told.startswith("Nothing is left to search")
    assert "'ihgnn train'" in told


def test_a_file_may_have_every_kind_of_setting(tmp_path: Path) -> None:
    text = """
    lr = {low = 1, high = 2}
    dropout = {low = 0, high = 0.5}
    batch_size = {low = 8, high = 64, log = true}
    layers = {values = [1, 2]}
    variant = {values = ["full", "no-adaptive"]}
    sort_key = {values = ["aggregated", "last-layer"]}
    sort_order = {values = ["ascending", "descending"]}
    theta_init = {values = ["mean", "ones"]}
    readout_relu = {values = [true, false]}
    width = {values = [4, 8]}
    [hidden]
    low = 16
    high = 32
    """
    assert made(written(tmp_path, text)).parts == {
        "lr": Range(1, 2, log=True),
        "batch_size": Range(8, 64, log=True),
        "layers": Choice((1, 2)),
        "width": Choice((4, 8)),
        "hidden": Range(16, 32),
        "dropout": Range(0, 0.5),
        "variant": Choice(("full", "no-adaptive")),
        "sort_key": Choice(("aggregated", "last-layer")),
        "sort_order": Choice(("ascending", "descending")),
        "readout_relu": Choice((True, False)),
        "theta_init": Choice(("mean", "ones")),
    }


def test_a_file_of_windows_is_read(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_bytes("\ufeff[layers]\r\nvalues = [1, 2]\r\n".encode())
    assert made(path).parts["layers"] == Choice((1, 2))


def test_an_empty_file_leaves_the_papers_ranges(tmp_path: Path) -> None:
    assert made(written(tmp_path, "")).parts == PAPER


def test_a_flag_goes_before_a_file_and_a_file_before_the_paper(tmp_path: Path) -> None:
    file = written(tmp_path, "lr = {values = [0.1, 0.2]}\nlayers = {values = [1, 2]}")
    parts = made(file, layers="5,6").parts
    assert parts["lr"] == Choice((0.1, 0.2))
    assert parts["layers"] == Choice((5, 6))
    assert parts["batch_size"] == PAPER["batch_size"]


def test_a_file_may_turn_off_the_scale_of_the_learning_rate(tmp_path: Path) -> None:
    file = written(tmp_path, "lr = {low = 0.1, high = 0.2, log = false}")
    assert made(file).parts["lr"] == Range(0.1, 0.2)


@pytest.mark.parametrize(
    "table",
    [
        "lr = 0.1",
        "lr = [0.1, 0.2]",
        'lr = "0.1:0.2"',
        "lr = {}",
        "lr = {low = 0.1}",
        "lr = {low = 0.1, high = 0.2, step = 0.1}",
        "lr = {low = 0.1, high = 0.2, values = [0.1]}",
        'lr = {low = 0.1, high = 0.2, log = "yes"}',
        "lr = {low = 0.1, high = 0.2, log = 1}",
        'lr = {low = "0.1", high = 0.2}',
        "lr = {low = true, high = 2}",
        "lr = {low = nan, high = 2}",
        "lr = {low = 0.1, high = inf}",
        f"lr = {{low = 1, high = 1{'0' * 400}}}",
        'lr = {values = "0.1"}',
        "lr = {values = [[0.1]]}",
        "lr = {values = [true, false]}",
        "lr = {values = [nan]}",
        "lr = {values = [2020-01-01]}",
    ],
)
def test_a_table_that_is_none_is_refused_with_what_it_needs(tmp_path: Path, table: str) -> None:
    file = written(tmp_path, table)
    assert refusal(file) == (
        f"{file}: [lr] needs low and high (and perhaps log = true), or values = [...], each a "
        "number."
    )


@pytest.mark.parametrize(
    ("table", "each"),
    [
        ("width = {values = [8.0]}", "a whole number"),
        ("width = {low = 8, high = 9.5}", "a whole number"),
        (f"width = {{values = [8, 1{'0' * 400}]}}", "a whole number"),
        ("width = {values = [true]}", "a whole number"),
        ("readout_relu = {values = [0, 1]}", "true or false"),
        ("readout_relu = {low = false, high = true}", "true or false"),
        ('sort_key = {values = ["first"]}', "one of aggregated, last-layer"),
        ('sort_key = {low = "aggregated", high = "last-layer"}', "one of aggregated, last-layer"),
        ("sort_key = {values = [[]]}", "one of aggregated, last-layer"),
    ],
)
def test_a_table_of_another_kind_of_value_is_refused(tmp_path: Path, table: str, each: str) -> None:
    assert refusal(written(tmp_path, table)).endswith(f", each {each}.")


@pytest.mark.parametrize("name", ["epochs", "seed", "LR", "batch-size"])
def test_what_cannot_be_searched_is_refused_with_what_can(tmp_path: Path, name: str) -> None:
    told = refusal(written(tmp_path, f"{name} = {{values = [1, 2]}}"))
    assert f"no setting {name}. There are lr, batch_size, layers, width, " in told


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "width = {values = []}")
    assert refusal(file) == "width is empty. Give one or several values."


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[lr", b"lr = " + b"[" * 5000, b"a = 1\na = 2"])
def test_a_file_that_is_no_toml_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "space.toml"
    path.write_bytes(content)
    assert refusal(path).startswith(f"{path} is not a TOML file: ")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.toml").startswith(f"Cannot read {tmp_path / 'none.toml'}: ")
    assert refusal(tmp_path).startswith(f"Cannot read {tmp_path}: ")


@pytest.mark.parametrize("flag", ["0.001:0.01", "0.001:0.01:linear"])
def test_a_grid_of_a_range_is_refused_with_a_remedy(flag: str) -> None:
    told = refusal(grid=True, lr=flag)
    assert told.startswith("lr is a range (0.001 to 0.01")
    assert told.endswith("Give values with commas, or another --sampler.")


def test_a_grid_of_a_range_of_a_file_is_refused(tmp_path: Path) -> None:
    told = refusal(written(tmp_path, "width = {low = 4, high = 8}"), grid=True)
    assert "width is a range (4 to 8)" in told


def test_the_order_of_a_file_makes_no_other_search(tmp_path: Path) -> None:
    """Processes of one search share the order of the grid's points."""
    width, dropout = "width = {values = [4, 8]}", "hidden = {values = [1, 2]}"
    one = made(written(tmp_path, f"{width}\n{dropout}"), grid=True)
    other = made(written(tmp_path, f"{dropout}\n{width}"), grid=True)
    assert list(one.points()) == list(other.points())
    assert list(one.parts) == list(other.parts)


def test_the_grid_has_every_point_once_and_neighbours_of_one_shape() -> None:
    space = made(grid=True, lr="0.1,0.2", batch_size="8,16", layers="1", dropout="0,0.5")
    points = list(space.points())
    assert space.size() == len(points) == 8
    assert points[:4] == [
        {"lr": 0.1, "batch_size": 8, "dropout": 0.0},
        {"lr": 0.1, "batch_size": 8, "dropout": 0.5},
        {"lr": 0.2, "batch_size": 8, "dropout": 0.0},
        {"lr": 0.2, "batch_size": 8, "dropout": 0.5},
    ]
    assert [each["batch_size"] for each in points] == [8] * 4 + [16] * 4
    assert len({tuple(each.items()) for each in points}) == 8


def test_a_range_has_no_grid() -> None:
    assert made().size() is None


def test_the_shape_is_all_but_learning_rate_and_dropout() -> None:
    space = made(dropout="0:0.5", width="4,8")
    params = {"lr": 0.1, "dropout": 0.25, "batch_size": 32, "layers": 2, "width": 8}
    assert space.shape(params) == (("batch_size", 32), ("layers", 2), ("width", 8))
    assert space.shape({**params, "lr": 1.0, "dropout": 0.0}) == space.shape(params)


def test_defaults_are_the_configurations_own_values() -> None:
    space = made(dropout="0:0.5", variant="full,no-concat", readout_relu="true,false")
    assert space.defaults(CONFIG) == {
        "lr": 0.001,
        "batch_size": 32,
        "layers": 3,
        "dropout": 0.5,
        "variant": "full",
        "readout_relu": False,
    }


@pytest.mark.parametrize(
    "texts", [{"lr": "0.01:0.1"}, {"layers": "4,5"}, {"variant": "no-concat,no-adaptive"}]
)
def test_defaults_outside_are_no_point(texts: dict[str, str]) -> None:
    assert made(**texts).defaults(CONFIG) is None


def test_defaults_at_the_end_of_a_range_are_inside() -> None:
    space = made(lr="0.001:0.1")
    assert space.defaults(CONFIG) == {"lr": 0.001, "batch_size": 32, "layers": 3}


def test_distributions() -> None:
    space = made(width="8:64", hidden="1:128:log", dropout="0:0.5", variant="full,no-concat")
    assert space.distributions() == {
        "lr": FloatDistribution(1e-4, 1e-2, log=True),
        "batch_size": CategoricalDistribution((32, 64, 128)),
        "layers": CategoricalDistribution((3, 4, 5)),
        "width": IntDistribution(8, 64),
        "hidden": IntDistribution(1, 128, log=True),
        "dropout": FloatDistribution(0, 0.5),
        "variant": CategoricalDistribution(("full", "no-concat")),
    }


def test_the_corners_are_the_largest_with_each_word() -> None:
    space = made(width="8:64", variant="full,no-concat", sort_key="aggregated,last-layer")
    corners = space.corners(CONFIG)
    assert {(each.model.variant.value, each.model.sort_key.value) for each in corners} == {
        (variant, key) for variant in ("full", "no-concat") for key in ("aggregated", "last-layer")
    }
    assert len(corners) == 4
    for each in corners:
        assert (each.training.lr, each.training.batch_size) == (0.01, 128)
        assert (each.model.layers, each.model.width) == (5, 64)


def test_a_space_survives_json(tmp_path: Path) -> None:
    """What a study remembers of it is compared with what a later command asks."""
    plain = made(width="8:64", readout_relu="true,false").as_plain()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["width"] == {"low": 8.0, "high": 64.0, "log": False}
    assert plain["readout_relu"] == {"values": [True, False]}


def test_parts_in_words() -> None:
    assert str(Range(1e-4, 0.01, log=True)) == "0.0001 to 0.01, log scale"
    assert str(Range(8, 1234567)) == "8 to 1234567"
    assert str(Choice((True, False))) == "true, false"
    assert str(Choice((0.1, "full", 512))) == "0.1, full, 512"


# Other models


GIN = configure(model="gin")


def test_another_model_is_searched_in_the_ranges_of_its_own_paper() -> None:
    found = default_space(GIN, grid=False)
    assert found == {
        "lr": Range(1e-4, 1e-2, log=True),  # its paper tries one, and so it is IHGNN's
        "width": Choice((16, 32, 64)),
        "batch_size": Choice((32, 128)),
        "dropout": Choice((0.0, 0.5)),
    }
    assert default_space(GIN, grid=True)["lr"] == Choice((0.01, 0.001, 0.0001))


def test_learning_rates_of_a_model_s_own_paper_are_the_ends_of_a_range() -> None:
    pgcn = configure(model="pgcn")
    assert default_space(pgcn, grid=False)["lr"] == Range(1e-4, 5e-4, log=True)
    assert default_space(pgcn, grid=True)["lr"] == Choice((5e-4, 1e-4))
    space, config = make_space(pgcn, {}, grid=False)
    # What its paper has one value of is settled.
    assert set(space.parts) == {"lr", "layers", "operator", "readout"}
    assert config.training.weight_decay == 5e-4
    assert config.model.dropout == 0.5


def test_what_can_be_searched_are_the_model_s_settings_those_of_adam_and_of_the_loss() -> None:
    assert kinds_of(GIN) == {
        "lr": float,
        "batch_size": int,
        "layers": int,
        "width": int,
        "hidden": int,
        "dropout": float,
        "learn_eps": bool,
        "weight_decay": float,
        "label_smoothing": float,
        "class_weights": ClassWeights,
    }
    assert "variant" in kinds_of(CONFIG)


def test_settings_of_any_kind_are_read_from_texts() -> None:
    texts = {"learn_eps": "true,false", "weight_decay": "0:0.1", "width": "8:64", "lr": "0.01"}
    space, config = make_space(GIN, texts, grid=False)
    assert space.parts == {
        "batch_size": Choice((32, 128)),
        "width": Range(8, 64),
        "dropout": Choice((0.0, 0.5)),
        "learn_eps": Choice((True, False)),
        "weight_decay": Range(0, 0.1),
    }
    assert config.training.lr == 0.01
    assert space.distributions()["learn_eps"] == CategoricalDistribution((True, False))
    point = {"batch_size": 32, "width": 9, "dropout": 0.5, "learn_eps": True, "weight_decay": 0.05}
    applied = config.with_values(point)
    assert applied.model.learn_eps is True  # type: ignore[attr-defined]
    assert (applied.model.width, applied.training.weight_decay) == (9, 0.05)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ({"variant": "full"}, "The model gin has no setting variant. There are lr, batch_size, "),
        ({"learn_eps": "yes"}, "learn_eps must be a list, each true or false, not 'yes'."),
        ({"learn_eps": "0:1"}, "learn_eps must be a list, each true or false, not '0:1'."),
        ({"width": "0:9"}, "width must be at least 1, not 0"),
    ],
)
def test_what_another_model_cannot_have_is_refused(texts: dict[str, str], told: str) -> None:
    with pytest.raises(InputError) as caught:
        make_space(GIN, texts, grid=False)
    assert told in str(caught.value)


def test_trials_of_another_model_share_a_stack_only_if_they_share_dropout() -> None:
    """A module draws its dropout itself, by its own setting."""
    point = {"lr": 0.1, "batch_size": 32, "width": 16, "dropout": 0.5}
    space, _ = make_space(GIN, {}, grid=False)
    assert space.members_own == ("lr",)
    assert dict(space.shape(point)) == {"batch_size": 32, "width": 16, "dropout": 0.5}
    ours, _ = make_space(CONFIG, {"dropout": "0,0.5"}, grid=False)
    assert ours.members_own == ("lr", "dropout")
    assert dict(ours.shape({**point, "layers": 3})) == {"batch_size": 32, "layers": 3}


def test_the_largest_and_the_smallest_of_another_model() -> None:
    space, config = make_space(
        configure(model="pgcn"), {"operator": "adjacency,laplacian"}, grid=True
    )
    corners = space.corners(config)
    assert len(corners) == 4  # two readouts, two operators
    assert {(each.model.layers, each.model.width) for each in corners} == {(8, 50)}
    (least,) = space.smallest(config)
    assert (least.model.layers, least.model.width) == (2, 50)


def test_the_defaults_of_another_model_are_a_point_where_they_lie_inside() -> None:
    space, config = make_space(GIN, {}, grid=False)
    assert space.defaults(config) == {"lr": 0.001, "batch_size": 32, "width": 32, "dropout": 0.5}
    narrow, config = make_space(GIN, {"width": "8,16"}, grid=False)
    assert narrow.defaults(config) is None


def test_a_file_may_search_any_setting_of_the_model(tmp_path: Path) -> None:
    file = written(tmp_path, "[learn_eps]\nvalues = [true, false]\n")
    assert make_space(GIN, {}, file, grid=False)[0].parts["learn_eps"] == Choice((True, False))
    with pytest.raises(InputError, match="no setting learn_eps"):
        make_space(CONFIG, {}, file, grid=False)
    wrong = written(tmp_path, "[learn_eps]\nlow = 0\nhigh = 1\n")
    with pytest.raises(InputError, match="each true or false"):
        make_space(GIN, {}, wrong, grid=False)
