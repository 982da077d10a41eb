"""Sets of nodes, their neighbours, and sums over these that take the cheaper way."""

import itertools
import random

import pytest
import torch
from graph_makers import HEXAGON, KITE, NO_EDGES, SINGLE, dataset_of, graphs_of

from ihgnn_cli.models.baselines.sets import sets_of

COMPLETE = ([0] * 6, list(itertools.combinations(range(6), 2)))
NEARLY_COMPLETE = ([0] * 6, [each for each in COMPLETE[1] if each not in {(0, 1), (2, 3)}])
CLIQUE_WITH_TAIL = ([0] * 8, [*COMPLETE[1], (5, 6), (6, 7)])


def _random_graph(nodes, edges, seed):
    drawn = random.Random(seed)
    return [0] * nodes, drawn.sample(list(itertools.combinations(range(nodes), 2)), edges)


def _by_hand(graph, k):
    """The sets of a graph, and the matrix of who is beside whom, by the definition."""
    labels, edges = graph
    adjacent = {frozenset(each) for each in edges}
    sets = [
        set(each)
        for each in itertools.combinations(range(len(labels)), k)
        if k == 2
        or sum(frozenset(pair) in adjacent for pair in itertools.combinations(each, 2)) >= 2
    ]
    beside = torch.zeros(len(sets), len(sets))
    for (i, one), (j, other) in itertools.permutations(enumerate(sets), 2):
        if len(one & other) == k - 1 and frozenset(one ^ other) in adjacent:
            beside[i, j] = 1
    return [tuple(sorted(each)) for each in sets], beside


def _members(sets, k):
    return [tuple(sorted(each)) for each in (sets.members.index // 2).view(-1, k).tolist()]


def test_pairs_of_the_kite():
    sets = sets_of(graphs_of(dataset_of([KITE, KITE]), [0]), 2)
    assert _members(sets, 2) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    # {0, 3} is beside {1, 3} and {2, 3} by 0's neighbours, and beside {0, 2} by 3's.
    assert sets.degree.flatten().tolist() == [2, 3, 3, 3, 3, 2]
    numbers = torch.eye(6)
    assert (sets.neighbor_mean(numbers)[2] * 3).tolist() == [0, 1, 0, 0, 1, 1]


def test_triples_of_the_kite_are_the_connected_ones():
    sets = sets_of(graphs_of(dataset_of([KITE, KITE]), [0]), 3)
    found = dict(zip(_members(sets, 3), sets.neighbor_mean(torch.eye(3)).tolist(), strict=True))
    order = _members(sets, 3)
    assert sorted(order) == [(0, 1, 2), (0, 2, 3), (1, 2, 3)]
    # The triangle has no neighbours: 3 in place of 2 would leave it unconnected.
    assert found[0, 1, 2] == [0, 0, 0]
    assert found[0, 2, 3][order.index((1, 2, 3))] == 1
    assert found[1, 2, 3][order.index((0, 2, 3))] == 1


def test_members_with_all_others_as_neighbors_are_marked():
    sets = sets_of(graphs_of(dataset_of([KITE, KITE]), [0]), 3)
    marked = {
        tuple(each // 2 for each in sorted(row)): [each % 2 for each in sorted(row)]
        for row in sets.members.index.view(-1, 3).tolist()
    }
    assert marked == {(0, 1, 2): [1, 1, 1], (0, 2, 3): [0, 1, 0], (1, 2, 3): [0, 1, 0]}


def test_a_new_node_has_to_be_adjacent_to_the_one_that_it_replaces():
    """What the authors' code calls malkin; by its "local", {0, 1} would be beside {0, 2}, too."""
    path = ([0] * 3, [(0, 1), (0, 2)])
    sets = sets_of(graphs_of(dataset_of([path, SINGLE])), 2)
    assert _members(sets, 2) == [(0, 1), (0, 2), (1, 2)]
    assert sets.neighbor_mean(torch.eye(3)).tolist() == [[0, 0, 1], [0, 0, 1], [0.5, 0.5, 0]]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "graphs",
    [
        [COMPLETE],
        [NEARLY_COMPLETE],
        [CLIQUE_WITH_TAIL],
        [HEXAGON],
        [_random_graph(9, 14, 0)],
        [_random_graph(9, 27, 1)],
        [CLIQUE_WITH_TAIL, _random_graph(7, 12, 2), COMPLETE, KITE, NO_EDGES, SINGLE],
    ],
)
def test_sums_over_neighbors_and_their_gradients_are_those_of_the_whole_matrix(graphs, k):
    dataset = dataset_of([*graphs, SINGLE])
    sets = sets_of(graphs_of(dataset), k)  # the largest first, as they stand here
    found, wanted = _members(sets, k), []
    blocks, first = [], 0
    for graph in graphs:
        listed, beside = _by_hand(graph, k)
        wanted += [tuple(node + first for node in each) for each in listed]
        blocks.append(beside)
        first += len(graph[0])
    assert sorted(found) == sorted(wanted)
    order = [wanted.index(each) for each in found]
    matrix = torch.block_diag(*blocks)[: len(order), : len(order)][order][:, order]
    mean = matrix / matrix.sum(1, keepdim=True).clamp(min=1)
    values = torch.randn(len(order), 3, generator=torch.Generator().manual_seed(0))
    values.requires_grad_()
    upstream = torch.randn(values.shape, generator=torch.Generator().manual_seed(1))
    answer = sets.neighbor_mean(values)
    torch.testing.assert_close(answer, mean @ values, rtol=1e-5, atol=1e-5)
    answer.backward(upstream)
    torch.testing.assert_close(values.grad, mean.t() @ upstream, rtol=1e-5, atol=1e-5)


def test_in_a_complete_graph_no_neighbor_is_summed_one_by_one():
    sets = sets_of(graphs_of(dataset_of([COMPLETE, SINGLE])), 3)
    assert len(sets.rest.index) == 0
    assert len(sets.groups.index) == 3 * 20
    assert sets.degree.flatten().tolist() == [9.0] * 20


def test_means_of_graphs_without_sets_are_0():
    sets = sets_of(graphs_of(dataset_of([KITE, NO_EDGES, SINGLE])), 3)
    values = torch.ones(3, 2, requires_grad=True)
    means = sets.graph_mean(values)
    assert means.tolist() == [[1, 1], [0, 0], [0, 0]]
    means.sum().backward()
    torch.testing.assert_close(values.grad, torch.full((3, 2), 1 / 3))


def test_members_are_gathered_and_their_gradients_given_back():
    sets = sets_of(graphs_of(dataset_of([KITE, SINGLE])), 2)
    table = torch.arange(10.0).unsqueeze(1).requires_grad_()
    # 2u for members of pairs without an edge, 2u + 1 for those with one.
    assert sets.gathered(table).flatten().tolist() == [1 + 3, 1 + 5, 0 + 6, 3 + 5, 2 + 6, 5 + 7]
    sets.gathered(table).sum().backward()
    assert table.grad.flatten().tolist() == [1, 2, 1, 2, 0, 3, 2, 1, 0, 0]
