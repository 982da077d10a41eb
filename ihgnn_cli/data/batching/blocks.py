"""The readout in blocks of ranks, so that graphs of different sizes need little padding.

The graphs of a batch are in descending order of size, so the ones that have a node of a given rank
come first. A block is a range of ranks and the graphs that reach it. Together, the blocks hold
every node, with few of the zero rows that would pad each graph to m.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import offsets

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
    def slots(self) -> int:
        """Places for nodes per member."""
        return self.graphs * self.ranks


def rank_blocks(sizes: Sequence[int], members: int = 1) -> tuple[Block, ...]:
    """Cut the ranks into blocks.

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


def slots(
    blocks: Sequence[tuple[Block, ...]],
    members: int,
    size: NDArray[np.int64],
    at: NDArray[np.int64],
) -> NDArray[np.int64]:
    """[n] the place of each node; the nodes of a graph are in order of rank.

    Args:
        blocks: the blocks of each step.
        members: S.
        size: [G] nodes per graph; graphs are ordered by step.
        at: [3, G] step, member, and position in the member of each graph.
    """
    # One line per block, and one per step for nodes beyond its ranks: number of ranks, the place of
    # member 0's first node, and the stride of a rank, a graph and a member.
    lines: list[tuple[int, int, int, int, int]] = []
    for of_step in blocks:
        begin = 0
        for block in of_step:
            lines.append((block.ranks, begin - block.low, 1, block.ranks, block.slots))
            begin += block.slots * members
        lines.append((1, begin, 0, 0, 0))
    ranks, base, per_rank, per_graph, per_member = np.array(lines).T
    line_of = np.repeat(np.arange(len(lines)), ranks)
    reach = np.array([of_step[-1].high for of_step in blocks])
    first_line = offsets(reach + 1)[:-1]

    step, member, number = at
    rank = np.arange(size.sum()) - np.repeat(offsets(size)[:-1], size)
    capped = np.minimum(rank, np.repeat(reach[step], size))
    line = line_of[np.repeat(first_line[step], size) + capped]
    place: NDArray[np.int64] = base[line]
    place += per_rank[line] * rank
    place += per_graph[line] * np.repeat(number, size)
    place += per_member[line] * np.repeat(member, size)
    return place
