"""The model's gathers and sums, over index lists that the batch provides.

Time is linear in rows and edges; memory is the result only. There are S members, R rows per
member and d columns.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from ihgnn_cli.data.batching.batch import Batch, ReadoutLayout
from ihgnn_cli.data.batching.blocks import Block


def neighbor_sum(h: Tensor, batch: Batch) -> Tensor:
    """A·H [S, R, T * d]: for each row, the sum of H over its node's neighbours, per edge label."""
    rows = h.reshape(-1, h.shape[-1])
    sums = _bag_sums(rows, batch.neighbors, batch.neighbor_ptr, batch.edge_weight)
    return sums.view(*h.shape[:2], -1)


def neighbor_sum_back(gradient: Tensor, batch: Batch) -> Tensor:
    """The gradient of A·H to H [S, R, d]: the same kind of sum, because A is symmetric."""
    types = batch.edge_types
    rows = gradient.reshape(-1, gradient.shape[-1] // types)
    ptr = batch.neighbor_ptr[::types].contiguous()
    sums = _bag_sums(rows, batch.neighbors_back, ptr, batch.edge_weight_back)
    return sums.view(*gradient.shape[:2], -1)


def label_lookup(table: Tensor, batch: Batch, out: Tensor) -> Tensor:
    """`out` [S, R, d], filled with each label's row of `table` [S, L + 1, d]."""
    torch.index_select(
        table.view(-1, table.shape[-1]), 0, batch.label, out=out.view(-1, out.shape[-1])
    )
    return out


def label_lookup_back(gradient: Tensor, batch: Batch) -> Tensor:
    """The gradient to the table: sums over the rows of each label."""
    rows = gradient.reshape(-1, gradient.shape[-1])
    sums = _bag_sums(rows, batch.label_rows, batch.label_ptr)
    return sums.view(gradient.shape[0], -1, gradient.shape[-1])


def graph_sum(h: Tensor, batch: Batch) -> Tensor:
    """[S, B, d] the sum of H over each graph's nodes."""
    weighted = (h * batch.size.unsqueeze(-1)).view(-1, h.shape[-1])
    sums = _bag_sums(weighted, batch.layout.row, batch.graph_ptr)
    return sums.view(*batch.truth.shape, h.shape[-1])


def graph_sum_back(gradient: Tensor, batch: Batch) -> Tensor:
    """The gradient to H [S, R, d]."""
    layout = batch.layout
    to_rows = gradient.reshape(-1, gradient.shape[-1]).index_select(0, layout.graph)
    to_h = gradient.new_zeros(batch.size.numel(), gradient.shape[-1])
    to_h.index_copy_(0, layout.row, to_rows)
    return to_h.view(*batch.size.shape, -1) * batch.size.unsqueeze(-1)


def sorted_slots(key: Tensor, layout: ReadoutLayout) -> Tensor:
    """[n] the place of each node in the readout when each graph's nodes ascend in `key` [S, R]."""
    # One sort by graph, then by key: the float's bits, changed so that they compare as integers.
    bits = (key.float().reshape(-1).index_select(0, layout.row) + 0.0).view(torch.int32)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    order = (layout.major + bits).argsort(stable=True)
    if layout.size is None or layout.node is None or layout.within is None:
        return torch.empty_like(order).index_copy_(0, order, layout.slot)
    sizes = layout.size.index_select(0, order)
    begin = torch.empty_like(order).index_copy_(0, order, sizes.cumsum(0) - sizes)
    return layout.slot.index_select(0, begin.index_select(0, layout.node) + layout.within)


def placed(h: Tensor, slot: Tensor, layout: ReadoutLayout) -> Tensor:
    """[slots + 1, d] the nodes in their places, 0 elsewhere; nodes beyond m go last."""
    places = h.new_zeros(h.shape[0] * layout.slots + 1, h.shape[-1])
    rows = h.reshape(-1, h.shape[-1]).index_select(0, layout.node_row)
    return places.index_copy_(0, slot, rows)


def placed_back(gradient: Tensor, slot: Tensor, layout: ReadoutLayout) -> Tensor:
    """[S * R, d] the gradient to the rows: the sum over each row's nodes."""
    return _bag_sums(gradient, slot, layout.node_ptr)


def by_block(places: Tensor, layout: ReadoutLayout, members: int) -> Iterator[tuple[Block, Tensor]]:
    """Each block of ranks with its slice of the places: [S, graphs, ranks * d]."""
    start = 0
    for block in layout.blocks:
        end = start + members * block.slots
        yield block, places[start:end].view(members, block.graphs, -1)
        start = end


def _bag_sums(rows: Tensor, members: Tensor, ptr: Tensor, weight: Tensor | None = None) -> Tensor:
    """[len(ptr) - 1, d] sum of the rows in each bag: members[ptr[i]:ptr[i + 1]]."""
    # torch.nn.functional.embedding_bag without its checks: mode 0 is the sum.
    sums: Tensor = torch.embedding_bag(rows, members, ptr, False, 0, False, weight, True)[0]
    return sums
