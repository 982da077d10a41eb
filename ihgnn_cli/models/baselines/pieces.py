"""Building blocks that several baselines share."""

from itertools import pairwise

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs, ModelSettings


class Norm(nn.BatchNorm1d):
    """Batch normalization that also accepts one row, by using the running statistics."""

    def forward(self, x: Tensor) -> Tensor:
        """[rows, width]."""
        if self.training and len(x) < 2:
            return F.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(x)


def mlp(*widths: int, norm: bool = False) -> nn.Sequential:
    """Linear maps from width to width with a ReLU between, optionally after a `Norm`."""
    pieces: list[nn.Module] = []
    for before, after in pairwise(widths):
        if pieces:
            pieces += [Norm(before)] * norm + [nn.ReLU()]
        pieces.append(nn.Linear(before, after))
    return nn.Sequential(*pieces)


class Classifier(nn.Module):
    """Linear, ReLU, dropout, Linear: logits from graph vectors."""

    def __init__(self, width: int, settings: ModelSettings, inputs: Inputs) -> None:
        super().__init__()
        self.first = nn.Linear(width, settings.hidden)
        self.second = nn.Linear(settings.hidden, inputs.classes)
        self.dropout = settings.dropout

    def forward(self, vectors: Tensor) -> Tensor:
        """[B, classes] from [B, width]."""
        hidden = F.dropout(self.first(vectors).relu(), self.dropout, self.training)
        logits: Tensor = self.second(hidden)
        return logits


class SumClassifier(nn.Module):
    """Sum pooling and a two-layer MLP: how the paper adapts node methods to graphs."""

    def __init__(self, width: int, settings: ModelSettings, inputs: Inputs) -> None:
        super().__init__()
        self.classifier = Classifier(width, settings, inputs)

    def forward(self, h: Tensor, graphs: Graphs) -> Tensor:
        """[B, classes] from the nodes' h [n, width]."""
        logits: Tensor = self.classifier(graphs.sum_nodes(h))
        return logits
