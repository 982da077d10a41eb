"""Read the TU Dortmund text format, and report every mistake in it.

`NAME_A.txt` lists edges `row, column`; nodes are numbered from 1 across the whole data set.
`NAME_graph_indicator.txt` gives the graph of each node, `NAME_graph_labels.txt` the class of each
graph (optional for prediction). Labels and attributes of nodes and edges are optional files with
one line per node or edge.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset, vocabulary
from ihgnn_cli.data.readers.build import Coded, ListedGraphs, build
from ihgnn_cli.data.readers.problems import ProblemList
from ihgnn_cli.data.readers.text import CORRECT_IT, Table, read_floats, read_integers
from ihgnn_cli.data.readers.tu_files import TUFiles
from ihgnn_cli.errors import DataError
from ihgnn_cli.progress import Advance, silent
from ihgnn_cli.words import counted

REQUIRED = ("A", "graph_indicator", "graph_labels")
NO_WORDS = "TU labels are integers; JSON lines take words (docs/data.md)."
_NUMBERING = "Node and graph numbers start at 1."


def read_tu(files: TUFiles, advance: Advance = silent, *, classes: bool = True) -> GraphDataset:
    """Read a TU data set. With `classes=False`, the file of classes may be missing.

    Raises:
        DataError: with every problem found in the files.
    """
    return _assemble(files.name, _Reading(files, advance, classes).tables())


@dataclass(frozen=True)
class _Tables:
    """The files as they are: numbers count from 1, rows are in file order."""

    graph_indicator: Table
    graph_labels: Table | None
    edges: Table
    node_labels: Table | None
    node_attributes: Table | None
    edge_labels: Table | None
    edge_attributes: Table | None


class _Reading:
    """Reads one set of files, and collects problems instead of stopping at the first."""

    def __init__(self, files: TUFiles, advance: Advance, classes: bool) -> None:
        self.files = files
        self.advance = advance
        self.required = REQUIRED if classes else REQUIRED[:2]
        self.problems: dict[str, ProblemList] = {}

    def tables(self) -> _Tables:
        self._require_parts()
        tables = _Tables(
            graph_indicator=self._integers("graph_indicator", columns=1)[:, 0],
            graph_labels=self._classes(),
            edges=self._integers("A", columns=2),
            node_labels=self._optional("node_labels", self._integers),
            node_attributes=self._optional("node_attributes", self._floats),
            edge_labels=self._optional("edge_labels", self._integers),
            edge_attributes=self._optional("edge_attributes", self._floats),
        )
        self._check_indicator(tables)
        self._check_rows(tables)
        self._check_edges(tables)
        self._stop_at_problems()
        return tables

    def _list(self, part: str) -> ProblemList:
        return self.problems.setdefault(part, ProblemList(self.files.file_name(part)))

    def _stop_at_problems(self) -> None:
        found = [problem for each in self.problems.values() for problem in each.all()]
        if found:
            raise DataError(found)

    def _require_parts(self) -> None:
        for part in self.required:
            if part not in self.files:
                remedy = "Add it; docs/data.md describes the format."
                if part == "graph_labels" and "graph_attributes" in self.files:
                    remedy = "graph_attributes are for regression; ihgnn only classifies."
                self._list(part).add(None, f"the file is missing in {self.files.path}.", remedy)
        if self.problems:
            self._check_other_parts()
            self._stop_at_problems()

    def _check_other_parts(self) -> None:
        """Find the mistakes in each of the files that exist."""
        columns = {"A": 2, "graph_indicator": 1, "graph_labels": 1}
        for part in self.files.parts:
            if part.endswith("_attributes"):
                self._floats(part)
            else:
                self._integers(part, columns.get(part))

    def _integers(self, part: str, columns: int | None = None) -> Table:
        with self.files.open(part) as stream:
            remedy = NO_WORDS if part.endswith("_labels") else CORRECT_IT
            return read_integers(stream, self._list(part), columns, self.advance, remedy=remedy)

    def _floats(self, part: str) -> Table:
        with self.files.open(part) as stream:
            return read_floats(stream, self._list(part), self.advance)

    def _classes(self) -> Table | None:
        if "graph_labels" not in self.files:
            return None
        return self._integers("graph_labels", columns=1)[:, 0]

    def _optional(self, part: str, read: Callable[[str], Table]) -> Table | None:
        return read(part) if part in self.files else None

    def _check_indicator(self, tables: _Tables) -> None:
        indicator = tables.graph_indicator
        if tables.graph_labels is None:
            self._check_numbering(indicator)
            return
        num_graphs = len(tables.graph_labels)
        if not num_graphs:
            self._list("graph_labels").add(None, "the file is empty.", "Give each graph a class.")
            return
        wrong = (indicator < 1) | (indicator > num_graphs)
        self._list("graph_indicator").add_rows(
            wrong, f"no graph with this number among {num_graphs:,} graph labels.", _NUMBERING
        )
        if not self._list("graph_indicator"):
            self._list("graph_labels").add_rows(
                np.bincount(indicator, minlength=num_graphs + 1)[1:] == 0,
                "the graph of this line has no nodes in the graph indicator.",
                "Remove the graph, or give it nodes.",
            )

    def _check_numbering(self, indicator: Table) -> None:
        """Check the graph numbers when no other file tells how many graphs there are."""
        found = self._list("graph_indicator")
        if not len(indicator):
            found.add(None, "the file is empty.", "Give each node its graph.")
            return
        found.add_rows(indicator < 1, "not a graph number.", _NUMBERING)
        if not found:
            numbers = np.unique(indicator)
            if len(numbers) < numbers[-1]:
                missing = int(np.flatnonzero(numbers != np.arange(1, len(numbers) + 1))[0]) + 1
                found.add(None, f"graph {missing} has no nodes.", "Number graphs without gaps.")

    def _check_rows(self, tables: _Tables) -> None:
        num_nodes, num_edges = len(tables.graph_indicator), len(tables.edges)
        for part, table, expected, other in (
            ("node_labels", tables.node_labels, num_nodes, "graph_indicator"),
            ("node_attributes", tables.node_attributes, num_nodes, "graph_indicator"),
            ("edge_labels", tables.edge_labels, num_edges, "A"),
            ("edge_attributes", tables.edge_attributes, num_edges, "A"),
        ):
            if table is not None and len(table) != expected:
                self._list(part).add(
                    None,
                    f"{counted(len(table), 'line')} where {self.files.file_name(other)} "
                    f"has {expected:,}.",
                    "Both need one line per item, in the same order.",
                )

    def _check_edges(self, tables: _Tables) -> None:
        edges, indicator = tables.edges, tables.graph_indicator
        num_nodes = len(indicator)
        found = self._list("A")
        if num_nodes > np.iinfo(np.int32).max:
            found.add(None, f"{num_nodes:,} nodes are too many.", "Split the data set.")
            return
        if found or (len(edges) and (edges.min() < 1 or edges.max() > num_nodes)):
            found.add_rows(
                np.asarray(((edges < 1) | (edges > num_nodes)).any(axis=1)),
                f"no node with this number among {num_nodes:,} lines of the graph indicator.",
                _NUMBERING,
            )
        if not self._list("graph_indicator"):
            rows = np.flatnonzero(found.sound(len(edges))) if found else slice(None)
            crossing = np.zeros(len(edges), dtype=bool)
            crossing[rows] = indicator[edges[rows, 0] - 1] != indicator[edges[rows, 1] - 1]
            found.add_rows(
                crossing, "the edge joins nodes of two graphs.", "Correct it, or the indicator."
            )


def _assemble(name: str, tables: _Tables) -> GraphDataset:
    """Build the data set from checked tables; from here on, positions count from 0."""
    moved = 0
    if (np.diff(tables.graph_indicator) < 0).any():
        tables, moved = _nodes_together(tables)
    return build(
        ListedGraphs(
            name=name,
            sizes=np.bincount(tables.graph_indicator)[1:],
            source=_positions(tables.edges[:, 0]),
            target=_positions(tables.edges[:, 1]),
            classes=_classes(tables),
            node_labels=_coded(tables.node_labels),
            node_attributes=tables.node_attributes,
            edge_labels=_coded(tables.edge_labels),
            edge_attributes=tables.edge_attributes,
            reordered_nodes=moved,
        )
    )


def _classes(tables: _Tables) -> Coded:
    if tables.graph_labels is None:
        return np.full(int(tables.graph_indicator.max()), -1, dtype=np.int32), ()
    return vocabulary(tables.graph_labels)


def _positions(numbers: Table) -> Table:
    return np.subtract(numbers, 1, dtype=np.int32)


def _nodes_together(tables: _Tables) -> tuple[_Tables, int]:
    """Sort nodes by graph, keeping their order within a graph, and count those that moved."""
    order = np.argsort(tables.graph_indicator, kind="stable")
    number = np.empty(len(order) + 1, dtype=np.int32)
    number[order + 1] = np.arange(1, len(order) + 1)
    moved = int(np.count_nonzero(order != np.arange(len(order))))
    labels, attributes = tables.node_labels, tables.node_attributes
    together = replace(
        tables,
        graph_indicator=tables.graph_indicator[order],
        edges=number[tables.edges],
        node_labels=None if labels is None else labels[order],
        node_attributes=None if attributes is None else attributes[order],
    )
    return together, moved


def _coded(table: Table | None) -> Coded | None:
    """Encode labels; labels with several columns (Cuneiform) are joined as text: `1,0`."""
    if table is None:
        return None
    if table.shape[1] == 1:
        return vocabulary(table[:, 0])
    distinct, position = np.unique(table, axis=0, return_inverse=True)
    joint = np.array([",".join(map(str, row)) for row in distinct.tolist()])
    rank, values = vocabulary(joint)
    return rank[position.reshape(-1)], values
