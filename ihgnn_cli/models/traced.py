"""Graphs for the export to ONNX: a model's own `forward` is traced on these.

They have the operations of `Graphs` on tensors alone, with dynamic numbers of graphs and nodes. A
model that uses nothing else is exported as it is, without a second definition. Values of nodes are
h [rows, width]; h of several members of an ensemble is [S, rows, width].

What runtimes do wrong, and what is done here instead:
- Equal values in a sort keep their order only in some runtimes (not in OpenVINO, nor in
  onnxruntime's CUDA kernel): every sort that decides an order has unique keys.
- `index_add` becomes ScatterND, whose CPU kernel in onnxruntime loses updates of the same row from
  several threads. Sums are products with ones over a table; `scatter_add` becomes ScatterElements,
  which is right but many times slower.
- Reductions of an empty batch have a wrong shape in onnxruntime: products and `topk` do not.
- `gather` fails in ONNX's reference evaluator beyond 32 rows: rows are selected by their index.
"""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

_LARGEST = float(np.finfo(np.float32).max)
# A table of neighbours has this many columns, and some per edge: its size is linear in the graph.
_COLUMNS, _COLUMNS_PER_EDGE = 32, 8


class TracedGraphs(ABC):
    """B graphs, with one row per node in x and in all other values of nodes."""

    x: Tensor
    """[rows, features]."""
    places: Tensor
    """[B, L] 1 + the row of each node of each graph; 0 where there is none. L is at least 1."""

    @property
    @abstractmethod
    def degree(self) -> Tensor:
        """[rows] number of neighbours of each node, as float."""

    @property
    @abstractmethod
    def edge_index(self) -> Tensor:
        """[2, E] as in `Graphs`, for layers of torch-geometric."""

    @abstractmethod
    def sum_neighbours(self, h: Tensor) -> Tensor:
        """[rows, width] the sum of h over each node's neighbours.

        With T edge labels, h [rows · T, width] has a message of each node for each label.
        """

    @cached_property
    def node_counts(self) -> Tensor:
        """[B, 1] number of nodes of each graph, as float; 1 for a graph without nodes."""
        there = (self.places > 0).float()
        return (there @ there.new_ones(there.shape[1], 1)).clamp(min=1)

    def padded(self, h: Tensor, fill: float = 0.0) -> Tensor:
        """[B, L, width] the rows of each graph."""
        rows = pad(h, (0, 0, 1, 0), value=fill).index_select(-2, self.places.flatten())
        return rows.view(*h.shape[:-2], *self.places.shape, h.shape[-1])

    def sum_nodes(self, h: Tensor) -> Tensor:
        """[B, width] the sum of h over each graph's nodes."""
        rows = self.padded(h)
        # Ones of as many graphs: onnxruntime does not broadcast to an empty batch.
        return (rows.new_ones(*rows.shape[:-2], 1, rows.shape[-2]) @ rows).squeeze(-2)

    def mean_nodes(self, h: Tensor) -> Tensor:
        """[B, width] the mean of h over each graph's nodes."""
        return self.sum_nodes(h) / self.node_counts

    def max_nodes(self, h: Tensor) -> Tensor:
        """[B, width] the maximum of h over each graph's nodes; 0 for a graph without nodes."""
        most = self.padded(h, -_LARGEST).topk(1, -2).values.squeeze(-2)
        return torch.where(most > -_LARGEST, most, 0.0)

    def sum_to_nodes(self, values: Tensor) -> Tensor:
        """[rows, width] the sum of values [E, width] over each node's incoming edges."""
        index = self.edge_index[1].view(-1, *[1] * (values.dim() - 1)).expand_as(values)
        return values.new_zeros(self.x.shape[0], *values.shape[1:]).scatter_add(0, index, values)

    def first_nodes(self, h: Tensor, key: Tensor, most: int) -> Tensor:
        """[B, min(L, most) · width] each graph's first rows in ascending order of key [rows].

        Equal keys are ordered by position; places without a node come last and are zero rows.
        """
        graphs, size = self.places.shape
        places = self.places.flatten()
        keys = torch.cat([key.new_full((*key.shape[:-1], 1), _LARGEST), key], -1)
        keys = keys.index_select(-1, places).view(*key.shape[:-1], graphs, size)
        order = ascending_order(keys)[..., :most]
        order = order + torch.arange(graphs).unsqueeze(1) * size
        row = places.index_select(0, order.flatten()).view(*key.shape[:-1], -1)
        rows = _select(pad(h, (0, 0, 1, 0)), row)
        return rows.view(*key.shape[:-1], graphs, order.shape[-1] * h.shape[-1])


class PaddedGraphs(TracedGraphs):
    """Graphs padded to one size n: B · n rows, of which those of padding hold arbitrary values.

    Args:
        mask: [B, n] whether the node exists.
        adjacency: [B, n, n], nonzero for an edge in either direction; with edge labels, 1 + the
            label. Self-loops and edges from padding are ignored.
        edge_types: the number of edge labels, if the model reads them.
    """

    def __init__(self, mask: Tensor, adjacency: Tensor, edge_types: int = 0) -> None:
        self.mask = mask
        graphs, size = mask.shape
        row = torch.arange(1, graphs * size + 1).view(graphs, size)
        # One more column, so that a batch of graphs without nodes has one.
        self.places = torch.cat([torch.where(mask, row, 0), row.new_zeros(graphs, 1)], 1)
        place = torch.arange(size)
        adjacent = adjacency.bool()
        others = (place.unsqueeze(1) != place) & mask.unsqueeze(1)
        self._edges = ((adjacent | adjacent.transpose(1, 2)) & others).float()
        self._by_label = self._edges
        if edge_types:
            label = adjacency.long()
            label = torch.maximum(label, label.transpose(1, 2)).unsqueeze(3)
            known = label == torch.arange(1, edge_types + 1)
            self._by_label = (self._edges.unsqueeze(3) * known).flatten(2)

    @cached_property
    def degree(self) -> Tensor:
        """[B · n]."""
        return (self._edges @ self._edges.new_ones(self._edges.shape[2], 1)).flatten()

    @cached_property
    def edge_index(self) -> Tensor:
        """[2, E]."""
        size = self.mask.shape[1]
        graph, receiver, sender = (self._edges * self.mask.unsqueeze(2)).nonzero().unbind(1)
        return torch.stack([graph * size + sender, graph * size + receiver])

    def sum_neighbours(self, h: Tensor) -> Tensor:
        """[B · n, width] A·h."""
        graphs, _, senders = self._by_label.shape
        h = h.reshape(*h.shape[:-2], graphs, senders, h.shape[-1])
        return (self._by_label @ h).flatten(-3, -2)


