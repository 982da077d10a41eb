"""Checkpoints: the same again after loading, and nothing but ours is ever loaded or run."""

import io
import math
import pickle
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.splits import Split
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import describe
from ihgnn_cli.models.checkpoint import VERSION, SavedModel
from ihgnn_cli.models.entries.gnnml import Design, GNNMLSettings
from ihgnn_cli.models.settings import IHGNNSettings, ThetaInit, Variant
from ihgnn_cli.training.checkpoint import Checkpoint, build, load_checkpoint, save_checkpoint
from ihgnn_cli.training.classifier import TorchClassifier
from ihgnn_cli.training.config import RunConfig, configure
from ihgnn_cli.training.epoch import Epoch

EPOCH = Epoch(7, train_loss=0.5, train_accuracy=0.75, validation_loss=0.6, validation_accuracy=0.7)
SMALL = IHGNNSettings(layers=1, width=3, hidden=2, theta_init=ThetaInit.GLOROT)


def made(settings: IHGNNSettings = SMALL, members: int = 1) -> Checkpoint:
    """An untrained model of MUTAG's first 12 graphs."""
    dataset = load_dataset("MUTAG").select(range(12))
    split = Split(np.arange(8), np.array([8, 9]), np.array([10, 11]))
    card = describe("MUTAG", dataset, Features.LABELS, split)
    config = RunConfig(model=settings)
    weights = build(config, card.inputs, list(range(members))).state_dict()
    return Checkpoint(config, card, weights, members, EPOCH)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ckpt.pt"


@pytest.fixture
def content(path: Path) -> dict[str, Any]:
    """What a good file holds, to be made bad."""
    save_checkpoint(made(), path)
    found: dict[str, Any] = torch.load(path, weights_only=True)
    return found


def refused(path: Path) -> str:
    """The message that a file is refused with, without the path that it starts with."""
    with pytest.raises(InputError) as caught:
        load_checkpoint(path)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path))


