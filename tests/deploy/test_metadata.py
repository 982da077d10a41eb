"""What an exported file says about itself."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from tiny_models import ALL, SMALL, dataset, untrained

from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.metadata import FORMAT, Metadata, metadata_from_plain
from ihgnn_cli.models.card import ModelCard, Snapshot, describe
from ihgnn_cli.models.node_inputs import InputColumn
from ihgnn_cli.models.spec import Layout

DATA = dataset(*ALL)
MODEL = {"name": "ihgnn", **asdict(SMALL)}
INPUTS = {"node_labels": ("int64", ["batch", "nodes"]), "adjacency": ("uint8", ["batch", "nodes"])}
OUTPUTS = {"probabilities": ("float32", ["batch", 2])}


def metadata(card: ModelCard, layout: Layout = Layout.PADDED) -> Metadata:
    return Metadata(card, layout, 1, MODEL, 6)


def plain(card: ModelCard, layout: Layout = Layout.PADDED, more: dict | None = None) -> dict:
    return metadata(card, layout).as_plain(INPUTS | (more or {}), OUTPUTS)


@pytest.mark.parametrize("layout", Layout)
def test_what_is_written_is_read_again(layout: Layout) -> None:
    card = untrained(DATA).card
    found = metadata_from_plain(plain(card, layout))
    assert found.card.as_plain() == card.as_plain()
    assert (found.layout, found.members, found.model) == (layout, 1, MODEL)
    assert (found.node_limit, found.width, found.numbers_per_node) == (6, 16, 48)


def test_inputs_and_outputs_are_those_of_the_graph_with_their_meaning() -> None:
    told = plain(untrained(DATA).card)
    assert told["format"] == FORMAT
    assert told["inputs"]["node_labels"]["shape"] == ["batch", "nodes"]
    assert told["outputs"]["probabilities"]["type"] == "float32"
    assert (told["padding_label"], told["unknown_label"]) == (-1, -2)
    assert plain(untrained(DATA).card, Layout.SPARSE)["padding_label"] is None


def test_the_meaning_of_a_label_depends_on_the_model() -> None:
    degrees = dataset(*ALL, labelled=False)
    for data, features, said in (
        (DATA, Features.LABELS, "position of the node's label"),
        (DATA, Features.BOTH, "position of the node's label"),
        (DATA, Features.ATTRIBUTES, "reads no labels"),
        (degrees, Features.LABELS, "computes degrees itself"),
    ):
        told = plain(untrained(data, features=features).card)["inputs"]["node_labels"]["meaning"]
        assert said in told


def test_computed_inputs_say_how_they_are_computed() -> None:
    card = describe("tiny", DATA, Features.LABELS, untrained(DATA).card.split, "degree")
    told = plain(card, more={"attributes": ("float32", ["batch", "nodes", 2])})
    degree = DATA.degree.astype(np.float64)
    first, second = told["computed"].values()
    assert list(told["computed"]) == ["log_degree", "degree"]
    assert first["formula"].startswith("ln(1 + d)")
    assert first["shift"] == pytest.approx(np.log1p(degree).mean())
    assert second["shift"] == second["scale"] == pytest.approx(degree.mean())
    assert "(x - shift) / scale" in told["inputs"]["attributes"]["meaning"]
    card = replace(card, columns=(InputColumn("log_degree", 1.0, 2.0),), attributes=1)
    assert metadata_from_plain(plain(card, more={})).card.columns == card.columns


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("holdout", "holdout"),
        ("/tmp/me/mine.json:3:0", "mine.json:3:0"),
        (r"C:\me\mine.json:3", "mine.json:3"),
    ],
)
def test_paths_stay_on_their_machine(given: str, told: str) -> None:
    card = replace(untrained(DATA).card, snapshot=Snapshot(7, True, (0,), given))
    assert plain(card)["card"]["snapshot"]["split"] == told
    for place in ("/home/me/tiny.jsonl", r"C:\me\tiny.zip", "../tiny"):
        assert plain(replace(card, dataset=place))["card"]["dataset"] == ""
