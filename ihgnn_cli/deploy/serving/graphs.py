"""The friendly endpoint: graphs in the form of JSON lines, and an answer or an error for each."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from ihgnn_cli.data.json_graph import (
    GraphError,
    JsonGraph,
    check_entry,
    decoded,
    id_of,
    parse_graph,
)
from ihgnn_cli.deploy.onnx_model import OnnxClassifier
from ihgnn_cli.deploy.serving.requests import JSON, RefusedError
from ihgnn_cli.deploy.serving.settings import REQUEST_SIZE, ServeSettings
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.prediction import Answer, Failure, GraphBatch, Origin, predictions
from ihgnn_cli.inference.vocabulary import (
    NEARLY_ALL_UNKNOWN,
    UnknownLabels,
    check_fits,
    encode_graphs,
)

LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")
"""Content types of JSON lines; the first one is that of the answer."""
_FORMS = "Send application/json (a graph, or a list of graphs) or application/x-ndjson (lines)."
_NOT_A_NUMBER = "the model's answer is not a number: the attributes are too large for it."


class BodyForm(Enum):
    """The form of a request, which its answer has too."""

    ONE = "one graph"
    LIST = "a list of graphs"
    LINES = "lines"


@dataclass(frozen=True, eq=False)
class Graphs:
    """The graphs of a request; those that cannot be predicted are errors, in their places."""

    form: BodyForm
    entries: Sequence[JsonGraph | GraphError]
    allow_unknown: bool

    @property
    def valid(self) -> list[JsonGraph]:
        """The graphs to predict."""
        return [each for each in self.entries if isinstance(each, JsonGraph)]

    @property
    def size(self) -> int:
        """Nodes and edges of the valid graphs."""
        return sum(each.num_nodes + len(each.edges) for each in self.valid)


def read_graphs(
    body: bytes, kind: str, classifier: OnnxClassifier, settings: ServeSettings, allow_unknown: bool
) -> Graphs:
    """The graphs in a body of this content type.

    Raises:
        RefusedError: it is not JSON, or there are too many.
    """
    checked: list[JsonGraph | GraphError] = []
    form, given = _listed(body, kind)
    read: Callable[[Any], JsonGraph] = parse_graph if form == BodyForm.LINES else check_entry
    _check_count(len(given), settings)
    for each in given:
        try:
            graph = read(each)
            check_fits(classifier.card, graph)
            _check_size(graph, classifier, settings)
            checked.append(graph)
        except GraphError as error:
            error.id = id_of(each)
            checked.append(error)
    found = Graphs(form, checked, allow_unknown or settings.allow_unknown)
    check_request_size(found.size)
    return found


@dataclass(frozen=True)
class Answered:
    """The answers to a request as JSON, one for each of its graphs, in order."""

    form: BodyForm
    texts: tuple[str, ...]
    refused: int
    """How many of them are errors."""

    @property
    def status(self) -> int:
        """422 if there are errors only."""
        return 422 if self.texts and self.refused == len(self.texts) else 200

    @property
    def content_type(self) -> str:
        """That of the body."""
        return LINES[0] if self.form == BodyForm.LINES else JSON

    def body(self) -> str:
        """The response, in the form of the request."""
        if self.form == BodyForm.LINES:
            return "".join(f"{each}\n" for each in self.texts)
        return self.texts[0] if self.form == BodyForm.ONE else f"[{','.join(self.texts)}]"


def predict(classifier: OnnxClassifier, requests: Sequence[Graphs]) -> list[Answered]:
    """The answers of each request; the model runs once for all of them."""
    graphs = [graph for each in requests for graph in each.valid]
    found = iter(_predicted(classifier, graphs))
    answered = []
    for each in requests:
        entries = [
            _refusal(number, entry, entry.id)
            if isinstance(entry, GraphError)
            else _answer(classifier, replace(next(found), graph=number), entry, each.allow_unknown)
            for number, entry in enumerate(each.entries)
        ]
        refused = sum("error" in entry for entry in entries)
        if refused and each.form == BodyForm.ONE:  # a refused request: there is no answer
            entries = [{"error": entries[0]["error"]}]
        answered.append(Answered(each.form, tuple(map(_as_json, entries)), refused))
    return answered


def check_request_size(size: int) -> None:
    """Check the nodes and edges of a request.

    Raises:
        RefusedError: there are too many.
    """
    if size > REQUEST_SIZE:
        raise RefusedError(
            413,
            f"The request has {size:,} nodes and edges. Send at most {REQUEST_SIZE:,} at a time.",
        )


def _listed(body: bytes, kind: str) -> tuple[BodyForm, list[Any]]:
    """The form of a body, and its graphs: as bytes if they are lines, otherwise decoded."""
    if kind in LINES:
        return BodyForm.LINES, [line for line in body.splitlines() if line.strip()]
    if kind != JSON:
        raise RefusedError(415, f"The content type {kind or '(none)'} is not supported. {_FORMS}")
    content = _json(body)
    return (BodyForm.LIST, content) if isinstance(content, list) else (BodyForm.ONE, [content])


def _json(body: bytes) -> object:
    try:
        return decoded(body)
    except GraphError as error:
        raise RefusedError(400, f"The body is {error.message} {_FORMS}") from None


def _check_count(count: int, settings: ServeSettings) -> None:
    if count > settings.max_graphs:
        raise RefusedError(
            413, f"The request has {count:,} graphs. Send at most {settings.max_graphs:,}."
        )


def _check_size(graph: JsonGraph, classifier: OnnxClassifier, settings: ServeSettings) -> None:
    most = settings.nodes_of(classifier)
    if graph.num_nodes > most:
        raise GraphError(
            f"a graph of {graph.num_nodes:,} nodes.",
            f"This service accepts up to {most:,} (--max-nodes).",
        )
    try:
        classifier.refuse_too_large(np.array([graph.num_nodes]))
    except InputError as error:
        raise GraphError(str(error), "") from None


def _predicted(classifier: OnnxClassifier, graphs: list[JsonGraph]) -> list[Answer]:
    if not graphs:
        return []
    origins = tuple(Origin(number, "request", id=graph.id) for number, graph in enumerate(graphs))
    batch = GraphBatch(encode_graphs(classifier.card, graphs).dataset, origins)
    with np.errstate(invalid="ignore"):  # see _NOT_A_NUMBER
        return [each for some in predictions(classifier, [batch], "return") for each in some]


def _answer(
    classifier: OnnxClassifier, found: Answer, graph: JsonGraph, allow_unknown: bool
) -> dict[str, object]:
    if isinstance(found, Failure):
        return found.as_entry()
    if not np.isfinite(list(found.probabilities.values())).all():
        return _refusal(found.graph, GraphError(_NOT_A_NUMBER, "Use smaller values."), graph.id)
    if not allow_unknown and found.unknown_nodes > NEARLY_ALL_UNKNOWN * graph.num_nodes:
        labels = UnknownLabels(classifier.card)
        labels.add(encode_graphs(classifier.card, [graph]))
        remedy = "Give labels of the model's data, or insist with ?allow_unknown=true."
        return _refusal(found.graph, GraphError(labels.sentence, remedy), graph.id)
    return found.as_entry()


def _refusal(number: int, error: GraphError, given: object = None) -> dict[str, object]:
    entry = {"graph": number, "error": _sentence(error)}
    return entry if given is None else {**entry, "id": given}


def _sentence(error: GraphError) -> str:
    return f"{error.message} {error.remedy}".strip()


def _as_json(entry: dict[str, object]) -> str:
    try:
        return json.dumps(entry, separators=(",", ":"))
    except RecursionError:  # an id of a thousand brackets
        return _as_json({key: value for key, value in entry.items() if key != "id"})
