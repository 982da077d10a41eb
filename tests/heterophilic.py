"""Small tasks on heterophilic graphs, and dense matrices of small graphs."""

import random

import torch
from graph_makers import Graph, dataset_of
from torch import Tensor

from ihgnn_cli.data.dataset import GraphDataset

# On a regular graph all nodes have the same place; only which labels meet differs here.
ALTERNATING: Graph = ([0, 1, 0, 1, 0, 1], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)])
GROUPED: Graph = ([0, 0, 0, 1, 1, 1], ALTERNATING[1])


def hub_task(graphs: int = 40) -> GraphDataset:
    """Trees whose edges all join a 0 and a 1, of which there are equally many: the class is the
    label of the one node that has all nodes of the other label as neighbours."""
    drawn = random.Random(5)
    made: list[Graph] = []
    classes = [at % 2 for at in range(graphs)]
    for label in classes:
        half = drawn.randint(4, 8)
        labels = [label] * half + [1 - label] * half
        others = range(half, 2 * half)
        edges = [(0, other) for other in others]
        edges += [(node, drawn.choice(others)) for node in range(1, half)]
        made.append((labels, edges))
    return dataset_of(made, classes)


def homophily_task(graphs: int = 40) -> GraphDataset:
    """Trees with as many nodes of one label as of the other: labels alternate along the edges of
    class 0, and all edges but one join equal labels in class 1."""
    drawn = random.Random(5)
    made: list[Graph] = []
    classes = [at % 2 for at in range(graphs)]
    for homophilic in classes:
        half = drawn.randint(3, 6)
        labels = [0] * half + [1] * half
        joined, edges = [0, half], [(0, half)]
        rest = [node for node in range(2 * half) if node not in joined]
        drawn.shuffle(rest)
        for node in rest:
            like = [each for each in joined if (labels[each] == labels[node]) == homophilic]
            edges.append((drawn.choice(like), node))
            joined.append(node)
        made.append((labels, edges))
    return dataset_of(made, classes)


def circle_task(graphs: int = 40) -> GraphDataset:
    """Circles of one label: two of half the length (class 0) or one (class 1), of 6 to 10 nodes.

    No message passing over neighbours tells the two apart.
    """
    drawn = random.Random(5)
    made: list[Graph] = []
    classes = [at % 2 for at in range(graphs)]
    for whole in classes:
        half = drawn.choice([3, 4, 5])
        length = 2 * half if whole else half
        starts = range(0, 2 * half, length)
        edges = [
            (start + at, start + (at + 1) % length) for start in starts for at in range(length)
        ]
        made.append(([0] * (2 * half), edges))
    return dataset_of(made, classes)


def adjacency(graph: Graph) -> Tensor:
    """[n, n] A."""
    labels, edges = graph
    a = torch.zeros(len(labels), len(labels))
    for one, other in edges:
        a[one, other] = a[other, one] = 1
    return a


def walk_matrix(graph: Graph, power: float = 0.5) -> Tensor:
    """[n, n] D^(-power) (A + I) D^(-power), where D has the degrees of A + I."""
    a = adjacency(graph) + torch.eye(len(graph[0]))
    scale = a.sum(1) ** -power
    return scale[:, None] * a * scale
