"""Encodes graphs with the vocabulary of a trained model: whole data sets, or single JSON graphs."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, offsets, vocabulary
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.readers.edges import symmetric
from ihgnn_cli.data.readers.json_graph import GraphError, JsonGraph
from ihgnn_cli.data.recode import UNKNOWN, Recoded, positions, recoded
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.words import counted


def encode_dataset(card: ModelCard, dataset: GraphDataset) -> Recoded:
    """Encode a data set: labels and classes become positions in the model's vocabulary.

    Raises:
        InputError: the data lacks labels or attributes that the model needs.
    """
    labels = card.label_values, card.label_source
    if card.features != Features.LABELS:
        columns = 0 if dataset.node_attributes is None else dataset.node_attributes.shape[1]
        if columns != card.attributes:
            raise InputError(
                f"The model reads {counted(card.attributes, 'node attribute')}, and "
                f"{dataset.name} has {columns}. Give data of the same kind."
            )
    if card.features == Features.ATTRIBUTES:  # the model ignores labels
        labels = dataset.label_values, dataset.label_source
    return recoded(dataset, *labels, card.class_values)


def check_fits(card: ModelCard, graph: JsonGraph) -> None:
    """Check that a graph has the labels and attributes that the model reads.

    Raises:
        GraphError: something is missing.
    """
    if _reads_labels(card) and graph.node_labels is None:
        raise GraphError(
            "no node_labels, and the model was trained with labels.", "Give each node its label."
        )
    if card.features != Features.LABELS:
        columns = len(graph.node_attributes[0]) if graph.node_attributes else 0
        if columns != card.attributes:
            raise GraphError(
                f"the model reads {counted(card.attributes, 'node attribute')}, and there are "
                f"{columns}.",
                f"Give each node a list of {counted(card.attributes, 'number')}.",
            )


def encode_graphs(card: ModelCard, graphs: Sequence[JsonGraph]) -> GraphDataset:
    """Encode graphs that passed `check_fits`, as `encode_dataset` does for a data set.

    Labels match by their text, so one graph may write 1 and another "1". Classes are ignored.
    """
    sizes = np.array([each.num_nodes for each in graphs])
    starts = offsets(sizes)
    ends = np.fromiter(chain.from_iterable(chain(*(each.edges for each in graphs))), np.int64)
    ends += np.repeat(starts[:-1], [2 * len(each.edges) for each in graphs])
    neighbor_ptr, neighbors = symmetric(ends[::2], ends[1::2], int(starts[-1]))
    return GraphDataset(
        name="graphs",
        node_ptr=starts,
        neighbor_ptr=neighbor_ptr,
        neighbors=neighbors,
        node_label=_labels(card, graphs, np.diff(neighbor_ptr)),
        label_values=card.label_values,
        label_source=card.label_source,
        graph_class=np.full(len(graphs), UNKNOWN, dtype=np.int32),
        class_values=card.class_values,
        node_attributes=None
        if card.features == Features.LABELS
        else np.array([row for each in graphs for row in each.node_attributes or ()], np.float32),
    )


def _reads_labels(card: ModelCard) -> bool:
    """Whether the model reads labels that the caller has to give."""
    return card.features != Features.ATTRIBUTES and card.label_source == LabelSource.LABELS


def _labels(
    card: ModelCard, graphs: Sequence[JsonGraph], degree: NDArray[np.int64]
) -> NDArray[np.int32]:
    """[N] positions in the model's vocabulary."""
    if card.features == Features.ATTRIBUTES:
        return np.zeros(len(degree), dtype=np.int32)
    if card.label_source == LabelSource.DEGREE:
        position, values = vocabulary(degree)
        return positions(values, card.label_values)[position]
    given = [label for each in graphs for label in each.node_labels or ()]
    distinct = list(dict.fromkeys(given))
    position_of = dict(zip(distinct, positions(distinct, card.label_values).tolist(), strict=True))
    return np.array([position_of[label] for label in given], dtype=np.int32)
