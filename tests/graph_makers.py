"""Small graphs for tests of models: nodes and edges in, batches and `Graphs` out."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ihgnn_cli.data.batching.batches import Batch, GraphStore
from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.models.autograd import AutogradStack
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.models.graphs import Graphs, member_graphs
from ihgnn_cli.models.registry import find_model
from ihgnn_cli.training.loss import CrossEntropy

Graph = tuple[Sequence[int], Sequence[tuple[int, int]]]
"""Labels of the nodes, edges between them."""

CPU = torch.device("cpu")
LABELS = 3

TRIANGLE: Graph = ([0, 1, 2], [(0, 1), (1, 2), (0, 2)])
PATH: Graph = ([0, 0, 1, 2, 0], [(0, 1), (1, 2), (2, 3), (3, 4)])
STAR: Graph = ([1, 0, 0, 0, 2], [(0, 1), (0, 2), (0, 3), (0, 4)])
KITE: Graph = ([0, 1, 0, 2], [(0, 1), (1, 2), (2, 0), (2, 3)])
NO_EDGES: Graph = ([0, 1, 1], [])
SINGLE: Graph = ([2], [])
TWO_PARTS: Graph = ([0, 1, 0, 2, 2, 1], [(0, 1), (1, 2), (3, 4)])
UNKNOWN_LABELS: Graph = ([-1, 0, -1], [(0, 1), (1, 2)])
ALL = (TRIANGLE, PATH, STAR, KITE, NO_EDGES, SINGLE, TWO_PARTS, UNKNOWN_LABELS)
# The classic pair that 1-WL does not tell apart.
TWO_TRIANGLES: Graph = ([0] * 6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
HEXAGON: Graph = ([0] * 6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)])


def dataset_of(
    graphs: Sequence[Graph],
    classes: Sequence[int] | None = None,
    edge_labels: Sequence[int] | None = None,
) -> GraphDataset:
    """A data set of these graphs with three labels (-1: unknown) and the classes 0 and 1.

    Edge labels are those of the edges of all graphs, in their order, from 0 to 2.
    """
    sizes = np.array([len(labels) for labels, _ in graphs])
    starts = np.cumsum(sizes) - sizes
    pairs = [
        (start + a, start + b)
        for start, (_, edges) in zip(starts, graphs, strict=True)
        for a, b in edges
    ]
    ends = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    labels = np.array([label for each, _ in graphs for label in each], dtype=np.int32)
    given = [at % 2 for at in range(len(graphs))] if classes is None else classes
    return build(
        ListedGraphs(
            name="tiny",
            sizes=sizes,
            source=ends[:, 0],
            target=ends[:, 1],
            classes=(np.array(given, dtype=np.int32), (0, 1)),
            node_labels=(labels, tuple(range(LABELS))),
            edge_labels=None
            if edge_labels is None
            else (np.array(edge_labels, dtype=np.int32), (0, 1, 2)),
            undirected=True,
        )
    )


def batch_of(dataset: GraphDataset, positions: Sequence[int] | None = None) -> Batch:
    """The graphs at these positions (all of them) as a batch of one member."""
    store = GraphStore(dataset, Features.LABELS, dataset.max_nodes, None, CPU)
    chosen = np.arange(len(dataset)) if positions is None else np.array(positions)
    return store.batch([chosen])


def graphs_of(dataset: GraphDataset, positions: Sequence[int] | None = None) -> Graphs:
    """The same as a model takes them: the largest first."""
    return member_graphs(batch_of(dataset, positions), 0)


def relabelled(graph: Graph, order: Sequence[int]) -> Graph:
    """The same graph with its nodes in another order."""
    labels, edges = graph
    place = {node: at for at, node in enumerate(order)}
    return [labels[node] for node in order], [(place[a], place[b]) for a, b in edges]


def model_of(name: str, dataset: GraphDataset, *, seed: int = 0, **settings: Any) -> nn.Module:
    """One module of a registered model at its start, ready to answer."""
    spec = find_model(name)
    torch.manual_seed(seed)
    assert spec.make is not None
    return spec.make(spec.settings(**settings), inputs_of(dataset, Features.LABELS)).eval()


@torch.no_grad()
def logits_of(model: nn.Module, dataset: GraphDataset) -> Tensor:
    """[graphs, classes] in the order of the data set."""
    batch = batch_of(dataset)
    answer = model(member_graphs(batch, 0))
    logits: Tensor = answer[0] if isinstance(answer, tuple) else answer
    return logits[np.argsort(batch.origin[0])]


@torch.no_grad()
def with_statistics(model: nn.Module, dataset: GraphDataset) -> nn.Module:
    """The module after looks at the data in training, so that the normalizations do something."""
    for _ in range(3):
        model.train()(graphs_of(dataset))
    return model.eval()


def accuracy_after_training(
    name: str, dataset: GraphDataset, *, steps: int, lr: float = 0.01, **settings: Any
) -> float:
    """The share of the data set's graphs that a model gets right after so many steps on all."""
    spec = find_model(name)
    inputs = inputs_of(dataset, Features.LABELS)
    made: Callable[[], nn.Module] = lambda: spec.make(spec.settings(**settings), inputs)  # type: ignore[misc]  # noqa: E731
    stack = AutogradStack(made, [torch.Generator().manual_seed(0)], by_size=spec.by_size)
    optimizer = torch.optim.Adam(stack.parameters(), lr=lr)
    batch = batch_of(dataset)
    stack.train()
    for step in range(steps):
        stack.train_step(batch, torch.empty(0), [step], CrossEntropy())
        optimizer.step()
    stack.eval()
    right = stack(batch)[0].argmax(-1) == batch.truth[0]
    return float(right.float().mean())
