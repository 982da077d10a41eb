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

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import kept_of_pairs, likely_pairs, within
from ihgnn_cli.models.baselines.pieces import SumClassifier
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs, ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec


@dataclass(frozen=True)
class DCGNNSettings(ModelSettings):
    """`layers` is K, the largest distance; `width` is the width of H and Z.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 3
    width: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 1)


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


def _numbers(settings: DCGNNSettings, load: Load) -> float:
    # For each distance its sum and its output; for H the ReLU and the dropout; for each pair its
    # ends and its weight.
    rows = load.nodes * settings.width * (2 * (settings.layers + 1) + 2)
    pairs = likely_pairs(load, settings.layers)
    return rows + 3 * pairs + load.graphs * settings.hidden * 3


MODEL = ModelSpec(
    name="dcgnn",
    title="DCGNN",
    reference="Wu et al. 2024, DCGNN: Adaptive deep graph convolution for heterophily graphs",
    settings=DCGNNSettings,
    cost=Cost.HOPS,
    numbers=_numbers,
    derived=lambda settings, load: kept_of_pairs(load, settings.layers),
    make=DCGNN,
    grid={
        "layers": (2, 3, 4),
        "lr": (0.001, 0.01),
        "dropout": (0.0, 0.5),
        "weight_decay": (0.0, 0.0005),
    },
    grid_source=(
        "NOT the paper's own grid: neither its text nor the authors' code was available. These are "
        "values that the other methods for heterophily search, and distances up to 2, 3 or 4."
    ),
    note=(
        "There is no public code. This follows the paper's description (adaptive aggregation of "
        "higher-order local neighbourhoods instead of stacked layers): one sum over the nodes at "
        "each shortest-path distance, with its own weights, and learned weights of the distances. "
        "Sum pooling and a two-layer MLP on top."
    ),
)
