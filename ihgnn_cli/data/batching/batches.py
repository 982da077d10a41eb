"""Batches of graphs for a stack of models.

Each member of a stack has its own graphs. Within a member they are in descending order of size, so
that the graphs that reach a given rank of the readout come first. `Batch` says which graphs a batch
has; `StackRows` are the index arrays that IHGNN computes with. The rows of all members (nodes or
1-WL classes, see `wl_rows`) are concatenated and padded to the longest member: row i of member s is
the flat row s * R + i. Padding rows have no nodes and no neighbours.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.batching.wl_rows import Rows, compact_rows, node_rows
from ihgnn_cli.data.dataset import GraphDataset, offsets, ranges
from ihgnn_cli.data.features import Features

Positions = NDArray[np.int64]
# Overhead of a block, in places of the readout (measured on two cores).
BLOCK_COST = 64


@dataclass(frozen=True)
class Block:
    """Ranks `low` to `high` (exclusive) of the readout, for a member's first `graphs` graphs."""

    low: int
    high: int
    graphs: int

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.high - self.low

    @property
    def places(self) -> int:
        """Places for nodes per member."""
        return self.graphs * self.ranks


@dataclass(frozen=True, eq=False)
class StackRows:
    """The index arrays of a batch with S members, B graphs, R rows and n nodes (not padding)."""

    label: Tensor
    """[S * R] member * (L + 1) + label of each flat row; label L means unknown or padding."""
    label_rows: Tensor
    """[S * R] the flat rows, sorted by member and label."""
    label_ptr: Tensor
    """[S * (L + 1) + 1] where each label's flat rows begin in `label_rows`."""
    label_share: Tensor
    """[S, 1, L + 1] share of each label among the member's nodes."""
    attributes: Tensor | None
    """[S, R, *]"""
    share: Tensor
    """[S, 1, R] share of each row among the member's nodes; 0 for padding."""
    unbiased: Tensor
    """[S, 1, 1] n / (n - 1) for the n nodes of each member; 1 if there are fewer than 2."""
    present: Tensor | None
    """[S, 1, 1] 1, or 0 for a member without nodes; `None` if all members have some."""
    columns: Tensor
    """[D] row * (T + 1) for the row itself, then row * (T + 1) + 1 + edge label for its
    neighbours; T is the number of edge labels that are told apart, 1 if they are not used."""
    column_ptr: Tensor
    """[S * R + 1] where the columns of each flat row begin."""
    weight: Tensor | None
    """[D] weight of the column for a node of the row; `None` if all are 1."""
    receivers: Tensor
    """[D] the flat rows that read each column: the same pairs in the opposite direction."""
    receiver_ptr: Tensor
    """[S * R * (T + 1) + 1] where the receivers of each column begin."""
    receiver_weight: Tensor | None
    """[D] weight in the opposite direction."""
    node_row: Tensor
    """[n] the flat row of each node, graph by graph."""
    node_ptr: Tensor
    """[S * R + 1] the nodes of each flat row."""
    graph_key: Tensor
    """[n] the flat graph of each node in the upper 32 bits: the primary sort key."""
    graph_ptr: Tensor
    """[S * B + 1] where the nodes of each flat graph begin."""
    place: Tensor
    """[n] the place in the readout, after the nodes of each graph are sorted. Places are numbered
    by block, then member, then graph, then rank; nodes beyond m go to one more at the end."""
    places: int
    """Number of places, without that last one."""
    blocks: tuple[Block, ...]
    """The readout by ranks."""
    graphs: int
    """B."""

    @property
    def attribute_count(self) -> int:
        """Columns of `attributes`."""
        return 0 if self.attributes is None else self.attributes.shape[-1]


