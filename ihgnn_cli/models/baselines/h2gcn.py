"""H2GCN: separates a node, its neighbours and their neighbours, and concatenates all rounds.

Zhu, Yan, Zhao, Heimann, Akoglu, Koutra 2020, Beyond homophily in graph neural networks: current
limitations and effective designs, NeurIPS.

    R_0 = σ(X W)
    R_k = [P_1 R_(k-1), P_2 R_(k-1)],   P_d = D_d^(-1/2) A_d D_d^(-1/2)
    Z = dropout([R_0, R_1, ..., R_K])

A_d joins the nodes whose shortest-path distance is exactly d, so A_1 = A without self-loops, and
A_2 excludes a node itself and its neighbours; D_d has the degrees of A_d. σ is a ReLU or the
identity. [ , ] concatenates: R_k is 2^k times as wide as R_0, and Z is 2^(K+1) - 1 times as wide.

Differences from the paper: instead of a softmax of Z W_c for each node, Z is summed over the nodes
and fed to a two-layer MLP, as in the IHGNN paper. Between R_0 and that sum, only dropout is
nonlinear, so the sum shows which labels are neighbours only as far as the nodes' positions differ.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import within
from ihgnn_cli.models.baselines.pieces import SumClassifier
from ihgnn_cli.models.entries.h2gcn import DISTANCE, H2GCNSettings
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs


class H2GCN(nn.Module):
    """One model."""

    def __init__(self, settings: H2GCNSettings, inputs: Inputs) -> None:
        super().__init__()
        self.embed = nn.Linear(inputs.features, settings.width, bias=False)
        self.readout = SumClassifier(settings.final_width, settings, inputs)
        self.layers = settings.layers
        self.relu = settings.relu
        self.dropout = settings.dropout

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        r = self.embed(graphs.x)
        rounds = [r.relu() if self.relu else r]
        hops = within(graphs, DISTANCE)
        for _ in range(self.layers):
            rounds.append(hops.normalized(rounds[-1]).flatten(1))
        z = F.dropout(torch.cat(rounds, dim=1), self.dropout, self.training)
        logits: Tensor = self.readout(z, graphs)
        return logits
