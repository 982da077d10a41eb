"""The last step of every reader: build a `GraphDataset` from listed edges and columns."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value, offsets, vocabulary
from ihgnn_cli.data.readers.edges import SimpleEdges, count_conflicts, simplify

Coded = tuple[NDArray[np.int32], tuple[Value, ...]]
"""Positions in a vocabulary, and the vocabulary itself."""


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


def build(listed: ListedGraphs) -> GraphDataset:
    """Make the graphs simple and undirected. Without node labels, use the degree as label."""
    columns = [
        column
        for column in (listed.edge_labels and listed.edge_labels[0], listed.edge_attributes)
        if column is not None
    ]
    simple = simplify(
        listed.source,
        listed.target,
        int(listed.sizes.sum()),
        keep_lines=bool(columns),
        undirected=listed.undirected,
    )
    conflicts = 0
    if columns and simple.notes.duplicate_edges:
        conflicts = count_conflicts(simple, listed.source, listed.target, np.column_stack(columns))
    labels = listed.node_labels or vocabulary(np.diff(simple.neighbor_ptr))
    edge_ids, edge_values = _edge_labels(listed, simple)
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
        edge_label=edge_ids,
        edge_label_values=edge_values,
        edge_attributes=listed.edge_attributes[simple.line]
        if listed.edge_attributes is not None and len(simple.neighbors)
        else None,
        ids=listed.ids,
        notes=replace(
            simple.notes,
            ignored_keys=listed.ignored_keys,
            reordered_nodes=listed.reordered_nodes,
            conflicting_duplicates=conflicts,
        ),
    )


def _edge_labels(
    listed: ListedGraphs, simple: SimpleEdges
) -> tuple[NDArray[np.int32] | None, tuple[Value, ...]]:
    """Labels of the remaining edges, and the values they use."""
    if listed.edge_labels is None or not len(simple.neighbors):
        return None, ()
    positions, values = listed.edge_labels
    if listed.keep_edge_values:
        return positions[simple.line], values
    edge_label, used = vocabulary(positions[simple.line])
    return edge_label, tuple(values[int(position)] for position in used)
