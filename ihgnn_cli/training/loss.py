"""The training loss and its gradient with respect to the logits: cross-entropy for a stack.

The same as torch.nn.functional.cross_entropy(logits, truth, weight=w, label_smoothing=s), with
separate class weights for each member. With p the softmax of a graph's logits, y its class and C
classes:

    t_c  = (1 - s) · w_y · [c = y] + s / C · w_c
    loss = sum over graphs and c of -t_c · log(p_c), divided by the sum over graphs of w_y

The sums run over the graphs of one batch. The gradient of a graph's numerator with respect to its
logits is p · sum(t) - t. Without class weights all w are 1, and the loss is the mean over the
graphs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from ihgnn_cli.data.batching.batch import Batch


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
        """[S, B] the numerators for logits [S, B, C]."""
        if self.class_weights is None:
            return F.cross_entropy(
                logits.transpose(1, 2),
                truth,
                reduction="none",
                label_smoothing=self.label_smoothing,
            )
        targets = self._targets(logits, truth, self.class_weights.unsqueeze(1))
        return -(targets * logits.log_softmax(-1)).sum(-1)

    def weights(self, truth: Tensor) -> Tensor | None:
        """[S, B] w for each graph's class; `None`: all 1."""
        if self.class_weights is None:
            return None
        return self.class_weights.gather(1, truth)

    def gradient(self, batch: Batch) -> "Gradient":
        """The gradient of a batch's loss, in the form that the model's training step takes."""
        share = batch.graph_share
        weight = self.weights(batch.truth)
        if weight is not None:
            share = batch.graph_weight / (weight * batch.graph_weight).sum(1, keepdim=True)
            share = torch.where(batch.graph_weight > 0, share, 0)  # a member without graphs
        return Gradient(self, batch.truth, share)

    def keep(self, index: Tensor) -> "CrossEntropy":
        """The loss for these members only."""
        if self.class_weights is None:
            return self
        return CrossEntropy(self.label_smoothing, self.class_weights[index])

    def _targets(self, logits: Tensor, truth: Tensor, weights: Tensor) -> Tensor:
        """Targets t for each graph, shaped like the logits; weights broadcast to that shape."""
        weights = weights.expand_as(logits)
        smoothing = self.label_smoothing
        hot = F.one_hot(truth, logits.shape[-1])
        return weights * (hot * (1 - smoothing) + smoothing / logits.shape[-1])


@dataclass(frozen=True, eq=False)
class Gradient:
    """The gradient of a batch's loss with respect to its logits."""

    loss: CrossEntropy
    truth: Tensor
    share: Tensor
    """[S, B] 1 / the sum of w_y, and 0 for padding."""

    def __call__(self, logits: Tensor, at: tuple[int, slice] | EllipsisType = ...) -> Tensor:
        """The gradient for all logits [S, B, C], or for [n, C] of some graphs of one member."""
        truth, share = self.truth[at], self.share[at].unsqueeze(-1)
        loss = self.loss
        if loss.class_weights is None and not loss.label_smoothing:
            # t is 1 at the truth and 0 elsewhere.
            to_logits = logits.softmax(-1).scatter_(-1, truth.unsqueeze(-1), -1, reduce="add")
            return to_logits.mul_(share)
        if loss.class_weights is None:
            weights = logits.new_ones(logits.shape[-1])
        else:
            weights = loss.class_weights[at[0]] if isinstance(at, tuple) else loss.class_weights
        if weights.dim() > 1:
            weights = weights.unsqueeze(1)
        targets = loss._targets(logits, truth, weights)
        return (logits.softmax(-1) * targets.sum(-1, keepdim=True) - targets) * share


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
