"""Mistakes of callers: what an exported graph ignores, and what Python refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import ALL, NO_EDGES, PATH, SMALL, STAR, Eager, dataset, untrained

from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.raw import checked
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.models.spec import Layout

DATA = dataset(*ALL)
CHECKPOINT = untrained(DATA, features=Features.BOTH)
Arrays = dict[str, Any]


def answers(layout: Layout, inputs: Arrays) -> list[np.ndarray]:
    model = Eager(CHECKPOINT, layout).model
    with torch.no_grad():
        found = model(**{k: torch.tensor(v) for k, v in inputs.items()})
        return [each.numpy() for each in found.values()]


def inputs(layout: Layout) -> Arrays:
    return Eager(CHECKPOINT, layout).inputs(CHECKPOINT.card, DATA, np.arange(len(DATA)))


def one_direction(given: Arrays) -> None:
    given["adjacency"] = np.triu(given["adjacency"])


def other_direction(given: Arrays) -> None:
    given["adjacency"] = np.tril(given["adjacency"])


def other_numbers(given: Arrays) -> None:
    given["adjacency"] *= 200


def self_loops(given: Arrays) -> None:
    given["adjacency"] |= np.eye(given["adjacency"].shape[1], dtype=np.uint8)


def edges_of_padding(given: Arrays) -> None:
    padding = given["node_labels"] == -1
    given["adjacency"][padding] = 1
    given["adjacency"].transpose(0, 2, 1)[padding] = 1


def nan_in_padding(given: Arrays) -> None:
    given["attributes"][given["node_labels"] == -1] = np.nan


@pytest.mark.parametrize(
    "mistake",
    [one_direction, other_direction, other_numbers, self_loops, edges_of_padding, nan_in_padding],
)
def test_the_padded_graph_ignores(mistake: Callable[[Arrays], None]) -> None:
    given = inputs(Layout.PADDED)
    expected = answers(Layout.PADDED, given)
    before = {name: each.copy() for name, each in given.items()}
    mistake(given)
    assert any(not np.array_equal(given[name], each) for name, each in before.items())
    for found, right in zip(answers(Layout.PADDED, given), expected, strict=True):
        np.testing.assert_array_equal(found, right)


def test_degrees_do_not_count_self_loops_or_padding() -> None:
    data = dataset(PATH, STAR, NO_EDGES, labelled=False)
    model = Eager(untrained(data), Layout.PADDED)
    given = model.inputs(model.card, data, np.arange(3))
    tensors = {name: torch.tensor(each) for name, each in given.items()}
    with torch.no_grad():
        expected = model.model(**tensors)["logits"]
        self_loops(given)
        edges_of_padding(given)
        tensors["adjacency"] = torch.tensor(given["adjacency"])
        torch.testing.assert_close(model.model(**tensors)["logits"], expected, rtol=0, atol=0)


def test_the_sparse_graph_ignores_self_loops() -> None:
    given = inputs(Layout.SPARSE)
    expected = answers(Layout.SPARSE, given)
    edges = given["edge_index"]
    loops = np.tile(np.arange(0, len(given["node_labels"]), 2), (2, 1))
    given["edge_index"] = np.concatenate([loops, edges, loops], 1)
    for found, right in zip(answers(Layout.SPARSE, given), expected, strict=True):
        np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("variant", [Variant.FULL, Variant.NO_CONCAT])
def test_a_graph_without_nodes_is_the_classifier_on_zeros(layout: Layout, variant: Variant) -> None:
    checkpoint = untrained(DATA, SMALL.__class__(2, 16, 8, variant=variant))
    model = Eager(checkpoint, layout).model
    given: Arrays = {
        "node_labels": [[-1, -1]] * 2,
        "adjacency": np.ones((2, 2, 2), dtype=np.uint8),
    }
    if layout is Layout.SPARSE:
        given = {"node_labels": [], "edge_index": [[], []], "ptr": [0, 0, 0]}
    kinds = {"adjacency": torch.uint8}
    tensors = {k: torch.tensor(v, dtype=kinds.get(k, torch.int64)) for k, v in given.items()}
    with torch.no_grad():
        found = model(**tensors)
    expected = checkpoint.weights["classifier.first.bias"][0].relu()
    torch.testing.assert_close(found["graph_embedding"], expected.expand(2, -1))
    weight, bias = (
        checkpoint.weights["classifier.second.weight"][0],
        checkpoint.weights["classifier.second.bias"][0],
    )
    torch.testing.assert_close(found["logits"], (expected @ weight + bias).expand(2, -1))


PAIR = {  # an edge, and a path of three nodes
    "node_labels": [0, 1, 0, 0, 1],
    "edge_index": [[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3]],
    "ptr": [0, 2, 5],
}


SPARSE = {
    "node_labels": ("tensor(int64)", ["nodes"]),
    "edge_index": ("tensor(int64)", [2, "edges"]),
    "ptr": ("tensor(int64)", ["batch_plus_1"]),
}


def sparse(**changed: Any) -> Arrays:
    return checked(SPARSE, PAIR | changed, 0)


def test_right_arrays_are_accepted_and_converted() -> None:
    found = sparse(node_labels=np.array([0, 1, 0, 0, 1], dtype=np.uint8))
    assert {each.dtype for each in found.values()} == {np.dtype(np.int64)}
    empty = sparse(node_labels=[], edge_index=np.zeros((2, 0)), ptr=[0])
    assert empty["edge_index"].shape == (2, 0)
    # The graph ignores self-loops.
    sparse(edge_index=[[0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"edge_index": [[0, 2, 3], [1, 3, 4]]}, "from node 0 to node 1, but not the one back"),
        ({"edge_index": [[0, 1, 0, 1], [1, 0, 1, 0]]}, "lists an edge twice"),
        # Each graph numbered from 0.
        ({"edge_index": [[0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]]}, r"add ptr\[g\]"),
        ({"edge_index": [[1, 2], [2, 1]]}, "joins nodes 1 and 2 of two graphs"),
        ({"edge_index": [[0, 5], [5, 0]]}, "has node 5, and the nodes of the batch are 0 to 4"),
        ({"edge_index": [[0, 1], [2, 3], [3, 2]]}, r"shape \[3, 2\].* takes \[2, edges\]"),
        ({"ptr": [2, 3]}, "end with 5.*These are sizes"),
        ({"ptr": [0, 2, 4]}, "end with 5, the number of nodes.$"),
        ({"ptr": [0, 3, 2, 5]}, "never fall"),
        ({"node_labels": ["C", "O", "C", "C", "O"]}, "Give int64"),
        ({"adjacency": []}, "This model takes node_labels, edge_index, ptr"),
    ],
)
def test_python_refuses_what_the_sparse_graph_cannot_ignore(changed: Arrays, told: str) -> None:
    with pytest.raises(InputError, match=told):
        sparse(**changed)


def test_python_refuses_numbers_that_are_none_in_real_nodes_only() -> None:
    size = ["batch", 9]
    about = {
        "node_labels": ("tensor(int64)", size),
        "adjacency": ("tensor(uint8)", [*size, 9]),
        "attributes": ("tensor(float)", [*size, 2]),
    }
    given = Eager(CHECKPOINT).inputs(CHECKPOINT.card, DATA, np.arange(len(DATA)), 9)
    nan_in_padding(given)
    checked(about, given, 0)
    given["adjacency"] = given["adjacency"].astype(np.int64) * 256
    assert checked(about, given, 0)["adjacency"].max() == 1
    with pytest.raises(InputError, match="They must agree"):
        checked(about, {**given, "adjacency": given["adjacency"][:3]}, 0)
    with pytest.raises(InputError, match=r"takes \[batch, 9, 9\]"):
        checked(about, {**given, "adjacency": given["adjacency"][:, :3]}, 0)
    given["attributes"][0, 0, 1] = np.nan
    with pytest.raises(InputError, match="not a finite number"):
        checked(about, given, 0)


def test_python_refuses_edge_labels_that_are_none_or_differ_by_direction() -> None:
    about = SPARSE | {"edge_labels": ("tensor(int64)", ["edges"])}
    right = {"node_labels": [0, 1], "edge_index": [[0, 1], [1, 0]], "ptr": [0, 2]}
    checked(about, {**right, "edge_labels": [1, 1]}, 2)
    for labels, said in (([2, 2], "positions 0 to 1"), ([0, 1], "between the two directions")):
        with pytest.raises(InputError, match=said):
            checked(about, {**right, "edge_labels": labels}, 2)
    about = {
        "node_labels": ("tensor(int64)", ["batch", "nodes"]),
        "adjacency": ("tensor(uint8)", ["batch", "nodes", "nodes"]),
    }
    for adjacency, said in (([[0, 3], [3, 0]], "up to 2"), ([[0, 1], [2, 0]], "two directions")):
        with pytest.raises(InputError, match=said):
            checked(about, {"node_labels": [[0, 1]], "adjacency": [adjacency]}, 2)
