"""Graphs in the form of torch-geometric's layers: the input of models trained with autograd."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.batching.batches import Batch
from ihgnn_cli.data.dataset import ranges

Derived = tuple[Tensor, ...]
"""What a model computes once from a graph and keeps."""


@dataclass(frozen=True, eq=False)
class Graphs:
    """B graphs with n nodes in total, the largest first, stored one after the other."""

    x: Tensor
    """[n, features] attributes, then the one-hot label; an unknown label is the zero vector."""
    edge_index: Tensor
    """[2, E] sender and receiver, each edge in both directions, in ascending order of receiver;
    no self-loops, no duplicates."""
    graph: Tensor
    """[n] the graph of each node, ascending."""
    sizes: tuple[int, ...]
    """Number of nodes of each graph."""
    edge_counts: tuple[int, ...]
    """Number of columns of `edge_index` for each graph."""
    keys: tuple[int, ...]
    """Identifies each graph within its data set."""
    memo: dict[tuple[str, int], Any]
    """Cache of what was derived from graphs of the data set."""

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def node_ptr(self) -> tuple[int, ...]:
        """B + 1 offsets: the nodes of graph g are node_ptr[g]:node_ptr[g + 1]."""
        return tuple(accumulate(self.sizes, initial=0))

    @cached_property
    def edge_ptr(self) -> tuple[int, ...]:
        """B + 1 offsets: the edges of graph g are edge_ptr[g]:edge_ptr[g + 1]."""
        return tuple(accumulate(self.edge_counts, initial=0))

    @property
    def largest(self) -> int:
        """Number of nodes of the largest graph."""
        return self.sizes[0]

    @cached_property
    def degree(self) -> Tensor:
        """[n] number of neighbours of each node, as float."""
        return self.sum_to_nodes(self.x.new_ones(self.edge_index.shape[1]))

    @cached_property
    def node_counts(self) -> Tensor:
        """[B, 1] number of nodes of each graph, as float."""
        return torch.tensor(self.sizes, dtype=self.x.dtype, device=self.x.device).unsqueeze(1)

    @cached_property
    def rank(self) -> Tensor:
        """[n] the index of each node within its graph."""
        starts = torch.tensor(self.node_ptr[:-1], device=self.x.device)
        return torch.arange(len(self.x), device=self.x.device) - starts[self.graph]

    def sum_to_nodes(self, values: Tensor) -> Tensor:
        """[n, *] the sum of `values` [E, *] over each node's incoming edges."""
        out = values.new_zeros(len(self.x), *values.shape[1:])
        return out.index_add_(0, self.edge_index[1], values)

    def sum_nodes(self, h: Tensor) -> Tensor:
        """[B, *] the sum of h [n, *] over each graph's nodes."""
        return h.new_zeros(len(self), *h.shape[1:]).index_add_(0, self.graph, h)

    def mean_nodes(self, h: Tensor) -> Tensor:
        """[B, *] the mean of h [n, *] over each graph's nodes."""
        return self.sum_nodes(h) / self.node_counts

    def max_nodes(self, h: Tensor) -> Tensor:
        """[B, width] the maximum of h [n, width] over each graph's nodes."""
        index = self.graph.unsqueeze(1).expand_as(h)
        start = h.new_zeros(len(self), h.shape[1])
        return start.scatter_reduce_(0, index, h, "amax", include_self=False)

    def padded(self, h: Tensor) -> Tensor:
        """[B, largest, *] each graph's rows of h [n, *], then zeros."""
        out = h.new_zeros(len(self), self.largest, *h.shape[1:])
        return out.index_put_((self.graph, self.rank), h)

    @cached_property
    def mask(self) -> Tensor:
        """[B, largest] whether the node exists; false for padding."""
        sizes = torch.tensor(self.sizes, device=self.x.device)
        return torch.arange(self.largest, device=self.x.device) < sizes.unsqueeze(1)

    @cached_property
    def adjacency(self) -> Tensor:
        """[B, largest, largest] padded A of each graph, for methods that are quadratic anyway."""
        sender, receiver = self.edge_index
        out = self.x.new_zeros(len(self), self.largest, self.largest)
        out[self.graph[receiver], self.rank[receiver], self.rank[sender]] = 1
        return out

    def derived(self, name: str, compute: Callable[[Tensor, int], Derived]) -> list[Derived]:
        """The result of `compute` for each graph, computed on first use and then cached.

        Args:
            name: cache key; includes everything that the result depends on ("distance-5").
            compute: takes edge_index [2, e] on the CPU, with nodes counted from 0, and the number
                of nodes.
        """
        found = []
        for at, key in enumerate(self.keys):
            kept = self.memo.get((name, key))
            if kept is None:
                edges = self.edge_index[:, self.edge_ptr[at] : self.edge_ptr[at + 1]]
                with torch.no_grad():
                    made = compute((edges - self.node_ptr[at]).cpu(), self.sizes[at])
                kept = self.memo[name, key] = tuple(each.to(self.x.device) for each in made)
            found.append(kept)
        return found

    def parts(self, pairs: int) -> "Iterator[tuple[slice, Graphs]]":
        """Runs of graphs of similar size, each with at most `pairs` pairs of nodes when padded.

        A graph that exceeds the limit forms its own run.
        """
        start = 0
        for end in range(1, len(self) + 1):
            if end == len(self) or (end + 1 - start) * self.sizes[start] ** 2 > pairs:
                yield slice(start, end), self.part(start, end)
                start = end

    def runs(self, cost: int) -> "Iterator[tuple[slice, Graphs]]":
        """Runs of graphs with at most `cost` nodes and edges; a larger graph forms its own run."""
        start = taken = 0
        for at, own in enumerate(map(sum, zip(self.sizes, self.edge_counts, strict=True))):
            if at > start and taken + own > cost:
                yield slice(start, at), self.part(start, at)
                start, taken = at, 0
            taken += own
        if start < len(self):
            yield slice(start, len(self)), self.part(start, len(self))

    def part(self, start: int, end: int) -> "Graphs":
        """The graphs `start` to `end` (exclusive)."""
        if (start, end) == (0, len(self)):
            return self
        nodes = slice(self.node_ptr[start], self.node_ptr[end])
        edges = slice(self.edge_ptr[start], self.edge_ptr[end])
        graphs = slice(start, end)
        return replace(
            self,
            x=self.x[nodes],
            edge_index=self.edge_index[:, edges] - nodes.start,
            graph=self.graph[nodes] - start,
            sizes=self.sizes[graphs],
            edge_counts=self.edge_counts[graphs],
            keys=self.keys[graphs],
        )


