"""Read and write data sets as JSON lines, one graph per line (see `json_graph`)."""

import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.build import Coded, ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value
from ihgnn_cli.data.json_graph import GraphError, JsonGraph, meant_by, parse_graph
from ihgnn_cli.data.problems import MAX_LINE, NOT_TEXT, TOO_LONG, Problems
from ihgnn_cli.files import written_whole
from ihgnn_cli.progress import Advance, silent
from ihgnn_cli.words import counted

SUFFIX = ".jsonl"
_MOST_IGNORED = 20  # keys to remember
NO_CLASS, ADD_CLASS = "no class.", 'Add "class": an integer or a string.'


def read_jsonl(path: Path, advance: Advance = silent, *, classes: bool = True) -> GraphDataset:
    """Read a data set. With `classes=False`, graphs need no class, but either all have one or none.

    Raises:
        DataError: with the first problems found, each with its line.
    """
    problems = Problems()
    collected = Collected(classes)
    with path.open("rb") as stream:
        lines = iter(partial(stream.readline, MAX_LINE + 1), b"")
        for number, raw in enumerate(lines, start=1):
            advance(len(raw))
            content = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            wrong = {TOO_LONG: len(raw) > MAX_LINE, NOT_TEXT: b"\0" in content}
            for message in (message for message, holds in wrong.items() if holds):
                problems.add(path.name, number, message, "Correct the file.")
                problems.stop()
            if not content.strip():
                continue
            try:
                collected.add(parse_graph(content), number)
            except GraphError as error:
                problems.add(path.name, number, error.message, error.remedy)
    if not collected.sizes and not problems.found:
        problems.add(path.name, None, "no graphs found.", "Write one JSON object per line.")
    return collected.finished(path, problems)


