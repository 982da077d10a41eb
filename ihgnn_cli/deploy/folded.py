"""A trained IHGNN with folded weights, shared by the exported layouts.

Products of fixed weights are computed once, in double precision. Let y_k be the output of the ReLU
inside MLPk. With H^(k) = y_k·T_k + t_k and [H, A·H, H + A·H]·W = H·(W1 + W3) + A·H·(W2 + W3), a
layer is

    y_(k+1) = ReLU(y_k·P + p + A·(y_k·Q + q)),

where P, p, Q and q contain BatchNorm and the Linear before it. With edge labels, there is a Q and a
q for each, side by side: a node has a message for each label of an edge. The sum of the layers is
one product of all y. MLP0 of one-hot labels, and the products that follow it, become tables indexed
by label.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.deploy.margin import before
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.settings import IHGNNSettings, SortKey, SortOrder, Variant
from ihgnn_cli.models.stacked.mlp import EPS
from ihgnn_cli.training.checkpoint import Checkpoint

Weights = Mapping[str, Tensor]
Spread = Callable[[Tensor, Tensor], Tensor]
"""Takes rows and messages, and adds the messages of its neighbours to each row."""


def member_weights(checkpoint: Checkpoint) -> Iterator[Weights]:
    """Weights of each member in double precision, without the member axis."""
    for member in range(checkpoint.members):
        yield {name: value[member].double() for name, value in checkpoint.weights.items()}


Outputs = dict[str, Tensor]
"""By name: `logits` and whatever else the model gives, [B, ·] or [B]."""


def combined(members: Sequence[Outputs]) -> Outputs:
    """The outputs of an ensemble, in the order of the exported file, from those of its members.

    The logits of several members are the logarithm of their mean probability. Their embedding is
    the mean, and their order margin the smallest. `uncertainty` is the standard deviation over
    members of the predicted class's probability.
    """
    of_all = {name: torch.stack([each[name] for each in members]) for name in members[0]}
    logits = members[0]["logits"]
    if len(members) > 1:
        logits = of_all["logits"].log_softmax(-1).logsumexp(0) - math.log(len(members))
    found = {"logits": logits, "probabilities": logits.softmax(-1)}
    if "graph_embedding" in of_all:
        found["graph_embedding"] = of_all["graph_embedding"].mean(0)
    if "order_margin" in of_all:
        found["order_margin"] = of_all["order_margin"].amin(0)
    if len(members) > 1:
        found["uncertainty"] = _spread(of_all["logits"].softmax(-1), logits)
    return found


def _spread(of_members: Tensor, logits: Tensor) -> Tensor:
    """[B] the standard deviation over members of the predicted class's probability.

    Sums are written out: for an empty batch, those of onnxruntime have a wrong shape.
    """
    predicted = logits.topk(1, -1).indices.squeeze(-1)
    members, classes = len(of_members), logits.shape[-1]
    winning = [
        sum(torch.where(predicted == each, member[:, each], 0.0) for each in range(classes))
        for member in of_members.unbind()
    ]
    mean = torch.as_tensor(sum(winning)) / members
    return torch.as_tensor(sum((each - mean).square() for each in winning) / members).sqrt()


def ascending_order(key: Tensor) -> tuple[Tensor, Tensor]:
    """The keys along the last axis in ascending order, and their positions; equal keys by position.

    ONNX requires TopK to keep equal values in order, but OpenVINO and onnxruntime's CUDA kernel do
    not. So the first sort only numbers the distinct values, and the second sorts keys without
    ties. These stay below n², which fits in the 32 bits that some runtimes use up to 46,340
    positions.
    """
    values, position = key.sort()
    number = (values != before(values)).long().cumsum(-1) * key.shape[-1]
    return values, (number + position).sort().values - number


class Vocabulary(nn.Module):
    """Maps a node's label or degree to a row of a table; the last row is "unknown"."""

    positions: Tensor

    def __init__(self, card: ModelCard) -> None:
        super().__init__()
        self.size = card.inputs.labels
        self.counts_degrees = self.size > 0 and card.label_source == LabelSource.DEGREE
        if self.counts_degrees:
            degrees = torch.tensor([int(value) for value in card.label_values])
            # By degree; unseen degrees, and the one above all others, are unknown.
            positions = torch.full((int(degrees.max()) + 2,), self.size)
            positions[degrees] = torch.arange(self.size)
            self.register_buffer("positions", positions)

    def of_labels(self, labels: Tensor) -> Tensor:
        """Rows for label ids; ids outside the vocabulary are unknown."""
        return torch.where((labels >= 0) & (labels < self.size), labels, self.size)

    def of_degrees(self, degrees: Tensor) -> Tensor:
        """Rows for node degrees."""
        return self.positions.index_select(0, degrees.clamp(max=len(self.positions) - 1).flatten())


