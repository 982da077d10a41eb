"""The arrays that exported models take, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from tiny_models import PATH, SINGLE, TRIANGLE, UNKNOWN_LABELS, dataset, untrained

from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.inputs import padded_inputs, sparse_inputs

DATA = dataset(PATH, UNKNOWN_LABELS, SINGLE, TRIANGLE)
GRAPHS = np.array([2, 1])


def test_padded_graphs_have_the_size_of_the_largest() -> None:
    inputs = padded_inputs(untrained(DATA).card, DATA, GRAPHS)
    assert inputs["node_labels"].tolist() == [[2, -1, -1], [-2, 0, -2]]
    assert inputs["adjacency"].tolist() == [
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0, 1, 0], [1, 0, 1], [0, 1, 0]],
    ]
    assert {name: each.dtype for name, each in inputs.items()} == {
        "node_labels": np.int64,
        "adjacency": np.uint8,
    }


def test_padded_graphs_have_the_size_that_is_asked_for() -> None:
    inputs = padded_inputs(untrained(DATA).card, DATA, GRAPHS[:1], size=2)
    assert inputs["node_labels"].tolist() == [[2, -1]]
    assert inputs["adjacency"].shape == (1, 2, 2)


def test_sparse_graphs_are_numbered_through_the_batch() -> None:
    inputs = sparse_inputs(untrained(DATA).card, DATA, GRAPHS)
    assert inputs["node_labels"].tolist() == [2, -2, 0, -2]
    assert inputs["edge_index"].tolist() == [[1, 2, 2, 3], [2, 1, 3, 2]]
    assert inputs["ptr"].tolist() == [0, 1, 4]
    assert {each.dtype for each in inputs.values()} == {np.dtype(np.int64)}


def test_attributes_stand_where_their_nodes_stand() -> None:
    card = untrained(DATA, features=Features.BOTH).card
    listed = sparse_inputs(card, DATA, GRAPHS)["attributes"]
    assert DATA.node_attributes is not None
    np.testing.assert_array_equal(listed, DATA.node_attributes[[8, 5, 6, 7]])
    padded = padded_inputs(card, DATA, GRAPHS)["attributes"]
    np.testing.assert_array_equal(padded[0, 0], listed[0])
    np.testing.assert_array_equal(padded[1], listed[1:])
    assert (padded[0, 1:] == 0).all()
    assert padded.dtype == listed.dtype == np.float32
    with pytest.raises(ValueError, match="no node attributes"):
        sparse_inputs(card, replace(DATA, node_attributes=None), GRAPHS)
