"""Graphs of JSON in the words of a model: one by one checked, together encoded."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, offsets, vocabulary
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.readers.edges import symmetric
from ihgnn_cli.data.readers.json_graph import GraphError, JsonGraph
from ihgnn_cli.data.recode import UNKNOWN, positions
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.words import counted


def check_fits(card: ModelCard, graph: JsonGraph) -> None:
    """Make sure that a graph has what the model reads.

    Raises:
        GraphError: it has not.
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
                "Give each node a list of as many numbers.",
            )


def encoded(card: ModelCard, graphs: Sequence[JsonGraph]) -> GraphDataset:
    """Graphs that fit (see `check_fits`), as `in_words_of` gives those of a data set.

    Each graph stands for itself: integers in one and strings in another may be the same labels.
    Classes are not looked at.
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
    """Whether the model looks at labels that somebody has to give."""
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
