"""Make batches for a stack of models by index operations on the columns of a data set."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.batching.batch import Batch, Positions, ReadoutLayout
from ihgnn_cli.data.batching.blocks import rank_blocks, slots
from ihgnn_cli.data.batching.wl_rows import Rows, compact_rows, node_rows
from ihgnn_cli.data.dataset import GraphDataset, offsets, ranges
from ihgnn_cli.data.features import Features

__all__ = ["Batch", "GraphStore", "Positions"]

# Rows and adjacent pairs that are indexed at once (about 100 MB).
_GROUP_COST = 1_000_000


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
        self.max_nodes = max_nodes
        self.device = device
        self.graph_class = dataset.graph_class.astype(np.int64)
        self.classes = len(dataset.class_values)
        self.labels = 0 if features == Features.ATTRIBUTES else len(dataset.label_values)
        label = dataset.node_label[self.rows.first_node].astype(np.int64)
        known = (label >= 0) & (label < self.labels)
        self._label = np.where(known, label, self.labels)
        self._attributes: NDArray[np.float32] | None = None
        if with_attributes:
            if dataset.node_attributes is None:
                raise ValueError("the data set has no node attributes")
            self._attributes = dataset.node_attributes[self.rows.first_node]
        self._degree = _by_type(self.rows, dataset.edge_types)
        self._cost = np.diff(self.rows.row_ptr) + np.diff(self.rows.edge_ptr)
        self._single = len(self.rows.size) == dataset.num_nodes
        self._memo: dict[tuple[str, int], Any] = {}

    def cost(self, graphs: Positions) -> NDArray[np.int64]:
        """[len(graphs)] rows plus adjacent pairs of each graph, as an estimate of its cost."""
        return self._cost[graphs]

    def row_count(self, graphs: Positions) -> NDArray[np.int64]:
        """[len(graphs)] rows of each graph."""
        return np.diff(self.rows.row_ptr)[graphs]

    def batch(self, graphs: Sequence[Positions]) -> Batch:
        """Make one batch from the positions of each member's graphs."""
        return next(self.batches([graphs]))

    def batches(self, steps: Iterable[Sequence[Positions]]) -> Iterator[Batch]:
        """Make a batch for each step; a step lists the graphs of each member.

        Several steps are indexed at once, because for a single step the overhead of each array
        operation exceeds its running time.
        """
        group: list[Sequence[Positions]] = []
        taken = 0
        for step in steps:
            cost = sum(int(self.cost(each).sum()) for each in step)
            if group and taken + cost > _GROUP_COST:
                yield from self._group(_Grid(group, self.rows))
                group, taken = [], 0
            group.append(step)
            taken += cost
        if group:
            yield from self._group(_Grid(group, self.rows))

    def _group(self, grid: "_Grid") -> Iterator[Batch]:
        """Make the columns of all steps of a grid, and cut them into batches."""
        columns = {
            **self._row_columns(grid),
            **self._label_columns(grid),
            **self._edge_columns(grid),
            **self._graph_columns(grid),
        }
        members = grid.members
        on_cpu: _Columns = {
            "graph": grid.wide(grid.graph),
            "origin": grid.wide(grid.origin),
            "nodes": grid.wide(grid.size, empty=0),
            "pairs": grid.wide(np.diff(self.rows.edge_ptr)[grid.graph], empty=0),
        }
        cut: _Columns = {
            name: np.split(each, grid.graph_cuts[1:-1]) for name, each in on_cpu.items()
        }
        for step, layout in enumerate(self._layouts(grid)):
            yield Batch(
                layout=layout,
                memo=self._memo,
                **{name: parts[step].reshape(members, -1) for name, parts in cut.items()},
                **{name: column[step] for name, column in columns.items()},
            )

    def _row_columns(self, grid: "_Grid") -> "_Columns":
        size = grid.at_rows(self.rows.size).astype(np.float32)
        shape = (grid.members, -1)
        attributes = self._attributes
        return {
            "attributes": [None] * grid.steps
            if attributes is None
            else self._cut(grid.at_rows(attributes), grid.row_cuts, (*shape, attributes.shape[1])),
            "size": self._cut(size, grid.row_cuts, shape),
            "share": self._cut(
                size / np.repeat(grid.some, grid.cell_length), grid.row_cuts, (grid.members, 1, -1)
            ),
        }

    def _label_columns(self, grid: "_Grid") -> "_Columns":
        # Number the labels of each member and step; the last one is "unknown".
        values, cells = self.labels + 1, grid.steps * grid.members
        label = grid.at_rows(self._label - self.labels)
        label += np.repeat(np.arange(cells) * values + self.labels, grid.cell_length)
        rows_of = np.bincount(label, minlength=cells * values)
        nodes_of = np.bincount(label, grid.at_rows(self.rows.size), cells * values)
        share = nodes_of.reshape(cells, values) / grid.some[:, None]
        # NumPy sorts 16-bit integers in linear time.
        number = label.astype(np.uint16) if cells * values < 2**16 else label
        order = np.argsort(number, kind="stable")
        step = np.repeat(np.arange(grid.steps), np.diff(grid.row_cuts))
        cuts = grid.cell_cuts * values
        return {
            "label": self._cut(label - cuts[step], grid.row_cuts),
            "label_share": self._cut(share.astype(np.float32)[:, None], grid.cell_cuts),
            "label_rows": self._cut(order - grid.row_cuts[step], grid.row_cuts),
            "label_ptr": self._cut_offsets(rows_of, cuts),
        }

    def _edge_columns(self, grid: "_Grid") -> "_Columns":
        rows = self.rows
        edge, ptr = ranges(rows.edge_ptr, grid.graph)
        neighbors = rows.neighbors[edge]
        neighbors += np.repeat(grid.first_row - rows.row_ptr[grid.graph], np.diff(ptr))
        cuts, types = ptr[grid.step_ptr], self._degree.shape[1]
        parts = back = self._cut(neighbors, cuts)
        if rows.edge_type is not None:
            back = self._cut(neighbors * types + rows.edge_type[edge], cuts)
        weights = [
            [None] * grid.steps if each is None else self._cut(each[edge], cuts)
            for each in (rows.weight, rows.weight_back)
        ]
        return {
            "neighbors": parts,
            "neighbors_back": back,
            "neighbor_ptr": self._cut_offsets(
                grid.at_rows(self._degree).reshape(-1), grid.row_cuts * types
            ),
            "edge_weight": weights[0],
            "edge_weight_back": weights[1],
        }

    def _graph_columns(self, grid: "_Grid") -> "_Columns":
        nodes, cuts, shape = grid.nodes[:, None, None], grid.graph_cuts, (grid.members, -1)
        real = grid.wide(np.ones(len(grid.graph), dtype=np.float32), empty=0)
        share = grid.wide((1 / grid.count[grid.cell]).astype(np.float32), empty=0)
        rows_of = grid.wide(np.diff(grid.row_ptr), empty=0)
        unbiased = nodes / np.maximum(nodes - 1, 1)
        unbiased[nodes < 1] = 1
        return {
            "truth": self._cut(grid.wide(self.graph_class[grid.graph], empty=0), cuts, shape),
            "graph_weight": self._cut(real, cuts, shape),
            "graph_share": self._cut(share, cuts, shape),
            "graph_ptr": self._cut_offsets(rows_of, cuts),
            "unbiased": self._cut(unbiased.astype(np.float32), grid.cell_cuts),
            "filled": self._cut((nodes > 0).astype(np.float32), grid.cell_cuts),
        }

    def _layouts(self, grid: "_Grid") -> Iterator[ReadoutLayout]:
        largest = np.minimum(grid.largest(), self.max_nodes).tolist()
        blocks = [rank_blocks(sizes, grid.members) for sizes in largest]
        slot = slots(
            blocks, grid.members, grid.size, np.stack([grid.step, grid.member, grid.number])
        )
        real_cuts, node_cuts = grid.row_ptr[grid.step_ptr], offsets(grid.size)[grid.step_ptr]
        graph = np.repeat(grid.member * grid.width[grid.step] + grid.number, np.diff(grid.row_ptr))
        row = grid.place - np.repeat(grid.row_cuts[:-1], np.diff(real_cuts))
        columns: _Columns = {
            "slot": self._cut(slot, node_cuts),
            "row": self._cut(row, real_cuts),
            "graph": self._cut(graph, real_cuts),
            "major": self._cut(graph << 32, real_cuts),
            "node_ptr": self._cut_offsets(grid.at_rows(self.rows.size), grid.row_cuts),
        }
        if self._single:
            empty: list[Tensor | None] = [None] * grid.steps
            columns |= {"size": empty, "node": empty, "within": empty}
            columns["node_row"] = columns["row"]
        else:
            size = self.rows.size[grid.row]
            node = np.repeat(np.arange(len(size)), size)
            within = np.arange(len(node)) - np.repeat(offsets(size)[:-1], size)
            node_step = np.repeat(real_cuts[:-1], np.diff(node_cuts))
            columns |= {
                "size": self._cut(size, real_cuts),
                "node": self._cut(node - node_step, node_cuts),
                "within": self._cut(within, node_cuts),
                "node_row": self._cut(row[node], node_cuts),
            }
        for step, of_step in enumerate(blocks):
            yield ReadoutLayout(
                blocks=of_step,
                slots=sum(block.slots for block in of_step),
                **{name: column[step] for name, column in columns.items()},
            )

    def _cut(
        self, array: NDArray[np.generic], cuts: Positions, shape: tuple[int, ...] | None = None
    ) -> list[Tensor]:
        """Copy an array to the device and split it at the cuts."""
        whole = torch.from_numpy(array).to(self.device, non_blocking=True)
        parts = torch.split_with_sizes(whole, np.diff(cuts).tolist())
        return list(parts) if shape is None else [part.view(shape) for part in parts]

    def _cut_offsets(self, sizes: NDArray[np.int64], cuts: Positions) -> list[Tensor]:
        """The offsets of ranges of these sizes, starting from 0 in each part."""
        steps = len(cuts) - 1
        step = np.repeat(np.arange(steps), np.diff(cuts) + 1)
        ends = offsets(sizes)
        found = ends[np.arange(len(step)) - step] - ends[cuts[step]]
        return self._cut(found, cuts + np.arange(steps + 1))


