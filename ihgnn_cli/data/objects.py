"""Graphs of a Python program as a data set: torch-geometric, networkx, or dicts."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from ihgnn_cli.data.dataset import GraphDataset, Value
from ihgnn_cli.data.json_graph import GraphError, check_graph, ignored_keys
from ihgnn_cli.data.jsonl import Collected
from ihgnn_cli.errors import DataError, InputError, Problem

_log = logging.getLogger(__name__)
LABEL, ATTRIBUTES, CLASS = "label", "x", "class"
"""What networkx graphs call them: of a node or edge, and of a graph."""
_READ = {LABEL, ATTRIBUTES, "edge_index", "edge_attr", "y", "num_nodes", "batch", "ptr"}
GRAPHS = "torch-geometric Data, networkx graphs, or dicts with node_labels and edges"


def from_graphs(
    graphs: Iterable[Any], classes: Sequence[Value] | None = None, *, name: str | None = None
) -> GraphDataset:
    """Make a `GraphDataset` of a list of graphs, all of one kind.

    torch-geometric: see `data.pyg.from_pyg`. networkx: the node attribute `label` (integer or
    string) is the node label and `x` (a list of numbers) holds node attributes; `label` and `x` of
    an edge are its label and attributes, and the graph attribute `class` is the class. Dicts: the
    form of JSON lines (docs/data.md). Without labels, the degree is the label.

    Args:
        graphs: at least one.
        classes: one for each graph, instead of what the graphs say.
        name: of the data set, for messages and folders.

    Raises:
        InputError: something is missing or is not a graph; says which and why.
    """
    if isinstance(graphs, Mapping) or not isinstance(graphs, Iterable):
        raise InputError(f"{type(graphs).__name__} is not a list of graphs. Give {GRAPHS}.")
    items = graphs if isinstance(graphs, Sequence) else list(graphs)
    if not len(items):
        raise InputError("There are no graphs in the list. Give at least one.")
    if classes is not None and len(classes) != len(items):
        raise InputError(
            f"y has {len(classes)} entries for {len(items)} graphs. Give one class per graph."
        )
    if is_pyg(items[0]):
        from ihgnn_cli.data.pyg import from_pyg

        other = next((each for each in enumerate(items) if not is_pyg(each[1])), None)
        if other is not None:
            raise InputError(
                f"Graph 0 is torch-geometric's Data, and graph {other[0]} is "
                f"{type(other[1]).__name__}. Give graphs of one kind."
            )
        _note_ignored(items, name or "graphs")
        # A data set says which columns are labels, unlike a list of its graphs.
        whole = graphs if hasattr(graphs, "__getitem__") else items
        return from_pyg(whole, name=name, classes=classes)
    collected = Collected()
    for number, item in enumerate(items):
        try:
            entry = dict(plain_entry(item))
            if classes is not None:
                entry["class"] = classes[number]
            collected.add(check_graph(entry))
        except GraphError as error:
            problem = Problem(f"graph {number}", None, error.message, error.remedy)
            raise DataError([problem]) from error
    dataset = collected.dataset(name or "graphs")
    _note_ignored(items, dataset.name)
    if dataset.notes.ignored_keys:
        _log.warning("%s", ignored_keys(dataset.name, dataset.notes.ignored_keys))
    return dataset


def _note_ignored(graphs: Iterable[Any], name: str) -> None:
    """Log the names of attributes of torch-geometric or networkx graphs that are not read."""
    found: set[str] = set()
    remedy = f"Name one '{LABEL}' (an integer or a string) or '{ATTRIBUTES}' (numbers) to read it."
    for graph in graphs:
        if is_pyg(graph):
            found.update(graph.keys())
            remedy = f"Add their columns to '{ATTRIBUTES}' to read them."
        elif not isinstance(graph, Mapping):
            for *_, data in chain(graph.nodes(data=True), graph.edges(data=True)):
                found.update(map(str, data))
    ignored = ", ".join(f"'{each}'" for each in sorted(found - _READ))
    if ignored:
        _log.warning("%s: ignoring %s. %s", name, ignored, remedy)


def is_pyg(graph: object) -> bool:
    """Whether this is a `Data` of torch-geometric, found out without importing it."""
    return hasattr(graph, "edge_index") and hasattr(graph, "num_nodes")


def plain_entry(graph: object) -> Mapping[str, Any]:
    """A dict or networkx graph as an entry of JSON lines, with Python's own numbers.

    Raises:
        GraphError: it is neither.
    """
    if isinstance(graph, Mapping):
        return {key: _plain(value) for key, value in graph.items()}
    if not (hasattr(graph, "adjacency") and hasattr(graph, "nodes")):
        raise GraphError(f"{type(graph).__name__} is not a graph.", f"Give {GRAPHS}.")
    place = {node: number for number, node in enumerate(graph.nodes)}
    ends = [(place[source], place[target]) for source, target in graph.edges()]  # type: ignore[attr-defined]
    entry: dict[str, Any] = {"num_nodes": len(place), "edges": ends}
    rows = {
        "node": [data for _, data in graph.nodes(data=True)],
        "edge": [data for *_, data in graph.edges(data=True)],  # type: ignore[attr-defined]
    }
    for what, listed in rows.items():
        for attribute, key in ((LABEL, "labels"), (ATTRIBUTES, "attributes")):
            found = [data[attribute] for data in listed if attribute in data]
            if found and len(found) < len(listed):
                raise GraphError(
                    f"{len(listed) - len(found)} of {len(listed)} {what}s have no '{attribute}'.",
                    f"Give it to every {what}, or to none.",
                )
            if found:
                entry[f"{what}_{key}"] = [_plain(each) for each in found]
    if CLASS in graph.graph:  # type: ignore[attr-defined]
        entry["class"] = _plain(graph.graph[CLASS])  # type: ignore[attr-defined]
    return entry


def _plain(value: Any) -> Any:
    """Arrays and numbers of NumPy (or torch) as Python's own."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value
