"""Sums over the nodes at each distance, against answers found by hand and by dense matrices."""

import pytest
import torch
from graph_makers import (
    ALL,
    HEXAGON,
    NO_EDGES,
    PATH,
    SINGLE,
    TWO_PARTS,
    TWO_TRIANGLES,
    dataset_of,
    graphs_of,
)

from ihgnn_cli.models.baselines.hops import neighbours, pairs_within, within
from ihgnn_cli.models.entries.shared import likely_pairs
from ihgnn_cli.models.spec import Load


def _directed(graph):
    labels, edges = graph
    both = sorted({(b, a) for a, b in edges} | {(a, b) for a, b in edges})
    receiver_first = torch.tensor(both, dtype=torch.long).reshape(-1, 2)
    return receiver_first.flip(1).T, len(labels)


def _distances(graph):
    """Dense distances by Floyd and Warshall."""
    labels, edges = graph
    n = len(labels)
    found = [[0 if a == b else float("inf") for b in range(n)] for a in range(n)]
    for a, b in edges:
        found[a][b] = found[b][a] = 1
    for via in range(n):
        for a in range(n):
            for b in range(n):
                found[a][b] = min(found[a][b], found[a][via] + found[via][b])
    return torch.tensor(found)


def test_pairs_of_a_path_stand_by_receiver_then_by_distance():
    sender, hop, counts, weight = pairs_within(*_directed(PATH), 2)
    # 0 - 1 - 2 - 3 - 4
    assert sender.tolist() == [1, 2, 0, 2, 3, 1, 3, 0, 4, 2, 4, 1, 3, 2]
    assert hop.tolist() == [0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1]
    assert counts.tolist() == [[1, 1], [2, 1], [2, 2], [2, 1], [1, 1]]
    # 0 has one node at distance 1 (node 1, which has two), one at distance 2 (node 2, with two).
    torch.testing.assert_close(weight[:2], torch.tensor([0.5**0.5, 0.5**0.5]))


def test_triangles_have_no_nodes_at_distance_two_and_a_hexagon_has():
    assert pairs_within(*_directed(TWO_TRIANGLES), 3)[2].tolist() == [[2, 0, 0]] * 6
    assert pairs_within(*_directed(HEXAGON), 3)[2].tolist() == [[2, 2, 1]] * 6


def test_graphs_without_edges_have_no_pairs():
    for graph in (NO_EDGES, SINGLE):
        sender, _, counts, _ = pairs_within(*_directed(graph), 3)
        assert len(sender) == 0
        assert counts.tolist() == [[0, 0, 0]] * len(graph[0])


def test_sums_of_a_batch_are_those_of_dense_matrices_and_so_are_gradients():
    dataset = dataset_of(ALL)
    graphs = graphs_of(dataset)
    largest_first = [ALL[key] for key in graphs.keys]
    far = torch.block_diag(*[_distances(each) + 0.5 for each in largest_first]) - 0.5
    at = torch.stack([(far == k).float() for k in (1, 2, 3)])  # elsewhere it is -1/2
    hops = within(graphs, 3)
    h = torch.randn(len(graphs.x), 4, requires_grad=True)
    given = torch.randn(len(graphs.x), 3, 4)

    expected = torch.einsum("kij,jw->ikw", at, h)
    torch.testing.assert_close(hops.sums(h), expected)
    torch.testing.assert_close(
        torch.autograd.grad(hops.sums(h), h, given), torch.autograd.grad(expected, h, given)
    )

    degree = at.sum(-1)
    scale = torch.where(degree > 0, degree.clamp(min=1) ** -0.5, 0)
    norm = scale.unsqueeze(2) * at * scale.unsqueeze(1)
    expected = torch.einsum("kij,jw->ikw", norm, h)
    torch.testing.assert_close(hops.normalized(h), expected)
    torch.testing.assert_close(
        torch.autograd.grad(hops.normalized(h), h, given), torch.autograd.grad(expected, h, given)
    )


def test_neighbours_are_the_pairs_at_distance_one():
    graphs = graphs_of(dataset_of(ALL))
    h = torch.randn(len(graphs.x), 5)
    torch.testing.assert_close(neighbours(graphs).sums(h), within(graphs, 1).sums(h))
    torch.testing.assert_close(neighbours(graphs).normalized(h), within(graphs, 1).normalized(h))
    torch.testing.assert_close(
        neighbours(graphs).sums(h)[:, 0], graphs.sum_to_nodes(h[graphs.edge_index[0]])
    )


def test_parts_of_a_graph_do_not_see_each_other():
    graphs = graphs_of(dataset_of([TWO_PARTS]))
    h = torch.zeros(6, 1)
    h[3] = 1  # one end of the edge 3 - 4
    assert within(graphs, 5).sums(h).sum((1, 2)).tolist() == [0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(("distance", "pairs"), [(1, 12), (2, 24), (3, 36)])
def test_the_guess_of_pairs_grows_as_in_a_tree_and_is_never_above_all(distance, pairs):
    assert likely_pairs(Load(1, 6, 12, 6, 36), distance) == pairs
    assert likely_pairs(Load(1, 6, 12, 6, 20), distance) == min(pairs, 20)
