"""`GraphDataset`: labelled graphs as a few contiguous columns."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.edge_bins import EdgeBins
from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted

Value = int | str
"""A node label, edge label or class as written in the data."""

Column = TypeVar("Column", NDArray[np.int32] | None, NDArray[np.float32] | None)

_DIGEST_BYTES = 8


class LabelSource(StrEnum):
    """Where node labels come from."""

    LABELS = "labels"
    DEGREE = "degree"


@dataclass(frozen=True)
class ReadingNotes:
    """How many changes made the graphs simple and undirected."""

    self_loops: int = 0
    """Edges from a node to itself (left out)."""
    duplicate_edges: int = 0
    """Repeated edge lines (the first one is kept)."""
    conflicting_duplicates: int = 0
    """Repeated edges whose label or attributes differ from the first."""
    one_directional: int = 0
    """Edges listed in one direction only (the other one was added)."""
    reordered_nodes: int = 0
    """Nodes moved because the nodes of a graph were not consecutive."""
    ignored_keys: tuple[str, ...] = ()
    """Keys or columns that are not part of the format."""

    def sentences(self) -> list[str]:
        """The non-zero counts, in words."""
        counts = [
            (self.self_loops, "self-loop", "left out"),
            (self.duplicate_edges, "duplicate edge", "merged (the first one is kept)"),
            (self.conflicting_duplicates, "duplicate", "disagreed in edge label or attributes"),
            (self.one_directional, "one-directional edge", "made undirected"),
            (self.reordered_nodes, "node", "moved so that each graph's nodes are consecutive"),
        ]
        return [f"{counted(count, what)} {happened}" for count, what, happened in counts if count]


@dataclass(frozen=True, eq=False)
class GraphDataset:
    """Graphs as columns: G graphs, N nodes and E directed edges (each edge in both directions).

    Nodes are numbered across the whole data set, and the nodes of a graph are consecutive. So the
    graphs form one block-diagonal adjacency matrix, stored as compressed rows: the neighbours of
    node v are `neighbors[neighbor_ptr[v]:neighbor_ptr[v + 1]]`, ascending. The matrix is symmetric,
    without self-loops or duplicates.

    Labels and classes are positions in `label_values` and `class_values`. Columns are read-only
    NumPy arrays, so that looking at data does not need torch.

    Raises:
        InputError: there are no graphs, or a graph has no nodes.
    """

    name: str
    node_ptr: NDArray[np.int64]
    """[G + 1] graph g has the nodes node_ptr[g] to node_ptr[g + 1] - 1."""
    neighbor_ptr: NDArray[np.int64]
    """[N + 1]"""
    neighbors: NDArray[np.int32]
    """[E]"""
    node_label: NDArray[np.int32]
    """[N]"""
    label_values: tuple[Value, ...]
    label_source: LabelSource
    graph_class: NDArray[np.int32]
    """[G]"""
    class_values: tuple[Value, ...]
    node_attributes: NDArray[np.float32] | None = None
    """[N, *]"""
    edge_label: NDArray[np.int32] | None = None
    """[E]"""
    edge_label_values: tuple[Value, ...] = ()
    edge_attributes: NDArray[np.float32] | None = None
    """[E, *]"""
    ids: tuple[object, ...] = ()
    """[G] the user's own name of each graph, or `None`; empty if no graph has one. Predictions
    repeat it, and nothing else reads it."""
    notes: ReadingNotes = field(default_factory=ReadingNotes)
    source: str = ""
    """The name or absolute path that finds this data set again; empty for graphs of a program."""
    uses_edge_labels: bool = False
    """Whether models, 1-WL colours and references tell edges apart by label; see
    `data.edge_labels`."""
    background_edge_label: str = ""
    """Edges with this label were left out; empty: none."""
    edge_bins: EdgeBins | None = None
    """How edge labels were computed from the edge attribute, if they were."""

    def __post_init__(self) -> None:
        if len(self.node_ptr) < 2:
            raise InputError(f"{self.name} holds no graphs. Give a data set with at least one.")
        sizes = np.diff(self.node_ptr)
        if (sizes == 0).any():
            raise InputError(
                f"{self.name}: graph {int(np.flatnonzero(sizes == 0)[0])} (counted from 0) has no "
                "nodes, and homophily and class are undefined for it. Remove the graph."
            )
        for name, column in self.columns().items():
            locked = column.view()
            locked.flags.writeable = False
            object.__setattr__(self, name, locked)

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def num_nodes(self) -> int:
        """N, the number of nodes of all graphs."""
        return len(self.node_label)

    @property
    def num_edges(self) -> int:
        """Number of undirected edges of all graphs."""
        return len(self.neighbors) // 2

    @property
    def max_nodes(self) -> int:
        """m, the size of the largest graph."""
        return int(np.diff(self.node_ptr).max())

    @property
    def degree(self) -> NDArray[np.int64]:
        """[N] the number of neighbours of each node."""
        return np.diff(self.neighbor_ptr)

    @property
    def edge_type(self) -> NDArray[np.int32] | None:
        """[E] the edge labels, if they are used."""
        return self.edge_label if self.uses_edge_labels else None

    @property
    def edge_types(self) -> int:
        """Number of edge labels that are told apart; 1 if they are not used."""
        return len(self.edge_label_values) if self.uses_edge_labels else 1

    @property
    def edge_ptr(self) -> NDArray[np.int64]:
        """[G + 1] graph g has the directed edges edge_ptr[g] to edge_ptr[g + 1] - 1."""
        return self.neighbor_ptr[self.node_ptr]

    @property
    def node_graph(self) -> NDArray[np.int64]:
        """[N] the graph of each node."""
        return np.repeat(np.arange(len(self)), np.diff(self.node_ptr))

    def edge_index(self) -> NDArray[np.int64]:
        """[2, E] source and target of each directed edge, sorted by source and then by target."""
        source = np.repeat(np.arange(self.num_nodes), self.degree)
        return np.stack([source, self.neighbors.astype(np.int64)])

    def columns(self) -> dict[str, NDArray[np.generic]]:
        """The arrays by name, without absent ones."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, without the name; independent of the file format."""
        digest = hashlib.sha256(b"edge labels" if self.uses_edge_labels else b"")
        if self.edge_bins is not None:
            digest.update(json.dumps(self.edge_bins.as_plain()).encode())
        vocabularies = [self.label_values, self.edge_label_values, self.class_values]
        digest.update(json.dumps([vocabularies, self.label_source]).encode())
        for name, column in self.columns().items():
            digest.update(f"{name} {column.dtype.str} {column.shape}".encode())
            digest.update(np.ascontiguousarray(column).data)
        return digest.hexdigest()

    def with_degree_labels(self) -> "GraphDataset":
        """The same graphs with each node's degree as its label."""
        label, values = vocabulary(self.degree)
        return replace(
            self,
            node_label=label,
            label_values=values,
            label_source=LabelSource.DEGREE,
            source="",
        )

    def select(self, graphs: Sequence[int] | NDArray[np.integer]) -> "GraphDataset":
        """The graphs at these positions, in this order; NumPy indexing (negative numbers, masks).

        Vocabularies are kept; the reading notes, which describe the whole data set, are not.
        """
        chosen = np.arange(len(self))[np.asarray(graphs) if len(graphs) else slice(0)]
        nodes, node_ptr = ranges(self.node_ptr, chosen)
        edges, edge_ptr = ranges(self.edge_ptr, chosen)
        moved = (node_ptr[:-1] - self.node_ptr[chosen]).astype(np.int32)
        neighbors = self.neighbors[edges]
        neighbors += np.repeat(moved, np.diff(edge_ptr))
        return replace(
            self,
            node_ptr=node_ptr,
            neighbor_ptr=offsets(self.degree[nodes]),
            neighbors=neighbors,
            node_label=self.node_label[nodes],
            graph_class=self.graph_class[chosen],
            node_attributes=_rows(self.node_attributes, nodes),
            edge_label=_rows(self.edge_label, edges),
            edge_attributes=_rows(self.edge_attributes, edges),
            ids=tuple(self.ids[graph] for graph in chosen.tolist()) if self.ids else (),
            notes=ReadingNotes(),
            source="",
        )


