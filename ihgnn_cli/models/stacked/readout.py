"""Readout from nodes to a graph: sort and concatenate (the paper), or sum (its ablation).

The nodes of a graph are sorted by the last column of H, a continuous version of the 1-WL label,
padded with zero rows up to m, the size of the largest graph, and concatenated to one vector of
m · width entries. The classifier computes its hidden layer from this vector.
"""

import torch
from torch import Tensor, nn

from ihgnn_cli.data.batching.batch import Batch
from ihgnn_cli.models.settings import IHGNNSettings, SortKey, SortOrder
from ihgnn_cli.models.stacked.kernels import (
    by_block,
    graph_sum,
    graph_sum_back,
    placed,
    placed_back,
    sorted_slots,
)
from ihgnn_cli.models.stacked.mlp import Generators, Tape, gradient_of, linear_weight, transposed


class SortConcat(nn.Module):
    """The sorted and concatenated nodes, times the classifier's first matrix.

    The product is computed by blocks of ranks, and in each block only for the graphs that reach
    it. The zero rows up to m are never built, so memory grows with the number of nodes.
    """

    def __init__(
        self, generators: Generators, width: int, max_nodes: int, settings: IHGNNSettings
    ) -> None:
        super().__init__()
        self.weight = linear_weight(generators, max_nodes * width, settings.hidden)
        self.key = settings.sort_key
        self.descending = settings.sort_order == SortOrder.DESCENDING
        self.relu = settings.readout_relu
        self.max_nodes = max_nodes
        self._reached = 0

    def slots(self, h: Tensor, last_layer: Tensor, batch: Batch) -> Tensor:
        """[n] the place of each node of the batch in the readout."""
        return sorted_slots(self.sort_key(h, last_layer), batch.layout)

    def sort_key(self, h: Tensor, last_layer: Tensor) -> Tensor:
        """[S, R] the key that the nodes are sorted by, ascending."""
        key = (h if self.key == SortKey.AGGREGATED else last_layer)[..., -1]
        return -key if self.descending else key

    def forward(
        self, h: Tensor, last_layer: Tensor, bias: Tensor, batch: Batch, tape: Tape | None
    ) -> Tensor:
        """[S, B, hidden] from the aggregate and H^(K), plus the bias [S, 1, hidden]."""
        slot = self.slots(h, last_layer, batch)
        places = placed(h, slot, batch.layout)
        if self.relu:
            places.relu_()
        members, width = h.shape[0], h.shape[-1]
        out = bias.repeat(1, batch.truth.shape[1], 1)
        for block, part in by_block(places, batch.layout, members):
            matrix = self.weight.narrow(1, block.low * width, block.ranks * width)
            out.narrow(1, 0, block.graphs).baddbmm_(part, matrix)
        if tape is not None:
            tape.append((slot, places))
        return out

    def backward(self, gradient: Tensor, batch: Batch, tape: Tape) -> Tensor:
        """The gradient to h; the sort order contributes none."""
        slot, places = tape.pop()
        members, width = len(gradient), places.shape[-1]
        to_weight = self._clear_gradient(batch.layout.blocks[-1].high * width)
        to_places = torch.empty_like(places)
        to_places[-1] = 0
        parts = zip(
            by_block(places, batch.layout, members),
            by_block(to_places, batch.layout, members),
            strict=True,
        )
        for (block, part), (_, to_part) in parts:
            received = gradient.narrow(1, 0, block.graphs)
            columns = block.low * width, block.ranks * width
            torch.bmm(transposed(part), received, out=to_weight.narrow(1, *columns))
            torch.bmm(received, transposed(self.weight.narrow(1, *columns)), out=to_part)
        if self.relu:
            to_places *= places > 0
        return placed_back(to_places, slot, batch.layout).view(*batch.size.shape, width)

    def _clear_gradient(self, reached: int) -> Tensor:
        """The gradient of the matrix, 0 beyond the ranks of this batch.

        The matrix can be the largest tensor in memory, so only the part that the previous step
        filled is cleared.
        """
        gradient = gradient_of(self.weight)
        if self._reached > reached:
            gradient[:, reached : self._reached] = 0
        self._reached = reached
        return gradient


class SumNodes(nn.Module):
    """The sum of a graph's nodes, times the classifier's first matrix (ablation w/o-Concat)."""

    def __init__(self, generators: Generators, width: int, settings: IHGNNSettings) -> None:
        super().__init__()
        self.weight = linear_weight(generators, width, settings.hidden)
        self.relu = settings.readout_relu

    def forward(
        self,
        h: Tensor,
        last_layer: Tensor,  # noqa: ARG002
        bias: Tensor,
        batch: Batch,
        tape: Tape | None,
    ) -> Tensor:
        """[S, B, hidden]."""
        summed = graph_sum(h, batch)
        if self.relu:
            summed.relu_()
        if tape is not None:
            tape.append(summed)
        return torch.baddbmm(bias, summed, self.weight)

    def backward(self, gradient: Tensor, batch: Batch, tape: Tape) -> Tensor:
        """The gradient to h."""
        summed = tape.pop()
        torch.bmm(transposed(summed), gradient, out=gradient_of(self.weight))
        to_summed = torch.bmm(gradient, transposed(self.weight))
        if self.relu:
            to_summed *= summed > 0
        return graph_sum_back(to_summed, batch)