class FlatGraphs(TracedGraphs):
    """Graphs stored one after the other, without padding.

    Args:
        nodes: [N], of any values.
        edge_index: [2, E] in any order, each edge in both directions. Self-loops are ignored.
        ptr: [B + 1] where graphs begin and end.
        edge_labels: [E], if the model reads them; edges with others are ignored.
        edge_types: the number of edge labels.
    """

    def __init__(
        self,
        nodes: Tensor,
        edge_index: Tensor,
        ptr: Tensor,
        edge_labels: Tensor | None = None,
        edge_types: int = 1,
    ) -> None:
        sizes = ptr[1:] - ptr[:-1]
        largest = _at_least_one(sizes)
        rank = torch.arange(largest)
        row = ptr[:-1].unsqueeze(1) + rank + 1
        self.places = torch.where(rank < sizes.unsqueeze(1), row, 0)

        count = nodes.shape[0]
        source, target = edge_index[0], edge_index[1]
        ignored = source == target
        if edge_labels is not None:
            ignored = ignored | (edge_labels < 0) | (edge_labels >= edge_types)
        # Sums of floats depend on their order, so edges are sorted; those to ignore come last.
        pairs = count * count
        keys, order = (target * count + source + ignored.long() * pairs).sort()
        self._kept, self._order, self._edges = keys < pairs, order, edge_index
        self._degree = torch.zeros_like(nodes).scatter_add(0, target, (~ignored).long())
        end = self._degree.cumsum(0)
        begin = end - self._degree
        sender = source if edge_labels is None else source * edge_types + edge_labels
        sender = torch.where(ignored, 0, sender).index_select(0, order)
        columns = _COLUMNS + _COLUMNS_PER_EDGE * (source.shape[0] // (count + 1))
        self._columns = _at_least_one(self._degree.clamp(max=columns))
        place = begin + torch.arange(self._columns).unsqueeze(1)
        place = torch.where(place < end, place + 1, 0).flatten()
        # [columns · N] 1 + the sender of each message; 0 beyond the last one.
        self._table = torch.cat([sender.new_zeros(1), sender + 1]).index_select(0, place)
        # Nodes with more neighbours are rare: the rest is added one by one.
        receiver = target.index_select(0, order)
        number = torch.arange(source.shape[0]) - begin.index_select(0, receiver)
        rest = (self._kept & (number >= self._columns)).nonzero().squeeze(1)
        self._rest = sender.index_select(0, rest), receiver.index_select(0, rest)

    @property
    def degree(self) -> Tensor:
        """[N]."""
        return self._degree.float()

    @cached_property
    def edge_index(self) -> Tensor:
        """[2, E]."""
        kept = self._order.index_select(0, self._kept.nonzero().squeeze(1))
        return self._edges.index_select(1, kept)

    def sum_neighbours(self, h: Tensor) -> Tensor:
        """[N, width]."""
        *members, _, width = h.shape
        nodes = self._degree.shape[0]
        rows = pad(h, (0, 0, 1, 0)).index_select(-2, self._table)
        rows = rows.view(*members, self._columns, nodes * width)
        found = (rows.new_ones(1, self._columns) @ rows).view(*members, nodes, width)
        sender, receiver = self._rest
        rest = h.index_select(-2, sender)
        return found.scatter_add(-2, receiver.unsqueeze(1).expand_as(rest), rest)


def _at_least_one(values: Tensor) -> int:
    """The largest value as a size, at least 1."""
    # Not int(...), which the exporter would take for a constant.
    size: int = torch.cat([values, values.new_ones(1)]).amax(0).item()  # type: ignore[assignment]
    torch._check(size >= 1)  # type: ignore[no-untyped-call]
    return size


def ascending_order(key: Tensor) -> Tensor:
    """The positions of the keys along the last axis in ascending order; equal keys by position.

    The first sort only numbers the distinct values, and the second sorts keys without ties. These
    stay below n², which fits in the 32 bits that some runtimes use up to 46,340 positions.
    """
    values, position = key.sort()
    before = torch.cat([values[..., :1], values[..., :-1]], -1)
    number = (values != before).long().cumsum(-1) * key.shape[-1]
    return (number + position).sort().values - number


def _select(rows: Tensor, index: Tensor) -> Tensor:
    """[k, ·] rows [n, ·] at index [k]; of each member its own [S, n, ·] at [S, k]."""
    if index.dim() == 1:
        return rows.index_select(0, index)
    members, size = rows.shape[:2]
    first = torch.arange(members).unsqueeze(1) * size
    found = rows.flatten(0, 1).index_select(0, (first + index).flatten())
    return found.view(*index.shape, rows.shape[-1])