def graph_digests(
    dataset: GraphDataset, graphs: NDArray[np.int64], *, attributes: bool = False
) -> list[str]:
    """A short hash of the labels and edges of each graph, which depends on the order of nodes.

    The hash uses label values rather than positions, so that it does not depend on the rest of the
    data set. It ignores the class, edge labels unless they are used, and node attributes unless
    requested.
    """
    label = _codes(dataset.label_values)[dataset.node_label]
    edge_type = dataset.edge_type
    edge_code = None if edge_type is None else _codes(dataset.edge_label_values)[edge_type]
    found = []
    for graph in graphs.tolist():
        start, end = dataset.node_ptr[graph], dataset.node_ptr[graph + 1]
        ptr = dataset.neighbor_ptr[start : end + 1]
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        digest.update(label[start:end].tobytes())
        digest.update((ptr - ptr[0]).tobytes())
        digest.update((dataset.neighbors[ptr[0] : ptr[-1]] - start).astype(np.int32).tobytes())
        if edge_code is not None:
            digest.update(edge_code[ptr[0] : ptr[-1]].tobytes())
        if attributes and dataset.node_attributes is not None:
            digest.update(np.ascontiguousarray(dataset.node_attributes[start:end]).tobytes())
        found.append(digest.hexdigest())
    return found


def _codes(values: Sequence[Value]) -> NDArray[np.uint64]:
    """A hash of each value."""
    hashes = [hashlib.blake2b(str(each).encode(), digest_size=_DIGEST_BYTES) for each in values]
    return np.array([int.from_bytes(each.digest(), "big") for each in hashes], dtype=np.uint64)


def vocabulary(values: NDArray[np.generic]) -> tuple[NDArray[np.int32], tuple[Value, ...]]:
    """The position of each value in the vocabulary, and the vocabulary in ascending order."""
    distinct, position = np.unique(values, return_inverse=True)
    return position.astype(np.int32), tuple(distinct.tolist())


def offsets(sizes: NDArray[np.integer]) -> NDArray[np.int64]:
    """The start of each of the consecutive ranges of these sizes, and the end of the last."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def ranges(
    ptr: NDArray[np.int64], chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The members of the chosen ranges, concatenated, and the offsets of the new ranges."""
    new_ptr = offsets((ptr[1:] - ptr[:-1])[chosen])
    members = np.arange(new_ptr[-1]) + np.repeat(ptr[chosen] - new_ptr[:-1], np.diff(new_ptr))
    return members, new_ptr


def _rows(column: Column, rows: NDArray[np.int64]) -> Column:
    return None if column is None else column[rows]
