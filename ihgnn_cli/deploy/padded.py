"""IHGNN on padded graphs, for inference only: the form of the model that is exported.

What is fixed after training is worked out once, in double precision: BatchNorm becomes part of the
Linear before it, [H, A·H, H + A·H]·W becomes H·(W1 + W3) + A·H·(W2 + W3), and MLP0 of one-hot
labels becomes a table. Every operation has a counterpart in ONNX, for any number of graphs and
nodes.
"""

import math
from collections.abc import Mapping
from typing import cast

import torch
from torch import Tensor, nn

from ihgnn_cli.deploy.onnx_model import PADDING
from ihgnn_cli.models.mlp import EPS
from ihgnn_cli.models.settings import IHGNNSettings, Inputs, SortKey, SortOrder, Variant
from ihgnn_cli.training.checkpoint import Checkpoint

Weights = Mapping[str, Tensor]

# Of the largest number in H: what rounding does to a sort key stays below a third of this
# (measured on five data sets).
_CLOSE = 1e-6


class PaddedIHGNN(nn.Module):
    """All members of a checkpoint's stack, as one model."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        settings, inputs = checkpoint.config.model, checkpoint.card.inputs
        self.members = nn.ModuleList(
            _Member(
                {name: value[member].double() for name, value in checkpoint.weights.items()},
                settings,
                inputs,
            )
            for member in range(checkpoint.members)
        )
        self.float().eval()

    def forward(
        self, node_labels: Tensor, adjacency: Tensor, attributes: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits and probabilities [B, classes], and the hidden layer [B, hidden].

        Probabilities and the hidden layer are means over the members; the logits of several
        members are the logarithm of their mean probability.

        Args:
            node_labels: [B, n] int64, position in the vocabulary; -1 is padding, and any other
                value beyond the vocabulary an unknown label, the zero vector.
            adjacency: [B, n, n] uint8, symmetric: not 0 where there is an edge. Padding has none,
                and no node has one to itself.
            attributes: [B, n, a] float32, for models that read attributes.
        """
        real = node_labels != PADDING
        edges = adjacency.bool().float()
        found = [member(node_labels, real, edges, attributes) for member in self.members]
        if len(found) == 1:
            logits, hidden = found[0]
        else:
            several = torch.stack([each for each, _ in found])
            logits = several.log_softmax(-1).logsumexp(0) - math.log(len(found))
            hidden = torch.stack([each for _, each in found]).mean(0)
        return logits, logits.softmax(-1), hidden

    @torch.no_grad()
    def order_is_chance(
        self, node_labels: Tensor, adjacency: Tensor, attributes: Tensor | None = None
    ) -> bool:
        """Whether rounding decides on the order of a graph's nodes; takes inputs without axis B.

        It does where nodes that differ follow each other so closely in the sort key that single
        precision cannot tell which one is first.
        """
        edges = adjacency.bool().float()
        for member in cast("list[_Member]", self.members):
            if member.settings.variant is Variant.NO_CONCAT:
                continue
            h, key = member.nodes(node_labels, edges, attributes)
            ascending, order = key.sort()
            scale = h.abs().max()
            close = ascending.diff() < _CLOSE * scale
            differ = h[order].diff(dim=0).abs().amax(1) > _CLOSE * scale
            if (close & differ).any():
                return True
        return False


