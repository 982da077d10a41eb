"""Graphs as modules see them: by hand, out of batches, in parts, and what is derived of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from graph_makers import CPU, KITE, PATH, SINGLE, STAR, TRIANGLE, UNKNOWN_LABELS, dataset_of
from torch import Tensor

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.models.graphs import Graphs, member_graphs


def by_hand() -> Graphs:
    """A path of three nodes, an edge of two and a single node; x counts from 0."""
    return Graphs(
        x=torch.arange(6.0).unsqueeze(1),
        edge_index=torch.tensor([[1, 0, 2, 1, 4, 3], [0, 1, 1, 2, 3, 4]]),
        graph=torch.tensor([0, 0, 0, 1, 1, 2]),
        sizes=(3, 2, 1),
        edge_counts=(4, 2, 0),
        keys=(7, 8, 9),
        memo={},
    )


def store_of(dataset: GraphDataset, features: Features = Features.LABELS) -> GraphStore:
    return GraphStore(dataset, features, dataset.max_nodes, None, CPU)


def neighbours(graphs: Graphs) -> set[tuple[int, int]]:
    return set(map(tuple, graphs.edge_index.T.tolist()))


# By hand


def test_numbers_of_nodes_and_edges_are_added_up() -> None:
    graphs = by_hand()
    assert len(graphs) == 3
    assert graphs.largest == 3
    assert graphs.node_ptr == (0, 3, 5, 6)
    assert graphs.edge_ptr == (0, 4, 6, 6)
    assert graphs.rank.tolist() == [0, 1, 2, 0, 1, 0]


def test_a_degree_is_the_number_of_neighbours() -> None:
    assert by_hand().degree.tolist() == [1, 2, 1, 1, 1, 0]


def test_edges_are_summed_at_their_receivers_and_nodes_at_their_graphs() -> None:
    graphs = by_hand()
    sent = graphs.x[graphs.edge_index[0]]
    assert graphs.sum_to_nodes(sent).flatten().tolist() == [1, 2, 1, 4, 3, 0]
    assert graphs.sum_nodes(graphs.x).flatten().tolist() == [3, 7, 5]


def test_rows_are_padded_with_zeros() -> None:
    graphs = by_hand()
    dense = graphs.padded(graphs.x + 1)
    assert dense.squeeze(2).tolist() == [[1, 2, 3], [4, 5, 0], [6, 0, 0]]
    assert graphs.mask.tolist() == [[True] * 3, [True, True, False], [True, False, False]]


def test_padding_carries_gradients() -> None:
    graphs = by_hand()
    x = graphs.x.clone().requires_grad_()
    torch.autograd.backward((graphs.padded(x) * 2).sum())
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [2] * 6


def test_the_adjacency_is_padded_and_symmetric() -> None:
    assert by_hand().adjacency.tolist() == [
        [[0, 1, 0], [1, 0, 1], [0, 1, 0]],
        [[0, 1, 0], [1, 0, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    ]


# Out of a batch


def test_each_member_has_its_own_graphs_without_padding() -> None:
    dataset = dataset_of([TRIANGLE, PATH, SINGLE, KITE])
    batch = store_of(dataset).batch([np.array([2, 1, 0]), np.array([3])])
    first, second = member_graphs(batch, 0), member_graphs(batch, 1)
    assert first.sizes == (5, 3, 1)  # the largest first
    assert first.keys == (1, 0, 2)
    assert first.edge_counts == (8, 6, 0)
    assert first.x.argmax(1).tolist() == [0, 0, 1, 2, 0, 0, 1, 2, 2]
    path = {(a, b) for a in range(5) for b in range(5) if abs(a - b) == 1}
    triangle = {(a, b) for a in range(5, 8) for b in range(5, 8) if a != b}
    assert neighbours(first) == path | triangle
    assert second.sizes == (4,)
    assert second.keys == (3,)
    assert second.x.argmax(1).tolist() == [0, 1, 0, 2]
    assert neighbours(second) == {(a, b) for a, b in KITE[1]} | {(b, a) for a, b in KITE[1]}
    assert second.graph.tolist() == [0] * 4


def test_edges_stand_in_ascending_order_of_receivers() -> None:
    dataset = dataset_of([STAR, KITE, PATH])
    graphs = member_graphs(store_of(dataset).batch([np.arange(3)]), 0)
    receiver = graphs.edge_index[1]
    assert torch.equal(receiver, receiver.sort().values)
    assert torch.equal(graphs.graph[graphs.edge_index[0]], graphs.graph[receiver])


def test_a_member_without_graphs_has_none() -> None:
    dataset = dataset_of([TRIANGLE, PATH])
    batch = store_of(dataset).batch([np.array([0, 1]), np.array([], dtype=np.int64)])
    assert len(member_graphs(batch, 0)) == 2
    empty = member_graphs(batch, 1)
    assert len(empty) == 0
    assert empty.x.shape == (0, 3)
    assert empty.edge_index.shape == (2, 0)


@pytest.mark.parametrize("member", [0, 1])
def test_an_unknown_label_is_a_row_of_zeros(member: int) -> None:
    dataset = dataset_of([UNKNOWN_LABELS, TRIANGLE])
    batch = store_of(dataset).batch([np.array([0])] * 2)
    assert member_graphs(batch, member).x.tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_attributes_stand_before_labels() -> None:
    attributes = np.array([[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], dtype=np.float32)
    dataset = replace(dataset_of([TRIANGLE]), node_attributes=attributes)
    both = member_graphs(store_of(dataset, Features.BOTH).batch([np.array([0])]), 0)
    assert both.x.tolist() == [
        [0.5, 1.5, 1, 0, 0],
        [2.5, 3.5, 0, 1, 0],
        [4.5, 5.5, 0, 0, 1],
    ]
    alone = member_graphs(store_of(dataset, Features.ATTRIBUTES).batch([np.array([0])]), 0)
    assert torch.equal(alone.x, torch.from_numpy(attributes))


# Parts


@pytest.mark.parametrize(
    ("pairs", "cuts"),
    [
        (0, [(0, 1), (1, 2), (2, 3)]),
        (1, [(0, 1), (1, 2), (2, 3)]),  # the larger ones come alone
        (8, [(0, 1), (1, 3)]),  # two graphs padded to two nodes are 8 pairs
        (17, [(0, 1), (1, 3)]),
        (18, [(0, 2), (2, 3)]),
        (26, [(0, 2), (2, 3)]),
        (27, [(0, 3)]),
    ],
)
def test_parts_hold_as_many_padded_pairs_as_they_may(
    pairs: int, cuts: list[tuple[int, int]]
) -> None:
    found = [(part.start, part.stop) for part, _ in by_hand().parts(pairs)]
    assert found == cuts


@pytest.mark.parametrize(
    ("cost", "cuts"),
    [
        (0, [(0, 1), (1, 2), (2, 3)]),
        (7, [(0, 1), (1, 3)]),  # 3 + 4, then 2 + 2 and 1
        (10, [(0, 1), (1, 3)]),
        (11, [(0, 2), (2, 3)]),
        (12, [(0, 3)]),
    ],
)
def test_runs_hold_as_many_nodes_and_edges_as_they_may(
    cost: int, cuts: list[tuple[int, int]]
) -> None:
    found = [(part.start, part.stop) for part, _ in by_hand().runs(cost)]
    assert found == cuts


def test_the_parts_together_are_the_whole_with_nodes_counted_from_0() -> None:
    graphs = by_hand()
    parts = [taken for _, taken in graphs.parts(1)]
    assert torch.equal(torch.cat([each.x for each in parts]), graphs.x)
    assert [each.keys for each in parts] == [(7,), (8,), (9,)]
    assert [each.edge_index.tolist() for each in parts] == [
        [[1, 0, 2, 1], [0, 1, 1, 2]],
        [[1, 0], [0, 1]],
        [[], []],
    ]
    assert all(each.graph.unique().tolist() == [0] for each in parts)
    starts = graphs.node_ptr
    moved = [each.edge_index + start for each, start in zip(parts, starts, strict=False)]
    assert torch.equal(torch.cat(moved, dim=1), graphs.edge_index)


def test_what_was_found_of_the_whole_is_not_taken_for_a_part_s() -> None:
    graphs = by_hand()
    assert graphs.adjacency.shape == (3, 3, 3)
    part = graphs.part(1, 3)
    assert part.adjacency.shape == (2, 2, 2)
    assert part.degree.tolist() == [1, 1, 0]
    assert part.rank.tolist() == [0, 1, 0]


def test_nothing_is_cut_of_no_graphs() -> None:
    dataset = dataset_of([TRIANGLE])
    batch = store_of(dataset).batch([np.array([0]), np.array([], dtype=np.int64)])
    empty = member_graphs(batch, 1)
    assert list(empty.parts(9)) == list(empty.runs(9)) == []


# What is derived


class Counting:
    """Counts edges and nodes, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[list[int]], int]] = []

    def __call__(self, edge_index: Tensor, nodes: int) -> tuple[Tensor, ...]:
        assert edge_index.device.type == "cpu"
        self.asked.append((edge_index.tolist(), nodes))
        return torch.tensor(edge_index.shape[1]), torch.tensor(nodes)


