"""IHGNN: input layer, K layers, aggregation, readout, classifier.

"Incorporating Heterophily into Graph Neural Networks for Graph Classification",
https://arxiv.org/abs/2203.07678.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from ihgnn_cli.data.batching.batch import Batch
from ihgnn_cli.models.autograd import LossGradient
from ihgnn_cli.models.settings import IHGNNSettings, Inputs, Variant, WeightInit
from ihgnn_cli.models.stacked.aggregation import AdaptiveSum, LayerConcat
from ihgnn_cli.models.stacked.layer import IHGNNLayer, InputLayer
from ihgnn_cli.models.stacked.mlp import (
    NormedTail,
    Tape,
    gradient_of,
    linear_bias,
    linear_weight,
    remember,
    start_glorot,
    transposed,
)
from ihgnn_cli.models.stacked.readout import SortConcat, SumNodes


class StackedIHGNN(nn.Module):
    """A stack of S models of the same shape; every parameter has a leading member axis.

    Gradients are hand-written, not recorded by autograd: `backward` sets them.

    Args:
        settings: shared by all members.
        inputs: sizes of the data.
        generators: one per member, for its initial parameters.
    """

    def __init__(
        self, settings: IHGNNSettings, inputs: Inputs, generators: Sequence[torch.Generator]
    ) -> None:
        super().__init__()
        width, variant = settings.width, settings.variant
        self.input = InputLayer(generators, inputs, width)
        self._width = width
        types = max(1, inputs.edge_labels)
        self._blocks = [
            IHGNNLayer(generators, width, variant, types) for _ in range(settings.layers)
        ]
        self.layers = nn.ModuleList(self._blocks)
        self.aggregation: AdaptiveSum | LayerConcat
        if variant == Variant.NO_ADAPTIVE:
            self.aggregation = LayerConcat()
            width *= settings.layers + 1
        else:
            self.aggregation = AdaptiveSum(generators, settings.layers, settings.theta_init)
        self.readout: SortConcat | SumNodes
        if variant == Variant.NO_CONCAT:
            self.readout = SumNodes(generators, width, settings)
        else:
            self.readout = SortConcat(generators, width, inputs.max_nodes, settings)
        # The rest of the classifier; its first matrix is in the readout.
        fan_in = self.readout.weight.shape[1]
        self.hidden_bias = linear_bias(generators, fan_in, settings.hidden)
        self.weight = linear_weight(generators, settings.hidden, inputs.classes)
        self.bias = linear_bias(generators, settings.hidden, inputs.classes)
        if settings.weight_init == WeightInit.GLOROT:
            start_glorot(self, generators)

    def embed(self, batch: Batch, tape: Tape | None = None) -> tuple[Tensor, Tensor]:
        """[S, R, ·] the aggregated node embeddings H, and those of the last layer, H^(K)."""
        found = self.weight.new_empty(len(self._blocks) + 1, *batch.size.shape, self._width)
        h, *others = found.unbind()
        self.input(batch, tape, h)
        for layer, out in zip(self._blocks, others, strict=True):
            h = layer(h, batch, tape, out)
        return self.aggregation(found, tape), h

    @property
    def dropped_units(self) -> int:
        """Number of hidden units of the classifier."""
        return self.weight.shape[1]

    @property
    def ranked(self) -> tuple[nn.Parameter, int] | None:
        """The readout's matrix and m, if its rows are ordered by rank."""
        readout = self.readout
        return (readout.weight, readout.max_nodes) if isinstance(readout, SortConcat) else None

    @property
    def sorts(self) -> bool:
        """Whether the readout sorts nodes."""
        return isinstance(self.readout, SortConcat)

    @torch.no_grad()
    def sort_keys(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of H [n, ·] and sort keys [n] of all members' nodes, and the graph of each."""
        h, last_layer = self.embed(batch)
        row, readout = batch.layout.row, self.readout
        if not isinstance(readout, SortConcat):
            raise TypeError("the readout does not sort")
        key = readout.sort_key(h, last_layer).flatten()[row]
        return h.flatten(0, 1)[row], key, batch.layout.graph

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """[S, B, classes] logits, with the running statistics and without dropout."""
        return torch.baddbmm(self.bias, self.graph_embedding(batch), self.weight)

    @torch.no_grad()
    def graph_embedding(self, batch: Batch) -> Tensor:
        """[S, B, hidden] the hidden layer of the classifier, without dropout."""
        read: Tensor = self.readout(*self.embed(batch), self.hidden_bias, batch, None)
        return read.relu_()

    def train_step(
        self, batch: Batch, factor: Tensor, seeds: Sequence[int], gradient: LossGradient
    ) -> Tensor:
        """[S, B, classes] the logits of a batch in training; sets the gradients.

        Dropout multiplies the hidden units by `factor` [S, B, hidden]; nothing else is random.
        `gradient` maps logits to the gradient of the loss with respect to them.
        """
        del seeds
        tape: Tape = []
        logits = self.forward_train(batch, factor, tape)
        self.backward(gradient(logits), batch, factor, tape)
        return logits

    @torch.no_grad()
    def forward_train(self, batch: Batch, factor: Tensor, tape: Tape) -> Tensor:
        """[S, B, classes] the logits of a batch in training; updates the running statistics."""
        h, last_layer = self.embed(batch, tape)
        remember(self._tails, batch)
        active = self.readout(h, last_layer, self.hidden_bias, batch, tape).relu_()
        hidden = active * factor
        tape.append((active, hidden))
        return torch.baddbmm(self.bias, hidden, self.weight)

    @torch.no_grad()
    def recompute_statistics(self, batches: Iterable[Batch]) -> None:
        """Replace the running statistics by their means over these batches."""
        for number, batch in enumerate(batches, 1):
            self.embed(batch, [])
            remember(self._tails, batch, 1 / number)

    @property
    def _tails(self) -> list[NormedTail]:
        return [self.input.tail, *(layer.tail for layer in self._blocks)]

    @torch.no_grad()
    def backward(self, to_logits: Tensor, batch: Batch, factor: Tensor, tape: Tape) -> None:
        """Set the gradients of all parameters from the gradient to the logits."""
        active, hidden = tape.pop()
        torch.bmm(transposed(hidden), to_logits, out=gradient_of(self.weight))
        torch.sum(to_logits, 1, keepdim=True, out=gradient_of(self.bias))
        to_hidden = torch.bmm(to_logits, transposed(self.weight)).mul_(factor)
        to_read = torch.ops.aten.threshold_backward(to_hidden, active, 0)
        torch.sum(to_read, 1, keepdim=True, out=gradient_of(self.hidden_bias))
        to_layers = self.aggregation.backward(self.readout.backward(to_read, batch, tape), tape)
        to_h = torch.mul(*to_layers.pop())
        for layer in reversed(self._blocks):
            to_h = layer.backward(to_h, batch, tape).addcmul_(*to_layers.pop())
        self.input.backward(to_h, batch, tape)
