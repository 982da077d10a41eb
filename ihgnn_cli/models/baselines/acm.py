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
from dataclasses import dataclass
from enum import StrEnum

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.baselines.hops import Hops, neighbours
from ihgnn_cli.models.baselines.pieces import SumClassifier
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs, ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec

_CHANNELS = 3


class Order(StrEnum):
    """Order of filter and ReLU in a channel."""

    ACM = "acm"
    """The filter, then the ReLU."""
    ACMII = "acmii"
    """The ReLU, then the filter."""


@dataclass(frozen=True)
class ACMSettings(ModelSettings):
    """`layers` counts the layers that mix channels; `width` is the width of their outputs.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 2
    width: int = 64
    order: Order = Order.ACM
    temperature: float = 3.0
    """T; a higher value mixes the channels more evenly."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 1)
        if not 0 < self.temperature < math.inf:
            raise InputError(f"temperature must be above 0, not {self.temperature:g}.")


class ACMLayer(nn.Module):
    """Three channels and their mixture."""

    def __init__(self, before: int, settings: ACMSettings) -> None:
        super().__init__()
        after = settings.width
        bound = 1 / math.sqrt(after)
        # For the low-pass, high-pass and identity channels, in this order.
        self.weight = nn.Parameter(torch.empty(_CHANNELS, before, after).uniform_(-bound, bound))
        self.score = nn.Parameter(torch.empty(_CHANNELS, after).uniform_(-1, 1))
        bound = 1 / math.sqrt(_CHANNELS)
        self.mix = nn.Parameter(torch.empty(_CHANNELS, _CHANNELS).uniform_(-bound, bound))
        self.order = settings.order
        self.temperature = settings.temperature

    def forward(self, h: Tensor, hops: Hops) -> Tensor:
        """[n, after] from h [n, before]."""
        # Apply weights first: the filters then act on fewer columns if there are many features.
        channels = torch.matmul(h, self.weight)
        channels = self.filtered(channels.relu() if self.order == Order.ACMII else channels, hops)
        channels = channels.relu() if self.order == Order.ACM else channels
        scores = torch.einsum("cnw,cw->nc", channels, self.score).sigmoid()
        share = (scores @ self.mix / self.temperature).softmax(1)
        return _CHANNELS * torch.einsum("nc,cnw->nw", share, channels)

    @staticmethod
    def filtered(channels: Tensor, hops: Hops) -> Tensor:
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


def _numbers(settings: ACMSettings, load: Load) -> float:
    # Rows of a layer's width: the three channels (ACMII: before and after the filter), the mixture,
    # and, in all but the first layer, the ReLU and the dropout before it. What the first layer
    # keeps of the features is left out, since a load does not include their number.
    channels = _CHANNELS * (2 if settings.order == Order.ACMII else 1) + 1
    rows = channels * settings.layers + 2.5 * (settings.layers - 1)
    return load.nodes * settings.width * rows + 3 * (load.edges + load.graphs * settings.hidden)


MODEL = ModelSpec(
    name="acm",
    title="ACM",
    reference="Luan et al. 2022, Revisiting heterophily for graph neural networks",
    settings=ACMSettings,
    cost=Cost.EDGES,
    numbers=_numbers,
    make=ACM,
    grid={
        "lr": (0.01, 0.05, 0.1),
        "weight_decay": (0.0, 5e-5, 5e-3),
        "dropout": (0.0, 0.3, 0.6),
    },
    grid_source=(
        "The search of the authors' code (hyperparameter_searching.py), for node classification "
        "with 64 hidden units: learning rate 0.01, 0.05 or 0.1; weight decay 0 or 5e-6 to 1e-2 in "
        "nine steps; dropout 0 to 0.9 in ten steps. Here weight decay and dropout have three "
        "values each, over most of their range."
    ),
    note=(
        'ACM-GCN (`order = "acmii"` is ACMII-GCN), without the structure channel of ACM-GCN+ and '
        "ACM-GCN++, which is made for a single graph. Sum pooling and a two-layer MLP on top."
    ),
)
