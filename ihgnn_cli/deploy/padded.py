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
    ascending_order,
    combined,
    folding_weights,
    select,
)
from ihgnn_cli.deploy.inputs import PADDING
from ihgnn_cli.deploy.margin import gaps, norms
from ihgnn_cli.deploy.metadata import LARGEST
from ihgnn_cli.models.settings import Variant, as_ihgnn
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
        card = checkpoint.card
        self.edge_types = card.inputs.edge_labels
        self.vocabulary = Vocabulary(card)
        self.members = _Members(checkpoint, min(card.max_nodes, nodes or card.max_nodes))
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
        row = self.vocabulary.rows(node_labels, lambda: edges.sum(2).long())
        if attributes is not None:
            # Not a product with 0: padding may hold NaN.
            attributes = torch.where(real.unsqueeze(2), attributes, 0).flatten(0, 1)
        found = self.members(row.flatten(), real, edges, attributes)
        return combined(found, self.members.count)


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


class _Members(nn.Module):
    """The models of the stack; tensors [..., ·] have a member axis if there are several."""

    def __init__(self, checkpoint: Checkpoint, places: int) -> None:
        super().__init__()
        settings, card = as_ihgnn(checkpoint.config.model), checkpoint.card
        weights = folding_weights(checkpoint)
        self.count = checkpoint.members
        self.nodes = FoldedNodes(weights, settings, card)
        self.summed = settings.variant == Variant.NO_CONCAT
        self.relu = settings.readout_relu
        self.places = places
        readout = weights["classifier.first.weight"]
        if not self.summed:
            used = places * readout.shape[-2] // card.max_nodes
            readout = readout.narrow(-2, 0, used)
        self.readout = Linear(readout, weights["classifier.first.bias"])
        self.classifier = Linear(
            weights["classifier.second.weight"], weights["classifier.second.bias"]
        )

    def forward(
        self, row: Tensor, real: Tensor, edges: Tensor, attributes: Tensor | None
    ) -> Outputs:
        """Logits and hidden layer [..., B, ·], and the smallest order margin [B]."""
        graphs, nodes = real.shape

        def spread(rows: Tensor, messages: Tensor) -> Tensor:
            *members, _, width = rows.shape
            spread_out = edges @ messages.view(*members, graphs, edges.shape[2], width)
            return rows + spread_out.flatten(-3, -2)

        h, key = self.nodes(row, attributes, spread)
        *members, _, width = h.shape
        if self.summed:
            padded = h.view(*members, graphs, nodes, width)
            read = padded.masked_fill(~real.unsqueeze(-1), 0).sum(-2)
            margin = h.new_full((graphs,), LARGEST)
        else:
            # Padding comes last. Not infinity: the gap between two would be NaN.
            keys = key.view(*members, graphs, nodes).masked_fill(~real, LARGEST)
            keys, order = ascending_order(keys)
            taken = torch.arange(nodes, device=h.device) < real.sum(1, keepdim=True)
            node = order + torch.arange(graphs, device=h.device).unsqueeze(1) * nodes
            read = self._sorted(h, node, taken)
            # Not `gather`: ONNX's reference GatherElements fails beyond 32 rows.
            length = select(norms(h), node.flatten(-2)).view(*members, graphs, nodes)
            margin = gaps(keys, length, taken)
            margin = margin.amin(0) if members else margin
            margin = margin.amin(1)
        if self.relu:
            read = read.relu()
        hidden = self.readout(read).relu()
        logits = self.classifier(hidden)
        return {"logits": logits, "graph_embedding": hidden, "order_margin": margin}

    def _sorted(self, h: Tensor, node: Tensor, taken: Tensor) -> Tensor:
        """[..., B, places · width] the first nodes in sorted order, padded with zero rows."""
        *members, graphs, _ = node.shape
        # Row 0 is the zero row, for places without a node.
        rows = nn.functional.pad(h, (0, 0, 1, 0))
        place = torch.where(taken, node + 1, 0)
        # Not a Pad, for which onnxruntime has no CUDA kernel with integers.
        place = torch.cat([place, place.new_zeros(*members, graphs, self.places)], -1)
        place = place.narrow(-1, 0, self.places)
        return select(rows, place.flatten(-2)).view(*members, graphs, self.places * h.shape[-1])