class _Member(nn.Module):
    """One model of the stack; `weights` in double precision, without the member axis."""

    def __init__(self, weights: Weights, settings: IHGNNSettings, inputs: Inputs) -> None:
        super().__init__()
        self.settings = settings
        self.max_nodes = inputs.max_nodes
        self.input = _Input(weights, inputs)
        self.layers = nn.ModuleList(
            _Layer(weights, f"layers.{k}", settings.variant) for k in range(settings.layers)
        )
        self.theta: list[float] = []
        if settings.variant is not Variant.NO_ADAPTIVE:
            self.theta = weights["aggregation.theta"].tolist()
        self.readout = _Linear(weights["readout.weight"], weights["hidden_bias"])
        self.classifier = _Linear(weights["weight"], weights["bias"])

    def forward(
        self, node_labels: Tensor, real: Tensor, edges: Tensor, attributes: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Logits and hidden layer."""
        h, key = self.nodes(node_labels, edges, attributes)
        h = h.masked_fill(~real.unsqueeze(-1), 0)
        if self.settings.variant is Variant.NO_CONCAT:
            read = h.sum(1)
        else:
            read = self._sorted(h, key, real)
        if self.settings.readout_relu:
            read = read.relu()
        hidden = self.readout(read).relu()
        return self.classifier(hidden), hidden

    def nodes(
        self, node_labels: Tensor, edges: Tensor, attributes: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """The aggregated node embeddings [B, n, ·], and what the nodes are sorted by [B, n]."""
        h = self.input(node_labels, attributes)
        found = [h]
        for layer in self.layers:
            h = layer(h, edges)
            found.append(h)
        if self.theta:
            h = sum(theta * each for theta, each in zip(self.theta, found, strict=True))
        else:
            h = torch.cat(found, dim=-1)
        key = h if self.settings.sort_key is SortKey.AGGREGATED else found[-1]
        return h, key[..., -1]

    def _sorted(self, h: Tensor, key: Tensor, real: Tensor) -> Tensor:
        """[B, m · width] the first m nodes in sorted order, zero rows where there are fewer."""
        if self.settings.sort_order is SortOrder.DESCENDING:
            key = -key
        # ONNX knows only one sort, and it is stable.
        order = key.masked_fill(~real, math.inf).sort(dim=1).indices
        # Row 0 of each graph is the zero row that fills the places up to m.
        rows = nn.functional.pad(h, (0, 0, 1, 0))
        place = nn.functional.pad(order + 1, (0, self.max_nodes)).narrow(1, 0, self.max_nodes)
        first = torch.arange(rows.shape[0], device=h.device) * rows.shape[1]
        flat = rows.flatten(0, 1).index_select(0, (place + first.unsqueeze(1)).flatten())
        return flat.view(h.shape[0], self.max_nodes * h.shape[2])


class _Input(nn.Module):
    """H^(0) by label; with attributes, the part that does not depend on them by label."""

    table: Tensor

    def __init__(self, weights: Weights, inputs: Inputs) -> None:
        super().__init__()
        self.labels = inputs.labels
        slope, shift = _normalization(weights, "input.tail")
        weight = weights["input.weight"]
        of_attributes, of_label = weight[: inputs.attributes], weight[inputs.attributes :]
        tail = _Linear(weights["input.tail.weight"], weights["input.tail.bias"])
        # The last row is that of the zero vector.
        table = nn.functional.pad(of_label * slope, (0, 0, 0, 1)) + shift
        if inputs.attributes:
            self.attributes = _Linear(of_attributes * slope)
            self.tail = tail
        else:
            table = tail(table.relu())
        self.register_buffer("table", table)

    def forward(self, node_labels: Tensor, attributes: Tensor | None) -> Tensor:
        """[B, n, width]."""
        known = (node_labels >= 0) & (node_labels < self.labels)
        rows = nn.functional.embedding(torch.where(known, node_labels, self.labels), self.table)
        if attributes is None:
            return rows
        h: Tensor = self.tail((rows + self.attributes(attributes)).relu())
        return h


class _Layer(nn.Module):
    """H^(k) from H^(k-1)."""

    def __init__(self, weights: Weights, name: str, variant: Variant) -> None:
        super().__init__()
        slope, shift = _normalization(weights, f"{name}.tail")
        own, neighbors = _blocks(weights[f"{name}.weight"], variant)
        self.own = _Linear(own * slope, shift)
        self.neighbors = _Linear(neighbors * slope)
        self.tail = _Linear(weights[f"{name}.tail.weight"], weights[f"{name}.tail.bias"])

    def forward(self, h: Tensor, edges: Tensor) -> Tensor:
        """[B, n, width]."""
        y: Tensor = self.tail((self.own(h) + self.neighbors(edges @ h)).relu())
        return y


class _Linear(nn.Module):
    """x·W + b."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight.clone())
        self.register_buffer("bias", None if bias is None else bias.flatten())

    def forward(self, x: Tensor) -> Tensor:
        """[..., columns]."""
        product = x @ self.weight
        return product if self.bias is None else product + self.bias


def _normalization(weights: Weights, name: str) -> tuple[Tensor, Tensor]:
    """Slope and shift [1, width] that BatchNorm comes to with its running statistics."""
    mean, variance = weights[f"{name}.mean"], weights[f"{name}.variance"]
    slope = weights[f"{name}.scale"] * torch.rsqrt(variance + EPS)
    return slope, weights[f"{name}.shift"] - mean * slope


def _blocks(weight: Tensor, variant: Variant) -> tuple[Tensor, Tensor]:
    """The matrices of H and of A·H; see `models.layer`."""
    if variant is Variant.NO_SEPARATION:
        return weight, weight
    if variant is Variant.NO_INTEGRATION:
        own, neighbors = weight.chunk(2)
        return own, neighbors
    own, neighbors, both = weight.chunk(3)
    return own + both, neighbors + both