@dataclass(frozen=True, eq=False)
class Batch:
    """Graphs of S members, padded to B graphs each; positions and sizes are on the CPU."""

    store: "GraphStore"
    graph: Positions
    """[S, B] position in the data set; -1 for padding."""
    origin: Positions
    """[S, B] position in the requested order; -1 for padding."""
    sizes: Positions
    """[S, B] nodes per graph; 0 for padding."""
    truth: Tensor
    """[S, B] class; 0 for padding."""
    graph_share: Tensor
    """[S, B] 1 / number of the member's graphs, or 0 for padding."""

    @cached_property
    def rows(self) -> StackRows:
        """The index arrays, made when a model first asks for them."""
        return self.store.rows_of(self)

    @property
    def members(self) -> int:
        """S, the number of members."""
        return len(self.graph)

    @property
    def reach(self) -> list[int]:
        """Nodes of the largest graph of each member; 0 without graphs."""
        largest: list[int] = self.sizes.max(axis=1).tolist()
        return largest


class GraphStore:
    """A data set prepared for batching.

    Args:
        dataset: label -1 means unknown, which is encoded as the zero vector.
        features: node features of the model.
        max_nodes: m; nodes of rank m and above are left out of the readout.
        rounds: message-passing rounds of the model; `None` to keep one row per node.
        device: device of the batches.
    """

    def __init__(
        self,
        dataset: GraphDataset,
        features: Features,
        max_nodes: int,
        rounds: int | None,
        device: torch.device,
    ) -> None:
        with_attributes = features != Features.LABELS
        self.rows: Rows = (
            node_rows(dataset)
            if rounds is None
            else compact_rows(dataset, rounds, attributes=with_attributes)
        )
        self.max_nodes, self.device = max_nodes, device
        self.graph_class = dataset.graph_class.astype(np.int64)
        self.classes = len(dataset.class_values)
        self.labels = 0 if features == Features.ATTRIBUTES else len(dataset.label_values)
        label = dataset.node_label[self.rows.first_node].astype(np.int64)
        known = (label >= 0) & (label < self.labels)
        self.row_label = np.where(known, label, self.labels)
        """[rows] the label of each row; `labels` means unknown."""
        self.attributes: NDArray[np.float32] | None = None
        """[rows, *]"""
        if with_attributes:
            if dataset.node_attributes is None:
                raise ValueError("the data set has no node attributes")
            self.attributes = dataset.node_attributes[self.rows.first_node]
        self.cache: dict[tuple[str, int], Any] = {}
        """What models derived from graphs, by name and position."""
        self._pairs = _Pairs(self.rows, dataset.edge_types)
        self._cost = np.diff(self.rows.row_ptr) + np.diff(self.rows.edge_ptr)

    def cost(self, graphs: Positions) -> NDArray[np.int64]:
        """[len(graphs)] rows plus adjacent pairs of each graph, as an estimate of its cost."""
        return self._cost[graphs]

    def row_count(self, graphs: Positions) -> NDArray[np.int64]:
        """[len(graphs)] rows of each graph."""
        return np.diff(self.rows.row_ptr)[graphs]

    def batches(self, steps: Iterable[Sequence[Positions]]) -> Iterator[Batch]:
        """Make a batch for each step; a step lists the graphs of each member."""
        return map(self.batch, steps)

    def batch(self, graphs: Sequence[Positions]) -> Batch:
        """Make one batch from the positions of each member's graphs."""
        count = np.array([len(each) for each in graphs])
        asked = np.concatenate(graphs)
        member, first = np.repeat(np.arange(len(graphs)), count), offsets(count)[:-1]
        order = np.lexsort((-self.rows.graph_size[asked], member))  # stable
        number = np.arange(len(order)) - first[member]

        def wide(column: NDArray[Any], empty: int) -> NDArray[Any]:
            found = np.full((len(graphs), count.max()), empty, dtype=column.dtype)
            found[member, number] = column
            return found

        graph = asked[order]
        return Batch(
            store=self,
            graph=wide(graph, -1),
            origin=wide(order - first[member], -1),
            sizes=wide(self.rows.graph_size[graph], 0),
            **self._on_device(truth=wide(self.graph_class[graph], 0)),
            **self._on_device(graph_share=wide((1 / count[member]).astype(np.float32), 0)),
        )

    def rows_of(self, batch: Batch) -> StackRows:
        """The index arrays of a batch."""
        rows, pairs, members = self.rows, self._pairs, batch.members
        member, number = np.nonzero(batch.sizes)
        graph, size = batch.graph[member, number], batch.sizes[member, number]
        # The rows of each graph, and where they stand.
        row, row_ptr = ranges(rows.row_ptr, graph)
        of_member = np.bincount(member, np.diff(row_ptr), members).astype(np.int64)
        length = max(1, int(of_member.max()))
        shift = np.arange(members) * length - offsets(of_member)[:-1]
        at = np.arange(len(row)) + np.repeat(shift, of_member)
        first_row = row_ptr[:-1] + shift[member]

        def at_rows(column: NDArray[Any], empty: int = 0) -> NDArray[Any]:
            if len(row) == members * length:
                return column[row]  # no padding
            found = np.full((members * length, *column.shape[1:]), empty, dtype=column.dtype)
            found[at] = column[row]
            return found

        row_size, values = at_rows(rows.size), self.labels + 1
        label = at_rows(self.row_label, self.labels)
        label += np.repeat(np.arange(members) * values, length)
        # NumPy sorts 16-bit integers in linear time.
        small = label.astype(np.uint16) if members * values < 2**16 else label
        pair, pair_ptr = ranges(pairs.graph_ptr, graph)
        receivers = pairs.row[pair]
        receivers += np.repeat(first_row - rows.row_ptr[graph], np.diff(pair_ptr))
        blocks = rank_blocks(np.minimum(batch.sizes.max(0), self.max_nodes).tolist(), members)
        integers = self._on_device(
            label=label,
            label_rows=np.argsort(small, kind="stable"),
            label_ptr=offsets(np.bincount(label, minlength=members * values)),
            columns=receivers * pairs.width + pairs.column[pair],
            column_ptr=offsets(at_rows(pairs.per_row)),
            receivers=receivers,
            receiver_ptr=offsets(at_rows(pairs.per_column).reshape(-1)),
            node_row=at if pairs.single else np.repeat(at, rows.size[row]),
            node_ptr=offsets(row_size),
            graph_key=np.repeat((member * batch.graph.shape[1] + number) << 32, size),
            graph_ptr=offsets(batch.sizes.reshape(-1)),
            place=node_places(blocks, size, np.stack([member, number]), members),
        )
        nodes = batch.sizes.sum(1)[:, None, None]
        some = np.maximum(nodes, 1)
        of_label = np.bincount(label, row_size, members * values).reshape(members, 1, -1)
        attributes = self.attributes
        floats = self._on_device(
            label_share=of_label / some,
            share=row_size.reshape(members, 1, -1) / some,
            unbiased=some / np.maximum(some - 1, 1),
            present=None if nodes.all() else nodes > 0,
            weight=None if pairs.weight is None else pairs.weight[pair],
            receiver_weight=None if pairs.weight_back is None else pairs.weight_back[pair],
            attributes=None
            if attributes is None
            else at_rows(attributes).reshape(members, length, -1),
        )
        return StackRows(
            **integers,
            **floats,
            places=members * sum(block.places for block in blocks),
            blocks=blocks,
            graphs=batch.graph.shape[1],
        )

    def _on_device(self, **arrays: NDArray[Any] | None) -> dict[str, Any]:
        """Copy arrays to the device, in one piece: as integers if the first has integers."""
        exact = next(each for each in arrays.values() if each is not None).dtype.kind == "i"
        dtype = np.int64 if exact else np.float32
        given = {
            name: each.astype(dtype, copy=False)
            for name, each in arrays.items()
            if each is not None
        }
        found: dict[str, Any] = dict.fromkeys(arrays)
        if self.device.type == "cpu":
            return found | {name: torch.from_numpy(each) for name, each in given.items()}
        whole = torch.from_numpy(np.concatenate([each.reshape(-1) for each in given.values()]))
        moved = whole.to(self.device, non_blocking=True)
        parts = torch.split(moved, [each.size for each in given.values()])
        for (name, each), part in zip(given.items(), parts, strict=True):
            found[name] = part.view(each.shape)
        return found


