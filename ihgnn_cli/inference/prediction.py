"""Predicts the classes of graphs, as a stream in constant memory: graphs, batches, answers."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, Value
from ihgnn_cli.data.json_graph import (
    GraphError,
    JsonGraph,
    check_graph,
    id_of,
    ignored_keys,
    parse_graph,
)
from ihgnn_cli.data.problems import MAX_LINE, NOT_TEXT, SAVE_AS_TEXT
from ihgnn_cli.data.recode import Recoded
from ihgnn_cli.data.smiles import MoleculeRow, molecules
from ihgnn_cli.errors import DataError, InputError, Problem
from ihgnn_cli.files import reading
from ihgnn_cli.inference.vocabulary import (
    UnknownLabels,
    check_fits,
    encode_dataset,
    encode_graphs,
    unknown_nodes,
)
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.conformal import Conformal
from ihgnn_cli.models.objects import entry_for
from ihgnn_cli.progress import Advance, silent

BATCH_SIZE = 256
"""Default number of graphs per batch."""
# A batch is full at this number of nodes, edges and attribute values, however few its graphs: they
# take tens of megabytes as Python lists.
_ENOUGH = 1 << 18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_log = logging.getLogger(__name__)

Errors = Literal["raise", "return"]
"""Whether a graph that cannot be predicted raises a `DataError`, or is answered by a `Failure`."""


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
    no threshold."""

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


Arrival = tuple[Origin, Any]
"""An unchecked graph: a line of JSON (bytes), a row of CSV, or an object for `entry_for`."""


def of_lines(lines: Iterable[bytes | None], file: str) -> Iterator[Arrival | None]:
    """The graphs in lines of JSON (see `data.lines`); blank lines are skipped."""
    number = line = 0
    for content in lines:
        if content is None:
            yield None
            continue
        line += 1
        graph = content.removeprefix(_BYTE_ORDER_MARK) if line == 1 else content
        if graph.strip():
            yield Origin(number, file, line), graph
            number += 1


def of_molecules(path: Path, advance: Advance = silent) -> Iterator[Arrival]:
    """The molecules in a CSV file (see `data.smiles`).

    Raises:
        InputError: the file cannot be read, or RDKit is not installed.
    """
    with reading(path):
        for number, (line, row) in enumerate(molecules(path, advance)):
            yield Origin(number, path.name, line), row


def of_objects(graphs: Iterable[Any]) -> Iterator[Arrival]:
    """Graphs given as Python objects.

    Raises:
        InputError: it is one graph instead of a list.
    """
    if isinstance(graphs, Mapping | str | bytes) or not isinstance(graphs, Iterable):
        raise InputError("predict takes a list of graphs. Give [graph].")
    for number, graph in enumerate(graphs):
        yield Origin(number, f"graph {number}"), graph


def batches_of(
    card: ModelCard, dataset: GraphDataset, batch_size: int, labels: UnknownLabels
) -> Iterator[GraphBatch]:
    """A whole data set in batches; its classes are ignored.

    Raises:
        InputError: the data lacks labels or attributes that the model needs.
    """
    recoded = encode_dataset(card, dataset)
    for start in range(0, len(dataset), batch_size):
        chosen = range(start, min(start + batch_size, len(dataset)))
        batch = recoded.dataset.select(chosen)
        origins = tuple(
            Origin(number, f"{dataset.name}, graph {number}", id=given)
            for number, given in zip(chosen, batch.ids or (None,) * len(batch), strict=True)
        )
        yield _batch(replace(recoded, dataset=batch), origins, (), labels)


def collected(
    arrivals: Iterable[Arrival | None], card: ModelCard, batch_size: int, labels: UnknownLabels
) -> Iterator[GraphBatch]:
    """Batches of the graphs, in order; a malformed graph is one of its batch's failures.

    A batch ends when it has enough graphs, or enough nodes, edges and attributes, or when the next
    graph is not available yet (`None`).

    Args:
        arrivals: the graphs.
        card: the model's inputs and classes.
        batch_size: maximum number of graphs per batch.
        labels: counts unknown labels, and decides about graphs that have hardly any others.
    """
    graphs: list[JsonGraph] = []
    origins: list[Origin] = []
    failures: list[Failure] = []
    taken, told = 0, False
    for arrival in arrivals:
        if arrival is not None:
            origin, content = arrival
            try:
                graph = _checked(content, card)
            except GraphError as error:
                named = replace(origin, id=_id_of(content))
                failures.append(named.failure(error.message, error.remedy))
            else:
                if graph.ignored and not told:
                    told = True
                    _log.warning("%s", ignored_keys(origin.problem("").where, graph.ignored))
                graphs.append(graph)
                origins.append(replace(origin, id=graph.id))
                taken += graph.num_nodes + len(graph.edges)
                taken += _numbers(graph.node_attributes) + _numbers(graph.edge_attributes)
        full = len(graphs) + len(failures) >= batch_size or taken >= _ENOUGH
        if (full or arrival is None) and (graphs or failures):
            yield _encoded(card, graphs, origins, failures, labels)
            graphs, origins, failures, taken = [], [], [], 0
    if graphs or failures:
        yield _encoded(card, graphs, origins, failures, labels)


