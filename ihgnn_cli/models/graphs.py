"""Graphs as torch-geometric's layers take them: what models that are differentiated for us see."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from ihgnn_cli.data.batching import Batch

Derived = tuple[Tensor, ...]
"""What a model computes of one graph, once and for all."""


@dataclass(frozen=True, eq=False)
class Graphs:
    """B graphs of n nodes in all, the largest first; a graph's nodes and edges stand together."""

    x: Tensor
    """[n, features] attributes, then the label one-hot; an unknown label is the zero vector."""
    edge_index: Tensor
    """[2, E] sender and receiver, each edge in both directions, in ascending order of receiver;
    without self-loops and without doubles."""
    graph: Tensor
    """[n] the graph of each node, ascending."""
    sizes: tuple[int, ...]
    """Nodes of each graph."""
    edge_counts: tuple[int, ...]
    """Columns of `edge_index` of each graph."""
    keys: tuple[int, ...]
    """Tells graphs of a data set apart."""
    memo: dict[tuple[str, int], Any]
    """What was derived from graphs of the data set before."""

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def node_ptr(self) -> tuple[int, ...]:
        """B + 1 numbers: graph g has the nodes node_ptr[g] up to node_ptr[g + 1]."""
        return tuple(accumulate(self.sizes, initial=0))

    @cached_property
    def edge_ptr(self) -> tuple[int, ...]:
        """B + 1 numbers: graph g has the edges edge_ptr[g] up to edge_ptr[g + 1]."""
        return tuple(accumulate(self.edge_counts, initial=0))

    @property
    def largest(self) -> int:
        """Nodes of the largest graph."""
        return self.sizes[0]

    @cached_property
    def degree(self) -> Tensor:
        """[n] neighbours of each node, as float."""
        return self.sum_to_nodes(self.x.new_ones(self.edge_index.shape[1]))

    @cached_property
    def rank(self) -> Tensor:
        """[n] the number of each node within its graph."""
        starts = torch.tensor(self.node_ptr[:-1], device=self.x.device)
        return torch.arange(len(self.x), device=self.x.device) - starts[self.graph]

    def sum_to_nodes(self, values: Tensor) -> Tensor:
        """[n, *] for each node the sum of `values` [E, *] over the edges that it receives."""
        out = values.new_zeros(len(self.x), *values.shape[1:])
        return out.index_add_(0, self.edge_index[1], values)

    def sum_nodes(self, h: Tensor) -> Tensor:
        """[B, *] the sum of h [n, *] over each graph's nodes."""
        return h.new_zeros(len(self), *h.shape[1:]).index_add_(0, self.graph, h)

    def padded(self, h: Tensor) -> Tensor:
        """[B, largest, *] each graph's rows of h [n, *], then zeros."""
        out = h.new_zeros(len(self), self.largest, *h.shape[1:])
        return out.index_put_((self.graph, self.rank), h)

    def unpadded(self, dense: Tensor) -> Tensor:
        """[n, *] the rows again."""
        return dense[self.graph, self.rank]

    @cached_property
    def mask(self) -> Tensor:
        """[B, largest] whether there is such a node."""
        sizes = torch.tensor(self.sizes, device=self.x.device)
        return torch.arange(self.largest, device=self.x.device) < sizes.unsqueeze(1)

    @cached_property
    def adjacency(self) -> Tensor:
        """[B, largest, largest] A of each graph, padded: for methods that are quadratic anyway."""
        sender, receiver = self.edge_index
        out = self.x.new_zeros(len(self), self.largest, self.largest)
        out[self.graph[receiver], self.rank[receiver], self.rank[sender]] = 1
        return out

    def derived(self, name: str, compute: Callable[[Tensor, int], Derived]) -> list[Derived]:
        """What `compute` makes of each graph, computed at the first time and then kept.

        Args:
            name: says what it is, with all that it depends on ("distance-5").
            compute: given edge_index [2, e] on the CPU, with nodes counted from 0, and the number
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
        """The graphs in runs of similar size, with at most so many pairs of nodes when padded.

        A graph that is larger than that comes alone.
        """
        start = 0
        for end in range(1, len(self) + 1):
            if end == len(self) or (end + 1 - start) * self.sizes[start] ** 2 > pairs:
                yield slice(start, end), self.part(start, end)
                start = end

    def runs(self, cost: int) -> "Iterator[tuple[slice, Graphs]]":
        """The graphs in runs of at most so many nodes and edges; a larger one comes alone."""
        start = taken = 0
        for at, own in enumerate(map(sum, zip(self.sizes, self.edge_counts, strict=True))):
            if at > start and taken + own > cost:
                yield slice(start, at), self.part(start, at)
                start, taken = at, 0
            taken += own
        if start < len(self):
            yield slice(start, len(self)), self.part(start, len(self))

    def part(self, start: int, end: int) -> "Graphs":
        """The graphs from number `start` up to `end`."""
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
    """The graphs of one member of a batch whose rows are nodes; padding is left out."""
    real = batch.graph[member] >= 0
    sizes, pairs = batch.nodes[member][real], batch.pairs[member][real]
    nodes, edges = int(sizes.sum()), int(pairs.sum())
    first_row = member * batch.size.shape[1]
    first_edge = int(batch.pairs[:member].sum())
    labels = batch.label_share.shape[-1] - 1
    rows = slice(first_row, first_row + nodes)
    # The last value of a label is "unknown", and has no column.
    x = F.one_hot(batch.label[rows] - member * (labels + 1), labels + 1)[:, :labels].float()
    if batch.attributes is not None:
        x = torch.cat([batch.attributes[member, :nodes], x], dim=1)
    device = x.device
    degree = batch.neighbor_ptr[first_row : first_row + nodes + 1].diff()
    receiver = torch.repeat_interleave(
        torch.arange(nodes, device=device), degree, output_size=edges
    )
    sender = batch.neighbors[first_edge : first_edge + edges] - first_row
    graph = torch.repeat_interleave(
        torch.arange(len(sizes), device=device),
        torch.from_numpy(sizes).to(device),
        output_size=nodes,
    )
    return Graphs(
        x=x,
        edge_index=torch.stack([sender, receiver]),
        graph=graph,
        sizes=tuple(sizes.tolist()),
        edge_counts=tuple(pairs.tolist()),
        keys=tuple(batch.graph[member][real].tolist()),
        memo=batch.memo,
    )
