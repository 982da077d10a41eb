"""Graphs of JSON in a model's words: as the readers of data sets would have it."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import PATH, STAR, with_distances
from tiny_models import dataset as tiny

from ihgnn_cli.data import Features, GraphDataset, load_dataset
from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.json_graph import GraphError, JsonGraph, check_graph, parse_graph
from ihgnn_cli.data.jsonl import read_jsonl, write_jsonl
from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.data.recode import UNKNOWN
from ihgnn_cli.data.splits import Split
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.vocabulary import (
    UnknownLabels,
    UnknownLabelsWarning,
    check_fits,
    encode_dataset,
    encode_graphs,
)
from ihgnn_cli.models.card import ModelCard, describe

SPLIT = Split([0], [1], [2])
SPLIT_OF_TWO = Split([0], [1], [], may_be_empty=True)
GRAPHS = (
    {"node_labels": ["a", "b", "c"], "edges": [[0, 1], [1, 2]], "class": "x"},
    {"node_labels": ["a", "a"], "edges": [[0, 1]], "class": "y"},
    {"node_labels": ["b"], "edges": [], "class": "x"},
)


@pytest.fixture
def data(tmp_path: Path) -> GraphDataset:
    """Three small graphs with labels a, b, c, and two attributes."""
    lines = [
        {
            **each,
            "node_attributes": [[float(node), 0.5] for node in range(len(each["node_labels"]))],
        }
        for each in GRAPHS
    ]
    path = tmp_path / "tiny.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return read_jsonl(path)


def card_of(data: GraphDataset, features: Features = Features.LABELS) -> ModelCard:
    return describe("tiny", data, features, SPLIT)


def graph(**entry: Any) -> JsonGraph:
    return check_graph(entry)


def same(one: GraphDataset, other: GraphDataset) -> None:
    """Everything that a model can see."""
    for name in ("node_ptr", "neighbor_ptr", "neighbors", "node_label"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.label_values == other.label_values
    if one.node_attributes is not None:
        np.testing.assert_array_equal(one.node_attributes, other.node_attributes)


@pytest.mark.parametrize("degrees", [False, True])
def test_mutag_is_what_its_reader_gives(tmp_path: Path, degrees: bool) -> None:
    mutag = load_dataset("MUTAG")
    own = mutag.with_degree_labels() if degrees else mutag
    # The vocabulary of the first graphs does not cover the others.
    label = np.unique(own.select(range(5)).node_label)
    known = tuple(own.label_values[each] for each in label)
    card = replace(describe("MUTAG", own, Features.LABELS, SPLIT), label_values=known)
    write_jsonl(mutag, tmp_path / "mutag.jsonl")
    lines = (tmp_path / "mutag.jsonl").read_bytes().splitlines()
    found = encode_graphs(card, [parse_graph(line) for line in lines]).dataset
    same(found, encode_dataset(card, mutag).dataset)
    assert (found.node_label == UNKNOWN).any()


@pytest.mark.parametrize("use", [False, True])
def test_edge_labels_of_lines_are_those_of_the_data_set(tmp_path: Path, use: bool) -> None:
    mutag = load_dataset("MUTAG")
    own = with_edge_labels(mutag, use=use, background="1")
    card = describe("MUTAG", own, Features.LABELS, SPLIT)
    write_jsonl(mutag, tmp_path / "mutag.jsonl")
    lines = (tmp_path / "mutag.jsonl").read_bytes().splitlines()
    graphs = [parse_graph(line) for line in lines]
    for each in graphs:
        check_fits(card, each)
    found, encoded = encode_graphs(card, graphs).dataset, encode_dataset(card, mutag).dataset
    same(found, encoded)
    same(encoded, own)
    assert found.edge_types == encoded.edge_types == (3 if use else 1)
    if use:
        np.testing.assert_array_equal(found.edge_type, own.edge_type)
        np.testing.assert_array_equal(encoded.edge_type, own.edge_type)
    assert encode_dataset(card, encoded).dataset.fingerprint == encoded.fingerprint


@pytest.mark.parametrize("background", ["", "q"])
@pytest.mark.parametrize("use", [False, True])
def test_bins_of_lines_are_those_of_the_data_set(
    tmp_path: Path, use: bool, background: str
) -> None:
    raw = replace(with_distances(tiny(PATH, STAR, edge_labels=True)), uses_edge_labels=False)
    own = with_edge_labels(raw, use=use, background=background, bins=2)
    card = describe("tiny", own, Features.LABELS, SPLIT_OF_TWO)
    write_jsonl(raw, tmp_path / "tiny.jsonl")
    graphs = [parse_graph(line) for line in (tmp_path / "tiny.jsonl").read_bytes().splitlines()]
    for each in graphs:
        check_fits(card, each)
    found, encoded = encode_graphs(card, graphs).dataset, encode_dataset(card, raw).dataset
    same(found, own)
    same(encoded, own)
    np.testing.assert_array_equal(found.edge_type, own.edge_type)
    np.testing.assert_array_equal(encoded.edge_type, own.edge_type)
    assert encoded.fingerprint == own.fingerprint
    assert encode_dataset(card, encoded).dataset.fingerprint == own.fingerprint
    assert encode_graphs(card, [graph(node_labels=["a"], edges=[])]).dataset.num_edges == 0


def test_new_graphs_are_divided_at_the_boundaries_of_the_model() -> None:
    data = with_edge_labels(with_distances(tiny(PATH, STAR)), bins=2)
    assert data.edge_bins is not None
    assert data.edge_bins.boundaries == pytest.approx((0.1,))
    card = describe("tiny", data, Features.LABELS, SPLIT_OF_TWO)
    new = {"node_labels": ["a"] * 3, "edges": [[0, 1], [1, 2]], "edge_attributes": [[-5], [9]]}
    found = encode_graphs(card, [graph(**new)]).dataset
    assert found.edge_type is not None
    assert found.edge_type.tolist() == [0, 0, 1, 1]
    alone = from_graphs([{**new, "class": "x"}])  # whose own quantiles are others
    encoded = encode_dataset(card, alone).dataset
    assert encoded.edge_type is not None
    assert encoded.edge_type.tolist() == [0, 0, 1, 1]
    with pytest.raises(
        InputError,
        match=r"^The model reads one edge attribute, and graphs has none\. Give data of the same",
    ):
        encode_dataset(card, replace(alone, edge_attributes=None))
    directed = np.arange(4, dtype=np.float32)[:, None]
    with pytest.raises(InputError, match=r"Give both directions the same attribute\.$"):
        encode_dataset(card, replace(alone, edge_attributes=directed))
    two = replace(alone, edge_attributes=np.zeros((4, 2), np.float32))
    with pytest.raises(InputError, match="reads one edge attribute, and graphs has 2"):
        encode_dataset(card, two)


def test_data_with_other_bins_than_those_of_the_model_is_refused() -> None:
    raw = replace(with_distances(tiny(PATH, STAR, edge_labels=True)), uses_edge_labels=False)
    card = describe("tiny", with_edge_labels(raw, bins=2), Features.LABELS, SPLIT_OF_TWO)
    for other in ({"bins": 3}, {"bins": 2, "use": True}, {"bins": 2, "background": "q"}):
        with pytest.raises(InputError, match=r"not those of the model\. Give it without bins"):
            encode_dataset(card, with_edge_labels(raw, **other))
    plain = describe("tiny", with_edge_labels(raw, use=True), Features.LABELS, SPLIT_OF_TWO)
    with pytest.raises(InputError, match="bins that are not those of the model"):
        encode_dataset(plain, with_edge_labels(raw, bins=2))


def test_edges_listed_twice_may_differ_in_what_the_model_does_not_read() -> None:
    raw = replace(with_distances(tiny(PATH, STAR, edge_labels=True)), uses_edge_labels=False)
    twice = {"node_labels": ["a", "a"], "edges": [[0, 1], [1, 0]], "edge_labels": ["p", "r"]}
    # 0.1 and 0.1000000001 are the same 32-bit float.
    near = graph(**twice, edge_attributes=[[0.1], [0.1000000001]])
    without = describe("tiny", with_edge_labels(raw, bins=2), Features.LABELS, SPLIT_OF_TWO)
    check_fits(without, near)
    assert encode_graphs(without, [near]).dataset.num_edges == 1
    with pytest.raises(GraphError, match="between 1 and 0 has two attributes"):
        check_fits(without, graph(**twice, edge_attributes=[[0.1], [0.1001]]))
    for more in ({"use": True}, {"background": "q"}):
        data = with_edge_labels(raw, bins=2, **more)
        with pytest.raises(GraphError, match="between 1 and 0 has two labels or attributes"):
            check_fits(describe("tiny", data, Features.LABELS, SPLIT_OF_TWO), near)


def test_graphs_without_the_attribute_or_with_an_unknown_pair_are_refused() -> None:
    raw = replace(with_distances(tiny(PATH, STAR, edge_labels=True)), uses_edge_labels=False)
    card = describe("tiny", with_edge_labels(raw, use=True, bins=2), Features.LABELS, SPLIT_OF_TWO)
    given = {"node_labels": ["a", "a"], "edges": [[0, 1]], "edge_labels": ["p"]}
    with pytest.raises(
        GraphError, match=r"reads one edge attribute, and there is none\. Give each"
    ):
        check_fits(card, graph(**given))
    with pytest.raises(GraphError, match="reads one edge attribute, and there are 2"):
        check_fits(card, graph(**given, edge_attributes=[[1, 2]]))
    with pytest.raises(GraphError, match="no edge_labels"):
        check_fits(card, graph(**{**given, "edge_labels": None}, edge_attributes=[[1]]))
    with pytest.raises(GraphError, match=r"not know the edge label s\. It knows p, q, r\.$"):
        check_fits(card, graph(**{**given, "edge_labels": ["s"]}, edge_attributes=[[1]]))
    twice = {**given, "edges": [[0, 1], [1, 0]], "edge_labels": ["p", "p"]}
    with pytest.raises(GraphError, match="between 1 and 0 has two labels or attributes"):
        check_fits(card, graph(**twice, edge_attributes=[[0.01], [0.02]]))


def test_a_known_edge_label_in_a_bin_that_it_never_had_is_refused_as_such() -> None:
    raw = replace(with_distances(tiny(PATH, STAR, edge_labels=True)), uses_edge_labels=False)
    card = describe("tiny", with_edge_labels(raw, use=True, bins=2), Features.LABELS, SPLIT_OF_TWO)
    card = replace(card, edge_label_values=("p,0", "p,1", "q,0"))
    new = graph(node_labels=["a"] * 2, edges=[[0, 1]], edge_labels=["q"], edge_attributes=[[1.37]])
    with pytest.raises(GraphError) as raised:
        check_fits(card, new)
    assert str(raised.value) == (
        "edge label q with the attribute 1.37 (bin 1) does not occur in the training data. Train "
        "on data in which it does, or with fewer --edge-bins."
    )
    with pytest.raises(InputError, match=r"does not know: r\. It knows p, q\. Leave out"):
        encode_dataset(card, raw)
    known = replace(card, edge_label_values=("p,0", "q,0", "r,0"))
    with pytest.raises(InputError, match="tiny has edge label p in bin 1 of the attribute and 2 o"):
        encode_dataset(known, raw)


@pytest.mark.parametrize("features", [Features.ATTRIBUTES, Features.BOTH])
def test_attributes_go_along(data: GraphDataset, features: Features) -> None:
    card = card_of(data, features)
    graphs = [
        graph(
            **each,
            node_attributes=[[float(node), 0.5] for node in range(len(each["node_labels"]))],
        )
        for each in GRAPHS
    ]
    found = encode_graphs(card, graphs).dataset
    assert found.node_attributes is not None
    np.testing.assert_array_equal(found.node_attributes, data.node_attributes)
    if features is Features.BOTH:
        same(found, encode_dataset(card, data).dataset)


def test_edges_are_made_simple_and_undirected(data: GraphDataset) -> None:
    edges = [[1, 0], [0, 1], [2, 2], [1, 2], [1, 2]]
    found = encode_graphs(card_of(data), [graph(node_labels=["a", "a", "a"], edges=edges)]).dataset
    assert found.edge_index().tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_each_graph_may_write_labels_in_its_way_and_needs_no_class(data: GraphDataset) -> None:
    card = replace(card_of(data), label_values=(7, 8))
    found = encode_graphs(
        card,
        [graph(node_labels=[7, 8, 9], edges=[]), graph(node_labels=["7", "8", "x"], edges=[])],
    )
    assert found.unknown_labels == (9, "x")
    found = found.dataset
    assert found.node_label.tolist() == [0, 1, UNKNOWN, 0, 1, UNKNOWN]
    assert found.graph_class.tolist() == [UNKNOWN, UNKNOWN]


def test_a_model_of_degrees_counts_them(data: GraphDataset) -> None:
    card = replace(card_of(data), label_source=LabelSource.DEGREE, label_values=(0, 2))
    star = graph(num_nodes=4, edges=[[0, 1], [0, 2]])  # degrees 2, 1, 1, 0
    check_fits(card, star)
    found = encode_graphs(card, [star])
    assert found.dataset.node_label.tolist() == [1, UNKNOWN, UNKNOWN, 0]
    assert found.unknown_labels == (1,)


def test_a_graph_without_what_the_model_reads_is_refused(data: GraphDataset) -> None:
    bare = graph(num_nodes=2, edges=[[0, 1]])
    with pytest.raises(GraphError, match="no node_labels, and the model was trained with labels"):
        check_fits(card_of(data), bare)
    with pytest.raises(
        GraphError, match=r"reads 2 node attributes, and there are none\. Give each"
    ):
        check_fits(card_of(data, Features.ATTRIBUTES), bare)
    with pytest.raises(GraphError, match=r"reads 2 node attributes, and there are 1\."):
        check_fits(
            card_of(data, Features.BOTH),
            graph(node_labels=["a"], edges=[], node_attributes=[[1.0]]),
        )
    check_fits(card_of(data, Features.ATTRIBUTES), graph(edges=[], node_attributes=[[1.0, 2.0]]))


def counted(
    card: ModelCard, *labels: str | int, allowed: bool = False
) -> tuple[bool, UnknownLabels]:
    """Whether a graph with these labels is refused, and the counts."""
    found = UnknownLabels(card, allowed)
    (refused,) = found.add(encode_graphs(card, [graph(node_labels=list(labels), edges=[])]))
    return bool(refused), found


@pytest.mark.parametrize(
    ("unknown", "many", "refused"),
    [(0, False, False), (1, False, False), (2, True, False), (9, True, False), (10, True, True)],
)
def test_a_warning_above_one_tenth_and_a_refusal_above_nine(
    data: GraphDataset, unknown: int, many: bool, refused: bool
) -> None:
    labels = [*["plutonium"] * unknown, *["a"] * (10 - unknown)]
    found, counts = counted(card_of(data), *labels)
    assert (counts.nodes, counts.unknown, counts.graphs) == (10, unknown, unknown > 0)
    assert found is refused
    with pytest.warns(UnknownLabelsWarning) if many else nullcontext():
        counts.warn()
    assert counted(card_of(data), *labels, allowed=True)[0] is False


def test_the_refusal_names_both_vocabularies_and_explains_positions(data: GraphDataset) -> None:
    card = card_of(data)
    known = ", ".join(map(str, card.label_values))
    encoded = encode_graphs(card, [graph(node_labels=[0, 1], edges=[])])
    assert UnknownLabels(card).refusal(encoded) == (
        "The labels of 2 of 2 nodes in 1 graph are unknown to the model (0, 1) and encoded as the "
        f"zero vector. It knows {known}.",
        "Labels are values, not positions in the model's vocabulary. Give graphs with labels of "
        "the model's data, or insist with --allow-unknown (allow_unknown=True in Python).",
    )
    encoded = encode_graphs(card, [graph(node_labels=["plutonium"], edges=[])])
    assert "positions" not in " ".join(UnknownLabels(card).refusal(encoded))


def test_a_model_of_attributes_knows_all_labels(data: GraphDataset) -> None:
    blind = card_of(data, Features.ATTRIBUTES)
    bare = graph(node_labels=["x"], edges=[], node_attributes=[[1.0, 2.0]])
    found = UnknownLabels(blind)
    assert found.add(encode_graphs(blind, [bare])).tolist() == [False]
    assert found.unknown == 0
