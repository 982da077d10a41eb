"""IHGNN on padded graphs, for inference only: the layout for callers with adjacency matrices.

Every operation exports to ONNX with dynamic numbers of graphs and nodes.
"""

import math

import torch
from torch import Tensor, nn

from ihgnn_cli.deploy.folded import (
    FoldedNodes,
    Linear,
    Vocabulary,
    Weights,
    ascending_order,
    mean,
    member_weights,
)
from ihgnn_cli.deploy.inputs import PADDING
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.settings import IHGNNSettings, Variant, as_ihgnn
from ihgnn_cli.training.checkpoint import Checkpoint


class PaddedIHGNN(nn.Module):
    """All members of a checkpoint as one model.

    Args:
        checkpoint: the trained models.
        nodes: the fixed size that graphs are padded to, if any. Readout positions beyond it are
            left out.
    """

    def __init__(self, checkpoint: Checkpoint, nodes: int | None = None) -> None:
        super().__init__()
        settings, card = as_ihgnn(checkpoint.config.model), checkpoint.card
        places = min(card.max_nodes, nodes or card.max_nodes)
        self.vocabulary = Vocabulary(card)
        self.members = nn.ModuleList(
            _Member(weights, settings, card, places) for weights in member_weights(checkpoint)
        )
        self.float().eval()

    def forward(
        self, node_labels: Tensor, adjacency: Tensor, attributes: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits and probabilities [B, classes], and the hidden layer [B, hidden].

        Probabilities and the hidden layer are averaged over members. The logits of several members
        are the logarithm of their mean probability.

        Args:
            node_labels: [B, n] int64, position in the vocabulary; -1 is padding, and any other
                value outside the vocabulary is an unknown label (the zero vector). For models
                without given labels it only separates nodes from padding.
            adjacency: [B, n, n] uint8, symmetric and without self-loops; nonzero for an edge.
            attributes: [B, n, a] float32, for models that read attributes.
        """
        real = node_labels != PADDING
        edges = adjacency.bool().float()
        if self.vocabulary.counts_degrees:
            row = self.vocabulary.of_degrees(edges.sum(2).long())
        else:
            row = self.vocabulary.of_labels(node_labels)
        if attributes is not None:
            attributes = attributes.flatten(0, 1)
        return mean([member(row.flatten(), real, edges, attributes) for member in self.members])


class _Member(nn.Module):
    """One model of the stack."""

    def __init__(
        self, weights: Weights, settings: IHGNNSettings, card: ModelCard, places: int
    ) -> None:
        super().__init__()
        self.nodes = FoldedNodes(weights, settings, card)
        self.summed = settings.variant == Variant.NO_CONCAT
        self.relu = settings.readout_relu
        self.places = places
        readout = weights["readout.weight"]
        if not self.summed:
            readout = readout[: places * len(readout) // card.max_nodes]
        self.readout = Linear(readout, weights["hidden_bias"])
        self.classifier = Linear(weights["weight"], weights["bias"])

    def forward(
        self, row: Tensor, real: Tensor, edges: Tensor, attributes: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Logits and hidden layer."""
        graphs, nodes = real.shape

        def spread(rows: Tensor, messages: Tensor) -> Tensor:
            spread_out = edges @ messages.view(graphs, nodes, messages.shape[1])
            return rows + spread_out.flatten(0, 1)

        h, key = self.nodes(row, attributes, spread)
        if self.summed:
            read = h.view(graphs, nodes, h.shape[1]).masked_fill(~real.unsqueeze(-1), 0).sum(1)
        else:
            read = self._sorted(h, key.view(graphs, nodes), real)
        if self.relu:
            read = read.relu()
        hidden = self.readout(read).relu()
        return self.classifier(hidden), hidden

    def _sorted(self, h: Tensor, key: Tensor, real: Tensor) -> Tensor:
        """[B, places · width] the first nodes in sorted order, padded with zero rows."""
        graphs, nodes = real.shape
        order = ascending_order(key.masked_fill(~real, math.inf))
        # Row 0 is the zero row, for places without a node.
        rows = nn.functional.pad(h, (0, 0, 1, 0))
        first = torch.arange(graphs, device=h.device) * nodes + 1
        rank = torch.arange(nodes, device=h.device)
        taken = rank < real.sum(1, keepdim=True)
        place = torch.where(taken, order + first.unsqueeze(1), 0)
        place = nn.functional.pad(place, (0, self.places)).narrow(1, 0, self.places)
        return rows.index_select(0, place.flatten()).view(graphs, self.places * h.shape[1])
