"""IHGNN on padded graphs, for inference only: the layout for callers with adjacency matrices.

Every operation exports to ONNX with dynamic numbers of graphs and nodes.
"""

import torch
from torch import Tensor, nn

from ihgnn_cli.deploy.folded import (
    FoldedNodes,
    Linear,
    Outputs,
    Vocabulary,
    Weights,
    ascending_order,
    combined,
    member_weights,
)
from ihgnn_cli.deploy.inputs import PADDING
from ihgnn_cli.deploy.margin import gaps
from ihgnn_cli.deploy.metadata import LARGEST
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
        self.edge_types = card.inputs.edge_labels
        self.vocabulary = Vocabulary(card)
        self.members = nn.ModuleList(
            _Member(weights, settings, card, places) for weights in member_weights(checkpoint)
        )
        self.float().eval()

    def forward(
        self, node_labels: Tensor, adjacency: Tensor, attributes: Tensor | None = None
    ) -> Outputs:
        """Outputs by name: see `combined`.

        Args:
            node_labels: [B, n] int64, position in the vocabulary; -1 is padding, and any other
                value outside the vocabulary is an unknown label (the zero vector). For models
                without given labels it only separates nodes from padding.
            adjacency: [B, n, n] uint8, nonzero for an edge. One direction is enough; self-loops and
                edges of padding are ignored. For models that read edge labels, 1 + the position
                in the vocabulary; edges with a larger value are ignored.
            attributes: [B, n, a] float32, for models that read attributes; those of padding are
                ignored.
        """
        real = node_labels != PADDING
        edges = edges_between(real, adjacency.bool())
        if self.edge_types:
            edges = edges_by_label(edges, adjacency, self.edge_types)
        if self.vocabulary.counts_degrees:
            row = self.vocabulary.of_degrees(edges.sum(2).long())
        else:
            row = self.vocabulary.of_labels(node_labels)
        if attributes is not None:
            # Not a product with 0: padding may hold NaN.
            attributes = torch.where(real.unsqueeze(2), attributes, 0).flatten(0, 1)
        found = [member(row.flatten(), real, edges, attributes) for member in self.members]
        return combined(found)


def edges_between(real: Tensor, adjacent: Tensor) -> Tensor:
    """[B, n, n] 1.0 where two different real nodes are adjacent in either direction, else 0.0.

    Rows of padding are left as they are: IHGNN does not read them.
    """
    place = torch.arange(real.shape[1], device=real.device)
    others = place.unsqueeze(1) != place
    return ((adjacent | adjacent.transpose(1, 2)) & others & real.unsqueeze(1)).float()


def edges_by_label(edges: Tensor, adjacency: Tensor, types: int) -> Tensor:
    """[B, n, n · T] 1.0 in column u · T + t where u is adjacent by an edge with label t."""
    label = adjacency.long()
    label = torch.maximum(label, label.transpose(1, 2)).unsqueeze(3)
    known = torch.arange(1, types + 1, device=label.device)
    return (edges.unsqueeze(3) * (label == known)).flatten(2)


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
    ) -> Outputs:
        """Logits, hidden layer and order margin."""
        graphs, nodes = real.shape

        def spread(rows: Tensor, messages: Tensor) -> Tensor:
            spread_out = edges @ messages.view(graphs, edges.shape[2], rows.shape[1])
            return rows + spread_out.flatten(0, 1)

        h, key = self.nodes(row, attributes, spread)
        if self.summed:
            read = h.view(graphs, nodes, h.shape[1]).masked_fill(~real.unsqueeze(-1), 0).sum(1)
            margin = h.new_full((graphs,), LARGEST)
        else:
            # Padding comes last. Not infinity: the gap between two would be NaN.
            keys, order = ascending_order(key.view(graphs, nodes).masked_fill(~real, LARGEST))
            taken = torch.arange(nodes, device=h.device) < real.sum(1, keepdim=True)
            node = order + torch.arange(graphs, device=h.device).unsqueeze(1) * nodes
            read = self._sorted(h, node, taken)
            # Not `gather`: ONNX's reference GatherElements fails beyond 32 rows.
            length = h.norm(dim=1).index_select(0, node.flatten()).view(graphs, nodes)
            margin = gaps(keys, length, taken).amin(1)
        if self.relu:
            read = read.relu()
        hidden = self.readout(read).relu()
        logits = self.classifier(hidden)
        return {"logits": logits, "graph_embedding": hidden, "order_margin": margin}

    def _sorted(self, h: Tensor, node: Tensor, taken: Tensor) -> Tensor:
        """[B, places · width] the first nodes in sorted order, padded with zero rows."""
        graphs = node.shape[0]
        # Row 0 is the zero row, for places without a node.
        rows = nn.functional.pad(h, (0, 0, 1, 0))
        place = torch.where(taken, node + 1, 0)
        # Not a Pad, for which onnxruntime has no CUDA kernel with integers.
        place = torch.cat([place, place.new_zeros(graphs, self.places)], 1)
        place = place.narrow(1, 0, self.places)
        return rows.index_select(0, place.flatten()).view(graphs, self.places * h.shape[1])
