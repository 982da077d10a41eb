"""One graph as one line of JSON.

    {"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2]], "class": "alcohol"}

Nodes are counted from 0 within their graph. Edges are undirected and listed once. Node labels and
classes are integers or strings, of one kind throughout a file. Optional: `node_attributes` and
`edge_attributes` (a list of numbers per node or edge, or one number), `edge_labels`, `num_nodes`
for graphs without node labels, and `id`, which predictions repeat and nothing else reads. Other
keys are ignored, unless they look like one of these misspelt.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from ihgnn_cli.data.dataset import Value
from ihgnn_cli.errors import InputError

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

# What other formats call these keys; used in suggestions only.
_ELSEWHERE = {
    "class": ("label", "y", "target", "category", "graph_label", "graph_class"),
    "node_labels": ("labels", "nodes", "atoms", "node_types"),
    "edges": ("edge_index", "edge_list", "bonds", "links"),
}
_MISSPELT = 0.88  # similarity above which a key counts as misspelt
_LONGEST_KEY = 40

# A short line must not be able to exhaust the memory.
MAX_BARE_NODES = 10_000_000
_LARGEST = float(np.finfo(np.float32).max)
_NUMBERS = {int, float}


class GraphError(InputError):
    """A line is not a graph in this format."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message} {remedy}")
        self.message = message
        self.remedy = remedy
        self.id: object = None
        """The id that came with the graph, set by readers that know it."""


@dataclass(frozen=True)
class JsonGraph:
    """One parsed line; all lengths, types and ranges are checked."""

    num_nodes: int
    edges: list[tuple[int, int]]
    graph_class: Value | None
    node_labels: list[Value] | None
    node_attributes: list[list[float]] | None
    edge_labels: list[Value] | None
    edge_attributes: list[list[float]] | None
    id: object = None
    ignored: tuple[str, ...] = ()
    """Keys that are not part of the format."""


def parse_graph(line: str | bytes) -> JsonGraph:
    """Parse one line.

    Raises:
        GraphError: the line is not a graph in this format; says what is wrong and what to do.
    """
    return check_entry(decoded(line))


def id_of(entry: Any) -> object:
    """The id of a graph that is not valid, decoded or not; `None` if it cannot be read."""
    try:
        found = decoded(entry) if isinstance(entry, str | bytes) else entry
        given = found.get("id") if isinstance(found, Mapping) else None
        return given if _can_be_repeated(given) else None
    except (GraphError, TypeError, RecursionError):  # TypeError: an object of Python
        return None


def decoded(text: str | bytes) -> Any:
    """Decode strict JSON: no NaN, no repeated keys.

    Raises:
        GraphError: it is not JSON.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text))
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        what = str(error)
        if isinstance(error, json.JSONDecodeError):
            what = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        raise GraphError(f"not JSON ({what}).", "Write one JSON object per line.") from None


def check_entry(entry: Any) -> JsonGraph:
    """Check a decoded line, whatever it is.

    Raises:
        GraphError: it is not a graph in this format; says what is wrong and what to do.
    """
    if not isinstance(entry, dict):
        raise GraphError("not a JSON object.", "Write {...} with node_labels and edges.")
    try:
        if not _can_be_repeated(entry.get("id")):
            raise GraphError("id holds a number that is not finite.", "Use finite numbers.")
        return check_graph(entry)
    except RecursionError:
        raise GraphError("nested too deeply.", "Write node_labels and edges as lists.") from None


def check_graph(entry: Mapping[str, Any]) -> JsonGraph:
    """Check the decoded JSON of one line; tuples are accepted as lists.

    Raises:
        GraphError: it is not a graph in this format; says what is wrong and what to do.
    """
    ignored = tuple(sorted(_shown(str(key)) for key in entry if key not in KEYS))
    _refuse_misspelt(entry, ignored)
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
        id=entry.get("id"),
        ignored=ignored,
    )
    for key, found, expected in (
        ("node_labels", graph.node_labels, num_nodes),
        ("node_attributes", graph.node_attributes, num_nodes),
        ("edge_labels", graph.edge_labels, len(edges)),
        ("edge_attributes", graph.edge_attributes, len(edges)),
    ):
        if found is not None and len(found) != expected:
            things = "nodes" if key.startswith("node") else "edges"
            raise GraphError(
                f"{len(found)} {key} for {expected} {things}.", "Give one for each, in order."
            )
    return graph


def ignored_keys(where: str, keys: Iterable[str]) -> str:
    """A sentence about keys or columns that are not part of the format."""
    shown = ", ".join(f"'{key}'" for key in keys)
    return f"{where}: ignoring {shown}, not part of the format (docs/data.md)."


def meant_by(key: str, others: Iterable[str]) -> str:
    """A sentence that names the key among `others` that was probably meant, or nothing."""
    found = [other for other in others if other.lower() in (key, *_ELSEWHERE.get(key, ()))]
    return f"Rename '{found[0]}' to {key}." if found else ""


def _refuse_misspelt(entry: Mapping[str, Any], others: tuple[str, ...]) -> None:
    """Refuse a key that would be ignored although it is probably one of the format's."""
    missing = tuple(key for key in KEYS if key not in entry)
    for other in others:
        if meant := _closest(other[:_LONGEST_KEY].lower(), missing):
            raise GraphError(f"unknown key '{other}'.", f"Did you mean {meant}?")