def write_jsonl(dataset: GraphDataset, path: Path | str) -> None:
    """Write the file atomically; `read_jsonl` gives the same graphs back."""
    with (
        written_whole(Path(path)) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        stream.writelines(lines(dataset))


def lines(dataset: GraphDataset) -> Iterator[str]:
    """The lines of the file, one per graph."""
    for entry in entries(dataset):
        yield json.dumps(entry, ensure_ascii=False, default=str) + "\n"


class _Values:
    """Labels or classes, stored as numbers in the order of their first appearance."""

    def __init__(self) -> None:
        self.numbers = array("i")
        self.known: dict[Value, int] = {}

    def extend(self, values: Iterable[Value]) -> None:
        known = self.known
        self.numbers.extend([known.setdefault(value, len(known)) for value in values])

    def coded(self) -> Coded | None:
        """Positions in the sorted vocabulary; `None` if there are no values."""
        if not self.known:
            return None
        values = sorted(self.known, key=lambda value: (isinstance(value, str), value))
        rank = np.empty(len(values), dtype=np.int32)
        rank[[self.known[value] for value in values]] = np.arange(len(values))
        return rank[np.frombuffer(self.numbers, dtype=np.int32)], tuple(values)


@dataclass
class Collected:
    """Columns that grow with each graph; numbers are stored in 4 bytes."""

    needs_classes: bool = True
    """Otherwise either all graphs have a class or none."""
    num_nodes: int = 0
    sizes: "array[int]" = field(default_factory=lambda: array("i"))
    edge_counts: "array[int]" = field(default_factory=lambda: array("i"))
    ends: "array[int]" = field(default_factory=lambda: array("i"))
    """Source and target of each edge, within its graph."""
    classes: _Values = field(default_factory=_Values)
    node_labels: _Values = field(default_factory=_Values)
    edge_labels: _Values = field(default_factory=_Values)
    node_attributes: "array[float]" = field(default_factory=lambda: array("f"))
    edge_attributes: "array[float]" = field(default_factory=lambda: array("f"))
    ids: list[object] = field(default_factory=list)
    """Empty until a graph has one."""
    ignored: set[str] = field(default_factory=set)
    without_class: int = 0
    """The first line without a class; 0: none."""
    shape: dict[str, object] = field(default_factory=dict)

    def add(self, graph: JsonGraph, line: int = 1) -> None:
        """Take one more graph; `line` is where it stands in its file.

        Raises:
            GraphError: it has no class, or is of another kind than those before.
        """
        if graph.graph_class is not None:
            self._same("class", type(graph.graph_class).__name__)
            self.classes.extend([graph.graph_class])
        elif self.needs_classes:
            raise GraphError(NO_CLASS, meant_by("class", graph.ignored) or ADD_CLASS)
        else:
            self.without_class = self.without_class or line
        self._same("node_labels", _kind(graph.node_labels))
        self._same("edge_labels", _kind(graph.edge_labels), bool(graph.edges))
        self._same("node_attributes", _width(graph.node_attributes))
        self._same("edge_attributes", _width(graph.edge_attributes), bool(graph.edges))
        self.num_nodes += graph.num_nodes
        if self.num_nodes > np.iinfo(np.int32).max:
            raise GraphError("more than 2**31 nodes so far.", "Split the data set.")
        if graph.id is not None and not self.ids:
            self.ids = [None] * len(self.sizes)
        if graph.id is not None or self.ids:
            self.ids.append(graph.id)
        self.sizes.append(graph.num_nodes)
        self.edge_counts.append(len(graph.edges))
        self.ends.extend(chain.from_iterable(graph.edges))
        if len(self.ignored) < _MOST_IGNORED:
            self.ignored.update(graph.ignored)
        self.node_labels.extend(graph.node_labels or ())
        self.edge_labels.extend(graph.edge_labels or ())
        self.node_attributes.extend(chain.from_iterable(graph.node_attributes or ()))
        self.edge_attributes.extend(chain.from_iterable(graph.edge_attributes or ()))

    def _same(self, key: str, shape: object, present: bool = True) -> None:
        """Refuse a graph that differs from the ones before (in edges, only if it has some)."""
        if present and self.shape.setdefault(key, shape) != shape:
            raise GraphError(
                f"{key}: {_described(shape)} here, {_described(self.shape[key])} in graphs before.",
                "Use the same throughout the file.",
            )

    def finished(self, path: Path, problems: Problems) -> GraphDataset:
        """All graphs of a file.

        Raises:
            DataError: there are problems, or only some of the graphs have a class.
        """
        if self.without_class and self.classes.known:
            problems.add(path.name, self.without_class, NO_CLASS, ADD_CLASS)
        problems.stop()
        return self.dataset(path.stem)

    def dataset(self, name: str) -> GraphDataset:
        """All graphs so far, of which there has to be one."""
        sizes = np.array(self.sizes, dtype=np.int64)
        first = (np.cumsum(sizes) - sizes).astype(np.int32)
        ends = np.array(self.ends, dtype=np.int32).reshape(-1, 2)
        ends += np.repeat(first, self.edge_counts)[:, None]
        no_classes: Coded = np.full(len(sizes), -1, dtype=np.int32), ()
        listed = ListedGraphs(
            name=name,
            sizes=sizes,
            source=ends[:, 0],
            target=ends[:, 1],
            classes=self.classes.coded() or no_classes,
            node_labels=self.node_labels.coded(),
            node_attributes=self._matrix("node_attributes"),
            edge_labels=self.edge_labels.coded(),
            edge_attributes=self._matrix("edge_attributes"),
            ids=tuple(self.ids),
            ignored_keys=tuple(sorted(self.ignored)),
            undirected=True,
        )
        return build(listed)

    def _matrix(self, key: str) -> NDArray[np.float32] | None:
        values: array[float] = getattr(self, key)
        width = self.shape.get(key, 0)
        if not isinstance(width, int) or not width:
            return None
        return np.array(values, dtype=np.float32).reshape(-1, width)


def _kind(values: list[Value] | None) -> str:
    return "nothing" if values is None else type(values[0]).__name__ if values else "str"


def _width(rows: list[list[float]] | None) -> int:
    return len(rows[0]) if rows else 0


def _described(shape: object) -> str:
    words = {"int": "integers", "str": "strings"}
    return counted(shape, "number") if isinstance(shape, int) else words.get(str(shape), str(shape))


def entries(dataset: GraphDataset) -> Iterator[dict[str, object]]:
    """Each graph as the JSON object of its line."""
    source, target = dataset.edge_index()
    # An edge is written once unless its label or attributes depend on the direction.
    mirror = np.lexsort((source, target))
    differs = np.zeros(len(source), dtype=bool)
    for column in (dataset.edge_label, dataset.edge_attributes):
        if column is not None:
            unequal = column != column[mirror]
            differs |= unequal.any(axis=tuple(range(1, unequal.ndim)))
    for graph in range(len(dataset)):
        nodes = slice(*dataset.node_ptr[graph : graph + 2].tolist())
        span = slice(*dataset.edge_ptr[graph : graph + 2].tolist())
        once = np.flatnonzero((source[span] < target[span]) | differs[span]) + span.start
        pairs = np.stack([source[once], target[once]], axis=1) - nodes.start
        entry: dict[str, object] = {}
        if dataset.ids and dataset.ids[graph] is not None:
            entry["id"] = dataset.ids[graph]
        if dataset.label_source == LabelSource.LABELS:
            entry["node_labels"] = _decoded(dataset.node_label[nodes], dataset.label_values)
        else:
            entry["num_nodes"] = nodes.stop - nodes.start
        entry["edges"] = pairs.tolist()
        if dataset.class_values:
            entry["class"] = dataset.class_values[dataset.graph_class[graph]]
        if dataset.node_attributes is not None:
            entry["node_attributes"] = dataset.node_attributes[nodes].tolist()
        if dataset.edge_label is not None:
            entry["edge_labels"] = _decoded(dataset.edge_label[once], dataset.edge_label_values)
        if dataset.edge_attributes is not None:
            entry["edge_attributes"] = dataset.edge_attributes[once].tolist()
        yield entry


def _decoded(positions: Iterable[int], values: tuple[Value, ...]) -> list[Value]:
    return [values[position] for position in positions]
