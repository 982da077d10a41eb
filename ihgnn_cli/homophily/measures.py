"""Homophily measures: one number per graph, in time linear in the edges.

With l(v) the label of node v, N(v) its neighbours and d(v) their number:

- node (the paper's equations 1 and 2; Pei et al. 2020):
  alpha_v = |{u in N(v): l(u) = l(v)}| / d(v), beta = mean of alpha_v over the graph's nodes.
  A node without neighbours counts as 0.
- edge (Zhu et al. 2020): the share of edges that join equal labels; 0 for a graph without edges.
- adjusted (Platonov et al. 2023): the edge share h_e, corrected for its expected value with random
  edges, so that graphs with few and many labels are comparable:
  (h_e - S) / (1 - S), S = sum over labels k of (D_k / sum_v d(v))^2, D_k the degrees of label k.
  At most 1; 0 for random edges; below 0 for heterophily; undefined (NaN) if there are no edges or
  all edges join nodes of one label.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.settings import checked

Number = TypeVar("Number", np.int64, np.float64)

# Edges compared at once: fits in the processor's cache and bounds memory.
_BLOCK_EDGES = 1 << 18


def same_label_neighbors(dataset: GraphDataset) -> NDArray[np.int64]:
    """[N] number of neighbours with the same label as the node."""
    label, ptr = dataset.node_label, dataset.neighbor_ptr
    count = np.zeros(dataset.num_nodes, dtype=np.int64)
    degree = dataset.degree
    first = 0
    while first < dataset.num_nodes:
        last = max(first + 1, int(np.searchsorted(ptr, ptr[first] + _BLOCK_EDGES, "right")) - 1)
        edges = slice(ptr[first], ptr[last])
        own = np.repeat(label[first:last], degree[first:last])
        same = (label[dataset.neighbors[edges]] == own).view(np.uint8)
        # reduceat sums from each start to the next, so nodes without edges must be left out.
        connected = np.flatnonzero(degree[first:last])
        if len(connected):
            starts = ptr[first:last][connected] - ptr[first]
            count[first:last][connected] = np.add.reduceat(same, starts, dtype=np.int64)
        first = last
    return count


def node_homophily(dataset: GraphDataset) -> NDArray[np.float64]:
    """[N] alpha of each node (equation 1); 0 for a node without neighbours."""
    alpha: NDArray[np.float64] = same_label_neighbors(dataset) / np.maximum(dataset.degree, 1)
    return alpha


def graph_homophily(dataset: GraphDataset, measure: Measure = Measure.NODE) -> NDArray[np.float64]:
    """[G] the homophily of each graph; beta (equation 2) for the default measure.

    Raises:
        InputError: there is no such measure.
    """
    measure = checked("measure", measure, Measure)
    if measure == Measure.NODE:
        beta: NDArray[np.float64] = _per_graph(dataset, node_homophily(dataset))
        beta /= np.diff(dataset.node_ptr)
        return beta
    ends = np.diff(dataset.edge_ptr)
    share: NDArray[np.float64] = _per_graph(dataset, same_label_neighbors(dataset)) / np.maximum(
        ends, 1
    )
    if measure == Measure.EDGE:
        return share
    expected, connected_labels = _random_share(dataset)
    with np.errstate(divide="ignore", invalid="ignore"):
        adjusted = (share - expected) / (1 - expected)
    return np.where(connected_labels < 2, np.nan, adjusted)


def isolated_nodes(dataset: GraphDataset) -> NDArray[np.int64]:
    """[G] number of nodes without neighbours in each graph."""
    return _per_graph(dataset, (dataset.degree == 0).astype(np.int64))


def _per_graph(dataset: GraphDataset, column: NDArray[Number]) -> NDArray[Number]:
    """Sum over the nodes of each graph (every graph has nodes)."""
    sums: NDArray[Number] = np.add.reduceat(column, dataset.node_ptr[:-1])
    return sums


def _random_share(dataset: GraphDataset) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """[G] S, the expected share with random edges; [G] number of labels that have edges."""
    labels = len(dataset.label_values)
    pair = dataset.node_graph * labels + dataset.node_label
    pairs, position = np.unique(pair, return_inverse=True)
    weight = np.bincount(position, weights=dataset.degree)
    ends = np.maximum(np.diff(dataset.edge_ptr), 1)
    graph = pairs // labels
    squares = (weight / ends[graph]) ** 2
    expected = np.bincount(graph, weights=squares, minlength=len(dataset)).astype(np.float64)
    return expected, np.bincount(graph[weight > 0], minlength=len(dataset))
