"""ACM-GCN: a low-pass, a high-pass and an identity channel, mixed separately for each node.

Luan, Hua, Lu, Zhu, Zhao, Zhang, Chang, Precup 2022, Revisiting heterophily for graph neural
networks, NeurIPS. With P = D^(-1) (A + I), where D has the degrees of A + I, a layer is

    H_L = ReLU(P H W_L),   H_H = ReLU((I - P) H W_H),   H_I = ReLU(H W_I)           (ACM)
    H_L = P ReLU(H W_L),   H_H = (I - P) ReLU(H W_H),   H_I = ReLU(H W_I)           (ACMII)
    (a_L, a_H, a_I) = softmax([σ(H_L v_L), σ(H_H v_H), σ(H_I v_I)] M / T)   for each node
    H' = 3 (a_L H_L + a_H H_H + a_I H_I)

σ is the sigmoid, the v are vectors, M is a 3 x 3 matrix and T a temperature. The factor 3 is in the
authors' code, not in the paper's equation; with it, evenly mixed channels are summed. Weights are
initialized as in that code; there are no biases. Dropout precedes each layer, and a ReLU separates
layers.

Differences from the paper: the last layer is as wide as the others, since its output is summed over
the nodes and fed to a two-layer MLP, as in the IHGNN paper. ACM-GCN+ and ACM-GCN++ are not
included: their structure channel has one row of weights per node of a single fixed graph.
"""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import Hops, TracedHops, neighbours
from ihgnn_cli.models.baselines.pieces import SumClassifier
from ihgnn_cli.models.entries.acm import CHANNELS, ACMSettings, Order
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs


class ACMLayer(nn.Module):
    """Three channels and their mixture."""

    def __init__(self, before: int, settings: ACMSettings) -> None:
        super().__init__()
        after = settings.width
        bound = 1 / math.sqrt(after)
        # For the low-pass, high-pass and identity channels, in this order.
        self.weight = nn.Parameter(torch.empty(CHANNELS, before, after).uniform_(-bound, bound))
        self.score = nn.Parameter(torch.empty(CHANNELS, after).uniform_(-1, 1))
        bound = 1 / math.sqrt(CHANNELS)
        self.mix = nn.Parameter(torch.empty(CHANNELS, CHANNELS).uniform_(-bound, bound))
        self.order = settings.order
        self.temperature = settings.temperature

    def forward(self, h: Tensor, hops: Hops | TracedHops) -> Tensor:
        """[n, after] from h [n, before]."""
        # Apply weights first: the filters then act on fewer columns if there are many features.
        channels = torch.matmul(h, self.weight)
        channels = self.filtered(channels.relu() if self.order == Order.ACMII else channels, hops)
        channels = channels.relu() if self.order == Order.ACM else channels
        scores = (channels @ self.score.unsqueeze(2)).squeeze(2).T.sigmoid()
        share = (scores @ self.mix / self.temperature).softmax(1)
        low, high, own = (
            part * each for part, each in zip(share.T.unsqueeze(2), channels, strict=True)
        )
        mixed: Tensor = CHANNELS * (low + high + own)
        return mixed

    @staticmethod
    def filtered(channels: Tensor, hops: Hops | TracedHops) -> Tensor:
        """[3, n, after]: apply P to the first channel and I - P to the second; keep the third.

        P h = D^(-1) (A + I) h is the mean over a node and its neighbours.
        """
        low, high, own = channels
        both = torch.cat([low, high], dim=1)
        low, smooth = ((hops.sums(both).squeeze(1) + both) / (hops.counts + 1)).chunk(2, dim=1)
        return torch.stack([low, high - smooth, own])


class ACM(nn.Module):
    """One model."""

    def __init__(self, settings: ACMSettings, inputs: Inputs) -> None:
        super().__init__()
        widths = [inputs.features] + [settings.width] * (settings.layers - 1)
        self.layers = nn.ModuleList([ACMLayer(before, settings) for before in widths])
        self.readout = SumClassifier(settings.width, settings, inputs)
        self.dropout = settings.dropout

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        h, hops = graphs.x, neighbours(graphs)
        for at, layer in enumerate(self.layers):
            h = layer(F.dropout(h.relu() if at else h, self.dropout, self.training), hops)
        logits: Tensor = self.readout(h, graphs)
        return logits
