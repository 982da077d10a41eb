"""Explains predictions: the weights of the layers, and how much each node matters."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, Value
from ihgnn_cli.data.recode import UNKNOWN
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.evaluation import part_of
from ihgnn_cli.inference.kinds import Part
from ihgnn_cli.inference.metrics import mean_probabilities
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.training.classifier import TorchClassifier

# Nodes and adjacent pairs in one batch of copies of a graph. All copies of a graph with thousands
# of nodes would not fit in memory.
_COPIED_AT_ONCE = 2**17


@dataclass(frozen=True)
class Position:
    """A node's place in the readout, and its effect on the prediction."""

    position: int | None
    """In sorted order, from 0; `None` if the model has no sorted order, or beyond m."""
    node: int
    """Its position in the graph, from 0."""
    label: Value
    degree: int
    change: float
    """Log-odds of the predicted class with the node, minus those without it."""


@dataclass(frozen=True)
class GraphExplanation:
    """The nodes of a graph, sorted by the size of their effect on the prediction."""

    graph: int
    part: Part | None
    """The part of the model's own data set that contains the graph; `None` for other data."""
    predicted: Value
    truth: Value
    probability: float
    """The probability of the predicted class."""
    positions: tuple[Position, ...]


def layer_weights(classifier: "TorchClassifier") -> list[float] | None:
    """[K + 1] theta, averaged over members; `None` for a variant or model without it."""
    checkpoint = classifier.checkpoint
    theta = checkpoint.config.spec.layer_weights(checkpoint.weights)
    return None if theta is None else theta.double().mean(0).tolist()


def explain_graph(
    classifier: "TorchClassifier", original: GraphDataset, encoded: GraphDataset, graph: int
) -> GraphExplanation:
    """Leave out each node in turn, and measure how the prediction changes.

    If the model itself can leave out a node (`ModelSpec.without_each_node`), it does; otherwise the
    node's features are set to zero. Probabilities are averaged over members, and positions are
    those of the first member.

    Args:
        classifier: the model.
        original: the data set with its own labels.
        encoded: the same data set, encoded with the model's vocabulary.
        graph: a position in the data set.

    Raises:
        InputError: there is no such graph.
    """
    if not 0 <= graph < len(original):
        raise InputError(
            f"No graph {graph} in {original.name}. Its graphs are 0 to {len(original) - 1} "
            f"({counted(len(original), 'graph')})."
        )
    card = classifier.card
    position, probabilities = _without_each_node(classifier, encoded, graph)
    predicted = int(probabilities[0].argmax())
    other = np.delete(probabilities, predicted, axis=1).sum(axis=1)  # not 1 - p, which rounds
    smallest = np.finfo(np.float64).tiny
    odds = np.log(np.maximum(probabilities[:, predicted], smallest) / np.maximum(other, smallest))
    change = odds[0] - odds[1:]
    start = int(original.node_ptr[graph])
    found = [
        Position(
            position[node],
            node,
            original.label_values[original.node_label[start + node]],
            int(original.degree[start + node]),
            float(change[node]),
        )
        for node in np.argsort(-np.abs(change), kind="stable").tolist()
    ]
    truth = original.class_values[original.graph_class[graph]]
    return GraphExplanation(
        graph,
        part_of(card, original, graph),
        card.class_values[predicted],
        truth,
        float(probabilities[0, predicted]),
        tuple(found),
    )


def _without_each_node(
    classifier: "TorchClassifier", encoded: GraphDataset, graph: int
) -> tuple[list[int | None], NDArray[np.float64]]:
    """Each node's sorted position, and [1 + n, C] probabilities with all nodes and without each."""
    from ihgnn_cli.data.batching.batches import GraphStore

    card, checkpoint = classifier.card, classifier.checkpoint
    leave_out = checkpoint.config.spec.without_each_node
    if leave_out is None:
        probabilities = _without_each_feature(classifier, encoded, graph)
        return [None] * (len(probabilities) - 1), probabilities
    store = GraphStore(encoded, card.features, card.max_nodes, None, classifier.device)
    batch = store.batch([np.array([graph])] * checkpoint.members)
    position, logits = leave_out(checkpoint.model(classifier.device), batch)
    return position, mean_probabilities(logits.cpu().numpy())


def _without_each_feature(
    classifier: "TorchClassifier", encoded: GraphDataset, graph: int
) -> NDArray[np.float64]:
    """[1 + n, C] probabilities of the graph, and of copies in which one node has no features."""
    nodes, pairs = (int(np.diff(each)[graph]) for each in (encoded.node_ptr, encoded.edge_ptr))
    left_out = np.arange(-1, nodes)  # first none
    step = max(1, _COPIED_AT_ONCE // (nodes + pairs))
    return np.concatenate(
        [
            _without_features(classifier, encoded, graph, left_out[start : start + step])
            for start in range(0, len(left_out), step)
        ]
    )


def _without_features(
    classifier: "TorchClassifier", encoded: GraphDataset, graph: int, left_out: NDArray[np.int64]
) -> NDArray[np.float64]:
    """[copies, C] probabilities of copies, each without the features of one node (-1: of none)."""
    nodes = int(np.diff(encoded.node_ptr)[graph])
    copies = encoded.select([graph] * len(left_out))
    bare = (np.arange(len(left_out)) * nodes + left_out)[left_out >= 0]
    label = copies.node_label.copy()
    label[bare] = UNKNOWN
    attributes = copies.node_attributes
    if attributes is not None:
        attributes = attributes.copy()
        attributes[bare] = 0
    without = replace(copies, node_label=label, node_attributes=attributes)
    return classifier.probabilities(without, np.arange(len(left_out)))
