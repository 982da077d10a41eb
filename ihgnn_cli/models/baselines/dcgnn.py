"""DCGNN: one deep convolution over whole neighbourhoods, in place of layers over neighbours.

Wu, Wang, Hu, Hu 2024, DCGNN: Adaptive deep graph convolution for heterophily graphs, Information
Sciences. THERE IS NO PUBLIC CODE, and this follows the paper's description rather than its
equations: message-passing layers cannot distinguish circles, which heterophilic graphs have many
of. One adaptive convolution over higher-order local neighbourhoods therefore replaces a stack of
first-order convolutions. The simplest choice is made for what the description leaves open:

    H = ReLU(X W + b)
    M_0 = H,   M_k = D_k^(-1/2) A_k D_k^(-1/2) H
    Z = sum over k = 0..K of γ_k ReLU(M_k W_k + b_k)

A_k joins the nodes whose shortest-path distance is exactly k; D_k has the degrees of A_k. Each
distance has its own weights W_k, b_k; the γ_k are learned, start at 1 / (K + 1), and may become
negative. Z is summed over the nodes and fed to a two-layer MLP. Dropout applies to H and in that
MLP.

In a short circle, no nodes are at larger distances: two triangles and a hexagon, which no number of
message-passing layers can distinguish, differ at distance 2. (The sums are normalized, so the
number of nodes at a distance only matters if it differs between nodes.)
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import within
from ihgnn_cli.models.baselines.pieces import SumClassifier
from ihgnn_cli.models.entries.dcgnn import DCGNNSettings
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs


class DCGNN(nn.Module):
    """One model."""

    def __init__(self, settings: DCGNNSettings, inputs: Inputs) -> None:
        super().__init__()
        orders = settings.layers + 1
        self.embed = nn.Linear(inputs.features, settings.width)
        self.orders = nn.ModuleList(
            [nn.Linear(settings.width, settings.width) for _ in range(orders)]
        )
        self.gamma = nn.Parameter(torch.full((orders,), 1 / orders))
        self.readout = SumClassifier(settings.width, settings, inputs)
        self.distance = settings.layers
        self.dropout = settings.dropout

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        h = F.dropout(self.embed(graphs.x).relu(), self.dropout, self.training)
        reached = within(graphs, self.distance).normalized(h)
        z = torch.zeros_like(h)
        for order, m, gamma in zip(self.orders, (h, *reached.unbind(1)), self.gamma, strict=True):
            z = z + gamma * order(m).relu()
        logits: Tensor = self.readout(z, graphs)
        return logits
