"""Graphs that are hard to tell apart, and sets of them to learn from."""

import random

from graph_makers import HEXAGON, LABELS, TWO_TRIANGLES, Graph, dataset_of, relabelled

from ihgnn_cli.data.dataset import GraphDataset


def _torus(steps: list[tuple[int, int]]) -> Graph:
    """The nodes of a 4 × 4 torus, each joined with those that are such steps away."""
    edges = {
        tuple(sorted((4 * row + column, 4 * ((row + down) % 4) + (column + right) % 4)))
        for row in range(4)
        for column in range(4)
        for down, right in steps
    }
    return [0] * 16, [(a, b) for a, b in sorted(edges)]


# Strongly regular both: 16 nodes of degree 6, two common neighbours for any two nodes. Folklore
# 2-WL cannot tell them apart; the neighbours of a node of ROOK are two triangles, those of a node
# of SHRIKHANDE a hexagon.
ROOK = _torus([(0, 1), (0, 2), (1, 0), (2, 0)])
SHRIKHANDE = _torus([(0, 1), (1, 0), (1, 1)])


def triangles_or_hexagons(graphs: int = 40) -> GraphDataset:
    """Two triangles or a hexagon, in any order of nodes, one node of another label: 1-WL fails."""
    drawn = random.Random(0)
    made, classes = [], []
    for at in range(graphs):
        _, edges = (TWO_TRIANGLES, HEXAGON)[at % 2]
        labels = [drawn.randrange(LABELS)] + [0] * 5
        made.append(relabelled((labels, edges), drawn.sample(range(6), 6)))
        classes.append(at % 2)
    return dataset_of(made, classes)


def stars_or_paths(others: int = 0) -> GraphDataset:
    """Stars and paths of 4 to 23 nodes: the first node has the label 0, the others this one."""
    sizes = range(4, 24)
    stars = [([0, *[others] * (n - 1)], [(0, at) for at in range(1, n)]) for n in sizes]
    paths = [([0, *[others] * (n - 1)], [(at - 1, at) for at in range(1, n)]) for n in sizes]
    return dataset_of(stars + paths, [0] * len(stars) + [1] * len(paths))
