"""What a model computes on: graphs of the members of a stack, as index lists.

Each member of a stack has its own graphs. The members' rows (see `wl_rows`) stand one below the
other, padded to the longest member: row i of member s is the flat row s * R + i. Padding rows have
size 0 and no neighbours. Within a member, graphs are in descending order of size, so that the
graphs that reach a given rank of the readout come first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.batching.blocks import Block

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReadoutLayout:
    """Where the sorted nodes of each graph go: S members, r real rows, n nodes in all."""

    blocks: tuple[Block, ...]
    """The readout by ranks; places are numbered block by block, member by member, graph by graph,
    rank by rank. The place after the last takes the nodes beyond m."""
    slot: Tensor
    """[n] the place of each node when graph by graph the nodes are sorted."""
    row: Tensor
    """[r] the real rows among the flat ones, ascending: graph by graph."""
    graph: Tensor
    """[r] the flat graph of each, ascending."""
    major: Tensor
    """[r] the same in the upper half of the bits: what nodes are sorted by first."""
    size: Tensor | None
    """[r] the nodes of each; `None`, with `node` and `within`, where all are 1."""
    node: Tensor | None
    """[n] the position among the r rows of each node's row, ascending."""
    node_row: Tensor
    """[n] the flat row of each node."""
    within: Tensor | None
    """[n] the number of the node in its row."""
    node_ptr: Tensor
    """[S * R + 1] the nodes of each flat row."""
    slots: int
    """Places of one member."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Graphs of S members, B each (padded), with R rows each (padded)."""

    label: Tensor
    """[S * R] for each flat row s * (L + 1) + its label, where label L is unknown or padding."""
    label_share: Tensor
    """[S, 1, L + 1] the share of the member's nodes that have each label."""
    label_rows: Tensor
    """[S * R] the flat rows in the order of their labels, member by member."""
    label_ptr: Tensor
    """[S * (L + 1) + 1] where each label's flat rows begin in `label_rows`."""
    attributes: Tensor | None
    """[S, R, *]"""
    size: Tensor
    """[S, R] nodes of each row, as float; 0 for padding."""
    share: Tensor
    """[S, 1, R] the share of the member's nodes that are in each row."""
    unbiased: Tensor
    """[S, 1, 1] n / (n - 1) for the n nodes of each member; 1 where there are fewer than 2."""
    filled: Tensor
    """[S, 1, 1] 1, and 0 for a member without nodes."""
    neighbor_ptr: Tensor
    """[S * R + 1]"""
    neighbors: Tensor
    """[D] flat rows."""
    edge_weight: Tensor | None
    """[D] what a node of the row receives of that neighbour; `None` where all is 1."""
    edge_weight_back: Tensor | None
    """[D] what it sends to a node of that neighbour."""
    layout: ReadoutLayout
    graph: Positions
    """[S, B] position in the data set, in the members' order; -1 for padding. On the CPU."""
    origin: Positions
    """[S, B] where the graph stood in what was asked for; -1 for padding. On the CPU."""
    nodes: Positions
    """[S, B] nodes of each graph; 0 for padding. On the CPU."""
    pairs: Positions
    """[S, B] adjacent pairs of rows of each graph; 0 for padding. On the CPU."""
    memo: dict[tuple[str, int], Any]
    """What models have derived from graphs, by what it is and the graph's position: the store's."""
    truth: Tensor
    """[S, B] class; 0 for padding."""
    graph_weight: Tensor
    """[S, B] 1, and 0 for padding."""
    graph_share: Tensor
    """[S, B] 1 / the member's graphs, and 0 for padding."""
    graph_ptr: Tensor
    """[S * B + 1] where each flat graph begins in `layout.row`."""

    @property
    def members(self) -> int:
        """S."""
        return self.size.shape[0]
