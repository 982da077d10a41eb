"""Read and write data sets as JSON lines, one graph per line (see `json_graph`)."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value
from ihgnn_cli.data.readers.build import Coded, ListedGraphs, build
from ihgnn_cli.data.readers.json_graph import GraphError, JsonGraph, meant_by, parse_graph
from ihgnn_cli.data.readers.problems import ProblemList
from ihgnn_cli.data.readers.text import NOT_TEXT, SAVE_AS_TEXT
from ihgnn_cli.errors import DataError
from ihgnn_cli.files import written_whole
from ihgnn_cli.progress import Advance, silent
from ihgnn_cli.words import counted

SUFFIX = ".jsonl"
_MOST_IGNORED = 20  # keys to remember
NO_CLASS, ADD_CLASS = "no class.", 'Add "class": an integer or a string.'


def read_jsonl(path: Path, advance: Advance = silent, *, classes: bool = True) -> GraphDataset:
    """Read a data set. With `classes=False`, graphs need no class, but either all have one or none.

    Raises:
        DataError: with every problem found, each with its line.
    """
    problems = ProblemList(path.name)
    collected = Collected(classes)
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            advance(len(raw))
            content = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            if not content.strip():
                continue
            if b"\0" in content:
                problems.add(number, NOT_TEXT, SAVE_AS_TEXT)
                break
            try:
                collected.add(parse_graph(content), number)
            except GraphError as error:
                problems.add(number, error.message, error.remedy)
    if not collected.sizes and not problems:
        problems.add(None, "no graphs found.", "Write one JSON object per line.")
    return collected.finished(path.stem, problems)


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


@dataclass
class Collected:
    """Columns that grow with each graph."""

    needs_classes: bool = True
    """Otherwise either all graphs have a class or none."""
    num_nodes: int = 0
    sizes: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    edge_counts: list[int] = field(default_factory=list)
    classes: list[Value] = field(default_factory=list)
    node_labels: list[Value] = field(default_factory=list)
    node_attributes: list[list[float]] = field(default_factory=list)
    edge_labels: list[Value] = field(default_factory=list)
    edge_attributes: list[list[float]] = field(default_factory=list)
    ids: list[object] = field(default_factory=list)
    ignored: set[str] = field(default_factory=set)
    without_class: list[int] = field(default_factory=list)
    """Their lines."""
    shape: dict[str, object] = field(default_factory=dict)

    def add(self, graph: JsonGraph, line: int = 0) -> None:
        """Take one more graph; `line` is where it stands in its file.

        Raises:
            GraphError: it has no class, or is of another kind than those before.
        """
        if graph.graph_class is not None:
            self._same("class", type(graph.graph_class).__name__)
            self.classes.append(graph.graph_class)
        elif self.needs_classes:
            raise GraphError(NO_CLASS, meant_by("class", graph.ignored) or ADD_CLASS)
        else:
            self.without_class.append(line)
        self._same("node_labels", _kind(graph.node_labels))
        self._same("edge_labels", _kind(graph.edge_labels), bool(graph.edges))
        self._same("node_attributes", _width(graph.node_attributes))
        self._same("edge_attributes", _width(graph.edge_attributes), bool(graph.edges))
        self.num_nodes += graph.num_nodes
        if self.num_nodes > np.iinfo(np.int32).max:
            raise GraphError("more than 2**31 nodes so far.", "Split the data set.")
        self.sizes.append(graph.num_nodes)
        self.edge_counts.append(len(graph.edges))
        self.edges += graph.edges
        self.ids.append(graph.id)
        if len(self.ignored) < _MOST_IGNORED:
            self.ignored.update(graph.ignored)
        self.node_labels += graph.node_labels or []
        self.node_attributes += graph.node_attributes or []
        self.edge_labels += graph.edge_labels or []
        self.edge_attributes += graph.edge_attributes or []

    def _same(self, key: str, shape: object, present: bool = True) -> None:
        """Refuse a graph that differs from the ones before (in edges, only if it has some)."""
        if present and self.shape.setdefault(key, shape) != shape:
            raise GraphError(
                f"{key}: {_described(shape)} here, {_described(self.shape[key])} in graphs before.",
                "Use the same throughout the file.",
            )

    def finished(self, name: str, problems: ProblemList) -> GraphDataset:
        """All graphs of a file.

        Raises:
            DataError: there are problems, or only some of the graphs have a class.
        """
        for line in self.without_class if self.classes else ():
            problems.add(line, NO_CLASS, ADD_CLASS)
        if problems:
            raise DataError(problems.all())
        return self.dataset(name)

    def dataset(self, name: str) -> GraphDataset:
        """All graphs so far, of which there has to be one."""
        starts = np.cumsum([0, *self.sizes[:-1]])
        pairs = np.array(self.edges, dtype=np.int64).reshape(-1, 2)
        pairs += np.repeat(starts, self.edge_counts)[:, None]
        listed = ListedGraphs(
            name=name,
            sizes=np.array(self.sizes, dtype=np.int64),
            source=pairs[:, 0].astype(np.int32),
            target=pairs[:, 1].astype(np.int32),
            classes=_coded(self.classes) if self.classes else _no_classes(len(self.sizes)),
            node_labels=_coded(self.node_labels) if self.node_labels else None,
            node_attributes=_matrix(self.node_attributes),
            edge_labels=_coded(self.edge_labels) if self.edge_labels else None,
            edge_attributes=_matrix(self.edge_attributes),
            ids=tuple(self.ids) if any(each is not None for each in self.ids) else (),
            ignored_keys=tuple(sorted(self.ignored)),
            undirected=True,
        )
        return build(listed)


def _coded(values: Sequence[Value]) -> Coded:
    distinct = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    position = {value: index for index, value in enumerate(distinct)}
    return np.array([position[value] for value in values], dtype=np.int32), tuple(distinct)


def _no_classes(graphs: int) -> Coded:
    return np.full(graphs, -1, dtype=np.int32), ()


def _matrix(rows: list[list[float]]) -> NDArray[np.float32] | None:
    return np.array(rows, dtype=np.float32) if rows else None


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
