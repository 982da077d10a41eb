"""PCNet: low-pass and high-pass filters in one, by Poisson-Charlier polynomials.

Li, Pan, Kang 2024, PC-Conv: Unifying homophily and heterophily with two-fold filtering, AAAI.

A filter (I - L)^k averages over near and similar nodes (homophily); e^(tL), the graph's heat
equation with reversed sign, sharpens differences over long distances (heterophily). Their product
is a closed-form series, since sum over n of C_n(k, t) w^n / n! = e^(-tw) (1 + w)^k:

    e^(tL) (I - L)^k = sum over n = 0, 1, ... of  C_n(k, t) / n! · (-L)^n

with the Poisson-Charlier polynomials C_0 = 1, C_1 = k - t and
C_(n+1) = (k - n - t) C_n - n t C_(n-1). PCNet cuts the series off after N terms and learns the
weights θ of K such filters:

    H = MLP(X),   Z = θ_0 H + sum over k = 1..K of θ_k · sum over n = 0..N-1 of C_n(k, t)/n! · W^n H
    W = D^(-c) (A + I) D^(-c) - β I,   where D has the degrees of A + I

This is the filter of the authors' code, whose W is -L for β = 1 and c = 1/2. The code searches β,
c, t, K and N (as b, c, a, conv_layer and n_poly). All k share the powers of W, so a pass takes
N - 1 steps over the edges.

Differences from the code: the MLP always has a ReLU between its two layers (there only for the
large graph); features and hidden layer share one dropout rate; all weights share one learning rate
and weight decay (there three of each). H is as wide as the hidden layer instead of having one
column per class, since Z is summed over the nodes and fed to a two-layer MLP, as in the IHGNN
paper. Z is linear in H, so the sum shows which labels are neighbours only as far as the nodes'
positions differ.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.baselines.hops import neighbours
from ihgnn_cli.models.baselines.pieces import SumClassifier
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs, ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec

_MOST_TERMS = 100  # far above any real use, and low enough that an untrusted file does no harm


@dataclass(frozen=True)
class PCNetSettings(ModelSettings):
    """`layers` is K, the number of filters; `width` is the width of the MLP and of H.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 4
    width: int = 64
    terms: int = 5
    """N, the number of terms per filter: a node sees others up to N - 1 steps away."""
    t: float = 1.0
    """t, the time of the reversed heat flow; 0 leaves only the low-pass filters."""
    beta: float = 1.0
    """β, subtracted from the diagonal."""
    power: float = 0.5
    """c, the exponent of the degrees."""
    theta: float = 0.5
    """Initial value of all K + 1 filter weights."""
    walk_dropout: float = 0.5
    """Dropout rate on H."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("terms", 1, _MOST_TERMS)
        for name in ("t", "beta", "power"):
            self.require(name, 0)
        if not 0 <= self.walk_dropout < 1:
            rate = f"{self.walk_dropout:g}"
            raise InputError(f"walk_dropout must be at least 0 and below 1, not {rate}.")


class PCNet(nn.Module):
    """One model."""

    series: Tensor

    def __init__(self, settings: PCNetSettings, inputs: Inputs) -> None:
        super().__init__()
        self.first = nn.Linear(inputs.features, settings.width)
        self.second = nn.Linear(settings.width, settings.width)
        self.theta = nn.Parameter(torch.full((settings.layers + 1,), settings.theta))
        self.readout = SumClassifier(settings.width, settings, inputs)
        self.register_buffer("series", series_of(settings))
        self.dropout = settings.dropout
        self.walk_dropout = settings.walk_dropout
        self.beta = settings.beta
        self.power = settings.power

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        hidden = self.first(F.dropout(graphs.x, self.dropout, self.training)).relu()
        h = self.second(F.dropout(hidden, self.dropout, self.training))
        h = F.dropout(h, self.walk_dropout, self.training)
        hops = neighbours(graphs)
        scale = (graphs.degree + 1) ** -self.power
        sender, receiver = graphs.edge_index
        weight = scale[sender] * scale[receiver]
        diagonal = (scale.square() - self.beta).unsqueeze(1)
        shares = self.theta[1:] @ self.series
        z = (self.theta[0] + shares[0]) * h
        for share in shares[1:]:
            h = hops.weighted(h, weight).squeeze(1) + diagonal * h
            z = z + share * h
        logits: Tensor = self.readout(z, graphs)
        return logits


def series_of(settings: PCNetSettings) -> Tensor:
    """[K, N] C_n(k, t) / n! for k = 1..K and n = 0..N-1."""
    rows = [charlier(k, settings.t, settings.terms) for k in range(1, settings.layers + 1)]
    divided = [[c / math.factorial(n) for n, c in enumerate(row)] for row in rows]
    return torch.tensor(divided).reshape(settings.layers, settings.terms)


def charlier(k: int, t: float, terms: int) -> list[float]:
    """The Poisson-Charlier polynomials C_0(k, t) up to C_(terms - 1)(k, t)."""
    found = [1.0]
    before = 0.0
    for n in range(terms - 1):
        found.append((k - n - t) * found[-1] - n * t * before)
        before = found[-2]
    return found


def _numbers(settings: PCNetSettings, load: Load) -> float:
    # For each term its step's output, for the gradient of the θ; for the MLP three dropout masks
    # and two inputs; for an edge its ends and its weight.
    rows = load.nodes * settings.width
    return rows * (settings.terms + 4) + 6 * load.edges + load.graphs * settings.hidden * 3


MODEL = ModelSpec(
    name="pcnet",
    title="PCNet",
    reference=(
        "Li et al. 2024, PC-Conv: Unifying homophily and heterophily with two-fold filtering"
    ),
    settings=PCNetSettings,
    cost=Cost.EDGES,
    numbers=_numbers,
    make=PCNet,
    grid={
        "layers": (4, 6),
        "t": (0.0, 1.0, 2.0),
        "beta": (1.0, 1.5),
        "lr": (0.005, 0.05),
    },
    grid_source=(
        "The Optuna search of the authors' code (training.py), for node classification with 64 "
        "hidden units: K 4, 5 or 6; N 4, 5, 6 or 10; t 0 to 2, β 1 to 4 and c 0 to 0.8 in small "
        "steps; θ from 0.5 to 2; three learning rates of 0.005 to 0.1, three weight decays of 0 to "
        "5e-3 and three dropouts of 0 to 0.9. Here a few values of K, t, β (most of their best "
        "values are below 2) and one learning rate; the rest keeps its default."
    ),
    note=(
        "Follows the authors' code, with a ReLU in the MLP for all data. Sum pooling and a "
        "two-layer MLP on top. Linear between the first MLP and the pooling, so it sees where "
        "labels are, not which are neighbours."
    ),
)
