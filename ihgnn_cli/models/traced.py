"""`Graphs` for the export to ONNX: a model's own `forward` is traced on these.

They have the operations of `Graphs` on tensors alone, with dynamic numbers of graphs and nodes. A
model that uses nothing else is exported as it is, without a second definition. `PaddedGraphs` has
dense matrices; `FlatGraphs` has nodes and edges without padding.

Nothing here may depend on the order of equal values in a sort (OpenVINO and onnxruntime's CUDA
kernel do not keep it), and sums go through products of matrices or `scatter_add`: `index_add`
becomes ScatterND, whose CPU kernel in onnxruntime loses updates of the same row.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

# Channels that `PaddedGraphs.first_in_order` compares at a time.
_COMPARED = 4
# Reaches 32,768 steps; larger matrices do not fit in memory.
_DOUBLINGS = 15


class TracedGraphs(ABC):
    """B graphs, with one row per node in x and in all other values of nodes."""

    x: Tensor
    """[rows, features]."""

    @property
    @abstractmethod
    def degree(self) -> Tensor:
        """[rows] number of neighbours of each node, as float."""

    @property
    @abstractmethod
    def node_counts(self) -> Tensor:
        """[B, 1] number of nodes of each graph, as float."""

    @property
    @abstractmethod
    def edge_index(self) -> Tensor:
        """[2, E] as in `Graphs`, for layers of torch-geometric."""

    @abstractmethod
    def sum_neighbours(self, h: Tensor) -> Tensor:
        """[rows, width] the sum of h [rows, width] over each node's neighbours."""

    @abstractmethod
    def sum_nodes(self, h: Tensor) -> Tensor:
        """[B, width] the sum of h [rows, width] over each graph's nodes."""

    @abstractmethod
    def max_nodes(self, h: Tensor) -> Tensor:
        """[B, width] the maximum of h [rows, width] over each graph's nodes."""

    def mean_nodes(self, h: Tensor) -> Tensor:
        """[B, width] the mean of h [rows, width] over each graph's nodes."""
        return self.sum_nodes(h) / self.node_counts.clamp(min=1)

    def sum_to_nodes(self, values: Tensor) -> Tensor:
        """[rows, width] the sum of values [E, width] over each node's incoming edges."""
        index = self.edge_index[1].view(-1, *[1] * (values.dim() - 1)).expand_as(values)
        return values.new_zeros(self.x.shape[0], *values.shape[1:]).scatter_add(0, index, values)


