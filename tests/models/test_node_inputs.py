"""Inputs that are computed from the graph, by hand on small graphs."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from graph_makers import HEXAGON, KITE, STAR, TWO_TRIANGLES, dataset_of

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.json_graph import check_graph
from ihgnn_cli.data.kinds import NodeInputs, node_inputs
from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.data.splits import Split
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.vocabulary import encode_dataset, encode_graphs
from ihgnn_cli.models.card import card_from_plain, describe
from ihgnn_cli.models.node_inputs import column_names, fit_columns, with_columns
from ihgnn_cli.training.checkpoint import build
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.loading import store_for
from ihgnn_cli.training.stack import predict

CPU = torch.device("cpu")
ALL = "degree,homophily,triangles,random-walk"
# A triangle 0-1-2 with a tail 2-3, and an edge.
TAILED = {"node_labels": ["a", "a", "b", "b"], "edges": [[0, 1], [1, 2], [0, 2], [2, 3]]}
EDGE = {"node_labels": ["a", "b"], "edges": [[0, 1]]}
DATA = from_graphs([TAILED, EDGE, TAILED], ["x", "y", "x"])
SPLIT = Split([0], [1], [2])


def raw(name: str) -> list[float]:
    """The column before it is standardised, of the first two graphs."""
    (column,) = [each for each in fit_columns(DATA, ALL, Features.LABELS) if each.name == name]
    found = with_columns(DATA, Features.LABELS, [column]).node_attributes
    assert found is not None
    return (found[:6, 0] * column.scale + column.shift).tolist()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("degree", [2, 2, 3, 1, 1, 1]),
        ("log_degree", [math.log(each) for each in (3, 3, 4, 2, 2, 2)]),
        # Same label: node 0 has neighbours a, b; 2 has a, a, b.
        ("homophily", [1 / 2, 1 / 2, 1 / 3, 1, 0, 0]),
        ("triangles", [math.log(2)] * 3 + [0, 0, 0]),
        # Back after two steps: from 0 over 1 (1/2 · 1/2) or over 2 (1/2 · 1/3).
        ("return_2", [5 / 12, 5 / 12, (1 / 2 + 1 / 2 + 1) / 3, 1 / 3, 1, 1]),
        # Around the triangle, in both directions: 2 · 1/2 · 1/2 · 1/3.
        ("return_3", [1 / 6, 1 / 6, 1 / 6, 0, 0, 0]),
        # From 3 only over 2: 1 · (the walk of 2 that is back after 2 steps) · 1/3.
        ("return_4", [None, None, None, 2 / 9, 1, 1]),
    ],
)
def test_columns_by_hand(name: str, expected: list) -> None:
    for found, wanted in zip(raw(name), expected, strict=True):
        assert wanted is None or found == pytest.approx(wanted, abs=1e-6)


def test_columns_are_standardised_over_the_data_set() -> None:
    columns = fit_columns(DATA, "degree", Features.LABELS)
    found = with_columns(DATA, Features.LABELS, columns).node_attributes
    assert found is not None
    assert found[:, 0].mean() == pytest.approx(0, abs=1e-6)
    assert found[:, 0].std() == pytest.approx(1, abs=1e-6)
    assert found[2, 1] == pytest.approx(3 / 1.8 - 1)  # the mean degree of ten nodes is 1.8


@pytest.mark.parametrize("features", [Features.LABELS, Features.BOTH])
def test_degrees_are_left_out_where_the_model_reads_them_as_labels(features: Features) -> None:
    assert column_names("degree", LabelSource.DEGREE, features) == ()
    assert column_names("degree,triangles", LabelSource.DEGREE, features) == ("triangles",)
    assert fit_columns(DATA.with_degree_labels(), "degree", features) == ()


def test_degrees_stay_where_the_model_reads_no_labels() -> None:
    found = column_names("degree", LabelSource.DEGREE, Features.ATTRIBUTES)
    assert found == ("log_degree", "degree")


def test_names_may_come_in_any_order_and_unknown_ones_are_refused() -> None:
    assert node_inputs("triangles, Degree") == (NodeInputs.DEGREE, NodeInputs.TRIANGLES)
    with pytest.raises(InputError, match="No node input 'colour'"):
        configure(overrides={"inputs": "colour"})
    with pytest.raises(InputError, match="needs labels"):
        configure(overrides={"inputs": "homophily", "features": "attributes"})


def test_a_single_graph_is_encoded_as_in_its_data_set() -> None:
    card = describe("", DATA, Features.LABELS, SPLIT, ALL)
    assert (card.features, card.attributes, card.given_attributes) == (Features.BOTH, 7, 0)
    assert card.given_features == Features.LABELS
    whole = encode_dataset(card, DATA).dataset.node_attributes
    graph = check_graph(TAILED)
    alone = encode_graphs(card, [graph]).dataset.node_attributes
    np.testing.assert_array_equal(whole[:4], alone)


def test_a_card_keeps_its_constants() -> None:
    card = describe("", DATA, Features.LABELS, SPLIT, ALL)
    assert card_from_plain(card.as_plain()).columns == card.columns
    broken = card.as_plain()
    broken["columns"][0]["scale"] = 0.0
    with pytest.raises(ValueError, match="not a computed input"):
        card_from_plain(broken)


def test_own_attributes_come_first() -> None:
    own = np.arange(10, dtype=np.float32)[:, None]
    data = replace(DATA, node_attributes=own)
    card = describe("", data, Features.BOTH, SPLIT, "triangles")
    found = encode_dataset(card, data).dataset.node_attributes
    assert (card.attributes, card.given_attributes) == (2, 1)
    np.testing.assert_array_equal(found[:, 0], own[:, 0])


def test_equal_rows_stay_exact_with_computed_inputs() -> None:
    config = configure(overrides={"inputs": ALL, "layers": 2, "width": 4, "hidden": 8})
    data = dataset_of([TWO_TRIANGLES, HEXAGON, STAR, KITE])
    card = describe("", data, Features.LABELS, SPLIT, ALL)
    model = build(config, card.inputs, [0])
    compact = store_for(config, data, data.max_nodes, CPU)
    encoded = encode_dataset(card, data).dataset
    nodes = GraphStore(encoded, card.features, data.max_nodes, None, CPU)
    assert len(compact.rows.size) < 0.8 * data.num_nodes
    graphs = np.arange(4)
    np.testing.assert_allclose(
        predict(model, compact, graphs), predict(model, nodes, graphs), atol=1e-5
    )
