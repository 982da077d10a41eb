"""The model as one writes it in torch for padded graphs.

Linear, BatchNorm and ReLU as modules, as in the tests' reference; one-hot labels; padding up to m.
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

TESTS = Path(__file__).parent.parent / "tests"  # the plain model is the tests' reference
sys.path.insert(0, str(TESTS))

from plain_ihgnn import PlainIHGNN  # noqa: E402


class PaddedPlain(PlainIHGNN):
    """The full model; graphs padded to m, labels -1 where there is no node or no known label."""

    def forward(self, node_labels: Tensor, adjacency: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, probabilities and the hidden layer."""
        real = node_labels >= 0
        labels = self.input[0].in_features
        x = nn.functional.one_hot(node_labels.clamp(min=0), labels).float()
        edges = adjacency.float()
        h = self._mlp(self.input, x)
        layers = [h]
        for layer in self.layers:
            around = edges @ h
            h = self._mlp(layer, torch.cat([h, around, h + around], dim=2))
            layers.append(h)
        h = sum(theta * layer for theta, layer in zip(self.theta, layers, strict=True))
        h = h.masked_fill(~real.unsqueeze(2), 0)
        order = h[:, :, -1].masked_fill(~real, torch.inf).argsort(dim=1)
        dense = h.gather(1, order.unsqueeze(2).expand_as(h))
        hidden = self.classifier[1](self.classifier[0](dense.flatten(1)))
        logits = self.classifier[3](self.classifier[2](hidden))
        return logits, logits.softmax(1), hidden

    @staticmethod
    def _mlp(mlp: nn.Module, x: Tensor) -> Tensor:
        return mlp(x.flatten(0, 1)).view(*x.shape[:2], -1)