def member_graphs(batch: Batch, member: int) -> Graphs:
    """One member's graphs in a batch of a store with one row per node."""
    store = batch.store
    rows, chosen = store.rows, batch.graph[member][batch.graph[member] >= 0]
    row, row_ptr = ranges(rows.row_ptr, chosen)
    pair, pair_ptr = ranges(rows.edge_ptr, chosen)
    sizes, counts = np.diff(row_ptr), np.diff(pair_ptr)
    sender = rows.neighbors[pair] + np.repeat(row_ptr[:-1] - rows.row_ptr[chosen], counts)
    receiver = np.repeat(np.arange(len(row)), np.diff(rows.neighbor_ptr)[row])

    def moved(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(store.device)

    label = moved(store.row_label[row]).unsqueeze(1)
    x = torch.zeros(len(row), store.labels + 1, device=store.device).scatter_(1, label, 1)
    x = x[:, : store.labels]  # the last label value means "unknown" and has no column
    if store.attributes is not None:
        x = torch.cat([moved(store.attributes[row]), x], dim=1)
    return Graphs(
        x=x,
        edge_index=moved(np.stack([sender, receiver])),
        graph=moved(np.repeat(np.arange(len(chosen)), sizes)),
        sizes=tuple(sizes.tolist()),
        edge_counts=tuple(counts.tolist()),
        keys=tuple(chosen.tolist()),
        memo=store.cache,
    )
