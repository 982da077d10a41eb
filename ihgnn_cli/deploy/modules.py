"""Torch modules on the inputs of an exported file, in both layouts; they are what is exported."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import torch
from torch import Tensor, nn

from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.deploy.inputs import PADDING
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.spec import Layout, ModelSpec
from ihgnn_cli.models.traced import FlatGraphs, PaddedGraphs, TracedGraphs

Outputs = dict[str, Tensor]
"""By name, with one row per graph."""


@dataclass(frozen=True, eq=False)
class Members:
    """The trained members of a model, each as a module in evaluation mode."""

    spec: ModelSpec
    card: ModelCard
    modules: tuple[nn.Module, ...]


class ExportedModel(nn.Module):
    """All members as one model; the layouts differ in their inputs.

    The logits of several members are the logarithm of their mean probability. Their embedding is
    the mean. `uncertainty` is the standard deviation over members of the predicted class's
    probability.
    """

    table: Tensor

    def __init__(self, members: Members) -> None:
        super().__init__()
        card = members.card
        self.count, self.edge_types = len(members.modules), card.inputs.edge_labels
        self.threshold = None if card.conformal is None else card.conformal.threshold
        self.vocabulary = _Vocabulary(card)
        self.register_buffer("table", torch.eye(card.inputs.labels + 1)[:, :-1])
        self.traced: nn.Module | None = None
        if members.spec.traced:
            module, name = members.spec.traced.split(":")
            self.traced = getattr(import_module(module), name)(members.modules, card.attributes)
        else:
            self.members = nn.ModuleList(members.modules)
        self.float().eval()

    def answers(self, graphs: TracedGraphs, labels: Tensor, attributes: Tensor | None) -> Outputs:
        """The outputs for graphs whose nodes have these labels [rows] and attributes [rows, a]."""
        row = self.vocabulary(labels, graphs)
        if self.traced is not None:
            return self._combined(**self.traced(graphs, row, attributes))
        # The last row of the table is for unknown labels.
        x = self.table.index_select(0, row)
        graphs.x = x if attributes is None else torch.cat([attributes, x], 1)
        found = [member(graphs) for member in self.members]
        logits = [each[0] if isinstance(each, tuple) else each for each in found]
        return self._combined(logits[0] if self.count == 1 else torch.stack(logits))

    def _combined(self, logits: Tensor, graph_embedding: Tensor | None = None) -> Outputs:
        """The outputs from those of the members, [B, ·] of one or [S, B, ·] of several."""
        of_members = logits
        if self.count > 1:
            logits = logits.log_softmax(-1).logsumexp(0) - math.log(self.count)
        likely = logits.softmax(-1)
        found = {"logits": logits, "probabilities": likely}
        best = likely.topk(1, -1)
        if graph_embedding is not None:
            mean = graph_embedding if self.count == 1 else graph_embedding.mean(0)
            found["graph_embedding"] = mean
        if self.count > 1:
            found["uncertainty"] = _spread(of_members.softmax(-1), best.indices)
        if self.threshold is not None:
            found["prediction_set"] = (likely >= best.values.clamp(max=self.threshold)).byte()
        return found


class PaddedModel(ExportedModel):
    """The padded layout."""

    def forward(
        self, node_labels: Tensor, adjacency: Tensor, attributes: Tensor | None = None
    ) -> Outputs:
        """Outputs by name.

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
        mask = node_labels != PADDING
        graphs = PaddedGraphs(mask, adjacency, self.edge_types)
        if attributes is not None:
            # Not a product with 0: padding may hold NaN.
            attributes = torch.where(mask.unsqueeze(2), attributes, 0).flatten(0, 1)
        return self.answers(graphs, node_labels.flatten(), attributes)


class SparseModel(ExportedModel):
    """The sparse layout."""

    def forward(
        self,
        node_labels: Tensor,
        edge_index: Tensor,
        ptr: Tensor,
        attributes: Tensor | None = None,
        edge_labels: Tensor | None = None,
    ) -> Outputs:
        """Outputs by name.

        Args:
            node_labels: [N] int64, position in the vocabulary; any other value is an unknown label
                (the zero vector). For models without given labels only N matters.
            edge_index: [2, E] int64, each edge once in each direction; nodes are numbered across
                the batch. Self-loops are ignored.
            ptr: [B + 1] int64, graph g has the nodes ptr[g] to ptr[g + 1] - 1.
            attributes: [N, a] float32, for models that read attributes.
            edge_labels: [E] int64, position in the vocabulary, for models that read edge labels.
                Edges with any other value are ignored.
        """
        graphs = FlatGraphs(node_labels, edge_index, ptr, edge_labels, self.edge_types or 1)
        return self.answers(graphs, node_labels, attributes)


MODULES: dict[Layout, Callable[[Members], ExportedModel]] = {
    Layout.PADDED: PaddedModel,
    Layout.SPARSE: SparseModel,
}


class _Vocabulary(nn.Module):
    """Maps a node's label or degree to a row of a table; the last row is "unknown"."""

    positions: Tensor

    def __init__(self, card: ModelCard) -> None:
        super().__init__()
        self.size = card.inputs.labels
        self.counts_degrees = self.size > 0 and card.label_source == LabelSource.DEGREE
        if self.counts_degrees:
            degrees = torch.tensor([int(value) for value in card.label_values])
            # By degree; unseen degrees, and the one above all others, are unknown.
            positions = torch.full((int(degrees.max()) + 2,), self.size)
            positions[degrees] = torch.arange(self.size)
            self.register_buffer("positions", positions)

    def forward(self, labels: Tensor, graphs: TracedGraphs) -> Tensor:
        """[rows] of label ids, or of node degrees if these are the labels."""
        if self.counts_degrees:
            known = graphs.degree.long().clamp(max=len(self.positions) - 1)
            return self.positions.index_select(0, known)
        return torch.where((labels >= 0) & (labels < self.size), labels, self.size)


def _spread(of_members: Tensor, predicted: Tensor) -> Tensor:
    """[B] the standard deviation over members [S, B, C] of the predicted class's probability.

    Sums are products with ones: for an empty batch, sums of onnxruntime have a wrong shape.
    """
    members, _, classes = of_members.shape
    winning = torch.where(predicted == torch.arange(classes), of_members, 0.0)
    winning = (winning @ of_members.new_ones(1, classes, 1)).squeeze(-1)
    average = of_members.new_full((1, members), 1 / members)
    return (average @ (winning - average @ winning).square()).squeeze(0).sqrt()
