"""Graphs as they come, collected into batches for a model; the bad ones told and left out."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ihgnn_cli.data.jsongraph import GraphError, JsonGraph, check_graph, parse_graph
from ihgnn_cli.data.lines import MAX_LINE
from ihgnn_cli.data.text import NOT_TEXT, SAVE_AS_TEXT
from ihgnn_cli.errors import DataError, Problem
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.encoding import check_fits, encoded
from ihgnn_cli.models.objects import entry_for
from ihgnn_cli.training.prediction import GraphBatch, Origin, Report

BATCH_SIZE = 256
"""Graphs that are answered for together, unless somebody knows better."""
# Nodes, edges and numbers of either that are enough for a batch, however few graphs they are: tens
# of megabytes as lists of Python.
_ENOUGH = 1 << 18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Arrival = tuple[Origin, Any]
"""A graph that nobody has looked at: a line of JSON (bytes), or an object for `entry_for`."""


def of_lines(lines: Iterable[bytes | None], file: str) -> Iterator[Arrival | None]:
    """The graphs of lines (see `data.lines`); blank ones are none, and are not counted."""
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


def of_objects(graphs: Iterable[Any]) -> Iterator[Arrival]:
    """Graphs of a Python program."""
    for number, graph in enumerate(graphs):
        yield Origin(number, f"graph {number}"), graph


def collected(
    arrivals: Iterable[Arrival | None], card: ModelCard, batch_size: int, report: Report | None
) -> Iterator[GraphBatch]:
    """Batches of the graphs that are good, in order.

    A batch is closed when it has enough graphs, or enough nodes, edges and attributes, or when the
    next graph has not come yet (`None`).

    Args:
        arrivals: the graphs.
        card: of the model that will answer.
        batch_size: graphs of a batch, at most.
        report: told of each bad graph, in order.

    Raises:
        DataError: a graph is bad, and there is nobody to report it to; those before it were given.
    """
    pending = _Pending(card)
    for arrival in arrivals:
        problem = None if arrival is None else pending.add(*arrival)
        if problem is not None and report is not None:
            report(problem)
            continue
        if arrival is None or problem is not None or pending.is_enough(batch_size):
            yield from pending.batch()
        if problem is not None:
            raise DataError([problem])
    yield from pending.batch()


class _Pending:
    """Graphs that wait for the others of their batch."""

    def __init__(self, card: ModelCard) -> None:
        self.card = card
        self.graphs: list[JsonGraph] = []
        self.origins: list[Origin] = []
        self.taken = 0

    def add(self, origin: Origin, content: Any) -> Problem | None:
        """Take one more; the answer is what is wrong with it."""
        try:
            graph = _checked(content, self.card)
        except GraphError as error:
            return origin.problem(error.message, error.remedy)
        self.graphs.append(graph)
        self.origins.append(replace(origin, id=graph.id))
        self.taken += graph.num_nodes + len(graph.edges)
        self.taken += _numbers(graph.node_attributes) + _numbers(graph.edge_attributes)
        return None

    def is_enough(self, batch_size: int) -> bool:
        return len(self.graphs) >= batch_size or self.taken >= _ENOUGH

    def batch(self) -> Iterator[GraphBatch]:
        """All of them, if there are any, and then begin anew."""
        if self.graphs:
            made = GraphBatch(encoded(self.card, self.graphs), tuple(self.origins))
            self.graphs, self.origins, self.taken = [], [], 0
            yield made


def _checked(content: Any, card: ModelCard) -> JsonGraph:
    if isinstance(content, bytes):
        if b"\0" in content:
            raise GraphError(NOT_TEXT, SAVE_AS_TEXT)
        if len(content) > MAX_LINE:
            raise GraphError(f"a line of more than {MAX_LINE >> 20} MiB.", "Split the graph.")
        graph = parse_graph(content)
    else:
        graph = check_graph(entry_for(content, card))
    check_fits(card, graph)
    return graph


def _numbers(rows: list[list[float]] | None) -> int:
    """Rows are equally long."""
    return len(rows) * len(rows[0]) if rows else 0
