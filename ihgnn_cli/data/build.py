"""The last step of every reader: simple undirected graphs from listed edges and columns."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import (
    GraphDataset,
    LabelSource,
    ReadingNotes,
    Value,
    offsets,
    vocabulary,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Coded = tuple[NDArray[np.int32], tuple[Value, ...]]
"""Positions in a vocabulary, and the vocabulary itself."""
Edges = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64] | None]
"""Sources, targets, and (if requested) the line that each edge came from."""


@dataclass(frozen=True)
class ListedGraphs:
    """Checked graphs as listed in a file; edges may be unordered, repeated or one-directional."""

    name: str
    sizes: NDArray[np.integer]
    """[G] number of nodes per graph; the nodes of a graph are consecutive."""
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    classes: Coded
    node_labels: Coded | None = None
    node_attributes: NDArray[np.float32] | None = None
    edge_labels: Coded | None = None
    edge_attributes: NDArray[np.float32] | None = None
    undirected: bool = False
    """The format lists each edge once."""
    ids: tuple[object, ...] = ()
    reordered_nodes: int = 0
    ignored_keys: tuple[str, ...] = ()
    keep_edge_values: bool = False
    """Keep edge labels in the vocabulary even if no edge uses them."""


@dataclass(frozen=True)
class SimpleEdges:
    """Compressed rows of a symmetric 0/1 matrix with an empty diagonal (see `GraphDataset`)."""

    neighbor_ptr: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    line: NDArray[np.int64] | None
    """[E] the listed edge that each one came from, if requested."""
    notes: ReadingNotes


def build(listed: ListedGraphs) -> GraphDataset:
    """Make the graphs simple and undirected. Without node labels, use the degree as label."""
    coded, attributes = listed.edge_labels, listed.edge_attributes
    columns = [each for each in (coded and coded[0], attributes) if each is not None]
    nodes = int(listed.sizes.sum())
    simple = simplify(
        *(listed.source, listed.target, nodes),
        keep_lines=bool(columns),
        undirected=listed.undirected,
    )
    notes, line = simple.notes, simple.line
    edge_label, edge_attributes = None, None
    edge_values: tuple[Value, ...] = ()
    if line is not None and len(line):
        if notes.duplicate_edges:
            conflicts = _conflicts(simple, listed.source, listed.target, np.column_stack(columns))
            notes = replace(notes, conflicting_duplicates=conflicts)
        edge_attributes = None if attributes is None else attributes[line]
        if coded is not None:
            edge_label, edge_values = coded[0][line], coded[1]
            if not listed.keep_edge_values:
                edge_label, used = vocabulary(edge_label)
                edge_values = tuple(edge_values[int(position)] for position in used)
    labels = listed.node_labels or vocabulary(np.diff(simple.neighbor_ptr))
    return GraphDataset(
        name=listed.name,
        node_ptr=offsets(listed.sizes),
        neighbor_ptr=simple.neighbor_ptr,
        neighbors=simple.neighbors,
        node_label=labels[0],
        label_values=labels[1],
        label_source=LabelSource.LABELS if listed.node_labels else LabelSource.DEGREE,
        graph_class=listed.classes[0],
        class_values=listed.classes[1],
        node_attributes=listed.node_attributes,
        edge_label=edge_label,
        edge_label_values=edge_values,
        edge_attributes=edge_attributes,
        ids=listed.ids,
        notes=replace(
            notes, ignored_keys=listed.ignored_keys, reordered_nodes=listed.reordered_nodes
        ),
    )


def simplify(
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    num_nodes: int,
    *,
    keep_lines: bool,
    undirected: bool = False,
) -> SimpleEdges:
    """Drop self-loops, merge duplicates, add missing directions, and sort, in linear time.

    The first of duplicate edges is kept, and an added direction takes the line of its mirror.
    `undirected` means that the format lists each edge once, so that added directions are not
    reported.
    """
    listed = len(source)
    line = np.arange(listed) if keep_lines else None
    proper = source != target
    if not proper.all():
        source, target, line = _pick(proper, source, target, line)
    self_loops = listed - len(source)
    if not _in_order(source, target):
        source, target, line = _sort_and_merge(source, target, line, num_nodes)
    distinct = len(source)
    ptr = offsets(np.bincount(source, minlength=num_nodes))
    if not _is_symmetric(ptr, target):
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
        line = None if line is None else np.concatenate([line, line])
        source, target, line = _sort_and_merge(source, target, line, num_nodes)
        ptr = offsets(np.bincount(source, minlength=num_nodes))
    notes = ReadingNotes(
        self_loops=self_loops,
        duplicate_edges=listed - self_loops - distinct,
        one_directional=0 if undirected else len(source) - distinct,
    )
    return SimpleEdges(ptr, target, line, notes)


def symmetric(
    source: NDArray[np.int64], target: NDArray[np.int64], num_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """`neighbor_ptr` and `neighbors` of the same simple graphs.

    For small batches: needs only NumPy, and does not count the changes.
    """
    proper = source != target
    source, target = source[proper], target[proper]
    keys = np.unique(np.concatenate([source * num_nodes + target, target * num_nodes + source]))
    rows, neighbors = np.divmod(keys, num_nodes)
    return offsets(np.bincount(rows, minlength=num_nodes)), neighbors.astype(np.int32)


def _in_order(source: NDArray[np.int32], target: NDArray[np.int32]) -> bool:
    """Whether the pairs ascend strictly (so there are no duplicates)."""
    step = np.diff(source)
    if (step < 0).any():
        return False
    return bool(((step > 0) | (target[1:] > target[:-1])).all())


def _is_symmetric(ptr: NDArray[np.int64], neighbors: NDArray[np.int32]) -> bool:
    """Compare the matrix with its transpose."""
    transposed = _rows(neighbors, ptr, len(ptr) - 1).tocsc()
    return bool(
        np.array_equal(transposed.indptr, ptr) and np.array_equal(transposed.indices, neighbors)
    )


def _sort_and_merge(
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    line: NDArray[np.int64] | None,
    num_nodes: int,
) -> Edges:
    """Sort by source and then by target, and keep the first of equal edges."""
    order = _stable_order(target, num_nodes)
    order = order[_stable_order(source[order], num_nodes)]
    source, target, line = _pick(order, source, target, line)
    first = np.ones(len(source), dtype=bool)
    first[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return _pick(first, source, target, line)


def _stable_order(key: NDArray[np.int32], size: int) -> NDArray[np.integer]:
    """`argsort(key)` for keys below `size`, by the counting sort inside SciPy's transpose.

    (DD takes 0.2 s; `np.unique` of keys takes 2 s.)
    """
    order = _rows(key, np.arange(len(key) + 1), size).tocsc().indices
    return np.asarray(order)


def _rows(columns: NDArray[np.int32], ptr: NDArray[np.int64], size: int) -> "csr_array":
    from scipy.sparse import csr_array

    ones = np.ones(len(columns), dtype=np.int8)
    return csr_array((ones, columns, ptr), shape=(len(ptr) - 1, size))


def _pick(
    which: NDArray[np.bool_] | NDArray[np.integer],
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    line: NDArray[np.int64] | None,
) -> Edges:
    return source[which], target[which], None if line is None else line[which]


def _conflicts(
    simple: SimpleEdges,
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    column: NDArray[np.generic],
) -> int:
    """Count listed edges whose row of `column` differs from the row that was kept."""
    size = len(simple.neighbor_ptr) - 1
    rows = np.repeat(np.arange(size, dtype=np.int64), np.diff(simple.neighbor_ptr))
    keys = rows * size + simple.neighbors
    listed = np.flatnonzero(source != target)
    position = np.searchsorted(keys, source[listed].astype(np.int64) * size + target[listed])
    kept = np.zeros(0, dtype=np.int64) if simple.line is None else simple.line[position]
    return int(np.count_nonzero((column[listed] != column[kept]).any(axis=1)))