def refused_unmade(path: Path) -> str:
    """The message that a file is refused with before its model is made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SavedModel, "model", lambda *_: pytest.fail("a model is made"))
        return refused(path)


def refused_content(path: Path, content: object) -> str:
    torch.save(content, path)
    return refused(path)


def put(content: dict[str, Any], keys: str, value: object) -> None:
    """Set `a.b` of nested dictionaries."""
    *outer, last = keys.split(".", 2 if keys.startswith("config") else 1)
    for key in outer:
        content = content[key]
    content[last] = value


# The same again


@pytest.mark.parametrize("variant", list(Variant))
@pytest.mark.parametrize("members", [1, 3])
def test_a_checkpoint_is_loaded_as_it_was_saved(path: Path, variant: Variant, members: int) -> None:
    before = made(replace(SMALL, variant=variant), members)
    save_checkpoint(before, path)
    after = load_checkpoint(path)
    assert after.config == before.config
    assert after.epoch == EPOCH
    assert after.members == members
    assert after.progress == {}
    assert after.weights.keys() == before.weights.keys()
    for name, value in before.weights.items():
        assert torch.equal(after.weights[name], value), name


def test_the_card_is_loaded_as_it_was_saved(path: Path) -> None:
    before = made()
    save_checkpoint(before, path)
    after = load_checkpoint(path).card
    assert after.as_plain() == before.card.as_plain()
    assert after.split.digest == before.card.split.digest
    assert after.seen == before.card.seen
    assert after.inputs == before.card.inputs
    assert after.label_values == before.card.label_values
    assert after.features is Features.LABELS


def test_the_model_of_a_checkpoint_has_its_weights(path: Path) -> None:
    before = made(members=2)
    save_checkpoint(before, path)
    model = load_checkpoint(path).model(torch.device("cpu"))
    assert not model.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, before.weights[name]), name


def test_progress_is_kept(path: Path) -> None:
    progress = {"first": [torch.arange(3.0)], "steps": [4], "best": None, "seconds": 1.5}
    save_checkpoint(replace(made(), progress=progress, epoch=None), path)
    after = load_checkpoint(path)
    assert after.epoch is None
    assert torch.equal(after.progress["first"][0], torch.arange(3.0))
    assert after.progress["steps"] == [4]


def test_labels_may_be_texts_and_numbers(path: Path) -> None:
    before = made()
    values = ("C", 'a "b"', "Größe", 4, 5, "", 7)
    before = replace(before, card=replace(before.card, label_values=values))
    save_checkpoint(before, path)
    assert load_checkpoint(path).card.label_values == values


def test_a_file_holds_only_plain_types(path: Path) -> None:
    save_checkpoint(made(), path)

    def check(value: object) -> None:
        assert type(value) in {dict, list, int, float, str, bool, type(None), torch.Tensor}
        for each in value.values() if isinstance(value, dict) else ():
            check(each)
        for each in value if isinstance(value, list) else ():
            check(each)

    found = torch.load(path, weights_only=True)
    found["weights"] = dict(found["weights"])
    check(found)


def test_the_same_checkpoint_replaces_the_file_whole(path: Path) -> None:
    path.write_text("before")
    save_checkpoint(made(), path)
    assert load_checkpoint(path).epoch == EPOCH
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_weights_are_loaded_to_the_cpu(path: Path) -> None:
    save_checkpoint(made(), path)
    assert {each.device.type for each in load_checkpoint(path).weights.values()} == {"cpu"}


# No checkpoint at all


def test_a_file_that_is_not_there_is_refused(path: Path) -> None:
    assert refused(path) == " does not exist. Give a ckpt.pt that 'train' wrote."


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == " is a folder. Give a ckpt.pt that 'train' wrote."


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot read .*File name too long"):
        load_checkpoint(tmp_path / ("a" * 300))


@pytest.mark.usefixtures("permissions")
def test_a_closed_file_is_refused(path: Path) -> None:
    path.touch(mode=0)
    with pytest.raises(InputError, match="Permission denied"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    "written",
    [b"", b"\n", b"hello, world\n" * 100, b"PK\x03\x04", b"\x80\x02", b"\x80\x04N.", bytes(1000)],
    ids=["empty", "a line", "text", "zip", "pickle", "None", "zeros"],
)
def test_a_file_of_something_else_is_refused(path: Path, written: bytes) -> None:
    path.write_bytes(written)
    assert refused(path).startswith(" is not an ihgnn checkpoint")


@pytest.mark.parametrize(
    "other",
    [
        {"model_state_dict": {"weight": torch.zeros(2)}, "epoch": 3},
        {"mark": "another checkpoint", "version": 1},
        {"mark": torch.zeros(3)},
        {},
        [],
        None,
        torch.zeros(3),
        "ihgnn checkpoint",
    ],
    ids=["another project's", "other mark", "tensor as mark", "{}", "[]", "None", "tensor", "text"],
)
def test_a_checkpoint_of_another_project_is_refused(path: Path, other: object) -> None:
    expected = " is not an ihgnn checkpoint. Give a ckpt.pt that 'train' wrote."
    assert refused_content(path, other) == expected


def test_a_whole_pickled_model_is_refused(path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), path)
    assert "No code in it was run" in refused(path)


@pytest.mark.parametrize("version", [VERSION + 1, 10**30, "2", None, 1.5])
def test_a_later_version_is_refused(path: Path, content: dict[str, Any], version: object) -> None:
    put(content, "version", version)
    told = refused_content(path, content)
    assert told.startswith(f" is a checkpoint of format {version!r}, and this ihgnn reads up to 1.")


# Hostile files


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.target,)


def raw_pickle(content: object, path: Path) -> None:
    path.write_bytes(pickle.dumps(content))


def legacy(content: object, path: Path) -> None:
    torch.save(content, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("write", [raw_pickle, torch.save, legacy])
@pytest.mark.parametrize("where", ["alone", "config", "weights.weight", "card.dataset", "progress"])
def test_nothing_in_a_hostile_file_is_run(
    path: Path, content: dict[str, Any], write: Callable[[object, Path], None], where: str
) -> None:
    victim = path.parent / "victim"
    bomb = Bomb(victim)
    if where == "alone":
        write(bomb, path)
    else:
        put(content, where, bomb)
        write(content, path)
    assert "No code in it was run" in refused(path)
    assert not victim.exists()
    pickle.loads(pickle.dumps(bomb))  # the bomb is no dud
    assert victim.exists()


# Damaged files


def test_a_file_that_was_cut_off_is_refused(path: Path) -> None:
    save_checkpoint(made(), path)
    whole = path.read_bytes()
    for length in [*range(1, len(whole), len(whole) // 20), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load_checkpoint(path)


def test_a_file_that_was_cut_off_is_told_as_damaged(path: Path) -> None:
    """And not as one that cannot be read: "Invalid argument" helps nobody."""
    save_checkpoint(made(), path)
    path.write_bytes(path.read_bytes()[:5000])
    assert refused(path).startswith(" is not an ihgnn checkpoint")


def test_a_flipped_byte_is_refused_or_harmless_but_never_another_error(path: Path) -> None:
    save_checkpoint(made(), path)
    whole = path.read_bytes()
    refusals = 0
    for offset in np.linspace(0, len(whole) - 1, 150).astype(int):
        for flipped in (0x01, 0xFF):
            broken = bytearray(whole)
            broken[offset] ^= flipped
            path.write_bytes(broken)
            try:
                load_checkpoint(path)
            except InputError:
                refusals += 1
    assert refusals > 50


def test_a_flipped_byte_in_a_weight_is_noticed(path: Path) -> None:
    checkpoint = made()
    save_checkpoint(checkpoint, path)
    whole = path.read_bytes()
    weight = checkpoint.weights["readout.weight"].numpy().tobytes()
    assert whole.count(weight) == 1
    broken = bytearray(whole)
    broken[whole.index(weight) + 3] ^= 0x40
    path.write_bytes(broken)
    assert refused(path)


def test_something_appended_does_not_change_what_is_loaded(path: Path) -> None:
    checkpoint = made()
    save_checkpoint(checkpoint, path)
    path.write_bytes(path.read_bytes() + b"more")
    try:
        after = load_checkpoint(path)
    except InputError:
        return
    assert all(torch.equal(after.weights[name], each) for name, each in checkpoint.weights.items())


# Content that does not fit together


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("config.model.width", 4),
        ("config.model.layers", 0),
        ("config.model.layers", 2),
        ("config.model.hidden", 3),
        ("config.model.variant", "no-concat"),
        ("config.model.variant", "no-adaptive"),
        ("config.model.variant", "no-integration"),
        ("config.model.variant", "no-separation"),
        ("card.max_nodes", 5),
        ("card.max_nodes", 0),
        ("card.max_nodes", -28),
        ("card.label_values", ["C"]),
        ("card.class_values", [0, 1, 2]),
        ("card.attributes", 1),
        ("card.features", "attributes"),
        ("members", 2),
        ("members", 0),
        ("members", -1),
    ],
)
def test_weights_of_another_model_are_refused(
    path: Path, content: dict[str, Any], keys: str, value: object
) -> None:
    put(content, keys, value)
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("card.max_nodes", 10**12),
        ("card.attributes", 10**12),
        ("config.model.width", 10**12),
        ("config.model.hidden", 10**12),
        ("config.model.layers", 10**12),
        ("members", 10**12),
    ],
)
def test_an_absurd_size_is_refused_before_anything_of_that_size_is_made(
    path: Path, content: dict[str, Any], keys: str, value: int
) -> None:
    put(content, keys, value)
    torch.save(content, path)
    told = refused_unmade(path)
    assert "do not belong together" in told or "is impossible" in told


def test_an_absurd_size_is_refused_even_if_a_weight_pretends_to_it(
    path: Path, content: dict[str, Any]
) -> None:
    """A tensor of strides 0 has any shape and takes four bytes."""
    content["card"]["max_nodes"] = 10**12
    content["weights"]["readout.weight"] = torch.zeros(1).expand(1, 3 * 10**12, 2)
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize(
    "name", ["weight", "readout.weight", "aggregation.theta", "input.tail.mean"]
)
def test_a_missing_weight_is_refused(path: Path, content: dict[str, Any], name: str) -> None:
    del content["weights"][name]
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bias", torch.zeros(1, 1, 3)),
        ("aggregation.theta", torch.zeros(1, 3)),
        ("layers.0.tail.scale", torch.zeros(0)),
        ("another", torch.zeros(1)),
        ("weight", torch.zeros(1, 2, 2).to_sparse()),
        ("weight", torch.zeros(1, 2, 2, device="meta")),
        ("weight", [[[0.0, 0.0], [0.0, 0.0]]]),
        ("weight", None),
        (5, torch.zeros(1)),
    ],
)
def test_a_weight_that_is_no_such_weight_is_refused(
    path: Path, content: dict[str, Any], name: str | int, value: object
) -> None:
    content["weights"][name] = value
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize(
    "key", ["config", "card", "weights", "members", "epoch", "progress", "version"]
)
def test_a_missing_part_is_refused(path: Path, content: dict[str, Any], key: str) -> None:
    del content[key]
    assert refused_content(path, content)


CARD = [
    "dataset",
    "dataset_name",
    "fingerprint",
    "features",
    "label_values",
    "label_source",
    "class_values",
    "attributes",
    "max_nodes",
    "split",
    "seen",
    "snapshot",
]


@pytest.mark.parametrize("key", CARD)
def test_a_card_without_a_field_is_refused(path: Path, content: dict[str, Any], key: str) -> None:
    assert set(content["card"]) == set(CARD)
    del content["card"][key]
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize(
    "value", [None, math.nan, 2.5, [math.nan], {1: 2}, torch.zeros(2)], ids=str
)
@pytest.mark.parametrize("key", CARD)
def test_a_card_with_a_field_of_the_wrong_type_is_refused(
    path: Path, content: dict[str, Any], key: str, value: object
) -> None:
    if key == "snapshot" and value is None:
        pytest.skip("before the first epoch there is none")
    content["card"][key] = value
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize(
    "split",
    [
        {},
        {"test": [10], "model_selection": []},
        {"test": [10], "model_selection": [{"train": [0], "validation": [0]}]},
        {"test": [-1], "model_selection": [{"train": [0], "validation": [1]}]},
        {"test": [math.nan], "model_selection": [{"train": [0], "validation": [1]}]},
        {"test": ["10"], "model_selection": [{"train": [0], "validation": [1]}]},
        {"test": [10], "model_selection": [{"train": [], "validation": [1]}]},
        {"test": [2**80], "model_selection": [{"train": [0], "validation": [1]}]},
    ],
    ids=str,
)
def test_a_card_with_a_split_that_is_none_is_refused(
    path: Path, content: dict[str, Any], split: object
) -> None:
    content["card"]["split"] = split
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("config.training.lr", math.nan),
        ("config.model.dropout", math.nan),
        ("config.model.layers", 1.0),
        ("config.model.layers", True),
        ("config.model.variant", "fuller"),
        ("config.training.momentum", 0.9),
        ("config.model.width", None),
        ("config.training.device", torch.zeros(1)),
    ],
)
def test_a_configuration_that_is_none_is_refused(
    path: Path, content: dict[str, Any], keys: str, value: object
) -> None:
    put(content, keys, value)
    assert " is damaged (" in refused_content(path, content)


def test_a_learning_rate_of_400_digits_is_refused(path: Path, content: dict[str, Any]) -> None:
    put(content, "config.training.lr", 10**400)
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize("value", [5, "x", [1], {"epoch": 1}, {"loss": 1}], ids=str)
def test_an_epoch_that_is_none_is_refused(
    path: Path, content: dict[str, Any], value: object
) -> None:
    content["epoch"] = value
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize(
    ("key", "value"), [("epoch", "seven"), ("epoch", math.nan), ("validation_accuracy", None)]
)
def test_an_epoch_with_a_field_of_the_wrong_type_is_refused(
    path: Path, content: dict[str, Any], key: str, value: object
) -> None:
    content["epoch"][key] = value
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize("value", [None, 5, "x", [1]])
def test_progress_that_is_no_dictionary_is_refused(
    path: Path, content: dict[str, Any], value: object
) -> None:
    content["progress"] = value
    assert " is damaged (" in refused_content(path, content)


@pytest.mark.parametrize("max_nodes", [0, -5])
def test_m_is_at_least_1_also_where_nodes_are_summed(path: Path, max_nodes: int) -> None:
    before = made(replace(SMALL, variant=Variant.NO_CONCAT))
    save_checkpoint(replace(before, card=replace(before.card, max_nodes=max_nodes)), path)
    assert " is damaged (" in refused(path)


def test_attributes_are_no_fewer_than_0(path: Path, content: dict[str, Any]) -> None:
    content["card"]["attributes"] = -1
    content["card"]["label_values"].append("one more")
    assert " is damaged (" in refused_content(path, content)


def test_weights_that_are_no_numbers_are_loaded_for_what_they_are(
    path: Path, content: dict[str, Any]
) -> None:
    """A training that diverged: evaluation says so."""
    content["weights"]["bias"][:] = math.nan
    torch.save(content, path)
    assert load_checkpoint(path).weights["bias"].isnan().all()


def test_a_pickle_of_many_nested_lists_is_refused(path: Path) -> None:
    stream = io.BytesIO()
    stream.write(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".")
    path.write_bytes(stream.getvalue())
    assert refused(path)


def test_a_pickle_that_claims_to_be_huge_is_refused(path: Path) -> None:
    path.write_bytes(b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.")
    assert refused(path)


# Other models


def made_of(name: str, members: int = 1, **settings: object) -> Checkpoint:
    """An untrained baseline of MUTAG's first 12 graphs, with statistics as good as any."""
    before = made()
    config = configure(overrides={"layers": 2, "width": 3, **settings}, model=name)
    model = build(config, before.card.inputs, list(range(members)))
    drawn = torch.Generator().manual_seed(0)
    weights = {
        name: value + 0.1 * torch.rand(value.shape, generator=drawn)
        if value.is_floating_point()
        else value
        for name, value in model.state_dict().items()
    }
    return Checkpoint(config, before.card, weights, members, EPOCH)


