"""Sums over the nodes at each distance, used by several methods for heterophily.

Distance is symmetric, so the gradient of such a sum is a sum of the same kind. Both take one pass
over the pairs and store no row per pair (torch's `embedding_bag`). On graphs with many edges that
is about thirty times as fast as gathering and adding rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from scipy.sparse import csr_array, eye_array
from torch import Tensor

from ihgnn_cli.models.graphs import Derived, Graphs
from ihgnn_cli.models.traced import TracedGraphs


@dataclass(frozen=True, eq=False)
class Hops:
    """The pairs of nodes at the distances 1 to K, in order of receiver, then of distance."""

    sender: Tensor
    """[P] int32."""
    slot: Tensor
    """[P] int32: sender · K + distance - 1."""
    starts: Tensor
    """[n · K] int32: where the pairs of each receiver and distance begin."""
    counts: Tensor
    """[n, K] number of nodes at each distance, as float."""
    weight: Tensor
    """[P] weight of each pair: (counts_i · counts_j)^(-1/2), at the pair's distance."""

    def sums(self, h: Tensor) -> Tensor:
        """[n, K, width] the sum of h [n, width] over the nodes at each distance of each node."""
        return self.weighted(h, None)

    def sum(self, h: Tensor) -> Tensor:
        """[n, width] the same if all pairs are at distance 1: A·h."""
        return self.weighted(h, None).squeeze(1)

    def normalized(self, h: Tensor) -> Tensor:
        """[n, K, width] from h [n, width]: D_k^(-1/2) A_k D_k^(-1/2) h for each distance k."""
        return self.weighted(h, self.weight)

    def weighted(self, h: Tensor, weight: Tensor | None) -> Tensor:
        """[n, K, width] the sums with a weight [P] per pair, the same in both directions."""
        nodes, distances = self.counts.shape
        out: Tensor = _Sums.apply(  # type: ignore[no-untyped-call]
            h, self.sender, self.slot, self.starts, weight, distances
        )
        return out.view(nodes, distances, -1)


@dataclass(frozen=True, eq=False)
class TracedHops:
    """The same sums as `Hops` has, in operations that export to ONNX."""

    spreads: Sequence[Callable[[Tensor], Tensor]]
    """A_k·h for each distance k."""
    counts: Tensor
    """[n, K]."""
    scale: Tensor
    """[n, K] the weight of a pair at a distance is the product of its nodes' scales."""

    def sums(self, h: Tensor) -> Tensor:
        """[n, K, width]."""
        return torch.stack([spread(h) for spread in self.spreads], dim=1)

    def sum(self, h: Tensor) -> Tensor:
        """[n, width]."""
        return self.spreads[0](h)

    def normalized(self, h: Tensor) -> Tensor:
        """[n, K, width]."""
        scales = zip(self.spreads, torch.split(self.scale, 1, dim=1), strict=True)
        return torch.stack([scale * spread(scale * h) for spread, scale in scales], dim=1)


def neighbours(graphs: Graphs, scale: Tensor | None = None) -> Hops | TracedHops:
    """The edges: distance 1 only.

    `normalized` multiplies an edge by the scales [n] of its nodes; by default degree^(-1/2).
    """
    inverse = graphs.degree.clamp(min=1).rsqrt() if scale is None else scale
    if isinstance(graphs, TracedGraphs):
        return TracedHops([graphs.sum_neighbours], graphs.degree.unsqueeze(1), inverse.unsqueeze(1))
    sender, receiver = graphs.edge_index
    ends = graphs.degree.cumsum(0, dtype=torch.float64).int()
    short = sender.int()
    return Hops(
        sender=short,
        slot=short,
        starts=ends - graphs.degree.int(),
        counts=graphs.degree.unsqueeze(1),
        weight=inverse[sender] * inverse[receiver],
    )


def within(graphs: Graphs, distance: int) -> Hops:
    """All pairs of different nodes up to a shortest-path distance, computed once per graph."""
    found = graphs.derived(
        f"hops-{distance}", lambda edge_index, nodes: pairs_within(edge_index, nodes, distance)
    )
    senders, hops, counts, weights = zip(*found, strict=True)
    sender = torch.cat(
        [each + start for each, start in zip(senders, graphs.node_ptr, strict=False)]
    )
    count = torch.cat(counts)
    ends = count.view(-1).cumsum(0, dtype=torch.int32)
    return Hops(
        sender=sender,
        slot=sender * distance + torch.cat(hops),
        starts=ends - count.view(-1),
        counts=count.to(graphs.x.dtype),
        weight=torch.cat(weights),
    )


def pairs_within(edge_index: Tensor, nodes: int, distance: int) -> Derived:
    """The pairs of one graph's nodes at distances from 1 to `distance`.

    Memory is proportional to the number of pairs: the nodes at distance k + 1 are the new
    neighbours of those at distance k, computed as a product of sparse matrices.

    Returns:
        Sender [P], distance - 1 [P], counts [nodes, distance] and normalized weight [P], with the
        pairs in order of receiver, then distance, then sender.
    """
    sender, receiver = edge_index.numpy()
    ones = np.ones(len(sender), dtype=np.int32)
    adjacency = csr_array((ones, (receiver, sender)), shape=(nodes, nodes))
    front, seen = adjacency, (adjacency + eye_array(nodes, dtype=np.int32)).astype(bool)
    pieces = []
    for at in range(distance):
        rows, columns = front.nonzero()
        pieces.append((rows, np.full(len(rows), at), columns))
        reached = (front @ adjacency).astype(bool) > seen
        front, seen = reached.astype(np.int32), seen + reached
    row, hop, column = (np.concatenate(each) for each in zip(*pieces, strict=True))
    order = np.lexsort((column, hop, row))
    row, hop, column = row[order], hop[order], column[order]
    counts = np.bincount(row * distance + hop, minlength=nodes * distance)
    inverse = 1 / np.sqrt(np.maximum(counts, 1))
    weight = inverse[row * distance + hop] * inverse[column * distance + hop]
    return (
        torch.from_numpy(column.astype(np.int32)),
        torch.from_numpy(hop.astype(np.int32)),
        torch.from_numpy(counts.astype(np.int32).reshape(nodes, distance)),
        torch.from_numpy(weight.astype(np.float32)),
    )


class _Sums(torch.autograd.Function):
    """[n · K, width] weighted sums over the pairs of each slot."""

    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any,
        h: Tensor,
        sender: Tensor,
        slot: Tensor,
        starts: Tensor,
        weight: Tensor | None,
        distances: int,
    ) -> Tensor:
        ctx.save_for_backward(slot, starts[::distances].contiguous(), weight)
        return F.embedding_bag(
            sender, h.contiguous(), starts, mode="sum", per_sample_weights=weight
        )

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # What j receives from i at a distance, i receives from j at the same distance.
        slot, starts, weight = ctx.saved_tensors
        back = F.embedding_bag(
            slot, grad.contiguous(), starts, mode="sum", per_sample_weights=weight
        )
        return back, None, None, None, None, None