@lru_cache(1024)
def _closest(other: str, keys: tuple[str, ...]) -> str | None:
    return next(iter(get_close_matches(other, keys, n=1, cutoff=_MISSPELT)), None)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse repeated keys, of which JSON would silently take the last."""
    found = dict(pairs)
    if len(found) < len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise GraphError(f"the key '{_shown(key)}' appears twice.", "Keep one of them.")
    return found


def _no_number(name: str) -> None:
    """Refuse NaN and Infinity, which Python accepts but JSON does not have."""
    raise GraphError(f"not JSON ({name} is not a JSON number).", "Use finite numbers.")


# Created once: json.loads would create one per line.
_DECODER = json.JSONDecoder(object_pairs_hook=_without_repetition, parse_constant=_no_number)


def _can_be_repeated(given: object) -> bool:
    """Whether an id can be written as JSON again (1e999 is read as infinity)."""
    if given is None or isinstance(given, int | str):
        return True
    try:
        json.dumps(given, allow_nan=False)
    except ValueError:
        return False
    return True


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, default=repr)[:40]
    except ValueError:  # an integer of more than 4,300 digits
        return "with too large a number"


def _shown(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _value(key: str, value: object) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise GraphError(f"{key} {_as_json(value)}.", "Use an integer or a string.")
    if isinstance(value, str) and _shown(value) != value:
        raise GraphError(f"{key} {_as_json(value)} holds an unpaired surrogate.", "Fix it.")
    return value


def _values(entry: Mapping[str, Any], key: str) -> list[Value] | None:
    if entry.get(key) is None:
        return None
    values: list[Value] = _list(entry, key)
    kinds = set(map(type, values))
    if kinds != {int}:  # integers are always valid
        for value in values:
            _value(key, value)
    if len(kinds) > 1:
        raise GraphError(f"{key} mixes integers and strings.", "Use one kind throughout the file.")
    return values


def _numbers(entry: Mapping[str, Any], key: str) -> list[list[float]] | None:
    if entry.get(key) is None:
        return None
    # A single attribute may be written as a number.
    rows = [[row] if isinstance(row, int | float) else row for row in _list(entry, key)]
    for row in rows:
        if not isinstance(row, list | tuple) or len(row) != len(rows[0]) or not row:
            raise GraphError(f"{key} {_as_json(row)}.", "Use equally long lists of numbers.")
        if not set(map(type, row)) <= _NUMBERS or not all(-_LARGEST <= x <= _LARGEST for x in row):
            remedy = "Use finite numbers up to 3.4e38, the largest 32-bit float."
            raise GraphError(f"{key} {_as_json(row)}.", remedy)
    return rows


def _list(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry[key]
    if not isinstance(value, list | tuple):
        raise GraphError(f"{key} is not a list.", f'Write "{key}": [...].')
    return list(value)


def _num_nodes(
    entry: Mapping[str, Any], labels: list[Value] | None, attributes: list[list[float]] | None
) -> int:
    given = entry.get("num_nodes")
    if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
        raise GraphError("num_nodes is not an integer.", "Count the nodes.")
    if labels is not None:
        count = len(labels)
    elif attributes is not None:
        count = len(attributes)
    elif given is not None:
        count = given
        if count > MAX_BARE_NODES:
            raise GraphError(f"num_nodes is {count}.", f"At most {MAX_BARE_NODES:,} are accepted.")
    else:
        remedy = "Add them, or num_nodes for a graph without labels."
        raise GraphError("no node_labels.", meant_by("node_labels", entry) or remedy)
    if given is not None and given != count:
        raise GraphError(f"num_nodes is {given} for {count} nodes.", "Make them agree.")
    if count < 1:
        raise GraphError("a graph without nodes.", "Remove the line.")
    return count


def _edges(entry: Mapping[str, Any], num_nodes: int) -> list[tuple[int, int]]:
    if "edges" not in entry:
        remedy = 'Add "edges": [[0, 1], ...], or [] for a graph without.'
        raise GraphError("no edges.", meant_by("edges", entry) or remedy)
    listed = _list(entry, "edges")
    if not _are_pairs_below(num_nodes, listed):
        _refuse_edges(listed, num_nodes)
    return list(map(tuple, listed))


def _are_pairs_below(limit: int, listed: list[Any]) -> bool:
    """Whether all edges are valid, checked without a Python loop."""
    if not listed:
        return True
    if not set(map(type, listed)) <= {list, tuple} or set(map(len, listed)) != {2}:
        return False
    ends = list(chain.from_iterable(listed))
    return set(map(type, ends)) == {int} and min(ends) >= 0 and max(ends) < limit


def _refuse_edges(listed: list[Any], num_nodes: int) -> None:
    """Raise an error for the first invalid edge."""
    for edge in listed:
        if (
            not isinstance(edge, list | tuple)
            or len(edge) != 2
            or any(isinstance(end, bool) or not isinstance(end, int) for end in edge)
        ):
            raise GraphError(f"edge {_as_json(edge)}.", "Write two node numbers, [0, 1].")
        if not (0 <= edge[0] < num_nodes and 0 <= edge[1] < num_nodes):
            raise GraphError(
                f"edge {_as_json(edge)} in a graph of {num_nodes} nodes.",
                f"Nodes are counted from 0 to {num_nodes - 1}.",
            )
