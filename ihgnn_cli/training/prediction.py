"""What a model says of graphs whose class nobody knows, batch by batch."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset, Value
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.recode import UNKNOWN
from ihgnn_cli.errors import DataError, InputError, Problem
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.training.evaluation import in_words_of

if TYPE_CHECKING:  # an exported model answers without torch
    from ihgnn_cli.training.classifier import Classifier

Report = Callable[[Problem], None]
"""Told of each graph that gets no answer."""


@dataclass(frozen=True)
class Prediction:
    """The answer for one graph."""

    graph: int
    """Its position among those given, from 0; graphs that got no answer are counted, too."""
    class_value: Value
    """The most probable class; of equal ones, the first."""
    probabilities: dict[Value, float]
    """Of every class, in the model's order."""
    id: object = None
    """As it was given with the graph."""
    unknown_nodes: int = 0
    """Nodes with labels that the model does not know: they count as the zero vector."""
    larger_than_m: bool = False
    """It has more nodes than any graph of the model's data, and only the first m of them in sorted
    order count; never of a model that sums them all."""


@dataclass(frozen=True)
class Origin:
    """Where a graph came from."""

    number: int
    """Its position, from 0."""
    file: str
    line: int | None = None
    id: object = None

    def problem(self, message: str, remedy: str = "") -> Problem:
        """Something that is wrong with it."""
        return Problem(self.file, self.line, message, remedy)


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Graphs that are answered for together."""

    dataset: GraphDataset
    """In the card's words."""
    origins: tuple[Origin, ...]

    def singles(self) -> "Iterator[GraphBatch]":
        """Its graphs one by one."""
        for place, origin in enumerate(self.origins):
            yield GraphBatch(self.dataset.select([place]), (origin,))


def batches_of(card: ModelCard, dataset: GraphDataset, batch_size: int) -> Iterator[GraphBatch]:
    """A whole data set in batches; its classes, if it has any, do not matter.

    Raises:
        InputError: labels or attributes that the model needs are not there.
    """
    words = in_words_of(card, dataset).dataset
    for start in range(0, len(words), batch_size):
        chosen = range(start, min(start + batch_size, len(words)))
        origins = tuple(Origin(number, f"{dataset.name}, graph {number}") for number in chosen)
        yield GraphBatch(words.select(chosen), origins)


def predictions(
    classifier: "Classifier", batches: Iterable[GraphBatch], report: Report | None
) -> Iterator[list[Prediction]]:
    """The answers, a list a batch, in order.

    A graph that the model refuses is reported, and the others are answered for.

    Raises:
        DataError: a graph is refused, and there is nobody to report it to.
    """
    for batch in batches:
        try:
            answered = _answered(classifier, batch)
        except InputError as error:
            if len(batch.origins) > 1:
                yield from predictions(classifier, batch.singles(), report)
                continue
            problem = batch.origins[0].problem(str(error))
            if report is None:
                raise DataError([problem]) from error
            report(problem)
        else:
            yield answered


def _answered(classifier: "Classifier", batch: GraphBatch) -> list[Prediction]:
    card, dataset = classifier.card, batch.dataset
    probabilities = classifier.probabilities(dataset, np.arange(len(dataset)))
    best = probabilities.argmax(axis=1).tolist()
    limit = classifier.node_limit
    larger = [limit is not None and size > limit for size in np.diff(dataset.node_ptr).tolist()]
    unknown = np.zeros(len(dataset), dtype=np.int64)
    if card.features != Features.ATTRIBUTES:
        unknown = np.add.reduceat(dataset.node_label == UNKNOWN, dataset.node_ptr[:-1], dtype=int)
    return [
        Prediction(
            graph=origin.number,
            class_value=card.class_values[best[place]],
            probabilities=dict(zip(card.class_values, row, strict=True)),
            id=origin.id,
            unknown_nodes=int(unknown[place]),
            larger_than_m=larger[place],
        )
        for place, (origin, row) in enumerate(
            zip(batch.origins, probabilities.tolist(), strict=True)
        )
    ]
