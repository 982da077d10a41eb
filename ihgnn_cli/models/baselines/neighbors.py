"""Sums over neighbours, A·h, without a row an edge.

Gathering a row for each edge and adding these up takes ten times as long on a CPU, and E·width
numbers, where a step has many edges a node. A is symmetric, so its product with the gradients is
the same operation.
"""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.autograd import Function

from ihgnn_cli.models.graphs import Graphs


class Neighbors:
    """The adjacency of a step's graphs, made once a forward pass."""

    def __init__(self, graphs: Graphs) -> None:
        self._senders, receivers = graphs.edge_index
        nodes = torch.arange(len(graphs.x), device=receivers.device)
        # Edges stand in the order of their receivers.
        self._starts = torch.searchsorted(receivers.contiguous(), nodes)

    def sum(self, h: Tensor) -> Tensor:
        """[n, width] A·h: for each node the sum of h [n, width] over its neighbours."""
        summed: Tensor = _NeighborSum.apply(h, self._senders, self._starts)  # type: ignore[no-untyped-call]
        return summed


class _NeighborSum(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, senders: Tensor, starts: Tensor) -> Tensor:
        ctx.save_for_backward(senders, starts)
        return F.embedding_bag(senders, h.contiguous(), starts, mode="sum")

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        senders, starts = ctx.saved_tensors
        summed: Tensor = _NeighborSum.apply(gradients[0], senders, starts)  # type: ignore[no-untyped-call]
        return summed, None, None
