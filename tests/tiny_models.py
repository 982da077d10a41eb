"""Graphs of a few nodes, models for them that were never trained, and what these answer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.splits import Split
from ihgnn_cli.deploy.inputs import padded_inputs, sparse_inputs
from ihgnn_cli.deploy.modules import MODULES
from ihgnn_cli.deploy.onnx_model import Answers
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.models.card import describe
from ihgnn_cli.models.registry import IHGNN
from ihgnn_cli.models.settings import IHGNNSettings, ModelSettings, SortKey, SortOrder
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.training import checkpoint as checkpoints
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.stack import predict

Graph = tuple[Sequence[int], Sequence[tuple[int, int]]]
"""Labels of the nodes, edges between them."""

TRIANGLE: Graph = ([0, 1, 2], [(0, 1), (1, 2), (0, 2)])
PATH: Graph = ([0, 0, 1, 2, 0], [(0, 1), (1, 2), (2, 3), (3, 4)])
STAR: Graph = ([1, 0, 0, 0, 2], [(0, 1), (0, 2), (0, 3), (0, 4)])
NO_EDGES: Graph = ([0, 1, 1], [])
SINGLE: Graph = ([2], [])
UNKNOWN_LABELS: Graph = ([-1, 0, -1], [(0, 1), (1, 2)])
LARGER_THAN_M: Graph = ([0, 1, 2, 0, 1, 2, 0], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (2, 6)])
ALL = (TRIANGLE, PATH, STAR, NO_EDGES, SINGLE, UNKNOWN_LABELS, LARGER_THAN_M)
M = 6
# Degrees 3 and 5, where the others have 0, 1, 2 and 4.
KITE: Graph = ([0, 0, 0, 0], [(0, 1), (1, 2), (2, 0), (2, 3)])
LARGE_STAR: Graph = ([0] * 6, [(0, leaf) for leaf in range(1, 6)])

AUTHORS: dict[str, Any] = {
    "sort_key": SortKey.LAST_LAYER,
    "sort_order": SortOrder.DESCENDING,
    "readout_relu": True,
}
SMALL = IHGNNSettings(layers=2, width=16, hidden=8)
CPU = torch.device("cpu")


def dataset(*graphs: Graph, labelled: bool = True, edge_labels: bool = False) -> GraphDataset:
    """Graphs of the classes x and y with labels a, b, c, or -1 for unknown; two attributes.

    Not labelled, they have their degrees as labels. Edge labels are p, q, r in turn, and used.
    """
    sizes = np.array([len(labels) for labels, _ in graphs])
    starts = np.cumsum(sizes) - sizes
    edges = [
        (start + one, start + other)
        for start, (_, listed) in zip(starts, graphs, strict=True)
        for one, other in listed
    ]
    source, target = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    labels = np.concatenate([np.array(labels, dtype=np.int32) for labels, _ in graphs])
    drawn = np.random.default_rng(0)
    kinds = (np.arange(len(edges)) % 3).astype(np.int32), ("p", "q", "r")
    built = build(
        ListedGraphs(
            name="tiny",
            sizes=sizes,
            source=source,
            target=target,
            classes=((np.arange(len(graphs)) % 2).astype(np.int32), ("x", "y")),
            node_labels=(labels, ("a", "b", "c")) if labelled else None,
            node_attributes=drawn.normal(size=(len(labels), 2)).astype(np.float32),
            edge_labels=kinds if edge_labels else None,
            undirected=True,
        )
    )
    return replace(built, uses_edge_labels=edge_labels)


def with_distances(data: GraphDataset) -> GraphDataset:
    """The graphs with an edge attribute: 0.1 for each number between the numbers of two nodes."""
    source, target = data.edge_index()
    return replace(data, edge_attributes=0.1 * np.abs(source - target)[:, None].astype(np.float32))


def untrained(
    data: GraphDataset,
    settings: ModelSettings = SMALL,
    features: Features = Features.LABELS,
    members: int = 1,
    *,
    max_nodes: int = M,
    name: str = IHGNN,
) -> Checkpoint:
    """A checkpoint with weights and running statistics as good as any."""
    config = RunConfig(model=settings, model_name=name)
    card = describe("tiny", data, features, Split([0], [1], [2]))
    card = replace(card, max_nodes=max_nodes)
    model = checkpoints.build(config, card.inputs, list(range(members)))
    drawn = torch.Generator().manual_seed(0)
    weights = {
        name: value
        if name.endswith(("weight", "bias")) and ".norm." not in name
        else value + 0.5 * torch.rand(value.shape, generator=drawn)
        for name, value in model.state_dict().items()
    }
    return Checkpoint(config, card, weights, members, None)


def torch_logits(checkpoint: Checkpoint, data: GraphDataset) -> NDArray[np.float32]:
    """[S, G, C] node by node, by the model that is trained."""
    card = checkpoint.card
    store = GraphStore(data, card.features, card.max_nodes, None, CPU)
    return predict(checkpoint.model(CPU), store, np.arange(len(data)))


class Eager:
    """What an exported file would say, by the torch module that it is exported from."""

    def __init__(self, checkpoint: Checkpoint, layout: Layout = Layout.PADDED) -> None:
        self.card = checkpoint.card
        self.model = MODULES[layout](reference_of(checkpoint).members)
        self.inputs = padded_inputs if layout is Layout.PADDED else sparse_inputs

    def answers(self, data: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
        inputs = self.inputs(self.card, data, graphs)
        with torch.no_grad():
            found = self.model(**{name: torch.tensor(each) for name, each in inputs.items()})
        names = Answers.__dataclass_fields__
        return Answers(**{name: found[name].numpy() for name in names if name in found})
