"""Predicts the classes of graphs, batch by batch."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, Value
from ihgnn_cli.data.recode import Recoded
from ihgnn_cli.errors import DataError, InputError, Problem
from ihgnn_cli.inference.vocabulary import encode_dataset, unknown_nodes
from ihgnn_cli.models.card import ModelCard

Report = Callable[[Problem], None]
"""Called for each graph that cannot be predicted."""
Check = Callable[[Recoded], None]
"""Called with encoded graphs before they are predicted; may refuse them."""


class Classifier(Protocol):
    """What prediction and evaluation need of a model, whether a checkpoint or an exported file."""

    @property
    def card(self) -> ModelCard:
        """The model's inputs and classes."""

    @property
    def runs_on(self) -> str:
        """The device or provider that is really used."""

    @property
    def node_limit(self) -> int | None:
        """Nodes used per graph, the first in sorted order; `None` if the model uses all."""

    def probabilities(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """[len(graphs), C] for graphs of an encoded data set."""


@dataclass(frozen=True)
class Prediction:
    """The predicted class of one graph."""

    graph: int
    """Its position in the input, from 0; graphs that could not be predicted count too."""
    class_value: Value
    """The most probable class; the first one in a tie."""
    probabilities: dict[Value, float]
    """One per class, in the model's order."""
    id: object = None
    """The id that came with the graph."""
    unknown_nodes: int = 0
    """Nodes whose label the model does not know; it is encoded as the zero vector."""
    larger_than_m: bool = False
    """Whether the graph has more than m nodes, so that only the first m in sorted order are used.
    Always false for models that use all nodes."""


@dataclass(frozen=True)
class Origin:
    """Where a graph came from."""

    number: int
    """Its position, from 0."""
    file: str
    line: int | None = None
    id: object = None

    def problem(self, message: str, remedy: str = "") -> Problem:
        """A problem with this graph."""
        return Problem(self.file, self.line, message, remedy)


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Graphs that are predicted together."""

    dataset: GraphDataset
    """Encoded with the model's vocabulary."""
    origins: tuple[Origin, ...]

    def singles(self) -> "Iterator[GraphBatch]":
        """One batch per graph."""
        for place, origin in enumerate(self.origins):
            yield GraphBatch(self.dataset.select([place]), (origin,))


def batches_of(
    card: ModelCard, dataset: GraphDataset, batch_size: int, check: Check | None = None
) -> Iterator[GraphBatch]:
    """A whole data set in batches; its classes are ignored.

    Raises:
        InputError: the data lacks labels or attributes that the model needs.
    """
    recoded = encode_dataset(card, dataset)
    if check is not None:
        check(recoded)
    encoded = recoded.dataset
    for start in range(0, len(encoded), batch_size):
        chosen = range(start, min(start + batch_size, len(encoded)))
        batch = encoded.select(chosen)
        origins = tuple(
            Origin(number, f"{dataset.name}, graph {number}", id=given)
            for number, given in zip(chosen, batch.ids or (None,) * len(batch), strict=True)
        )
        yield GraphBatch(batch, origins)


def predictions(
    classifier: Classifier, batches: Iterable[GraphBatch], report: Report | None
) -> Iterator[list[Prediction]]:
    """The predictions in order, one list per batch.

    A graph that the model refuses is reported, and the others are still predicted.

    Raises:
        DataError: a graph is refused and `report` is `None`.
    """
    for batch in batches:
        try:
            predicted = _predicted(classifier, batch)
        except InputError as error:
            if len(batch.origins) > 1:
                yield from predictions(classifier, batch.singles(), report)
                continue
            problem = batch.origins[0].problem(str(error))
            if report is None:
                raise DataError([problem]) from error
            report(problem)
        else:
            yield predicted


def _predicted(classifier: Classifier, batch: GraphBatch) -> list[Prediction]:
    card, dataset = classifier.card, batch.dataset
    probabilities = classifier.probabilities(dataset, np.arange(len(dataset)))
    best = probabilities.argmax(axis=1).tolist()
    limit = classifier.node_limit
    larger = [limit is not None and size > limit for size in np.diff(dataset.node_ptr).tolist()]
    unknown = unknown_nodes(card, dataset)
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