class _Pairs:
    """Each row itself, then its neighbours by edge label: what a layer sums, and how."""

    def __init__(self, rows: Rows, types: int) -> None:
        count, degree = len(rows.size), np.diff(rows.neighbor_ptr)
        self.width = types + 1
        """Columns per row: the row itself, and one for each edge label."""
        self.single = bool((rows.size == 1).all())
        """Whether rows are nodes."""
        ptr = rows.neighbor_ptr + np.arange(count + 1)
        self.graph_ptr = ptr[rows.row_ptr]
        """[G + 1]"""
        own = ptr[:-1]

        def with_own(values: Positions | NDArray[np.float32], column: Any) -> Any:
            found = np.empty(ptr[-1], dtype=column.dtype)
            others = np.ones(ptr[-1], dtype=bool)
            others[own] = False
            found[own], found[others] = values, column
            return found

        edge_type = np.zeros_like(rows.neighbors) if rows.edge_type is None else rows.edge_type
        self.row: Positions = with_own(np.arange(count), rows.neighbors)
        """[D] the neighbour."""
        self.column: Positions = with_own(np.zeros(count, dtype=np.int64), 1 + edge_type)
        """[D] which of its columns is read."""
        one = np.ones(count, dtype=np.float32)
        self.weight, self.weight_back = (
            None if each is None else with_own(one, each)
            for each in (rows.weight, rows.weight_back)
        )
        self.per_row = degree + 1
        """[R]"""
        cell = np.repeat(np.arange(count), degree) * types + edge_type
        by_type = np.bincount(cell, minlength=count * types).reshape(-1, types)
        self.per_column = np.column_stack([np.ones(count, dtype=np.int64), by_type])
        """[R, T + 1]"""


