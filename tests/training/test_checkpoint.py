"""Checkpoints: the same again after loading, and nothing but ours is ever loaded or run."""

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
    """Set `a.b` of nested dictionaries, or remove it if the value is `MISSING`."""
    *outer, last = keys.split(".", 2 if keys.startswith("config") else 1)
    for key in outer:
        content = content[key]
    content[last] = value
    if value is MISSING:
        del content[last]


# The same again


@pytest.mark.parametrize("variant", list(Variant))
@pytest.mark.parametrize("members", [1, 3])
def test_a_checkpoint_is_loaded_as_it_was_saved(path: Path, variant: Variant, members: int) -> None:
    path.write_text("before")
    before = made(replace(SMALL, variant=variant), members)
    values = ("C", 'a "b"', "Größe", 4, 5, "", 7)
    before = replace(before, card=replace(before.card, label_values=values))
    save_checkpoint(before, path)
    after = load_checkpoint(path)
    assert (after.config, after.epoch, after.members) == (before.config, EPOCH, members)
    assert after.progress == {}
    assert after.card.as_plain() == before.card.as_plain()
    assert (after.card.inputs, after.card.label_values) == (before.card.inputs, values)
    assert after.weights.keys() == before.weights.keys()
    model = after.model(torch.device("cpu"))
    assert not model.training
    for name, value in before.weights.items():
        assert torch.equal(after.weights[name], value), name
        assert torch.equal(model.state_dict()[name], value), name
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_progress_is_kept(path: Path) -> None:
    progress = {"first": [torch.arange(3.0)], "steps": [4], "best": None, "seconds": 1.5}
    save_checkpoint(replace(made(), progress=progress, epoch=None), path)
    after = load_checkpoint(path)
    assert after.epoch is None
    assert torch.equal(after.progress["first"][0], torch.arange(3.0))
    assert after.progress["steps"] == [4]


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


def test_weights_that_are_no_numbers_are_loaded_for_what_they_are(
    path: Path, content: dict[str, Any]
) -> None:
    """A training that diverged: evaluation says so."""
    content["weights"]["classifier.second.bias"][:] = math.nan
    torch.save(content, path)
    assert load_checkpoint(path).weights["classifier.second.bias"].isnan().all()


# No checkpoint at all


def test_what_is_no_file_is_refused(path: Path) -> None:
    assert refused(path) == " does not exist. Give a ckpt.pt that 'train' wrote."
    assert refused(path.parent) == " is a folder. Give a ckpt.pt that 'train' wrote."
    with pytest.raises(InputError, match=r"Cannot read .*File name too long"):
        load_checkpoint(path.parent / ("a" * 300))


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"hello, world\n" * 100,
        b"PK\x03\x04",
        b"\x80\x04N.",
        bytes(1000),
        b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",  # nested lists
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.",  # claims to be huge
    ],
    ids=["empty", "text", "zip", "None", "zeros", "nested", "huge"],
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
        [],
        None,
        torch.zeros(3),
    ],
    ids=["another project's", "other mark", "tensor as mark", "[]", "None", "tensor"],
)
def test_a_checkpoint_of_another_project_is_refused(path: Path, other: object) -> None:
    expected = " is not an ihgnn checkpoint. Give a ckpt.pt that 'train' wrote."
    assert refused_content(path, other) == expected


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1, 10**30, "2", None, 1.5])
def test_another_version_is_refused(path: Path, content: dict[str, Any], version: object) -> None:
    put(content, "version", version)
    told = " was made by another version of ihgnn. Train again."
    assert refused_content(path, content) == told


def test_a_configuration_that_lacks_a_setting_is_of_another_version(
    path: Path, content: dict[str, Any]
) -> None:
    del content["config"]["training"]["snapshots"]
    told = " was made by another version of ihgnn. Train again."
    assert refused_content(path, content) == told


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
@pytest.mark.parametrize(
    "where", ["alone", "config", "weights.classifier.second.weight", "card.dataset", "progress"]
)
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


