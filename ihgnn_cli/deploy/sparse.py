"""IHGNN on nodes and edges, for inference only: the layout without padding.

Messages are added up node by node in blocks of neighbours, and the readout graph by graph in blocks
of ranks: only the nodes or graphs that reach a block take part in it, so that time and memory grow
with nodes and edges, whatever m is. Every operation has a counterpart in ONNX, for any number of
graphs, nodes and edges.

What would be simpler is wrong: onnxruntime's ScatterND (1.31, CPU) adds to the same row from
several threads at once, and loses some of it. So `index_add`, which becomes ScatterND, is only for
rows that are all different; `scatter_add` becomes ScatterElements, which runs in one thread and is
many times slower.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.deploy.folded import (
    FoldedNodes,
    Linear,
    Vocabulary,
    Weights,
    ascending_order,
    mean,
    member_weights,
)
from ihgnn_cli.deploy.inputs import FIRST_BLOCK
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.settings import IHGNNSettings, Variant, as_ihgnn
from ihgnn_cli.training.checkpoint import Checkpoint

FIRST_NEIGHBORS = 4
"""Neighbours in the first block of them."""


class SparseIHGNN(nn.Module):
    """All members of a checkpoint's stack, as one model."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        settings, card = as_ihgnn(checkpoint.config.model), checkpoint.card
        self.vocabulary = Vocabulary(card)
        self.neighbor_ends = list(neighbor_ends(card))
        self.members = nn.ModuleList(
            _Member(weights, settings, card) for weights in member_weights(checkpoint)
        )
        self.float().eval()

    def forward(
        self,
        node_labels: Tensor,
        edge_index: Tensor,
        ptr: Tensor,
        attributes: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits and probabilities [B, classes], and the hidden layer [B, hidden].

        Of several members as in the padded layout.

        Args:
            node_labels: [N] int64, position in the vocabulary; any value beyond it is an unknown
                label, the zero vector. Where labels are degrees or nothing, only N counts.
            edge_index: [2, E] int64, each edge in both directions, none twice and none from a node
                to itself; nodes are numbered through the batch.
            ptr: [B + 1] int64, graph g has the nodes from ptr[g] up to ptr[g + 1].
            attributes: [N, a] float32, for models that read attributes.
        """
        none = torch.zeros_like(node_labels)
        graphs = _Graphs(ptr, none)
        edges = _Edges(edge_index, none, self.neighbor_ends)
        if self.vocabulary.counts_degrees:
            row = self.vocabulary.of_degrees(edges.degree)
        else:
            row = self.vocabulary.of_labels(node_labels)
        found = []
        for member in cast("list[_Member]", self.members):
            h, key = member.nodes(row, attributes, edges.spread)
            found.append(member.answer(h, key, graphs))
        return mean(found)


class _Edges:
    """Who is adjacent to whom; what the layers and members share.

    Args:
        edge_index: [2, E] in any order.
        none: [N] zeros.
        ends: where the blocks of neighbours end; those of nodes that have more are added one by
            one.
    """

    def __init__(self, edge_index: Tensor, none: Tensor, ends: Sequence[int]) -> None:
        # Edges of the same node may come in any order: their messages are added up.
        order = edge_index[0].sort().indices
        node = edge_index[0].index_select(0, order)
        neighbor = edge_index[1].index_select(0, order)
        self.degree = none.scatter_add(0, node, torch.ones_like(node))
        last = self.degree.cumsum(0)
        first = last - self.degree
        # Row 0 is the zero row, for all places that no neighbour takes.
        row = nn.functional.pad(neighbor + 1, (1, 0))
        rank = torch.arange(1, ends[-1] + 1, device=node.device).unsqueeze(1)
        # Rank by rank, so that a row of ones adds them up.
        chosen = row.index_select(0, _places(first, last, rank[: ends[0]]))
        self._blocks: list[tuple[int, Tensor | None, Tensor]] = [(ends[0], None, chosen)]
        for start, end in pairwise(ends):
            reaching = (self.degree > start).nonzero().squeeze(1)
            begin, stop = first.index_select(0, reaching), last.index_select(0, reaching)
            chosen = row.index_select(0, _places(begin, stop, rank[start:end]))
            self._blocks.append((end - start, reaching, chosen))
        number = torch.arange(node.shape[0], device=node.device) - first.index_select(0, node)
        beyond = (number >= ends[-1]).nonzero().squeeze(1)
        self._node = node.index_select(0, beyond)
        self._neighbor = neighbor.index_select(0, beyond)

    def spread(self, rows: Tensor, messages: Tensor) -> Tensor:
        """The rows, and to each the messages of its neighbours added."""
        padded = nn.functional.pad(messages, (0, 0, 1, 0))
        for size, reaching, chosen in self._blocks:
            received = padded.index_select(0, chosen).view(size, -1)
            # A product with ones: many times faster in onnxruntime than a sum.
            part = (received.new_ones(1, size) @ received).view(-1, messages.shape[1])
            rows = rows + part if reaching is None else rows.index_add(0, reaching, part)
        rest = messages.index_select(0, self._neighbor)
        return rows.scatter_add(0, self._node.unsqueeze(1).expand_as(rest), rest)


class _Graphs:
    """Which nodes are of which graph; what the members share.

    Args:
        ptr: [B + 1] where graphs begin and end.
        none: [N] zeros.
    """

    def __init__(self, ptr: Tensor, none: Tensor) -> None:
        self.first, self.last = ptr[:-1], ptr[1:]
        self.count = self.first.shape[0]
        # A graph begins wherever another one ends; several at once where graphs have no nodes.
        begun = nn.functional.pad(none, (0, 1))
        begun = begun.scatter_add(0, self.last, torch.ones_like(self.last))
        self.of_node = begun.cumsum(0)
        """[N + 1], and after the last node the number of graphs."""

    def order(self, key: Tensor) -> Tensor:
        """[N] the nodes graph by graph, in a graph by their key."""
        by_key, nodes = ascending_order(key), key.shape[0]
        # Unique, so that no runtime's order of ties matters.
        rank = torch.arange(nodes, device=key.device)
        unique = self.of_node.index_select(0, by_key) * nodes + rank
        return by_key.index_select(0, unique.sort().indices)


class _Member(nn.Module):
    """One model of the stack."""

    def __init__(self, weights: Weights, settings: IHGNNSettings, card: ModelCard) -> None:
        super().__init__()
        self.nodes = FoldedNodes(weights, settings, card)
        self.summed = settings.variant == Variant.NO_CONCAT
        self.relu = settings.readout_relu
        readout = weights["readout.weight"]
        self.ends = [1] if self.summed else list(block_ends(card.max_nodes))
        columns = len(readout) // self.ends[-1]
        parts = readout.tensor_split([end * columns for end in self.ends[:-1]])
        bias = weights["hidden_bias"]
        self.readout = nn.ModuleList(
            Linear(part, None if number else bias) for number, part in enumerate(parts)
        )
        self.classifier = Linear(weights["weight"], weights["bias"])

    def answer(self, h: Tensor, key: Tensor, graphs: _Graphs) -> tuple[Tensor, Tensor]:
        """Logits and hidden layer."""
        hidden = (self._summed(h, graphs) if self.summed else self._sorted(h, key, graphs)).relu()
        return self.classifier(hidden), hidden

    def _summed(self, h: Tensor, graphs: _Graphs) -> Tensor:
        read = h.new_zeros(graphs.count, h.shape[1])
        graph = graphs.of_node[:-1].unsqueeze(1).expand_as(h)
        read = read.scatter_add(0, graph, h)
        found: Tensor = self.readout[0](read.relu() if self.relu else read)
        return found

    def _sorted(self, h: Tensor, key: Tensor, graphs: _Graphs) -> Tensor:
        """[B, hidden] of the first m nodes in sorted order, zero rows where there are fewer."""
        # Row 0 is the zero row, for all places that no node takes.
        rows = nn.functional.pad(h.relu() if self.relu else h, (0, 0, 1, 0))
        order = nn.functional.pad(graphs.order(key) + 1, (1, 0))
        hidden = self._block(0, rows, order, graphs.first, graphs.last)
        for number, start in enumerate(self.ends[:-1], start=1):
            reaching = (graphs.last - graphs.first > start).nonzero().squeeze(1)
            first = graphs.first.index_select(0, reaching)
            last = graphs.last.index_select(0, reaching)
            hidden = hidden.index_add(0, reaching, self._block(number, rows, order, first, last))
        return hidden

    def _block(
        self, number: int, rows: Tensor, order: Tensor, first: Tensor, last: Tensor
    ) -> Tensor:
        """[graphs, hidden] what a block of ranks adds, for the graphs that reach it."""
        start, end = [0, *self.ends][number : number + 2]
        rank = torch.arange(start + 1, end + 1, device=first.device)
        place = _places(first.unsqueeze(1), last.unsqueeze(1), rank)
        taken = rows.index_select(0, order.index_select(0, place))
        part: Tensor = self.readout[number](
            taken.reshape(first.shape[0], (end - start) * rows.shape[1])
        )
        return part


def _places(first: Tensor, last: Tensor, rank: Tensor) -> Tensor:
    """Where the members of these ranks stand in ranges, all counted from 1; 0 beyond a range.

    Ranges and ranks have axes of their own. A range has the members after first, up to last.
    """
    place = first + rank
    return torch.where(place <= last, place, 0).flatten()


def block_ends(max_nodes: int) -> Iterator[int]:
    """Where the blocks of ranks end: each twice as far as the one before, the last one at m."""
    end = FIRST_BLOCK
    while end + end // 2 < max_nodes:
        yield end
        end *= 2
    yield max_nodes


def neighbor_ends(card: ModelCard) -> Iterator[int]:
    """Where the blocks of neighbours end.

    Nodes with labels are mostly of molecules, with few neighbours. Of models of degrees it is
    known how many there are.
    """
    end = FIRST_NEIGHBORS
    yield end
    if card.label_source == LabelSource.DEGREE:
        most = max((int(value) for value in card.label_values), default=0)
        while end < most:
            end *= 4
            yield end
