"""Collects a stream of graphs into batches; malformed graphs are failures of their batch."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from ihgnn_cli.errors import DataError, InputError
from ihgnn_cli.files import reading
from ihgnn_cli.inference.prediction import Errors, Failure, GraphBatch, Origin
from ihgnn_cli.inference.vocabulary import (
    UnknownLabels,
    check_fits,
    encode_graphs,
    nearly_all_unknown,
)
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.objects import entry_for
from ihgnn_cli.progress import Advance, silent

BATCH_SIZE = 256
"""Default number of graphs per batch."""
# A batch is full at this number of nodes, edges and attribute values, however few its graphs: they
# take tens of megabytes as Python lists.
_ENOUGH = 1 << 18
_log = logging.getLogger(__name__)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Arrival = tuple[Origin, Any]
"""An unchecked graph: a line of JSON (bytes), a row of CSV, or an object for `entry_for`."""


def of_lines(lines: Iterable[bytes | None], file: str) -> Iterator[Arrival | None]:
    """The graphs in lines of JSON (see `data.lines`); blank lines are skipped."""
    number = 0
    line = 0
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


def collected(
    arrivals: Iterable[Arrival | None],
    card: ModelCard,
    batch_size: int,
    labels: UnknownLabels | None = None,
    errors: Errors = "raise",
) -> Iterator[GraphBatch]:
    """Batches of the graphs, in order.

    A batch ends when it has enough graphs, or enough nodes, edges and attributes, or when the next
    graph is not available yet (`None`).

    Args:
        arrivals: the graphs.
        card: the model's inputs and classes.
        batch_size: maximum number of graphs per batch.
        labels: counts the nodes of each batch before the batch is yielded.
        errors: whether a malformed graph raises an error, or is one of its batch's failures.

    Raises:
        InputError: the labels of nearly all nodes are unknown. How graphs arrive in time makes no
            difference: this is decided once enough graphs were seen, and at the end.
        DataError: a graph is malformed and `errors` is "raise"; those before it were yielded.
    """
    pending = _Pending(card, labels)
    for arrival in arrivals:
        problem = None if arrival is None else pending.add(*arrival)
        raising = problem is not None and errors == "raise"
        if problem is not None and not raising:
            pending.failures.append(problem)
        if arrival is None or raising or pending.is_enough(batch_size):
            yield from pending.batch()
        if problem is not None and raising:
            raise DataError([problem.problem])
    yield from pending.batch(last=True)


class _Pending:
    """The graphs of the next batch."""

    def __init__(self, card: ModelCard, labels: UnknownLabels | None) -> None:
        self.card = card
        self.labels = labels
        self.told = False
        self.graphs: list[JsonGraph] = []
        self.origins: list[Origin] = []
        self.failures: list[Failure] = []
        self.taken = 0

    def add(self, origin: Origin, content: Any) -> Failure | None:
        """Add a graph, or return what is wrong with it."""
        try:
            graph = _checked(content, self.card)
        except GraphError as error:
            return replace(origin, id=_id_of(content)).failure(error.message, error.remedy)
        if graph.ignored and not self.told:
            self.told = True
            _log.warning("%s", ignored_keys(origin.problem("").where, graph.ignored))
        self.graphs.append(graph)
        self.origins.append(replace(origin, id=graph.id))
        self.taken += graph.num_nodes + len(graph.edges)
        self.taken += _numbers(graph.node_attributes) + _numbers(graph.edge_attributes)
        return None

    def is_enough(self, batch_size: int) -> bool:
        count = len(self.graphs) + len(self.failures)
        return count >= batch_size or self.taken >= _ENOUGH

    def batch(self, *, last: bool = False) -> Iterator[GraphBatch]:
        """Yield the batch, if it has any graphs, and start the next one."""
        made = None
        if self.graphs or self.failures:
            encoded = self._encoded()
            dataset = None if encoded is None else encoded.dataset
            made = GraphBatch(dataset, tuple(self.origins), tuple(self.failures))
            self.graphs, self.origins, self.failures, self.taken = [], [], [], 0
            if self.labels is not None and encoded is not None:
                self.labels.check_so_far(encoded)
        if last and self.labels is not None:
            self.labels.refuse()
        if made is not None:
            yield made

    def _encoded(self) -> Recoded | None:
        """The graphs; those with nearly all labels unknown become failures if that is asked for."""
        encoded = encode_graphs(self.card, self.graphs) if self.graphs else None
        if encoded is None or self.labels is None or not self.labels.per_graph:
            return encoded
        refused = nearly_all_unknown(self.card, encoded.dataset).nonzero()[0].tolist()
        if not refused:
            return encoded
        for place in reversed(refused):
            labels = UnknownLabels(self.card)
            labels.add(encode_graphs(self.card, [self.graphs.pop(place)]))
            self.failures.append(self.origins.pop(place).failure(labels.refusal))
        return encode_graphs(self.card, self.graphs) if self.graphs else None


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
