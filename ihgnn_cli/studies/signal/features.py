"""Features of whole graphs for classifiers without a network: histograms and 1-WL counts."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ihgnn_cli.data.batching.wl_rows import color_rounds
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, vocabulary

WL_ROUNDS = 3
"""Rounds of 1-WL whose colours are counted."""
BINS = 32
"""Bins of an edge attribute, with as many edges of the data set in each."""


class GraphFeatures:
    """The features of a data set's graphs, each computed once."""

    def __init__(self, dataset: GraphDataset) -> None:
        self.dataset = dataset

    @cached_property
    def labels(self) -> NDArray[np.float64]:
        """[G, L] number of nodes with each label."""
        return self.colors[0].toarray()

    @cached_property
    def histograms(self) -> NDArray[np.float64]:
        """[G, *] numbers of nodes with each label and with each degree, of nodes, and of edges.

        If edge labels are used, numbers of edges with each label, too.
        """
        data = self.dataset
        degrees = self._counts(vocabulary(data.degree)[0].astype(np.int64)).toarray()
        sizes = [np.diff(data.node_ptr), np.diff(data.edge_ptr) // 2]
        with_labels = [] if data.label_source == LabelSource.DEGREE else [self.labels]
        used = data.edge_type
        with_types = [] if used is None else [self._edge_counts(used, data.edge_types)]
        return np.column_stack([*with_labels, degrees, *sizes, *with_types])

    @cached_property
    def colors(self) -> list[sparse.csr_array]:
        """[G, *] number of nodes with each 1-WL colour, before the first round and after each."""
        found = [self._counts(color) for color in color_rounds(self.dataset, WL_ROUNDS)]
        return found + [found[-1]] * (WL_ROUNDS + 1 - len(found))  # stable colours

    @cached_property
    def logarithms(self) -> sparse.csr_array:
        """[G, *] ln(1 + count) of each colour of all rounds that occurs in two graphs or more."""
        counts = sparse.hstack(self.colors, format="csc")
        found: sparse.csr_array = counts[:, np.diff(counts.indptr) > 1].log1p().tocsr()
        return found

    @cached_property
    def edge_attributes(self) -> NDArray[np.float64] | None:
        """[G, *] numbers of edges in the bins of each edge attribute; `None` without attributes."""
        data, found = self.dataset, []
        if data.edge_attributes is None:
            return None
        for values in data.edge_attributes.T:
            ends = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1]))
            found.append(self._edge_counts(np.searchsorted(ends, values), len(ends) + 1))
        return np.column_stack(found)

    @cached_property
    def counts(self) -> sparse.csr_array:
        """[G, *] the colours of all rounds side by side."""
        found: sparse.csr_array = sparse.hstack(self.colors, format="csr")
        return found

    @property
    def rounds(self) -> tuple[int, ...]:
        """The number of columns of `counts` up to each round."""
        return tuple(np.cumsum([each.shape[1] for each in self.colors]).tolist())

    def subtrees(self, rounds: int) -> sparse.csr_array:
        """[G, *] the counts up to this many rounds; each graph has length 1."""
        return unit_rows(self.counts[:, : self.rounds[rounds]])

    def _edge_counts(self, kind: NDArray[np.integer], kinds: int) -> NDArray[np.float64]:
        """[G, kinds] number of edges of each kind."""
        graphs, edges = len(self.dataset), np.diff(self.dataset.edge_ptr)
        cell = np.repeat(np.arange(graphs), edges) * kinds + kind
        found: NDArray[np.float64] = np.bincount(cell, minlength=graphs * kinds) / 2
        return found.reshape(graphs, kinds)

    def _counts(self, color: NDArray[np.int64]) -> sparse.csr_array:
        shape = len(self.dataset), int(color.max()) + 1
        ones = np.ones(len(color))
        return sparse.csr_array((ones, (self.dataset.node_graph, color)), shape=shape)


def unit_rows(counts: sparse.csr_array) -> sparse.csr_array:
    """Rows scaled to length 1."""
    length = np.sqrt(counts.multiply(counts).sum(axis=1))
    found: sparse.csr_array = sparse.diags_array(1 / length) @ counts
    return found
