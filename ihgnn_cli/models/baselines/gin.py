"""GIN, the graph isomorphism network.

Xu, Hu, Leskovec and Jegelka 2019, How powerful are graph neural networks?, ICLR.

    h_v^(0) = x_v
    h_v^(k) = ReLU(BN(MLP^(k)((1 + eps^(k)) h_v^(k-1) + sum of h_u^(k-1) over neighbours u of v)))
    logits  = sum over k = 0 .. K of dropout(W_k (sum of h_v^(k) over the graph's nodes) + b_k)

The second line is equation 4.1, the last their readout of all layers (equation 4.2) with one linear
map per layer: a linear map of the concatenation is the sum of these. MLPs have two linear maps with
batch normalization and ReLU between (section 7). Batch normalization and ReLU also follow the MLP,
and dropout applies to the scores of each layer, as in the authors' code (weihua916/powerful-gnns).

eps is 0 (GIN-0, which does better in their Table 1) or learned, starting at 0 (GIN-eps). K counts
rounds of message passing: their "5 layers including the input layer" are K = 4. They halve the
learning rate every 50 epochs; here the caller chooses the schedule.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import neighbours
from ihgnn_cli.models.baselines.pieces import Norm, mlp
from ihgnn_cli.models.entries.gin import GINSettings
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs


class GIN(nn.Module):
    """Rounds of sum and MLP; the scores of all rounds are added."""

    eps: Tensor

    def __init__(self, settings: GINSettings, inputs: Inputs) -> None:
        super().__init__()
        self.dropout = settings.dropout
        width = settings.width
        before = [inputs.features] + [width] * settings.layers
        self.rounds = nn.ModuleList(
            nn.Sequential(mlp(each, width, width, norm=True), Norm(width), nn.ReLU())
            for each in before[:-1]
        )
        eps = torch.zeros(settings.layers)
        if settings.learn_eps:
            self.eps = nn.Parameter(eps)
        else:
            self.register_buffer("eps", eps)
        self.scores = nn.ModuleList(nn.Linear(each, inputs.classes) for each in before)

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        h, neighbors = graphs.x, neighbours(graphs)
        logits = self._scores(0, h, graphs)
        for at, round_ in enumerate(self.rounds):
            h = round_((1 + self.eps[at]) * h + neighbors.sum(h))
            logits = logits + self._scores(at + 1, h, graphs)
        return logits

    def _scores(self, at: int, h: Tensor, graphs: Graphs) -> Tensor:
        scores = self.scores[at](graphs.sum_nodes(h))
        return F.dropout(scores, self.dropout, self.training)
