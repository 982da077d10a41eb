"""The rows that a model computes: nodes, or 1-WL colour classes of nodes.

Nodes of a graph with the same colour after K rounds of 1-WL have equal embeddings in each of K
message-passing layers. So a layer can run on colour classes ("rows") instead of nodes, with the
same result. With n_c the number of nodes in class c and E[c, d] the number of edges from class c
to class d (a symmetric matrix), a node of class c receives

    (A H)_c = sum_d E[c, d] / n_c * H_d,

which is the mean, over the nodes of the class, of sums that are all equal. (The nodes of a class
need the same neighbours only in the colours of the previous round, not in classes.)

If the data set uses edge labels, a round tells apart neighbours of one colour by the label of the
edge, and there is a matrix E for each label.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, offsets

# Colour classes are used if there are fewer than this many per node; above, they do not pay off.
WORTH_IT = 0.8
# Two 64-bit hashes: the chance of a collision among 10^9 colours is about 10^-20.
_HASHES = 2
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Rows:
    """Graphs as rows that stand for one or more nodes; R rows, D pairs of adjacent rows.

    The rows of a graph are consecutive. If no two nodes share a row, rows are the nodes in order.
    """

    row_ptr: NDArray[np.int64]
    """[G + 1] graph g has the rows row_ptr[g] up to row_ptr[g + 1]."""
    size: NDArray[np.int64]
    """[R] n_c, the number of nodes per row."""
    first_node: NDArray[np.int64]
    """[R] one node of each row; all its nodes have the same label and attributes."""
    neighbor_ptr: NDArray[np.int64]
    """[R + 1]"""
    neighbors: NDArray[np.int64]
    """[D] the rows d with E[c, d] > 0."""
    weight: NDArray[np.float32] | None
    """[D] E[c, d] / n_c, the weight of d for a node of c; `None` if all are 1."""
    weight_back: NDArray[np.float32] | None
    """[D] E[c, d] / n_d, the weight in the opposite direction."""
    edge_type: NDArray[np.int64] | None = None
    """[D] the edge label of the pair, ascending within a row; `None` if labels are not used."""

    @cached_property
    def edge_ptr(self) -> NDArray[np.int64]:
        """[G + 1] graph g has the pairs edge_ptr[g] up to edge_ptr[g + 1]."""
        return self.neighbor_ptr[self.row_ptr]

    @cached_property
    def graph_size(self) -> NDArray[np.int64]:
        """[G] number of nodes per graph."""
        return np.add.reduceat(self.size, self.row_ptr[:-1])


def node_rows(dataset: GraphDataset) -> Rows:
    """One row per node."""
    nodes, neighbors = dataset.num_nodes, dataset.neighbors.astype(np.int64)
    edge_type = None
    if dataset.edge_type is not None:
        node = np.repeat(np.arange(nodes), dataset.degree)
        order = np.lexsort((dataset.edge_type, node))  # stable
        neighbors, edge_type = neighbors[order], dataset.edge_type[order].astype(np.int64)
    return Rows(
        row_ptr=dataset.node_ptr,
        size=np.ones(nodes, dtype=np.int64),
        first_node=np.arange(nodes),
        neighbor_ptr=dataset.neighbor_ptr,
        neighbors=neighbors,
        weight=None,
        weight_back=None,
        edge_type=edge_type,
    )


def color_rows(dataset: GraphDataset, rounds: int, *, attributes: bool = False) -> Rows:
    """One row per graph and colour after `rounds` rounds of 1-WL.

    Initial colours are the labels, with `attributes` combined with the node attributes.
    """
    color = colors(dataset, rounds, attributes=attributes)
    key = dataset.node_graph * (int(color.max()) + 1) + color
    _, first_node, row, size = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    row_graph = dataset.node_graph[first_node]
    source, types = np.repeat(row, dataset.degree), dataset.edge_types
    if dataset.edge_type is not None:
        source = source * types + dataset.edge_type
    pair, edges = np.unique(source * len(size) + row[dataset.neighbors], return_counts=True)
    receiver, sender = np.divmod(pair, len(size))
    receiver, edge_type = np.divmod(receiver, types)
    return Rows(
        row_ptr=offsets(np.bincount(row_graph, minlength=len(dataset))),
        size=size,
        first_node=first_node,
        neighbor_ptr=offsets(np.bincount(receiver, minlength=len(size))),
        neighbors=sender,
        weight=(edges / size[receiver]).astype(np.float32),
        weight_back=(edges / size[sender]).astype(np.float32),
        edge_type=edge_type if dataset.uses_edge_labels else None,
    )


def compact_rows(dataset: GraphDataset, rounds: int, *, attributes: bool = False) -> Rows:
    """Colour classes if they are clearly fewer than nodes, otherwise nodes."""
    color = color_rows(dataset, rounds, attributes=attributes)
    return color if len(color.size) < WORTH_IT * dataset.num_nodes else node_rows(dataset)


def colors(dataset: GraphDataset, rounds: int, *, attributes: bool = False) -> NDArray[np.int64]:
    """[N] the 1-WL colour of each node after `rounds` rounds, comparable between graphs."""
    for color in color_rounds(dataset, rounds, attributes=attributes):
        last = color
    return last


def color_rounds(
    dataset: GraphDataset, rounds: int, *, attributes: bool = False
) -> Iterator[NDArray[np.int64]]:
    """[N] the colours before the first round and after each; ends early if a round changes none."""
    label = dataset.node_label.astype(np.int64)
    color = np.where(label < 0, len(dataset.label_values), label)  # unknown is a separate label
    if attributes and dataset.node_attributes is not None:
        start = np.column_stack([color, dataset.node_attributes.astype(np.float64)])
        color = np.unique(start, axis=0, return_inverse=True)[1].reshape(-1)
    yield color
    distinct = len(np.unique(color))  # not every label of the vocabulary need occur
    for _ in range(rounds):
        color = _renamed(_refined(dataset, color))
        yield color
        before, distinct = distinct, int(color.max()) + 1
        if distinct == before:  # stable: further rounds change nothing
            return


def _renamed(hashed: NDArray[np.uint64]) -> NDArray[np.int64]:
    """[N] a number for each distinct row of [N, 2] hashes.

    The first hash is almost always enough, and sorts faster.
    """
    _, first, color = np.unique(hashed[:, 0], return_index=True, return_inverse=True)
    if (hashed[first[color], 1] == hashed[:, 1]).all():
        return color
    return np.unique(hashed, axis=0, return_inverse=True)[1].reshape(-1)


def _refined(dataset: GraphDataset, color: NDArray[np.int64]) -> NDArray[np.uint64]:
    """[N, 2] hashes of each node's own colour and the multiset of its neighbours'.

    If edge labels are used, of its pairs of edge label and neighbour's colour.
    """
    drawn = np.random.default_rng(0)  # fixed: the same rows in every run
    hashed = np.empty((len(color), _HASHES), dtype=np.uint64)
    connected, colors = np.flatnonzero(dataset.degree), int(color.max()) + 1
    seen = color[dataset.neighbors]
    if dataset.edge_type is not None:
        seen += dataset.edge_type.astype(np.int64) * colors
    for column in range(_HASHES):
        code = drawn.integers(0, 2**64, size=colors * dataset.edge_types, dtype=np.uint64)
        received = np.zeros(len(color), dtype=np.uint64)
        if len(connected):
            starts = dataset.neighbor_ptr[:-1][connected]
            received[connected] = np.add.reduceat(code[seen], starts)
        # A node's own colour has another code than its neighbours' colours.
        own = drawn.integers(0, 2**64, size=colors, dtype=np.uint64)
        hashed[:, column] = received * _MULTIPLIERS[column] + own[color]
    return hashed
