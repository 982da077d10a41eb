"""A straightforward torch version of the model for padded graphs.

Linear, BatchNorm and ReLU are modules, as in `ihgnn_cli.IHGNN`; labels are one-hot; graphs are
padded to m.
"""

import torch
from torch import Tensor, nn

from ihgnn_cli.models.ihgnn import IHGNN


class PaddedPlain(IHGNN):
    """The full model; graphs are padded to m, with label -1 for padding and unknown labels."""

    def forward(self, node_labels: Tensor, adjacency: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits, probabilities and the hidden layer."""
        real = node_labels >= 0
        labels = self.input.first.in_features
        x = nn.functional.one_hot(node_labels.clamp(min=0), labels).float()
        edges = adjacency.float()
        h = self._mlp(self.input, x)
        layers = [h]
        for conv in self.convs:
            around = edges @ h
            h = self._mlp(conv.mlp, torch.cat([h, around, h + around], dim=2))
            layers.append(h)
        h = sum(theta * layer for theta, layer in zip(self.theta, layers, strict=True))
        h = h.masked_fill(~real.unsqueeze(2), 0)
        order = h[:, :, -1].masked_fill(~real, torch.inf).argsort(dim=1)
        dense = h.gather(1, order.unsqueeze(2).expand_as(h))
        hidden = self.classifier.relu(self.classifier.first(dense.flatten(1)))
        logits = self.classifier.second(self.classifier.dropout(hidden))
        return logits, logits.softmax(1), hidden

    @staticmethod
    def _mlp(mlp: nn.Module, x: Tensor) -> Tensor:
        return mlp(x.flatten(0, 1)).view(*x.shape[:2], -1)