def rank_blocks(sizes: Sequence[int], members: int = 1) -> tuple[Block, ...]:
    """Cut the ranks into blocks, which hold every node with few of the zero rows that pad to m.

    A new block begins where half of the graphs have ended, if that saves more than it costs.
    `sizes` descend; each is the largest of all members at that position.
    """
    negative = [-size for size in sizes]  # ascending, for bisect
    reach = sizes[0]
    blocks: list[Block] = []
    low = 0
    while low < reach:
        graphs = bisect_left(negative, -low)
        half = sizes[graphs // 2] if graphs // 2 < len(sizes) else 0  # at most half reach beyond
        high = half if half > low else reach
        left = bisect_left(negative, -high)
        if (reach - high) * (graphs - left) * members < BLOCK_COST:
            high = reach
        blocks.append(Block(low, high, graphs))
        low = high
    return tuple(blocks)


def node_places(
    blocks: Sequence[Block], size: Positions, at: Positions, members: int = 1
) -> Positions:
    """[n] the place of each node; the nodes of a graph are in order of rank.

    Args:
        blocks: of the batch.
        size: [G] nodes per graph.
        at: [2, G] the member of each graph, and its position in the member.
        members: S.
    """
    member, number = at
    graph = np.repeat(np.arange(len(size)), size)
    low, ranks, graphs = np.array([(each.low, each.ranks, each.graphs) for each in blocks]).T
    begin = offsets(graphs * ranks * members)
    rank = np.arange(len(graph)) - offsets(size)[:-1][graph]
    reach = blocks[-1].high
    block = np.repeat(np.arange(len(blocks)), ranks)[np.minimum(rank, reach - 1)]
    # By graph and block: where its rank 0 would be.
    first = begin[:-1] - low + (member[:, None] * graphs + number[:, None]) * ranks
    place: Positions = first[graph, block] + rank
    if len(rank) and size.max() > reach:
        place[rank >= reach] = begin[-1]
    return place
