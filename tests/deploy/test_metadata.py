"""What an exported file tells of itself."""

from dataclasses import asdict, replace

import pytest
from tiny_models import ALL, SMALL, dataset, untrained

from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.metadata import FORMAT, Limits, described, metadata
from ihgnn_cli.models.card import Snapshot

DATA = dataset(*ALL)
SETTINGS = asdict(SMALL)
LIMITS = Limits(node_limit=6, numbers=(48, 1, 0), embedding=8)


def test_everything_that_a_caller_needs_is_told() -> None:
    card = untrained(DATA).card
    told = metadata(card, SETTINGS, 1, Form(), LIMITS)
    assert told["format"] == 2 < FORMAT  # which is that of models that read edge labels
    assert told["card"]["class_values"] == ["x", "y"]
    assert told["card"]["label_values"] == ["a", "b", "c"]
    assert told["card"]["label_source"] == told["card"]["features"] == "labels"
    assert told["card"]["max_nodes"] == 6
    assert told["card"]["fingerprint"] == DATA.fingerprint
    assert (told["layout"], told["opset"], told["ir_version"]) == ("padded", 18, 8)
    assert told["members"] == 1
    assert (told["padding_label"], told["unknown_label"]) == (-1, -2)
    assert told["inputs"]["node_labels"]["shape"] == ["batch", "nodes"]
    assert told["outputs"]["probabilities"]["shape"] == ["batch", 2]
    for value in (*told["inputs"].values(), *told["outputs"].values()):
        assert value["type"] in {"int64", "uint8", "float32"}
        assert value["meaning"]


def test_what_a_label_is_depends_on_the_model() -> None:
    degrees = dataset(*ALL, labelled=False)
    for data, features, said in (
        (DATA, Features.LABELS, "position of the node's label"),
        (DATA, Features.BOTH, "position of the node's label"),
        (DATA, Features.ATTRIBUTES, "reads no labels"),
        (degrees, Features.LABELS, "computes degrees itself"),
    ):
        card = untrained(data, features=features).card
        told = metadata(card, SETTINGS, 1, Form(Layout.SPARSE), LIMITS)["inputs"]
        assert said in told["node_labels"]["meaning"]
        assert ("attributes" in told) is (features is not Features.LABELS)


@pytest.mark.parametrize("place", ["/home/me/tiny.jsonl", r"C:\me\tiny.zip", "../tiny"])
def test_a_path_stays_on_its_machine(place: str) -> None:
    card = replace(untrained(DATA).card, dataset=place)
    assert metadata(card, SETTINGS, 1, Form(), LIMITS)["card"]["dataset"] == ""


@pytest.mark.parametrize(
    ("split", "told"),
    [
        ("holdout", "holdout"),
        ("fold:3", "fold:3"),
        ("/tmp/me/mine.json:3:0", "mine.json:3:0"),
        (r"C:\me\mine.json:3", "mine.json:3"),
    ],
)
def test_of_a_file_of_splits_the_name_goes_along(split: str, told: str) -> None:
    card = replace(untrained(DATA).card, snapshot=Snapshot(7, True, (0,), split))
    snapshot = metadata(card, SETTINGS, 1, Form(), LIMITS)["card"]["snapshot"]
    assert snapshot == {"epoch": 7, "chosen": True, "seeds": [0], "split": told, "snapshots": 0}


@pytest.mark.parametrize("form", [Form(), Form(nodes=9), Form(Layout.SPARSE)])
def test_what_is_told_is_understood(form: Form) -> None:
    card = untrained(DATA).card
    found = described(metadata(card, SETTINGS, 1, form, LIMITS))
    assert found.card.as_plain() == card.as_plain()
    assert (found.layout, found.nodes) == (form.layout, form.nodes)
    assert found.limits == LIMITS


def test_a_file_without_limits_has_those_of_ihgnn() -> None:
    told = metadata(untrained(DATA).card, {**SETTINGS}, 1, Form(), LIMITS)
    del told["limits"]
    assert described(told).limits == LIMITS
    told["model"]["variant"] = "no-concat"
    assert described(told).limits.node_limit is None


def test_a_model_without_an_embedding_has_two_outputs() -> None:
    limits = replace(LIMITS, embedding=None)
    told = metadata(untrained(DATA).card, SETTINGS, 1, Form(), limits)
    assert list(told["outputs"]) == ["logits", "probabilities"]
    assert described(told).limits == limits