def _by_type(rows: Rows, types: int) -> Positions:
    """[R, T] the number of adjacent rows by edge label; T = 1 if labels are not used."""
    degree = np.diff(rows.neighbor_ptr)
    if rows.edge_type is None:
        return degree[:, None]
    cell = np.repeat(np.arange(len(degree)), degree) * types + rows.edge_type
    return np.bincount(cell, minlength=len(degree) * types).reshape(-1, types)


_Columns = dict[str, Any]
"""For each field of a batch, a list with one part per step."""


class _Grid:
    """Positions of the graphs and rows of several steps; cell t * S + s is member s in step t.

    Graphs and rows are ordered by cell. With padding, all cells of a step have the same width. Cuts
    are the first positions of each step, and the end.
    """

    def __init__(self, steps: Sequence[Sequence[Positions]], rows: Rows) -> None:
        cells = [cell for step in steps for cell in step]
        self.steps, self.members = len(steps), len(steps[0])
        self.count = np.array([len(cell) for cell in cells])
        self.cell = np.repeat(np.arange(len(cells)), self.count)
        self.step, self.member = np.divmod(self.cell, self.members)
        self.cell_ptr = offsets(self.count)
        self.cell_cuts = np.arange(self.steps + 1) * self.members
        self.step_ptr = self.cell_ptr[self.cell_cuts]
        asked = np.concatenate(cells)
        order = np.lexsort((-rows.graph_size[asked], self.cell))  # stable
        self.number = np.arange(len(order)) - self.cell_ptr[self.cell]
        self.origin = order - self.cell_ptr[self.cell]
        self.graph = asked[order]
        self.size = rows.graph_size[self.graph]
        self.nodes = np.bincount(self.cell, self.size, len(cells))
        self.some = np.maximum(self.nodes, 1).astype(np.float32)

        self.width = self._widest(self.count)
        self.cell_graph, self.graph_cuts = self._padded(self.width)

        self.row, self.row_ptr = ranges(rows.row_ptr, self.graph)
        cell_rows = np.diff(self.row_ptr[self.cell_ptr])
        length = np.maximum(self._widest(cell_rows), 1)
        self.cell_length = np.repeat(length, self.members)
        cell_row, self.row_cuts = self._padded(length)
        moved = cell_row - self.row_ptr[self.cell_ptr[:-1]]
        self.place = np.arange(len(self.row)) + np.repeat(moved, cell_rows)
        self.first_row = self.row_ptr[:-1] + moved[self.cell] - self.row_cuts[self.step]

    def at_rows(self, column: NDArray[Any]) -> NDArray[Any]:
        """A column of the data set's rows at the padded rows; 0 for padding."""
        found = np.zeros((self.row_cuts[-1], *column.shape[1:]), dtype=column.dtype)
        found[self.place] = column[self.row]
        return found

    def wide(self, column: NDArray[Any], empty: int = -1) -> NDArray[Any]:
        """A column of the graphs at the padded graphs."""
        found = np.full(self.graph_cuts[-1], empty, dtype=column.dtype)
        found[self.cell_graph[self.cell] + self.number] = column
        return found

    def largest(self) -> Positions:
        """[T, *] size of the largest graph of any member at each position, padded with 0."""
        found = np.zeros((self.steps, int(self.width.max())), dtype=np.int64)
        np.maximum.at(found, (self.step, self.number), self.size)
        return found

    def _widest(self, cells: Positions) -> Positions:
        """[T] the largest value of each step."""
        found: Positions = cells.reshape(self.steps, self.members).max(axis=1)
        return found

    def _padded(self, width: Positions) -> tuple[Positions, Positions]:
        """[T * S] first position of each cell, given the widths in each step; and the cuts."""
        begin = offsets(np.repeat(width, self.members))
        return begin[:-1], begin[self.cell_cuts]
