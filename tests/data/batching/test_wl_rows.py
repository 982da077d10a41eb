"""Rows: nodes, or the classes of nodes that K rounds of 1-WL do not tell apart."""

from collections.abc import Callable
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ihgnn_cli.data.batching.wl_rows import Rows, color_rows, colors, compact_rows, node_rows
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, offsets


def dataset(*graphs: nx.Graph, labels: list[int] | None = None) -> GraphDataset:
    """Graphs on the nodes 0, 1, ...; all nodes have label 0 unless labels are given."""
    whole = nx.disjoint_union_all(graphs)
    neighbors = [sorted(whole[node]) for node in range(len(whole))]
    return GraphDataset(
        name="SMALL",
        node_ptr=offsets(np.array([len(graph) for graph in graphs])),
        neighbor_ptr=offsets(np.array([len(each) for each in neighbors])),
        neighbors=np.array([n for each in neighbors for n in each], dtype=np.int32),
        node_label=np.array(labels or [0] * len(whole), dtype=np.int32),
        label_values=("C", "N", "O"),
        label_source=LabelSource.LABELS,
        graph_class=np.zeros(len(graphs), dtype=np.int32),
        class_values=(0, 1),
    )


def received(rows: Rows, h: np.ndarray) -> np.ndarray:
    """What a node of each row receives when the nodes of row d hold h[d].

    An edge of label l counts 3^l times, if edge labels are used.
    """
    weight = np.ones(len(rows.neighbors)) if rows.weight is None else rows.weight
    if rows.edge_type is not None:
        weight = weight * 3.0**rows.edge_type
    row = np.repeat(np.arange(len(rows.size)), np.diff(rows.neighbor_ptr))
    return np.bincount(row, weight * h[rows.neighbors], len(rows.size))


def test_a_star_has_a_row_for_its_center_and_one_for_its_leaves() -> None:
    rows = color_rows(dataset(nx.star_graph(4)), rounds=1)
    assert sorted(rows.size.tolist()) == [1, 4]
    center, leaves = int(rows.size.argmin()), int(rows.size.argmax())
    assert rows.first_node[center] == 0
    assert rows.weight is not None
    pairs = dict(zip(rows.neighbors.tolist(), rows.weight.tolist(), strict=True))
    assert pairs == {leaves: 4, center: 1}  # the center receives from 4 leaves, a leaf from 1
    assert rows.weight_back is not None
    assert dict(zip(rows.neighbors.tolist(), rows.weight_back.tolist(), strict=True)) == {
        leaves: 1,
        center: 4,
    }


def test_a_complete_graph_is_one_row_next_to_itself() -> None:
    rows = color_rows(dataset(nx.complete_graph(5)), rounds=4)
    assert rows.size.tolist() == [5]
    assert rows.neighbors.tolist() == [0]
    assert rows.weight is not None
    assert rows.weight.tolist() == [4]


@pytest.mark.parametrize(("rounds", "count"), [(0, 1), (1, 2), (2, 3), (9, 3)])
def test_each_round_sees_one_step_further_along_a_path(rounds: int, count: int) -> None:
    rows = color_rows(dataset(nx.path_graph(5)), rounds=rounds)
    assert len(rows.size) == count


def test_labels_keep_nodes_apart() -> None:
    rows = color_rows(dataset(nx.complete_graph(3), labels=[0, 1, 1]), rounds=2)
    assert sorted(rows.size.tolist()) == [1, 2]


@pytest.mark.parametrize("label", [0, 1, 2, -1])
def test_labels_that_do_not_occur_change_nothing(label: int) -> None:
    # A path of seven nodes: the ends, their neighbours, those of these, and the middle.
    rows = color_rows(dataset(nx.path_graph(7), labels=[label] * 7), rounds=3)
    assert sorted(rows.size.tolist()) == [1, 2, 2, 2]


def test_equal_nodes_of_two_graphs_are_two_rows_of_the_same_color() -> None:
    two = dataset(nx.complete_graph(3), nx.complete_graph(3))
    assert len(set(colors(two, 3).tolist())) == 1
    rows = color_rows(two, rounds=3)
    assert rows.row_ptr.tolist() == [0, 1, 2]
    assert rows.graph_size.tolist() == [3, 3]


def test_rows_are_nodes_where_colors_do_not_pay() -> None:
    distinct = dataset(nx.path_graph(3), labels=[0, 1, 2])
    assert compact_rows(distinct, rounds=3).weight is None
    assert compact_rows(dataset(nx.complete_graph(3)), rounds=3).weight is not None


def test_edge_labels_tell_neighbours_apart_if_they_are_used() -> None:
    # A star whose third leaf hangs on an edge with label 1.
    star = with_labels_of_edges(dataset(nx.star_graph(3)), lambda a, b: int(3 in (a, b)))
    assert sorted(color_rows(replace(star, uses_edge_labels=False), 1).size.tolist()) == [1, 3]
    rows = color_rows(star, 1)
    assert sorted(rows.size.tolist()) == [1, 1, 2]
    center = int(np.flatnonzero(rows.first_node == 0)[0])
    of_center = slice(rows.neighbor_ptr[center], rows.neighbor_ptr[center + 1])
    assert rows.edge_type is not None
    assert rows.edge_type[of_center].tolist() == [0, 1]
    assert rows.weight is not None
    assert rows.weight[of_center].tolist() == [2, 1]


def with_labels_of_edges(data: GraphDataset, label: Callable[[int, int], int]) -> GraphDataset:
    """The data set with the labels 0, 1 and 2 of edges, which are used."""
    pairs = data.edge_index().T.tolist()
    labels = np.array([label(min(pair), max(pair)) for pair in pairs], dtype=np.int32)
    return replace(data, edge_label=labels, edge_label_values=(0, 1, 2), uses_edge_labels=True)


@pytest.mark.parametrize("edge_labels", [False, True])
@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(0.05, 0.9), st.integers(0, 4))
def test_rows_receive_what_their_nodes_receive(
    edge_labels: bool, seed: int, nodes: int, density: float, rounds: int
) -> None:
    labels = np.random.default_rng(seed).integers(0, 2, 2 * nodes).tolist()
    graphs = [nx.gnp_random_graph(nodes, density, seed=seed + i) for i in range(2)]
    data = dataset(*graphs, labels=labels)
    if edge_labels:
        data = with_labels_of_edges(data, lambda a, b: (a * b + seed) % 3)
    exact, compact = node_rows(data), color_rows(data, rounds)
    assert compact.size.sum() == data.num_nodes
    # The class of each node, by its graph and its colour.
    key = data.node_graph * data.num_nodes * 9 + colors(data, rounds)
    row = np.unique(key, return_inverse=True)[1]
    h, h_nodes = data.node_label[compact.first_node].astype(float), data.node_label.astype(float)
    for _ in range(rounds):  # embeddings of as many layers
        h, h_nodes = (
            np.sin(h + 2 * received(compact, h)),
            np.sin(h_nodes + 2 * received(exact, h_nodes)),
        )
        np.testing.assert_allclose(h[row], h_nodes, atol=1e-5)