def test_what_is_derived_is_computed_of_each_graph_alone() -> None:
    compute = Counting()
    found = by_hand().derived("counts", compute)
    assert [tuple(map(int, each)) for each in found] == [(4, 3), (2, 2), (0, 1)]
    assert compute.asked == [
        ([[1, 0, 2, 1], [0, 1, 1, 2]], 3),
        ([[1, 0], [0, 1]], 2),
        ([[], []], 1),
    ]


def test_what_is_derived_is_kept_for_all_batches_of_a_store() -> None:
    dataset = dataset_of([TRIANGLE, PATH, KITE])
    store, compute = store_of(dataset), Counting()
    first = member_graphs(store.batch([np.array([0, 1])]), 0).derived("counts", compute)
    assert len(compute.asked) == 2
    later = member_graphs(store.batch([np.array([2]), np.array([1, 2, 0])]), 1)
    found = later.derived("counts", compute)
    assert len(compute.asked) == 3  # the kite's only
    assert [int(nodes) for _, nodes in found] == [5, 4, 3]
    assert found[0] is first[0]  # the path's, that came first before as well


def test_names_stores_and_parts_are_told_apart() -> None:
    dataset = dataset_of([TRIANGLE, PATH])
    store, compute = store_of(dataset), Counting()
    graphs = member_graphs(store.batch([np.arange(2)]), 0)
    graphs.derived("one", compute)
    graphs.derived("other", compute)
    assert len(compute.asked) == 4
    (counts,) = graphs.part(1, 2).derived("one", compute)
    assert int(counts[1]) == 3  # the triangle, found again by its key
    assert len(compute.asked) == 4
    member_graphs(store_of(dataset).batch([np.arange(2)]), 0).derived("one", compute)
    assert len(compute.asked) == 6
