"""The training loss: cross-entropy for the members of a stack.

The same as torch.nn.functional.cross_entropy(logits, truth, weight=w, label_smoothing=s), with
separate class weights for each member. With p the softmax of a graph's logits, y its class and C
classes, the loss of a graph is

    -(1 - s) · w_y · log(p_y) - s / C · sum over c of w_c · log(p_c)

A member's loss is the sum over its graphs of one batch, divided by the sum of their w_y. Without
class weights all w are 1, and it is the mean over the graphs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.batching.batches import Batch


@dataclass(frozen=True, eq=False)
class CrossEntropy:
    """The loss of a stack.

    Args:
        label_smoothing: s, the share of a graph's target that is spread over all classes.
        class_weights: [S, C] w for each member; `None`: all 1.
    """

    label_smoothing: float = 0.0
    class_weights: Tensor | None = None

    def losses(self, logits: Tensor, truth: Tensor) -> Tensor:
        """[S, B] the loss of each graph, for logits [S, B, C]."""
        smoothing = self.label_smoothing
        if self.class_weights is None:
            flat = logits.flatten(0, 1), truth.flatten()
            found = F.cross_entropy(*flat, reduction="none", label_smoothing=smoothing)
            return found.view_as(truth)
        weighted = self.class_weights.unsqueeze(1) * logits.log_softmax(-1)
        own = weighted.gather(-1, truth.unsqueeze(-1)).squeeze(-1)
        return -(1 - smoothing) * own - smoothing * weighted.mean(-1)

    def weights(self, truth: Tensor) -> Tensor | None:
        """[S, B] w for each graph's class; `None`: all 1."""
        return None if self.class_weights is None else self.class_weights.gather(1, truth)

    def shares(self, batch: Batch) -> Tensor:
        """[S, B] the factor of each graph's loss in the loss of its member; 0 for padding."""
        weight = self.weights(batch.truth)
        if weight is None:
            return batch.graph_share
        real = batch.graph_share > 0
        total = torch.where(real, weight, 0).sum(1, keepdim=True)
        return torch.where(real, 1 / total, 0)

    def keep(self, members: Tensor | slice) -> "CrossEntropy":
        """The loss for these members only."""
        weights = self.class_weights
        return CrossEntropy(self.label_smoothing, None if weights is None else weights[members])


def balanced(
    graph_class: NDArray[np.int64], members: Sequence[NDArray[np.int64]], classes: int
) -> NDArray[np.float32]:
    """[S, C] n / (classes · count) on each member's graphs, like scikit-learn's "balanced".

    A class without graphs has weight 0 and is not counted among the classes.
    """
    counts = np.array([np.bincount(graph_class[graphs], minlength=classes) for graphs in members])
    present = np.maximum(counts, 1) * (counts > 0).sum(1, keepdims=True)
    weights = np.where(counts > 0, counts.sum(1, keepdims=True) / present, 0)
    return weights.astype(np.float32)
