"""What several baselines are made of."""

from itertools import pairwise

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs, ModelSettings


class Norm(nn.BatchNorm1d):
    """Batch normalization that takes one row, too: with the running statistics."""

    def forward(self, x: Tensor) -> Tensor:
        """[rows, width]."""
        if self.training and len(x) < 2:
            return F.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(x)


def mlp(*widths: int, norm: bool = False) -> nn.Sequential:
    """Linear maps from width to width with a ReLU between, behind a `Norm` where asked for."""
    pieces: list[nn.Module] = []
    for before, after in pairwise(widths):
        if pieces:
            pieces += [Norm(before)] * norm + [nn.ReLU()]
        pieces.append(nn.Linear(before, after))
    return nn.Sequential(*pieces)


class Classifier(nn.Module):
    """Linear, ReLU, dropout, Linear: logits of graph vectors."""

    def __init__(self, width: int, settings: ModelSettings, inputs: Inputs) -> None:
        super().__init__()
        self.first = nn.Linear(width, settings.hidden)
        self.second = nn.Linear(settings.hidden, inputs.classes)
        self.dropout = settings.dropout

    def forward(self, vectors: Tensor) -> Tensor:
        """[B, classes] of [B, width]."""
        hidden = F.dropout(self.first(vectors).relu(), self.dropout, self.training)
        logits: Tensor = self.second(hidden)
        return logits


class SumClassifier(nn.Module):
    """Sum pooling and a two-layer MLP: how the paper makes methods for nodes ones for graphs."""

    def __init__(self, width: int, settings: ModelSettings, inputs: Inputs) -> None:
        super().__init__()
        self.classifier = Classifier(width, settings, inputs)

    def forward(self, h: Tensor, graphs: Graphs) -> Tensor:
        """[B, classes] of the nodes' h [n, width]."""
        logits: Tensor = self.classifier(graphs.sum_nodes(h))
        return logits


def symmetric_norm(graphs: Graphs, *, self_loops: bool) -> tuple[Tensor, Tensor]:
    """Edges and weights of D^(-1/2) A D^(-1/2), of A + I where there are self-loops.

    Returns:
        edge_index [2, E'] and weight [E']; isolated nodes without self-loops have no edges.
    """
    degree = graphs.degree + self_loops
    inverse = torch.where(degree > 0, degree.clamp(min=1).rsqrt(), 0.0)
    edge_index = graphs.edge_index
    if self_loops:
        loops = torch.arange(len(graphs.x), device=graphs.x.device).expand(2, -1)
        edge_index = torch.cat([edge_index, loops], dim=1)
    return edge_index, inverse[edge_index[0]] * inverse[edge_index[1]]
