"""Aggregation of the K + 1 layers: the paper's learned sum, or its ablation.

H = sum over k = 0..K of theta_k · H^(k)                      (the paper's single-layer perceptron)
"""

import math

import torch
from torch import Tensor, nn

from ihgnn_cli.models.settings import ThetaInit
from ihgnn_cli.models.stacked.mlp import Generators, Tape, gradient_of, uniform

Share = tuple[Tensor, Tensor]
"""Two factors of the gradient to a layer; the first has the layer's shape."""


class AdaptiveSum(nn.Module):
    """H = sum of theta_k · H^(k), with K + 1 learned scalars.

    theta must not start at 0: the layers would get no gradient, and after a ReLU theta neither.
    """

    def __init__(self, generators: Generators, layers: int, init: ThetaInit) -> None:
        super().__init__()
        count = layers + 1
        if init == ThetaInit.GLOROT:
            self.theta = uniform(generators, (count,), math.sqrt(3 / count))
        else:
            start = 1.0 if init == ThetaInit.ONES else 1 / count
            self.theta = nn.Parameter(torch.full((len(generators), count), start))

    def forward(self, layers: Tensor, tape: Tape | None) -> Tensor:
        """[S, R, width] from layers [K + 1, S, R, width]."""
        stacked = layers.flatten(2).transpose(0, 1)
        if tape is not None:
            tape.append(stacked)
        return torch.bmm(self.theta.unsqueeze(1), stacked).view(layers.shape[1:])

    def backward(self, gradient: Tensor, tape: Tape) -> list[Share]:
        """The gradient to each of the layers."""
        stacked = tape.pop()
        to_theta = gradient_of(self.theta).unsqueeze(-1)
        torch.bmm(stacked, gradient.view(len(gradient), -1, 1), out=to_theta)
        return [(gradient, theta) for theta in self.theta[:, :, None, None].unbind(1)]


class LayerConcat(nn.Module):
    """H = H^(0) || ... || H^(K): the ablation w/o-Adapt."""

    def forward(self, layers: Tensor, tape: Tape | None) -> Tensor:
        """[S, R, (K + 1) · width] from layers [K + 1, S, R, width]."""
        if tape is not None:
            tape.append(len(layers))
        return torch.cat(layers.unbind(), dim=-1)

    def backward(self, gradient: Tensor, tape: Tape) -> list[Share]:
        """The gradient to each of the layers."""
        one = gradient.new_ones(1)
        return [(part, one) for part in gradient.chunk(tape.pop(), dim=-1)]
