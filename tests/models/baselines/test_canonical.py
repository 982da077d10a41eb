"""The canonical order: renumbering the nodes gives the same matrix."""

import random

import networkx as nx
import numpy as np
import pytest
from graph_makers import ALL, relabelled

from ihgnn_cli.models.baselines import canonical
from ihgnn_cli.models.baselines.canonical import canonical_order


def form(graph):
    """Values and edges of a graph in its canonical order."""
    labels, edges = graph
    both = sorted((receiver, sender) for a, b in edges for receiver, sender in ((a, b), (b, a)))
    receiver, sender = np.array(both, dtype=np.int64).reshape(-1, 2).T
    order = canonical_order(np.array(labels, np.float32).reshape(-1, 1), sender, receiver)
    assert sorted(order) == list(range(len(labels)))
    values, ends = relabelled(graph, order.tolist())
    return list(values), sorted(tuple(sorted(each)) for each in ends)


def shuffles(graph, times=5):
    drawn = random.Random(0)
    nodes = range(len(graph[0]))
    return [relabelled(graph, drawn.sample(nodes, len(nodes))) for _ in range(times)]


def plain(graph):
    numbered = nx.convert_node_labels_to_integers(graph)
    return [0] * len(numbered), list(numbered.edges)


SYMMETRIC = {
    "hexagon": nx.cycle_graph(6),
    "complete": nx.complete_graph(12),
    "star": nx.star_graph(12),
    "Petersen": nx.petersen_graph(),
    "cube": nx.hypercube_graph(3),
    "grid": nx.grid_2d_graph(4, 4),
    "tree": nx.balanced_tree(2, 3),
    "two triangles and a hexagon": nx.disjoint_union_all(
        [nx.complete_graph(3), nx.cycle_graph(6), nx.complete_graph(3)]
    ),
    "no edges": nx.empty_graph(5),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_graphs_have_one_form(name):
    graph = plain(SYMMETRIC[name])
    assert all(form(other) == form(graph) for other in shuffles(graph))


@pytest.mark.parametrize("graph", ALL)
def test_labelled_graphs_have_one_form(graph):
    assert all(form(other) == form(graph) for other in shuffles(graph))


def test_labels_that_break_a_symmetry_count():
    """A hexagon with two marked nodes: next to each other, across one, or opposite."""
    ring = [(at, (at + 1) % 6) for at in range(6)]
    marked = [([1, *[int(at == second) for at in range(1, 6)]], ring) for second in (1, 2, 3, 4, 5)]
    next_to, across, opposite, again_across, again_next = map(form, marked)
    assert next_to == again_next
    assert across == again_across
    assert next_to != across != opposite != next_to


def test_values_come_before_structure():
    # A path of three with values 2, 0, 1: nodes are in the order of their values.
    assert form(([2, 0, 1], [(0, 1), (1, 2)])) == ([0, 1, 2], [(0, 1), (0, 2)])


def test_two_strongly_regular_graphs_have_a_form_each_but_not_side_by_side():
    """The 4x4 rook's graph and the Shrikhande graph: here the order is not canonical."""
    steps = [(0, 1), (1, 0), (1, 1)]
    rook = nx.line_graph(nx.complete_bipartite_graph(4, 4))
    shrikhande = nx.Graph(
        ((a, b), ((a + c) % 4, (b + d) % 4)) for a in range(4) for b in range(4) for c, d in steps
    )
    for each in map(plain, (rook, shrikhande)):
        assert all(form(other) == form(each) for other in shuffles(each))
    beside = plain(nx.disjoint_union(rook, shrikhande))
    assert any(form(other) != form(beside) for other in shuffles(beside, 12))


def test_work_is_bounded_and_then_numbers_decide(monkeypatch):
    monkeypatch.setattr(canonical, "_WORK", 1)
    labels, edges = plain(nx.cycle_graph(6))
    assert form((labels, edges)) == (labels, sorted(tuple(sorted(each)) for each in edges))
