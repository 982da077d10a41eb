"""Why a model answers as it does: the weights of its layers, and the nodes that mattered."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.batches import GraphStore
from ihgnn_cli.data.dataset import GraphDataset, Value
from ihgnn_cli.data.recode import UNKNOWN
from ihgnn_cli.errors import InputError
from ihgnn_cli.training.classifier import TorchClassifier
from ihgnn_cli.training.evaluation import part_of
from ihgnn_cli.training.kinds import Part
from ihgnn_cli.training.metrics import mean_probabilities
from ihgnn_cli.words import counted

# Nodes and adjacent pairs of the copies of a graph that a model answers for at once: copies and
# what is derived from them would not fit in memory for a graph of thousands of nodes.
_COPIED_AT_ONCE = 2**17


@dataclass(frozen=True)
class Position:
    """A node's place in the readout, and what it did to the answer."""

    position: int | None
    """In sorted order, counted from 0; `None` where the nodes are summed or beyond m."""
    node: int
    """In the graph, counted from 0."""
    label: Value
    degree: int
    change: float
    """The log-odds of the predicted class, minus those with the node left out."""


@dataclass(frozen=True)
class GraphExplanation:
    """The nodes of a graph by how far each moved the prediction, the farthest first."""

    graph: int
    part: Part | None
    """Of the model's own data to which it belongs; `None` on other data."""
    predicted: Value
    truth: Value
    probability: float
    """Of the predicted class."""
    positions: tuple[Position, ...]


def layer_weights(classifier: TorchClassifier) -> list[float] | None:
    """[K + 1] theta, the mean over members; `None` for a variant or model without."""
    checkpoint = classifier.checkpoint
    theta = checkpoint.config.spec.layer_weights(checkpoint.weights)
    return None if theta is None else theta.double().mean(0).tolist()


def explain_graph(
    classifier: TorchClassifier, original: GraphDataset, words: GraphDataset, graph: int
) -> GraphExplanation:
    """Leave out one node after the other, and see what changes.

    If the model itself can leave out a node (`ModelSpec.without_each_node`), it does; otherwise the
    node's features are set to zero. Probabilities are averaged over members, and positions are
    those of the first member.

    Args:
        classifier: the model.
        original: the data set, for the labels that its author wrote.
        words: the same in the words of the model.
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
    position, probabilities = _without_each_node(classifier, words, graph)
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
    classifier: TorchClassifier, words: GraphDataset, graph: int
) -> tuple[list[int | None], NDArray[np.float64]]:
    """The sorted position of each node, and [1 + n, C] answers with all nodes and without each."""
    card, checkpoint = classifier.card, classifier.checkpoint
    leave_out = checkpoint.config.spec.without_each_node
    if leave_out is None:
        probabilities = _without_each_feature(classifier, words, graph)
        return [None] * (len(probabilities) - 1), probabilities
    store = GraphStore(words, card.features, card.max_nodes, None, classifier.device)
    batch = store.batch([np.array([graph])] * checkpoint.members)
    position, logits = leave_out(checkpoint.model(classifier.device), batch)
    return position, mean_probabilities(logits.cpu().numpy())


def _without_each_feature(
    classifier: TorchClassifier, words: GraphDataset, graph: int
) -> NDArray[np.float64]:
    """[1 + n, C] answers for the graph, and for copies in which one node has no features."""
    nodes, pairs = (int(np.diff(each)[graph]) for each in (words.node_ptr, words.edge_ptr))
    left_out = np.arange(-1, nodes)  # first none
    step = max(1, _COPIED_AT_ONCE // (nodes + pairs))
    return np.concatenate(
        [
            _without_features(classifier, words, graph, left_out[start : start + step])
            for start in range(0, len(left_out), step)
        ]
    )


def _without_features(
    classifier: TorchClassifier, words: GraphDataset, graph: int, left_out: NDArray[np.int64]
) -> NDArray[np.float64]:
    """[copies, C] answers for copies of the graph, each without the features of one node, or -1."""
    nodes = int(np.diff(words.node_ptr)[graph])
    copies = words.select([graph] * len(left_out))
    bare = (np.arange(len(left_out)) * nodes + left_out)[left_out >= 0]
    label = copies.node_label.copy()
    label[bare] = UNKNOWN
    attributes = copies.node_attributes
    if attributes is not None:
        attributes = attributes.copy()
        attributes[bare] = 0
    without = replace(copies, node_label=label, node_attributes=attributes)
    return classifier.probabilities(without, np.arange(len(left_out)))