@pytest.fixture
def gin(path: Path) -> dict[str, Any]:
    """What a good file of a baseline holds, to be made bad."""
    save_checkpoint(made_of("gin"), path)
    found: dict[str, Any] = torch.load(path, weights_only=True)
    return found


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize(
    ("name", "settings"),
    [("gin", {"learn_eps": True}), ("gin", {}), ("pgcn", {"operator": "laplacian"})],
)
def test_a_checkpoint_of_another_model_answers_as_before(
    path: Path, name: str, settings: dict[str, object], members: int
) -> None:
    before = made_of(name, members, **settings)
    save_checkpoint(before, path)
    after = load_checkpoint(path)
    assert after.config == before.config
    assert after.members == members
    assert after.weights.keys() == before.weights.keys()
    for weight, value in before.weights.items():
        assert torch.equal(after.weights[weight], value), weight
    graphs, cpu = load_dataset("MUTAG"), torch.device("cpu")
    answers = [
        TorchClassifier(each, cpu).probabilities(graphs, np.arange(20)) for each in (before, after)
    ]
    assert np.array_equal(*answers)
    assert np.ptp(answers[0][:, 0]) > 0
    assert TorchClassifier(after, cpu).node_limit is None  # graphs of more nodes are no problem


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("config.model.width", 10**12),
        ("config.model.width", 10**5),
        ("config.model.layers", 10**12),
        ("config.model.layers", 50),
        ("card.attributes", 10**12),
        ("members", 10**12),
        ("members", 0),
        ("members", 2),
    ],
)
def test_an_absurd_size_of_another_model_is_refused_before_it_is_made(
    path: Path, gin: dict[str, Any], keys: str, value: int
) -> None:
    put(gin, keys, value)
    torch.save(gin, path)
    assert " is damaged (" in refused_unmade(path)


