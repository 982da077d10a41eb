"""Encode the labels and classes of a data set with the vocabularies of a model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value
from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted

UNKNOWN = -1
_SHOWN = 5


@dataclass(frozen=True)
class Recoded:
    """A data set encoded with other vocabularies, and what they do not contain."""

    dataset: GraphDataset
    """Labels that are not in the vocabulary are `UNKNOWN`."""
    unknown_labels: tuple[Value, ...]
    unlabelled: NDArray[np.int64]
    """Graphs whose class is not in the vocabulary."""


def recoded(
    dataset: GraphDataset,
    label_values: Sequence[Value],
    label_source: LabelSource,
    class_values: Sequence[Value],
) -> Recoded:
    """Encode labels and classes as positions in these values.

    Values are matched directly or as text, because 1 and "1" mean the same in files without types.
    With degree labels, the labels of the data set are ignored.

    Raises:
        InputError: the model needs labels, but the data set has none.
    """
    if label_source == LabelSource.DEGREE:
        dataset = dataset.with_degree_labels()
    elif dataset.label_source == LabelSource.DEGREE:
        raise InputError(
            f"{dataset.name} has no node labels, and the model was trained with labels. "
            "Give data of the same kind."
        )
    label = positions(dataset.label_values, label_values)
    classes = positions(dataset.class_values, class_values)
    # Graphs to predict have no class (-1), and keep none.
    graph_class = np.append(classes, np.int32(UNKNOWN))[dataset.graph_class]
    return Recoded(
        replace(
            dataset,
            node_label=label[dataset.node_label],
            label_values=tuple(label_values),
            graph_class=graph_class,
            class_values=tuple(class_values),
        ),
        unknown_values(dataset.label_values, label),
        np.flatnonzero(graph_class == UNKNOWN),
    )


def positions(values: Sequence[Value], known: Sequence[Value]) -> NDArray[np.int32]:
    """The position of each value in a vocabulary, or `UNKNOWN`."""
    exact = {value: position for position, value in enumerate(known)}
    by_text = {str(value): position for position, value in enumerate(known)}
    found = [exact.get(value, by_text.get(str(value), UNKNOWN)) for value in values]
    return np.array(found, dtype=np.int32)


def unknown_values(values: Sequence[Value], position: NDArray[np.int32]) -> tuple[Value, ...]:
    """The values whose position is `UNKNOWN`."""
    return tuple(
        value for value, place in zip(values, position.tolist(), strict=True) if place == UNKNOWN
    )


def some_values(values: Sequence[Value]) -> str:
    """A few of the values, for a message."""
    shown = ", ".join(str(value) for value in values[:_SHOWN])
    more = len(values) - _SHOWN
    return shown if more <= 0 else f"{shown} and {counted(more, 'other')}"
