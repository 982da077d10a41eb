"""PCNet: low-pass and high-pass filters in one, by Poisson-Charlier polynomials.

Li, Pan, Kang 2024, PC-Conv: Unifying homophily and heterophily with two-fold filtering, AAAI.

A filter (I - L)^k gathers what is near and alike (homophily); e^(tL), the graph's heat equation
with its sign turned, sharpens differences over long distances (heterophily). Their product has a
closed form as a series, as sum over n of C_n(k, t) w^n / n! = e^(-tw) (1 + w)^k:

    e^(tL) (I - L)^k = sum over n = 0, 1, ... of  C_n(k, t) / n! · (-L)^n

with the Poisson-Charlier polynomials C_0 = 1, C_1 = k - t and
C_(n+1) = (k - n - t) C_n - n t C_(n-1). PCNet cuts the series off after N terms and learns the
weights θ of K such filters:

    H = MLP(X),   Z = θ_0 H + sum over k = 1..K of θ_k · sum over n = 0..N-1 of C_n(k, t)/n! · W^n H
    W = D^(-c) (A + I) D^(-c) - β I,   where D has the degrees of A + I

This is the filter of the authors' code, whose W is -L for β = 1 and c = 1/2; there β, c, t, K and N
are searched for (as b, c, a, conv_layer and n_poly). The powers of W are shared by all k, so that
a pass takes N - 1 steps over the edges.

Different from the code: the MLP has a ReLU between its two layers for all data (there for the large
graph only); one rate of dropout on the features and the hidden layer; one learning rate and weight
decay for all weights (there three of each). H is as wide as the hidden layer, not as there are
classes, as Z is summed over the nodes and goes through a two-layer MLP (so the IHGNN paper). Z is
linear in H: which labels are neighbours of which shows only as far as the places of nodes differ.
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

_MOST_TERMS = 100  # beyond any use, and few enough that a file that is not trusted does no harm


@dataclass(frozen=True)
class PCNetSettings(ModelSettings):
    """`layers` is K, the filters; `width` that of the MLP and of what is filtered.

    Raises:
        InputError: a value is out of its range.
    """

    layers: int = 4
    width: int = 64
    terms: int = 5
    """N, the terms of each filter's series: a node sees others up to N - 1 steps away."""
    t: float = 1.0
    """How long heat flows back; 0 leaves the low-pass filters alone."""
    beta: float = 1.0
    """β, what is taken from the diagonal."""
    power: float = 0.5
    """c, the exponent of the degrees."""
    theta: float = 0.5
    """Where all K + 1 weights of the filters start."""
    walk_dropout: float = 0.5
    """Dropout on what is filtered."""

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
    # Of each term what its step passed on, for the gradient of the θ; of the MLP three masks of
    # dropout and two inputs; of an edge its ends and its weight.
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
        "5e-3 and three dropouts of 0 to 0.9. Here a few values of K, t, β (most that they found "
        "best are below 2) and one learning rate; the rest stays at its default."
    ),
    note=(
        "After the authors' code, with a ReLU in the MLP for all data. Sum pooling and a two-layer "
        "MLP on top. Linear between the first MLP and the pooling, so that it sees where labels "
        "stand, not which of them meet."
    ),
)
