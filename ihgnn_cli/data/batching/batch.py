"""A batch of graphs for a stack of models, as index arrays.

Each member of a stack has its own graphs. The rows of all members (see `wl_rows`) are concatenated
and padded to the longest member: row i of member s is the flat row s * R + i. Padding rows have
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
    """Where the sorted nodes of each graph go: S members, r rows (not padding), n nodes."""

    blocks: tuple[Block, ...]
    """The readout by ranks. Places are numbered by block, then member, then graph, then rank; nodes
    beyond m go to one extra place at the end."""
    slot: Tensor
    """[n] the place of each node, after the nodes of each graph are sorted."""
    row: Tensor
    """[r] the flat rows that are not padding, ascending (so by graph)."""
    graph: Tensor
    """[r] the flat graph of each of these rows, ascending."""
    major: Tensor
    """[r] `graph` in the upper 32 bits: the primary sort key of nodes."""
    size: Tensor | None
    """[r] nodes per row; `None`, like `node` and `within`, if all are 1."""
    node: Tensor | None
    """[n] the position of each node's row among the r rows, ascending."""
    node_row: Tensor
    """[n] the flat row of each node."""
    within: Tensor | None
    """[n] the position of the node in its row."""
    node_ptr: Tensor
    """[S * R + 1] the nodes of each flat row."""
    slots: int
    """Places per member."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Graphs of S members, padded to B graphs and R rows each."""

    label: Tensor
    """[S * R] s * (L + 1) + label for each flat row; label L means unknown or padding."""
    label_share: Tensor
    """[S, 1, L + 1] share of each label among the member's nodes."""
    label_rows: Tensor
    """[S * R] the flat rows sorted by member and label."""
    label_ptr: Tensor
    """[S * (L + 1) + 1] where each label's flat rows begin in `label_rows`."""
    attributes: Tensor | None
    """[S, R, *]"""
    size: Tensor
    """[S, R] nodes per row, as float; 0 for padding."""
    share: Tensor
    """[S, 1, R] share of each row among the member's nodes."""
    unbiased: Tensor
    """[S, 1, 1] n / (n - 1) for the n nodes of each member; 1 if there are fewer than 2."""
    filled: Tensor
    """[S, 1, 1] 1, or 0 for a member without nodes."""
    neighbor_ptr: Tensor
    """[S * R * T + 1] where the neighbours of each flat row and edge label begin; T is the number
    of edge labels that are told apart, 1 if they are not used."""
    neighbors: Tensor
    """[D] flat rows."""
    neighbors_back: Tensor
    """[D] T * flat row + edge label."""
    edge_weight: Tensor | None
    """[D] weight of the neighbour for a node of the row; `None` if all are 1."""
    edge_weight_back: Tensor | None
    """[D] weight in the opposite direction."""
    layout: ReadoutLayout
    graph: Positions
    """[S, B] position in the data set; -1 for padding. On the CPU."""
    origin: Positions
    """[S, B] position in the requested order; -1 for padding. On the CPU."""
    nodes: Positions
    """[S, B] nodes per graph; 0 for padding. On the CPU."""
    pairs: Positions
    """[S, B] adjacent pairs of rows per graph; 0 for padding. On the CPU."""
    memo: dict[tuple[str, int], Any]
    """What models derived from graphs, by name and position; shared by all batches of a store."""
    truth: Tensor
    """[S, B] class; 0 for padding."""
    graph_weight: Tensor
    """[S, B] 1, or 0 for padding."""
    graph_share: Tensor
    """[S, B] 1 / number of the member's graphs, or 0 for padding."""
    graph_ptr: Tensor
    """[S * B + 1] where each flat graph begins in `layout.row`."""

    @property
    def edge_types(self) -> int:
        """T, the number of edge labels that are told apart."""
        return (len(self.neighbor_ptr) - 1) // self.size.numel()

    @property
    def members(self) -> int:
        """S, the number of members."""
        return self.size.shape[0]
