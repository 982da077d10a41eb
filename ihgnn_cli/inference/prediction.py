"""Predicts the classes of graphs, batch by batch."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, Value
from ihgnn_cli.data.recode import Recoded
from ihgnn_cli.errors import DataError, InputError, Problem
from ihgnn_cli.inference.vocabulary import encode_dataset, unknown_nodes
from ihgnn_cli.models.card import ModelCard

Errors = Literal["raise", "return"]
"""Whether a graph that cannot be predicted raises a `DataError`, or is answered by a `Failure`."""
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

    @property
    def members(self) -> int:
        """The number of members, whose probabilities are averaged."""

    def with_uncertainty(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Probabilities [G, C], and of several members uncertainty [G] (`Prediction`)."""

    def with_card(self, card: ModelCard) -> "Classifier":
        """The same model with other metadata."""


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
    uncertainty: float | None = None
    """Standard deviation, over the members of an ensemble, of the predicted class's probability."""
    prediction_set: tuple[Value, ...] | None = None
    """The classes of the conformal prediction set, the most probable first; `None` if the model has
    no thresholds (`card.conformal`)."""

    def as_entry(self) -> dict[str, object]:
        """The answer for JSON: `{"graph": 0, "class": "1", "probabilities": {"-1": 0.1, ...}}`.

        `id`, `unknown_nodes`, `larger_than_m`, `uncertainty` and `prediction_set` follow only if
        they are set.
        """
        entry: dict[str, object] = {
            "graph": self.graph,
            "class": str(self.class_value),
            "probabilities": {
                str(value): float(digits(p)) for value, p in self.probabilities.items()
            },
        }
        if self.id is not None:
            entry["id"] = self.id
        if self.unknown_nodes:
            entry["unknown_nodes"] = self.unknown_nodes
        if self.larger_than_m:
            entry["larger_than_m"] = True
        if self.uncertainty is not None:
            entry["uncertainty"] = float(digits(self.uncertainty))
        if self.prediction_set is not None:
            entry["prediction_set"] = [str(each) for each in self.prediction_set]
        return entry


@dataclass(frozen=True)
class Failure:
    """A graph that could not be predicted."""

    graph: int
    """Its position in the input, from 0."""
    problem: Problem
    """Where the graph is, what is wrong with it, and what to do."""
    id: object = None
    """The id that came with the graph, if it could be read."""

    @property
    def error(self) -> str:
        """What is wrong and what to do."""
        return f"{self.problem.message} {self.problem.remedy}".rstrip()

    def as_entry(self) -> dict[str, object]:
        """For JSON: `{"graph": 1, "error": "no edges. ..."}`, with `line` and `id` if known."""
        more = {"line": self.problem.line, "id": self.id}
        known = {key: each for key, each in more.items() if each is not None}
        return {"graph": self.graph, "error": self.error, **known}

    def __str__(self) -> str:
        return str(self.problem)


Answer = Prediction | Failure


def digits(probability: float) -> str:
    """The seven digits of a 32-bit float."""
    return f"{probability:.7g}"


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

    def failure(self, message: str, remedy: str = "") -> Failure:
        """This graph, which could not be predicted."""
        return Failure(self.number, self.problem(message, remedy), self.id)


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Graphs that are predicted together."""

    dataset: GraphDataset | None
    """Encoded with the model's vocabulary; `None` if there are only failures."""
    origins: tuple[Origin, ...]
    failures: tuple[Failure, ...] = ()
    """Graphs that came with them and cannot be predicted."""


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
    classifier: Classifier, batches: Iterable[GraphBatch], errors: Errors = "raise"
) -> Iterator[list[Answer]]:
    """The answers in order, one list per batch.

    A graph that the model refuses does not affect the others.

    Raises:
        DataError: a graph is refused and `errors` is "raise"; those before it were yielded.
    """
    for batch in batches:
        parts = _parts(classifier, batch)
        if errors == "raise":
            for part in parts:
                if isinstance(part, Failure):
                    raise DataError([part.problem])
                yield list(part)
        else:
            found: list[Answer] = list(batch.failures)
            for part in parts:
                found += [part] if isinstance(part, Failure) else part
            yield sorted(found, key=lambda each: each.graph)


def _parts(classifier: Classifier, batch: GraphBatch) -> Iterator[list[Prediction] | Failure]:
    """All graphs together if the model takes them, otherwise one by one."""
    dataset, origins = batch.dataset, batch.origins
    if dataset is None:
        return
    try:
        yield _predicted(classifier, dataset, origins)
    except InputError as error:
        if len(origins) == 1:
            yield origins[0].failure(str(error))
            return
        for place, origin in enumerate(origins):
            yield from _parts(classifier, GraphBatch(dataset.select([place]), (origin,)))


def _predicted(
    classifier: Classifier, dataset: GraphDataset, origins: tuple[Origin, ...]
) -> list[Prediction]:
    card = classifier.card
    probabilities, uncertainty = classifier.with_uncertainty(dataset, np.arange(len(dataset)))
    best = probabilities.argmax(axis=1).tolist()
    limit = classifier.node_limit
    larger = [limit is not None and size > limit for size in np.diff(dataset.node_ptr).tolist()]
    unknown = unknown_nodes(card, dataset)
    sets = _sets(card, probabilities)
    return [
        Prediction(
            graph=origin.number,
            class_value=card.class_values[best[place]],
            probabilities=dict(zip(card.class_values, row, strict=True)),
            id=origin.id,
            unknown_nodes=int(unknown[place]),
            larger_than_m=larger[place],
            uncertainty=None if uncertainty is None else float(uncertainty[place]),
            prediction_set=None if sets is None else sets[place],
        )
        for place, (origin, row) in enumerate(zip(origins, probabilities.tolist(), strict=True))
    ]


def _sets(card: ModelCard, probabilities: NDArray[np.float64]) -> list[tuple[Value, ...]] | None:
    """The prediction set of each graph, the most probable class first."""
    if card.conformal is None:
        return None
    listed, order = card.conformal.sets(probabilities), np.argsort(-probabilities, kind="stable")
    return [
        tuple(card.class_values[each] for each in ranked if inside[each])
        for ranked, inside in zip(order.tolist(), listed.tolist(), strict=True)
    ]