class FoldedNodes(nn.Module):
    """Node embeddings of one member: input, layers and the sum of the layers.

    Args:
        weights: the member's weights, in double precision and without the member axis.
        settings: the model's settings.
        card: the model's inputs and classes.
    """

    table: Tensor
    first_own: Tensor
    first_message: Tensor
    first_part: Tensor

    def __init__(self, weights: Weights, settings: IHGNNSettings, card: ModelCard) -> None:
        super().__init__()
        names = ["input", *(f"layers.{k}" for k in range(settings.layers))]
        tails = [
            _Affine(weights[f"{name}.tail.weight"], weights[f"{name}.tail.bias"].flatten())
            for name in names
        ]
        own, messages = [], []
        for name, tail in zip(names[1:], tails, strict=False):
            slope, shift = _normalization(weights, name)
            here, *there = _blocks(weights[f"{name}.weight"], settings.variant)
            own.append(tail.then(here * slope, shift))
            messages.append(tail.then(torch.cat([each * slope for each in there], 1)))
        total = _total(weights, tails, settings.variant)
        slope, shift = _normalization(weights, "input")
        of_attributes, of_label = weights["input.weight"].tensor_split([card.attributes])
        # The last row is for the zero vector.
        table = nn.functional.pad(of_label * slope, (0, 0, 0, 1)) + shift
        self.attributes = Linear(of_attributes * slope) if card.attributes else None
        # Everything that depends on the label alone is looked up.
        self.looked_up = self.attributes is None and bool(own)
        if self.looked_up:
            first, rest = total.weight.tensor_split([settings.width])
            table = table.relu()
            self.register_buffer("first_own", own.pop(0).of(table))
            self.register_buffer("first_message", messages.pop(0).of(table))
            self.register_buffer("first_part", _Affine(first, total.bias).of(table))
            self.total = Linear(rest)
        else:
            self.register_buffer("table", table)
            self.total = total.layer()
        self.own = nn.ModuleList(each.layer() for each in own)
        self.messages = nn.ModuleList(each.layer() for each in messages)
        self.descending = settings.sort_order == SortOrder.DESCENDING
        self.last_column: Linear | None = None
        # Concatenated layers end with the last layer, so its last column is there already.
        summed = settings.variant != Variant.NO_ADAPTIVE
        if summed and settings.sort_key == SortKey.LAST_LAYER:
            self.last_column = Linear(tails[-1].weight[:, -1:], tails[-1].bias[-1:])

    def forward(
        self, row: Tensor, attributes: Tensor | None, spread: Spread
    ) -> tuple[Tensor, Tensor]:
        """The aggregated embeddings [n, ·] and the sort keys [n], in ascending order.

        Args:
            row: [n] rows of the table, from `Vocabulary`.
            attributes: [n, a], for models that read attributes.
            spread: the layout's message passing, of messages [n, T · width] for T edge labels.
        """
        if self.looked_up:
            y = spread(
                self.first_own.index_select(0, row), self.first_message.index_select(0, row)
            ).relu()
        else:
            x = self.table.index_select(0, row)
            y = (x if self.attributes is None else x + self.attributes(attributes)).relu()
        found = [y]
        for own, messages in zip(self.own, self.messages, strict=True):
            y = spread(own(y), messages(y)).relu()
            found.append(y)
        h: Tensor = self.total(torch.cat(found, 1))
        if self.looked_up:
            h = h + self.first_part.index_select(0, row)
        key = (h if self.last_column is None else self.last_column(y))[:, -1]
        return h, -key if self.descending else key


class Linear(nn.Module):
    """x·W + b."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight.clone())
        self.register_buffer("bias", None if bias is None else bias.flatten())

    def forward(self, x: Tensor) -> Tensor:
        """[n, columns]."""
        return x @ self.weight if self.bias is None else torch.addmm(self.bias, x, self.weight)


@dataclass(frozen=True, eq=False)
class _Affine:
    """x·W + b, which can be composed with others."""

    weight: Tensor
    bias: Tensor
    """[columns]"""

    def then(self, weight: Tensor, bias: Tensor | float = 0) -> "_Affine":
        """This map followed by x·W + b."""
        return _Affine(self.weight @ weight, (self.bias @ weight + bias).flatten())

    def of(self, table: Tensor) -> Tensor:
        """[rows, columns] for the rows of a table."""
        return table @ self.weight + self.bias

    def layer(self) -> "Linear":
        return Linear(self.weight, self.bias)


def _normalization(weights: Weights, name: str) -> tuple[Tensor, Tensor]:
    """Slope and shift [1, width] of BatchNorm with its running statistics."""
    mean, variance = weights[f"{name}.tail.mean"], weights[f"{name}.tail.variance"]
    slope = weights[f"{name}.tail.scale"] * torch.rsqrt(variance + EPS)
    return slope, weights[f"{name}.tail.shift"] - mean * slope


def _blocks(weight: Tensor, variant: Variant) -> Sequence[Tensor]:
    """The matrices of H and of A·H for each edge label; see `models.stacked.layer`."""
    if variant == Variant.NO_SEPARATION:
        return weight, weight
    blocks = weight.chunk(len(weight) // weight.shape[1])
    if variant == Variant.NO_INTEGRATION:
        return blocks
    return [each + blocks[-1] for each in blocks[:-1]]


def _total(weights: Weights, tails: Sequence[_Affine], variant: Variant) -> _Affine:
    """The map from all y side by side to H: the sum or the concatenation of the layers."""
    if variant == Variant.NO_ADAPTIVE:
        matrix: Tensor = torch.block_diag(*(each.weight for each in tails))  # type: ignore[no-untyped-call]
        return _Affine(matrix, torch.cat([each.bias for each in tails]))
    theta = weights["aggregation.theta"]
    parts = [factor * each.weight for factor, each in zip(theta, tails, strict=True)]
    return _Affine(torch.cat(parts), theta @ torch.stack([each.bias for each in tails]))