class PaddedGraphs(TracedGraphs):
    """Graphs padded to one size n: B · n rows, of which those of padding hold arbitrary values.

    Args:
        x: [B · n, features], zeros for padding.
        mask: [B, n] whether the node exists.
        adjacency: [B, n, n] A, zeros for padding.
    """

    def __init__(self, x: Tensor, mask: Tensor, adjacency: Tensor) -> None:
        self.x, self.mask, self.adjacency = x, mask, adjacency

    @property
    def largest(self) -> int:
        """The padded size n."""
        return self.mask.shape[1]

    @cached_property
    def degree(self) -> Tensor:
        """[B · n]."""
        return self.adjacency.sum(2).flatten()

    @cached_property
    def node_counts(self) -> Tensor:
        """[B, 1]."""
        return self.mask.float().sum(1, keepdim=True)

    @cached_property
    def edge_index(self) -> Tensor:
        """[2, E]."""
        graph, receiver, sender = self.adjacency.nonzero().unbind(1)
        return torch.stack([graph * self.largest + sender, graph * self.largest + receiver])

    def rows(self, h: Tensor) -> Tensor:
        """[B, n, *] from h [B · n, *], with arbitrary values for padding."""
        return h.view(*self.mask.shape, *h.shape[1:])

    def padded(self, h: Tensor) -> Tensor:
        """[B, n, *] from h [B · n, *], zeros for padding."""
        real = self.mask.view(*self.mask.shape, *[1] * (h.dim() - 1))
        return torch.where(real, self.rows(h), 0.0)

    def parts(self, pairs: int) -> Iterator[tuple[slice, Any]]:
        """All graphs as one part; the caller of the exported file decides on batches."""
        del pairs
        yield slice(None), self

    def sum_neighbours(self, h: Tensor) -> Tensor:
        """[B · n, width] A·h."""
        return self.sum_over(self.adjacency, h)

    def sum_over(self, matrix: Tensor, h: Tensor) -> Tensor:
        """[B · n, width] M·h, from M [B, n, n]."""
        return (matrix @ self.rows(h)).flatten(0, 1)

    def sum_nodes(self, h: Tensor) -> Tensor:
        """[B, width]."""
        # A product with ones is many times faster in onnxruntime than a sum.
        found = self.mask.to(h.dtype).unsqueeze(1) @ self.rows(h)
        return found.squeeze(1)

    def max_nodes(self, h: Tensor) -> Tensor:
        """[B, width]."""
        return self.rows(h).masked_fill(~self.mask.unsqueeze(2), -math.inf).amax(1)

    @cached_property
    def identity(self) -> Tensor:
        """[n, n]."""
        position = torch.arange(self.largest)
        return (position.unsqueeze(1) == position).float()

    def within(self, distance: int) -> Iterator[Tensor]:
        """[B, n, n] for each distance d from 1: A_d, which joins the nodes that are d apart."""
        front, seen = self.adjacency, self.adjacency + self.identity
        yield front
        for _ in range(1, distance):
            front = ((front @ self.adjacency > 0) & (seen == 0)).float()
            seen = seen + front
            yield front

    def distances(self, most: int) -> Tensor:
        """[B, n, n] shortest-path lengths up to `most`, and `most` + 1 for no path, as float."""
        seen, near = self.identity.expand_as(self.adjacency), torch.zeros_like(self.adjacency)
        for at, front in enumerate(self.within(most), start=1):
            seen, near = seen + front, near + at * front
        reached = seen
        for _ in range(_DOUBLINGS):
            reached = (reached @ reached > 0).float()
        far = torch.where(reached > 0, float(most), most + 1.0)
        return torch.where(seen > 0, near, far)

    def first_in_order(self, rows: Tensor, keys: Tensor, taken: int) -> Tensor:
        """[B, taken, width] each graph's first rows in descending order of keys, then zeros.

        Keys [B · n, channels] are compared channel by channel, equal ones by position. The place
        of a node is the number of nodes before it; no sort is needed.
        """
        keys, n = self.rows(keys), self.largest
        before = torch.zeros_like(self.adjacency)  # [B, i, j]: 1 if i is first, -1 if j is
        for part in torch.split(keys, _COMPARED, dim=2):
            signs = (part.unsqueeze(2) - part.unsqueeze(1)).sign()
            # The first channel that differs outweighs all others.
            weights = 2.0 ** -torch.arange(part.shape[2])
            decided = (signs * weights).sum(3).sign()
            before = torch.where(before == 0, decided, before)
        position = torch.arange(n)
        earlier = (position.unsqueeze(1) < position).float() * 2 - 1
        before = torch.where(before == 0, earlier, before)
        # A node is not before itself, and padding is after all nodes.
        counted = (before > 0) & (position.unsqueeze(1) != position) & self.mask.unsqueeze(2)
        place = counted.float().sum(1)
        chosen = (place.unsqueeze(1) == torch.arange(taken).view(-1, 1)) & self.mask.unsqueeze(1)
        return chosen.to(rows.dtype) @ self.rows(rows)


class FlatGraphs(TracedGraphs):
    """Graphs stored one after the other, without padding.

    Args:
        x: [N, features].
        edges: [2, E] in any order, each edge in both directions.
        graph: [N] the graph of each node.
        count: the number of graphs B.
        degree: [N].
        spread: adds the messages [N, width] of its neighbours to each row [N, width].
    """

    def __init__(
        self,
        *,
        x: Tensor,
        edges: Tensor,
        graph: Tensor,
        count: int,
        degree: Tensor,
        spread: Callable[[Tensor, Tensor], Tensor],
    ) -> None:
        self.x, self.graph = x, graph
        self._edges, self._count, self._degree, self._spread = edges, count, degree, spread

    @property
    def degree(self) -> Tensor:
        """[N]."""
        return self._degree

    @cached_property
    def edge_index(self) -> Tensor:
        """[2, E]."""
        sender, receiver = self._edges.unbind(0)
        order = (receiver * self.x.shape[0] + sender).sort().indices  # unique keys
        return self._edges.index_select(1, order)

    @cached_property
    def node_counts(self) -> Tensor:
        """[B, 1]."""
        return self.sum_nodes(torch.ones_like(self.degree).unsqueeze(1))

    def sum_neighbours(self, h: Tensor) -> Tensor:
        """[N, width]."""
        return self._spread(torch.zeros_like(h), h)

    def sum_nodes(self, h: Tensor) -> Tensor:
        """[B, width]."""
        index = self.graph.unsqueeze(1).expand_as(h)
        return h.new_zeros(self._count, h.shape[1]).scatter_add(0, index, h)

    def max_nodes(self, h: Tensor) -> Tensor:
        """[B, width]."""
        index = self.graph.unsqueeze(1).expand_as(h)
        start = h.new_full((self._count, h.shape[1]), -math.inf)
        return start.scatter_reduce(0, index, h, "amax")