def predictions(
    classifier: Classifier,
    batches: Iterable[GraphBatch],
    errors: Errors = "raise",
    conformal: Conformal | None = None,
) -> Iterator[list[Answer]]:
    """The answers in order, one list per batch.

    A graph that the model refuses does not affect the others. `conformal` is the threshold of
    prediction sets, by default the one that the model carries.

    Raises:
        DataError: a graph is a failure and `errors` is "raise"; those before it were yielded.
    """
    sets = conformal or classifier.card.conformal
    for batch in batches:
        found = [*batch.failures, *_answers(classifier, batch, sets)]
        found.sort(key=lambda each: each.graph)
        failure = next((each for each in found if isinstance(each, Failure)), None)
        if failure is None or errors == "return":
            yield found
            continue
        if before := found[: found.index(failure)]:
            yield before
        raise DataError([failure.problem])


def _encoded(
    card: ModelCard,
    graphs: list[JsonGraph],
    origins: list[Origin],
    failures: list[Failure],
    labels: UnknownLabels,
) -> GraphBatch:
    """A batch of graphs that passed the checks."""
    if not graphs:
        return GraphBatch(None, (), tuple(failures))
    return _batch(encode_graphs(card, graphs), tuple(origins), tuple(failures), labels)


def _batch(
    encoded: Recoded,
    origins: tuple[Origin, ...],
    failures: tuple[Failure, ...],
    labels: UnknownLabels,
) -> GraphBatch:
    """A batch; graphs whose labels are nearly all unknown become failures."""
    refused = labels.add(encoded)
    if not refused.any():
        return GraphBatch(encoded.dataset, origins, failures)
    of_unknown = tuple(
        origins[place].failure(
            *labels.refusal(replace(encoded, dataset=encoded.dataset.select([place])))
        )
        for place in np.flatnonzero(refused).tolist()
    )
    kept = np.flatnonzero(~refused)
    dataset = encoded.dataset.select(kept) if len(kept) else None
    return GraphBatch(dataset, tuple(origins[each] for each in kept), (*failures, *of_unknown))


def _checked(content: Any, card: ModelCard) -> JsonGraph:
    if isinstance(content, bytes):
        if b"\0" in content:
            raise GraphError(NOT_TEXT, SAVE_AS_TEXT)
        if len(content) > MAX_LINE:
            raise GraphError(f"a line of more than {MAX_LINE >> 20} MiB.", "Split the graph.")
        graph = parse_graph(content)
    elif isinstance(content, MoleculeRow):
        graph = content.graph()
    else:
        graph = check_graph(entry_for(content, card))
    check_fits(card, graph)
    return graph


def _id_of(content: Any) -> object:
    """The id of a graph that is not valid; that of a line which is too long is not looked for."""
    if isinstance(content, MoleculeRow):
        return content.id
    return None if isinstance(content, bytes) and len(content) > MAX_LINE else id_of(content)


def _numbers(rows: list[list[float]] | None) -> int:
    """The number of values; all rows have the same length."""
    return len(rows) * len(rows[0]) if rows else 0


def _answers(
    classifier: Classifier, batch: GraphBatch, conformal: Conformal | None
) -> Iterator[Answer]:
    """Of all graphs together if the model takes them, otherwise one by one."""
    dataset, origins = batch.dataset, batch.origins
    if dataset is None:
        return
    try:
        found = _predicted(classifier, dataset, origins, conformal)
    except InputError as error:
        if len(origins) == 1:
            yield origins[0].failure(str(error))
            return
        for place, origin in enumerate(origins):
            one = GraphBatch(dataset.select([place]), (origin,))
            yield from _answers(classifier, one, conformal)
    else:
        yield from found


def _predicted(
    classifier: Classifier,
    dataset: GraphDataset,
    origins: tuple[Origin, ...],
    conformal: Conformal | None,
) -> list[Prediction]:
    card = classifier.card
    probabilities, uncertainty = classifier.with_uncertainty(dataset, np.arange(len(dataset)))
    best = probabilities.argmax(axis=1).tolist()
    limit = classifier.node_limit
    larger = [limit is not None and size > limit for size in np.diff(dataset.node_ptr).tolist()]
    unknown = unknown_nodes(card, dataset)
    sets = None if conformal is None else _sets(card, conformal, probabilities)
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


def _sets(
    card: ModelCard, conformal: Conformal, probabilities: NDArray[np.float64]
) -> list[tuple[Value, ...]]:
    """The prediction set of each graph, the most probable class first."""
    listed, order = conformal.sets(probabilities), np.argsort(-probabilities, kind="stable")
    return [
        tuple(card.class_values[each] for each in ranked if inside[each])
        for ranked, inside in zip(order.tolist(), listed.tolist(), strict=True)
    ]