@pytest.mark.parametrize(("name", "setting"), [("diffpool", "pools"), ("pcnet", "terms")])
def test_an_absurd_number_of_any_setting_is_refused_at_once(
    path: Path, name: str, setting: str
) -> None:
    save_checkpoint(made_of(name), path)
    content = torch.load(path, weights_only=True)
    content["config"]["model"][setting] = 10**12
    torch.save(content, path)
    assert " is damaged (" in refused_unmade(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda weights: weights.pop("inner.scores.0.weight"),
        lambda weights: weights.pop("inner.eps"),  # a buffer
        lambda weights: weights.update({"more": torch.zeros(1)}),
        lambda weights: weights.update({"inner.scores.0.bias": torch.zeros(1, 3)}),
        lambda weights: weights.update({"inner.scores.0.bias": torch.zeros(2)}),
        lambda weights: weights.update({"inner.scores.0.bias": 5}),
    ],
)
def test_weights_of_another_model_have_to_be_all_there_and_fit(
    path: Path, gin: dict[str, Any], change: Callable[[dict[str, Any]], object]
) -> None:
    change(gin["weights"])
    assert " is damaged (" in refused_content(path, gin)


def test_a_diffpool_with_normalized_last_layers_is_refused_as_an_earlier_one(path: Path) -> None:
    """As it was built before: batch normalization after the last layer of each stack, too."""
    save_checkpoint(made_of("diffpool"), path)
    content = torch.load(path, weights_only=True)
    weights = content["weights"]
    last = {key.replace("norms.0", "norms.1"): each for key, each in weights.items()}
    weights.update({key: each for key, each in last.items() if "norms.1" in key})
    told = refused_content(path, content)
    assert "or an earlier version of ihgnn built diffpool differently). Train again" in told


def test_a_gnnml_without_a_design_is_that_of_mutag_as_before(path: Path) -> None:
    save_checkpoint(made_of("gnnml", learn_supports=True), path)
    content = torch.load(path, weights_only=True)
    del content["config"]["model"]["design"]
    torch.save(content, path)
    settings = load_checkpoint(path).config.model
    assert isinstance(settings, GNNMLSettings)
    assert settings.design is Design.MUTAG
    assert settings.learn_supports


def test_settings_of_one_model_do_not_pass_for_another_s(path: Path, gin: dict[str, Any]) -> None:
    gin["config"]["model"]["name"] = "ihgnn"
    assert "no setting learn_eps" in refused_content(path, gin)


def test_a_checkpoint_of_a_model_that_is_not_here_says_what_to_install(
    path: Path, gin: dict[str, Any]
) -> None:
    gin["config"]["model"] = {"name": "mine", "rank": 3}
    told = refused_content(path, gin)
    assert told.startswith(": No model 'mine'. ")
    assert told.endswith(" If another package provides it, install that package.")
    assert "damaged" not in told
