"""GPR-GNN: learned weights of the steps of a random walk.

Chien, Peng, Li, Milenkovic 2021, Adaptive universal generalized PageRank graph neural network,
ICLR.

    H_0 = MLP(X),   H_k = P H_(k-1),   Z = sum over k = 0..K of γ_k H_k

P = D^(-1/2) (A + I) D^(-1/2) where D has the degrees of A + I. The γ_k are learned and may become
negative, which makes the walk a high-pass filter. The MLP has two layers with a ReLU between.

As in the authors' code, dropout applies to the features, the hidden layer and H_0. Differences from
the paper: H_0 is as wide as the hidden layer instead of having one column per class, since Z is
summed over the nodes and fed to a two-layer MLP, as in the IHGNN paper. All weights, including the
γ, have the same weight decay; the authors' code gives the γ none. The initialization "SGC", one γ
at a chosen step, is only available as PPR with alpha 0 (the last step) and 1 (no step).

The sum of Z over the nodes is a sum of MLP(x) over them, weighted by each node's position in the
graph. It shows which labels are neighbours only as far as the nodes' positions differ.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import neighbours
from ihgnn_cli.models.baselines.pieces import SumClassifier
from ihgnn_cli.models.entries.gprgnn import GammaInit, GPRGNNSettings
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs


class GPRGNN(nn.Module):
    """One model."""

    def __init__(self, settings: GPRGNNSettings, inputs: Inputs) -> None:
        super().__init__()
        self.first = nn.Linear(inputs.features, settings.width)
        self.second = nn.Linear(settings.width, settings.width)
        self.gamma = nn.Parameter(start_of_gamma(settings))
        self.readout = SumClassifier(settings.width, settings, inputs)
        self.dropout = settings.dropout
        self.walk_dropout = settings.walk_dropout

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        hidden = self.first(F.dropout(graphs.x, self.dropout, self.training)).relu()
        h = self.second(F.dropout(hidden, self.dropout, self.training))
        h = F.dropout(h, self.walk_dropout, self.training)
        inverse = (graphs.degree + 1).rsqrt()
        hops, own = neighbours(graphs, inverse), inverse.square().unsqueeze(1)
        z = self.gamma[0] * h
        for gamma in self.gamma[1:]:
            h = hops.normalized(h).squeeze(1) + own * h
            z = z + gamma * h
        logits: Tensor = self.readout(z, graphs)
        return logits


def start_of_gamma(settings: GPRGNNSettings) -> Tensor:
    """[K + 1] the weights of the steps before training."""
    steps, alpha = settings.layers, settings.alpha
    match settings.init:
        case GammaInit.PPR:
            last = [(1 - alpha) ** steps]
            return torch.tensor([alpha * (1 - alpha) ** k for k in range(steps)] + last)
        case GammaInit.NPPR:
            gamma = torch.tensor([alpha**k for k in range(steps + 1)])
        case GammaInit.RANDOM:
            gamma = torch.rand(steps + 1) * 2 - 1
    return gamma / gamma.abs().sum()
