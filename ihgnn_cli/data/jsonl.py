"""Read and write graphs as JSON lines, one graph a line.

    {"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]], "class": "alcohol"}

Nodes are counted from 0 within their graph. Edges are undirected: each stands once. Node labels
and classes are integers or strings, the same kind throughout a file. Optional: `node_attributes`
and `edge_attributes` (a list of numbers per node or edge), `edge_labels`, `num_nodes` where there
are no node labels, and `id`, which is yours and is not read.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.build import Coded, ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value
from ihgnn_cli.data.text import ProblemList
from ihgnn_cli.errors import DataError, InputError
from ihgnn_cli.progress import Advance, silent
from ihgnn_cli.words import counted

KEYS = (
    "node_labels",
    "edges",
    "class",
    "node_attributes",
    "edge_labels",
    "edge_attributes",
    "num_nodes",
    "id",
)
SUFFIX = ".jsonl"


@dataclass(frozen=True)
class JsonGraph:
    """One line, checked: every list has its length and every number its kind and range."""

    num_nodes: int
    edges: list[tuple[int, int]]
    graph_class: Value | None
    node_labels: list[Value] | None
    node_attributes: list[list[float]] | None
    edge_labels: list[Value] | None
    edge_attributes: list[list[float]] | None


def parse_graph(line: str | bytes) -> JsonGraph:
    """Read one line.

    Raises:
        InputError: the line is not a graph in this format; says what is wrong and what to do.
    """
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({error}). Write one JSON object a line.") from None
    if not isinstance(entry, dict):
        raise InputError("not a JSON object. Write {...} with node_labels, edges and class.")
    if unknown := sorted(set(entry) - set(KEYS)):
        raise InputError(f"unknown key '{_shown(unknown[0])}'. The keys are {', '.join(KEYS)}.")
    labels = _values(entry, "node_labels")
    attributes = _numbers(entry, "node_attributes")
    num_nodes = _num_nodes(entry, labels, attributes)
    edges = _edges(entry, num_nodes)
    graph = JsonGraph(
        num_nodes=num_nodes,
        edges=edges,
        graph_class=None if entry.get("class") is None else _value("class", entry["class"]),
        node_labels=labels,
        node_attributes=attributes,
        edge_labels=_values(entry, "edge_labels"),
        edge_attributes=_numbers(entry, "edge_attributes"),
    )
    for key, found, expected in (
        ("node_labels", graph.node_labels, num_nodes),
        ("node_attributes", graph.node_attributes, num_nodes),
        ("edge_labels", graph.edge_labels, len(edges)),
        ("edge_attributes", graph.edge_attributes, len(edges)),
    ):
        if found is not None and len(found) != expected:
            things = "nodes" if key.startswith("node") else "edges"
            raise InputError(
                f"{len(found)} {key} for {expected} {things}. Give one for each, in order."
            )
    return graph


def read_jsonl(path: Path, advance: Advance = silent) -> GraphDataset:
    """Read a file of graphs as a data set; every graph needs a class.

    Raises:
        DataError: with every problem that was found, each with its line.
    """
    problems = ProblemList(path.name)
    collected = _Collected()
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            advance(len(raw))
            content = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            if not content.strip():
                continue
            try:
                collected.add(parse_graph(content))
            except InputError as error:
                message, _, remedy = str(error).partition(". ")
                problems.add(number, f"{message}.", remedy)
    if not collected.sizes and not problems:
        problems.add(None, "no graphs in it.", "Write one JSON object a line.")
    if problems:
        raise DataError(problems.all())
    return build(collected.listed(path.stem))


def write_jsonl(dataset: GraphDataset, path: Path) -> None:
    """Write a data set so that `read_jsonl` gives the same graphs; the caller makes it atomic."""
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for entry in _entries(dataset):
            stream.write(json.dumps(entry, ensure_ascii=False, separators=(", ", ": ")) + "\n")


@dataclass
class _Collected:
    """Columns that grow graph by graph."""

    num_nodes: int = 0
    sizes: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    edge_counts: list[int] = field(default_factory=list)
    classes: list[Value] = field(default_factory=list)
    node_labels: list[Value] = field(default_factory=list)
    node_attributes: list[list[float]] = field(default_factory=list)
    edge_labels: list[Value] = field(default_factory=list)
    edge_attributes: list[list[float]] = field(default_factory=list)
    shape: dict[str, object] = field(default_factory=dict)

    def add(self, graph: JsonGraph) -> None:
        if graph.graph_class is None:
            raise InputError('no class. Add "class": an integer or a string.')
        self._same("class", type(graph.graph_class).__name__)
        self._same("node_labels", _kind(graph.node_labels))
        self._same("edge_labels", _kind(graph.edge_labels), bool(graph.edges))
        self._same("node_attributes", _width(graph.node_attributes))
        self._same("edge_attributes", _width(graph.edge_attributes), bool(graph.edges))
        self.num_nodes += graph.num_nodes
        if self.num_nodes > np.iinfo(np.int32).max:
            raise InputError("more than 2**31 nodes up to here. Split the data set.")
        self.sizes.append(graph.num_nodes)
        self.edge_counts.append(len(graph.edges))
        self.edges += graph.edges
        self.classes.append(graph.graph_class)
        self.node_labels += graph.node_labels or []
        self.node_attributes += graph.node_attributes or []
        self.edge_labels += graph.edge_labels or []
        self.edge_attributes += graph.edge_attributes or []

    def _same(self, key: str, shape: object, present: bool = True) -> None:
        """Refuse what differs from the graphs before; graphs without edges say nothing of edges."""
        if present and self.shape.setdefault(key, shape) != shape:
            raise InputError(
                f"{key}: {_told(shape)} here, {_told(self.shape[key])} in graphs before. "
                "Use the same throughout the file."
            )

    def listed(self, name: str) -> ListedGraphs:
        starts = np.cumsum([0, *self.sizes[:-1]])
        pairs = np.array(self.edges, dtype=np.int64).reshape(-1, 2)
        pairs += np.repeat(starts, self.edge_counts)[:, None]
        return ListedGraphs(
            name=name,
            sizes=np.array(self.sizes, dtype=np.int64),
            source=pairs[:, 0].astype(np.int32),
            target=pairs[:, 1].astype(np.int32),
            classes=_coded(self.classes),
            node_labels=_coded(self.node_labels) if self.node_labels else None,
            node_attributes=_matrix(self.node_attributes),
            edge_labels=_coded(self.edge_labels) if self.edge_labels else None,
            edge_attributes=_matrix(self.edge_attributes),
            undirected=True,
        )


def _coded(values: Sequence[Value]) -> Coded:
    distinct = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    position = {value: index for index, value in enumerate(distinct)}
    return np.array([position[value] for value in values], dtype=np.int32), tuple(distinct)


def _matrix(rows: list[list[float]]) -> NDArray[np.float32] | None:
    return np.array(rows, dtype=np.float32) if rows else None


def _kind(values: list[Value] | None) -> str:
    return "nothing" if values is None else type(values[0]).__name__ if values else "str"


def _width(rows: list[list[float]] | None) -> int:
    return len(rows[0]) if rows else 0


def _told(shape: object) -> str:
    words = {"int": "integers", "str": "strings"}
    return counted(shape, "number") if isinstance(shape, int) else words.get(str(shape), str(shape))


def _shown(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _value(key: str, value: object) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InputError(f"{key} {json.dumps(value)[:40]}. Use an integer or a string.")
    if isinstance(value, str) and _shown(value) != value:
        raise InputError(f"{key} {json.dumps(value)[:40]} holds half a character. Write it whole.")
    return value


def _values(entry: dict[str, Any], key: str) -> list[Value] | None:
    if entry.get(key) is None:
        return None
    values = [_value(key, value) for value in _list(entry, key)]
    if len({type(value) for value in values}) > 1:
        raise InputError(f"{key} mixes integers and strings. Use one kind throughout the file.")
    return values


def _numbers(entry: dict[str, Any], key: str) -> list[list[float]] | None:
    if entry.get(key) is None:
        return None
    rows = _list(entry, key)
    for row in rows:
        numbers = isinstance(row, list) and all(
            isinstance(each, int | float) and not isinstance(each, bool) and _fits(each)
            for each in row
        )
        if not numbers or len(row) != len(rows[0]) or not row:
            raise InputError(
                f"{key} {json.dumps(row)[:40]}. Use equally long lists of finite numbers."
            )
    return rows


def _fits(number: float) -> bool:
    """Whether a number is finite as a 32-bit float; NaN compares false."""
    return abs(number) <= float(np.finfo(np.float32).max) and not math.isnan(number)


def _list(entry: dict[str, Any], key: str) -> list[Any]:
    value = entry[key]
    if not isinstance(value, list):
        raise InputError(f'{key} is not a list. Write "{key}": [...].')
    return value


def _num_nodes(
    entry: dict[str, Any], labels: list[Value] | None, attributes: list[list[float]] | None
) -> int:
    given = entry.get("num_nodes")
    if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
        raise InputError("num_nodes is not an integer. Count the nodes.")
    if labels is not None:
        count = len(labels)
    elif attributes is not None:
        count = len(attributes)
    elif given is not None:
        count = given
    else:
        raise InputError("no node_labels. Add them, or num_nodes for a graph without labels.")
    if given is not None and given != count:
        raise InputError(f"num_nodes is {given} for {count} nodes. Make them agree.")
    if count < 1:
        raise InputError("a graph without nodes. Remove the line.")
    return count


def _edges(entry: dict[str, Any], num_nodes: int) -> list[tuple[int, int]]:
    if "edges" not in entry:
        raise InputError('no edges. Add "edges": [[0, 1], ...], or [] for a graph without.')
    edges = []
    for edge in _list(entry, "edges"):
        if (
            not isinstance(edge, list)
            or len(edge) != 2
            or any(isinstance(end, bool) or not isinstance(end, int) for end in edge)
        ):
            raise InputError(f"edge {json.dumps(edge)[:40]}. Write two node numbers, [0, 1].")
        if not (0 <= edge[0] < num_nodes and 0 <= edge[1] < num_nodes):
            raise InputError(
                f"edge {json.dumps(edge)[:40]} in a graph of {num_nodes} nodes. "
                f"Nodes are counted from 0 to {num_nodes - 1}."
            )
        edges.append((edge[0], edge[1]))
    return edges


def _entries(dataset: GraphDataset) -> Iterator[dict[str, object]]:
    source, target = dataset.edge_index()
    # An edge is written once, unless its label or attributes depend on the direction.
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
        if dataset.label_source is LabelSource.LABELS:
            entry["node_labels"] = _decoded(dataset.node_label[nodes], dataset.label_values)
        else:
            entry["num_nodes"] = nodes.stop - nodes.start
        entry["edges"] = pairs.tolist()
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
