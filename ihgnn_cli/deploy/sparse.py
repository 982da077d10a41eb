"""IHGNN on nodes and edges, for inference only: the layout without padding.

Messages are added along the edges, and the readout is taken in blocks of ranks: only the graphs
that reach a block take part in it, so that time and memory grow with nodes and edges, whatever m
is. Every operation has a counterpart in ONNX, for any number of graphs, nodes and edges.
"""

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor, nn

from ihgnn_cli.deploy.folded import (
    FoldedNodes,
    Linear,
    Vocabulary,
    Weights,
    mean,
    member_weights,
    stable_order,
)
from ihgnn_cli.deploy.inputs import FIRST_BLOCK
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.settings import IHGNNSettings, Variant
from ihgnn_cli.training.checkpoint import Checkpoint


class SparseIHGNN(nn.Module):
    """All members of a checkpoint's stack, as one model."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        settings, card = checkpoint.config.model, checkpoint.card
        self.vocabulary = Vocabulary(card)
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
        graphs = _Graphs(ptr, node_labels.shape[0])
        found = self.embedded(node_labels, edge_index, attributes)
        members = cast("list[_Member]", self.members)
        pairs = zip(members, found, strict=True)
        return mean([member.answer(*each, graphs) for member, each in pairs])

    def embedded(
        self, node_labels: Tensor, edge_index: Tensor, attributes: Tensor | None = None
    ) -> list[tuple[Tensor, Tensor]]:
        """For each member the aggregated embeddings [N, ·], and what nodes are sorted by [N]."""
        source, target = edge_index[0], edge_index[1]
        if self.vocabulary.counts_degrees:
            none = torch.zeros_like(node_labels)
            row = self.vocabulary.of_degrees(none.index_add(0, target, torch.ones_like(target)))
        else:
            row = self.vocabulary.of_labels(node_labels)

        def spread(rows: Tensor, messages: Tensor) -> Tensor:
            return rows.index_add(0, target, messages.index_select(0, source))

        members = cast("list[_Member]", self.members)
        return [member.nodes(row, attributes, spread) for member in members]


class _Graphs:
    """Which nodes are of which graph; what the members share."""

    def __init__(self, ptr: Tensor, nodes: int) -> None:
        self.first, self.last = ptr[:-1], ptr[1:]
        self.count = self.first.shape[0]
        # A graph begins wherever another one ends; several at once where graphs have no nodes.
        begun = torch.zeros(nodes + 1, dtype=torch.int64, device=ptr.device)
        begun = begun.index_add(0, self.last, torch.ones_like(self.last))
        self.of_node = begun[:nodes].cumsum(0)

    def order(self, key: Tensor) -> Tensor:
        """[N] the nodes graph by graph, in a graph by their key."""
        by_key = stable_order(key)
        return by_key.index_select(0, stable_order(self.of_node.index_select(0, by_key)))


class _Member(nn.Module):
    """One model of the stack."""

    def __init__(self, weights: Weights, settings: IHGNNSettings, card: ModelCard) -> None:
        super().__init__()
        self.nodes = FoldedNodes(weights, settings, card)
        self.summed = settings.variant is Variant.NO_CONCAT
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
        read = h.new_zeros(graphs.count, h.shape[1]).index_add(0, graphs.of_node, h)
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
        place = first.unsqueeze(1) + torch.arange(start + 1, end + 1, device=first.device)
        place = torch.where(place <= last.unsqueeze(1), place, 0)
        taken = rows.index_select(0, order.index_select(0, place.flatten()))
        part: Tensor = self.readout[number](
            taken.reshape(first.shape[0], (end - start) * rows.shape[1])
        )
        return part


def block_ends(max_nodes: int) -> Iterator[int]:
    """Where the blocks of ranks end: each twice as far as the one before, the last one at m."""
    end = FIRST_BLOCK
    while end + end // 2 < max_nodes:
        yield end
        end *= 2
    yield max_nodes