def test_a_file_that_was_cut_off_is_refused_as_damaged(path: Path) -> None:
    save_checkpoint(made(), path)
    whole = path.read_bytes()
    for length in [*range(1, len(whole), len(whole) // 20), 5000, len(whole) - 1]:
        path.write_bytes(whole[:length])
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
    weight = checkpoint.weights["classifier.first.weight"].numpy().tobytes()
    assert whole.count(weight) == 1
    broken = bytearray(whole)
    broken[whole.index(weight) + 3] ^= 0x40
    path.write_bytes(broken)
    assert refused(path)


# Content that does not fit together

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
MISSING = "missing"
HUGE = 10**12
WRONG = [
    # Sizes of another model, and sizes for which nothing may be allocated.
    *(("config.model.width", each) for each in (4, HUGE, None)),
    *(("config.model.layers", each) for each in (0, 2, HUGE, 1.0, True)),
    *(("config.model.hidden", each) for each in (3, HUGE)),
    *(("config.model.variant", each) for each in ("no-concat", "no-adaptive", "fuller")),
    *(("config.model.variant", each) for each in ("no-integration", "no-separation")),
    ("config.model.dropout", math.nan),
    ("config.training.lr", math.nan),
    ("config.training.lr", 10**400),
    ("config.training.momentum", 0.9),
    ("config.training.device", torch.zeros(1)),
    *(("card.max_nodes", each) for each in (5, 0, -28, HUGE)),
    *(("card.attributes", each) for each in (1, -1, HUGE)),
    ("card.label_values", ["C"]),
    ("card.class_values", [0, 1, 2]),
    ("card.features", "attributes"),
    *((f"card.{key}", each) for key in CARD for each in (MISSING, math.nan, torch.zeros(2))),
    ("card.split", {"test": [10], "model_selection": []}),
    ("card.split", {"test": [10], "model_selection": [{"train": [0], "validation": [0]}]}),
    ("card.split", {"test": [-1], "model_selection": [{"train": [0], "validation": [1]}]}),
    ("card.split", {"test": [2**80], "model_selection": [{"train": [0], "validation": [1]}]}),
    *(("members", each) for each in (MISSING, 2, 0, -1, HUGE)),
    *(("epoch", each) for each in (MISSING, 5, [1], {"epoch": 1})),
    ("epoch.epoch", "seven"),
    ("epoch.validation_accuracy", None),
    *(("progress", each) for each in (MISSING, None, [1])),
    *(
        ("weights.classifier.second.weight", each)
        for each in (MISSING, None, [[[0.0]]], torch.zeros(1, 2, 2).to_sparse())
    ),
    ("weights.classifier.second.weight", torch.zeros(1, 2, 2, device="meta")),
    ("weights.classifier.first.weight", MISSING),
    ("weights.theta", torch.zeros(1, 3)),
    ("weights.another", torch.zeros(1)),
]


@pytest.mark.parametrize(("keys", "value"), WRONG, ids=range(len(WRONG)))
def test_content_that_does_not_fit_is_refused_before_a_model_is_made(
    path: Path, content: dict[str, Any], keys: str, value: object
) -> None:
    assert set(content["card"]) == set(CARD)
    put(content, keys, value)
    torch.save(content, path)
    later = keys.startswith(("epoch", "progress", "weights.classifier.second.weight"))
    assert " is damaged (" in (refused if later else refused_unmade)(path)


def test_an_absurd_size_is_refused_even_if_a_weight_pretends_to_it(
    path: Path, content: dict[str, Any]
) -> None:
    """A tensor of strides 0 has any shape and takes four bytes."""
    content["card"]["max_nodes"] = HUGE
    content["weights"]["classifier.first.weight"] = torch.zeros(1).expand(1, 3 * HUGE, 2)
    assert " is damaged (" in refused_content(path, content)


def test_m_is_at_least_1_also_where_nodes_are_summed(path: Path) -> None:
    before = made(replace(SMALL, variant=Variant.NO_CONCAT))
    save_checkpoint(replace(before, card=replace(before.card, max_nodes=0)), path)
    assert " is damaged (" in refused(path)


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
    ("name", "keys", "value"),
    [
        ("gin", "config.model.width", HUGE),
        ("gin", "config.model.layers", 50),
        ("gin", "card.attributes", HUGE),
        ("gin", "members", 2),
        ("gin", "config.model.name", "ihgnn"),
        ("gin", "weights.inner.eps", MISSING),
        ("gin", "weights.inner.scores.0.bias", torch.zeros(2)),
        ("diffpool", "config.model.pools", HUGE),
        ("pcnet", "config.model.terms", HUGE),
    ],
)
def test_content_of_another_model_that_does_not_fit_is_refused_before_it_is_made(
    path: Path, name: str, keys: str, value: object
) -> None:
    save_checkpoint(made_of(name), path)
    content = torch.load(path, weights_only=True)
    put(content, keys, value)
    torch.save(content, path)
    assert " is damaged (" in refused_unmade(path)


def test_a_checkpoint_of_a_model_that_is_not_here_says_what_to_install(path: Path) -> None:
    save_checkpoint(made_of("gin"), path)
    content = torch.load(path, weights_only=True)
    content["config"]["model"] = {"name": "mine", "rank": 3}
    told = refused_content(path, content)
    assert told.startswith(": No model 'mine'. ")
    assert told.endswith(" If another package provides it, install that package.")
    assert "damaged" not in told
