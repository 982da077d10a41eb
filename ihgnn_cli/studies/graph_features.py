"""Features of whole graphs for classifiers without a network: histograms and 1-WL counts."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ihgnn_cli.data.batching.wl_rows import color_rounds
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, vocabulary

WL_ROUNDS = 3
"""Rounds of 1-WL whose colours are counted."""


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
        return np.column_stack([*with_labels, degrees, *sizes, *self._edge_counts()])

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

    def subtrees(self, rounds: int) -> sparse.csr_array:
        """[G, *] counts of the colours of rounds 0 to `rounds`; each graph has length 1."""
        counts = sparse.hstack(self.colors[: rounds + 1], format="csr")
        length = np.sqrt(counts.multiply(counts).sum(axis=1))
        found: sparse.csr_array = sparse.diags_array(1 / length) @ counts
        return found

    def _edge_counts(self) -> list[NDArray[np.float64]]:
        """[G, *] number of edges with each label, if edge labels are used."""
        data = self.dataset
        if data.edge_type is None:
            return []
        shape = len(data), data.edge_types
        cell = np.repeat(np.arange(len(data)), np.diff(data.edge_ptr)) * shape[1] + data.edge_type
        return [np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape) / 2]

    def _counts(self, color: NDArray[np.int64]) -> sparse.csr_array:
        shape = len(self.dataset), int(color.max()) + 1
        ones = np.ones(len(color))
        return sparse.csr_array((ones, (self.dataset.node_graph, color)), shape=shape)
