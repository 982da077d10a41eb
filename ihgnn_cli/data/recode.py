"""A data set in the words of a model: labels and classes as positions in given vocabularies."""

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
    """A data set in other words, and what these do not cover."""

    dataset: GraphDataset
    """Labels that the model does not know are `UNKNOWN`."""
    unknown_labels: tuple[Value, ...]
    unlabelled: NDArray[np.int64]
    """Graphs whose class the model does not know."""


def recoded(
    dataset: GraphDataset,
    label_values: Sequence[Value],
    label_source: LabelSource,
    class_values: Sequence[Value],
) -> Recoded:
    """The same graphs with labels and classes as positions in these values.

    A value is found by itself or else by its text, as 1 and "1" mean the same in files that know
    no types. A model of degrees sees degrees, whatever labels there are.

    Raises:
        InputError: the model needs labels, and the data set has none.
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
    unknown = tuple(
        value
        for value, position in zip(dataset.label_values, label.tolist(), strict=True)
        if position == UNKNOWN
    )
    # A class that is not known to begin with, as of graphs to predict, stays so.
    graph_class = np.append(classes, np.int32(UNKNOWN))[dataset.graph_class]
    return Recoded(
        replace(
            dataset,
            node_label=label[dataset.node_label],
            label_values=tuple(label_values),
            graph_class=graph_class,
            class_values=tuple(class_values),
        ),
        unknown,
        np.flatnonzero(graph_class == UNKNOWN),
    )


def positions(values: Sequence[Value], known: Sequence[Value]) -> NDArray[np.int32]:
    """Where each value stands among those that a model knows, else `UNKNOWN`."""
    exact = {value: position for position, value in enumerate(known)}
    by_text = {str(value): position for position, value in enumerate(known)}
    found = [exact.get(value, by_text.get(str(value), UNKNOWN)) for value in values]
    return np.array(found, dtype=np.int32)


def some_values(values: Sequence[Value]) -> str:
    """A few of the values, for a message."""
    told = ", ".join(str(value) for value in values[:_SHOWN])
    more = len(values) - _SHOWN
    return told if more <= 0 else f"{told} and {counted(more, 'other')}"
