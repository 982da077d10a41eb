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

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import kept_of_pairs, likely_pairs, within
from ihgnn_cli.models.baselines.pieces import SumClassifier
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs, ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec

_DISTANCE = 2
# Z is 2^(K+1) - 1 times as wide as R_0: at ten rounds of width 64, 131,008 numbers per node.
_MOST_ROUNDS = 10


@dataclass(frozen=True)
class H2GCNSettings(ModelSettings):
    """`layers` is K, the rounds; `width` is the width of R_0, which doubles with each round.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 2
    width: int = 64
    relu: bool = True
    """Whether σ is a ReLU or the identity."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 0, _MOST_ROUNDS)

    @property
    def final_width(self) -> int:
        """Width of all rounds together."""
        return self.width * ((1 << self.layers + 1) - 1)


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
        hops = within(graphs, _DISTANCE)
        for _ in range(self.layers):
            rounds.append(hops.normalized(rounds[-1]).flatten(1))
        z = F.dropout(torch.cat(rounds, dim=1), self.dropout, self.training)
        logits: Tensor = self.readout(z, graphs)
        return logits


def _numbers(settings: H2GCNSettings, load: Load) -> float:
    # Mostly all rounds together, whose width doubles each time, and their dropout mask; then σ, the
    # graphs' sums, and for each pair its two ends and its weight.
    rows = load.nodes * (2 * settings.final_width + settings.width)
    graphs = load.graphs * (settings.final_width + 3 * settings.hidden)
    return rows + graphs + 3 * likely_pairs(load, _DISTANCE)


MODEL = ModelSpec(
    name="h2gcn",
    title="H2GCN",
    reference="Zhu et al. 2020, Beyond homophily in graph neural networks",
    settings=H2GCNSettings,
    cost=Cost.HOPS,
    numbers=_numbers,
    derived=lambda _settings, load: kept_of_pairs(load, _DISTANCE),
    make=H2GCN,
    grid={
        "layers": (1, 2),
        "relu": (True, False),
        "dropout": (0.0, 0.5),
        "weight_decay": (1e-5, 5e-4),
        "lr": (0.01,),
    },
    grid_source=(
        "The authors' code (configs/real-geomgcn/h2gcn.json), for node classification on real "
        "graphs, all 16 combinations: H2GCN-1 or H2GCN-2, with or without ReLU, dropout 0 or 0.5, "
        "L2 1e-5 or 5e-4 (here as weight decay); 64 hidden units and the code's default learning "
        "rate."
    ),
    note=(
        "H2GCN-K with K = `layers`. Sum pooling and a two-layer MLP on top. Linear between the "
        "first layer and the pooling, so it sees where labels are, not which are neighbours."
    ),
)
