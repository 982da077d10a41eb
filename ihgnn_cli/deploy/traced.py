"""Any model that is a torch module on `Graphs`, on the inputs of an exported file.

The model's own `forward` runs on `models.traced` graphs, which are built from the inputs here. Only
for inference.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ihgnn_cli.deploy.folded import Outputs, Vocabulary, combined
from ihgnn_cli.deploy.inputs import PADDING
from ihgnn_cli.deploy.padded import edges_between
from ihgnn_cli.deploy.sparse import Edges, GraphRows, neighbor_ends
from ihgnn_cli.models.traced import FlatGraphs, PaddedGraphs, TracedGraphs
from ihgnn_cli.training.checkpoint import Checkpoint


class TracedModel(nn.Module):
    """All members of a checkpoint as one model."""

    table: Tensor

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        card = checkpoint.card
        self.vocabulary = Vocabulary(card)
        self.classes = card.inputs.classes
        # The last row is for unknown labels.
        self.register_buffer("table", torch.eye(card.inputs.labels + 1)[:, :-1])
        self.members = nn.ModuleList(checkpoint.saved.modules())
        self.float().eval()

    def answers(self, graphs: TracedGraphs) -> Outputs:
        """The outputs of the ensemble.

        The embedding is the input of the last linear map to classes; a model without such a map has
        none.
        """
        found = []
        for member in self.members:
            with _recorded(member, self.classes) as inputs:
                answer = member(graphs)
            logits = answer[0] if isinstance(answer, tuple) else answer
            outputs = {"logits": logits}
            # A map that is applied to nodes has other rows than graphs.
            rows = [x for x in inputs if statically_known_true(x.shape[0] == logits.shape[0])]
            if rows:
                outputs["graph_embedding"] = rows[-1]
            found.append(outputs)
        if len(found) == 1:
            return combined(found[0], 1)
        of_all = {name: torch.stack([each[name] for each in found]) for name in found[0]}
        return combined(of_all, len(found))

    def features(self, row: Tensor, attributes: Tensor | None) -> Tensor:
        """[rows, features] the attributes, then the one-hot label."""
        x = self.table.index_select(0, row.flatten())
        return x if attributes is None else torch.cat([attributes.flatten(0, -2), x], dim=1)


class PaddedModel(TracedModel):
    """A model on graphs padded to one size; inputs as in `padded.PaddedIHGNN`."""

    def forward(
        self, node_labels: Tensor, adjacency: Tensor, attributes: Tensor | None = None
    ) -> Outputs:
        """Outputs as in `answers`."""
        mask = node_labels != PADDING
        edges = edges_between(mask, adjacency.bool()) * mask.unsqueeze(2)
        row = self.vocabulary.rows(node_labels, lambda: edges.sum(2).long())
        x = torch.where(mask.view(-1, 1), self.features(row, attributes), 0.0)
        return self.answers(PaddedGraphs(x, mask, edges))


class SparseModel(TracedModel):
    """A model on nodes and edges; inputs as in `sparse.SparseIHGNN`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint)
        self.neighbor_ends = list(neighbor_ends(checkpoint.card))

    def forward(
        self,
        node_labels: Tensor,
        edge_index: Tensor,
        ptr: Tensor,
        attributes: Tensor | None = None,
    ) -> Outputs:
        """Outputs as in `answers`."""
        none = torch.zeros_like(node_labels)
        rows, edges = GraphRows(ptr, none), Edges(edge_index, none, self.neighbor_ends)
        row = self.vocabulary.rows(node_labels, lambda: edges.degree)
        return self.answers(
            FlatGraphs(
                x=self.features(row, attributes),
                edges=edges.edge_index,
                graph=rows.of_node[:-1],
                count=rows.count,
                degree=edges.degree.float(),
                spread=edges.spread,
            )
        )


@contextmanager
def _recorded(module: nn.Module, classes: int) -> Iterator[list[Tensor]]:
    """The inputs [B, *] of the module's linear maps to classes, in the order of their use."""
    inputs: list[Tensor] = []

    def keep(linear: nn.Module, given: tuple[Any, ...]) -> None:
        if linear.out_features == classes and given[0].dim() == 2:
            inputs.append(given[0])

    linear = [each for each in module.modules() if isinstance(each, nn.Linear)]
    hooks = [each.register_forward_pre_hook(keep) for each in linear]
    try:
        yield inputs
    finally:
        for hook in hooks:
            hook.remove()
