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

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.models.baselines.hops import neighbours
from ihgnn_cli.models.baselines.pieces import SumClassifier
from ihgnn_cli.models.entries.pcnet import PCNetSettings
from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs


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
        scale = (graphs.degree + 1) ** -self.power
        hops = neighbours(graphs, scale)
        diagonal = (scale.square() - self.beta).unsqueeze(1)
        shares = self.theta[1:] @ self.series
        z = (self.theta[0] + shares[0]) * h
        for share in shares[1:]:
            h = hops.normalized(h).squeeze(1) + diagonal * h
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
