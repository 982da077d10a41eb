"""A trained IHGNN with folded weights, shared by the exported layouts.

Products of fixed weights are computed once, in double precision. Let y_k be the output of the ReLU
inside MLPk. With H^(k) = y_k·T_k + t_k and [H, A·H, H + A·H]·W = H·(W1 + W3) + A·H·(W2 + W3), a
layer is

    y_(k+1) = ReLU(y_k·P + p + A·(y_k·Q + q)),

where P, p, Q and q contain BatchNorm and the Linear before it. With edge labels, there is a Q and a
q for each, side by side: a node has a message for each label of an edge. The sum of the layers is
one product of all y. MLP0 of one-hot labels, and the products that follow it, become tables indexed
by label.

The members of an ensemble are computed together. Their weights [S, ·, ·] and rows [S, n, ·] have a
leading member axis, so the network has the same operations for 2 members and for 50. A single model
has no member axis, because runtimes are faster with matrices.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.deploy.margin import before
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.settings import IHGNNSettings, SortKey, SortOrder, Variant
from ihgnn_cli.models.stacked import EPS
from ihgnn_cli.training.checkpoint import Checkpoint

Weights = Mapping[str, Tensor]
Spread = Callable[[Tensor, Tensor], Tensor]
"""Takes rows and messages, and adds the messages of its neighbours to each row."""


def folding_weights(checkpoint: Checkpoint) -> Weights:
    """The weights in double precision; those of a single model without the member axis."""
    single = checkpoint.members == 1
    return {
        name: (value[0] if single else value).double() for name, value in checkpoint.weights.items()
    }


Outputs = dict[str, Tensor]
"""By name: `logits` and whatever else the model gives, [B, ·] or [B]."""


def combined(found: Outputs, members: int) -> Outputs:
    """The outputs of an ensemble, in the order of the exported file.

    The logits of several members are the logarithm of their mean probability. Their embedding is
    the mean. `uncertainty` is the standard deviation over members of the predicted class's
    probability.

    Args:
        found: `logits` and `graph_embedding` [S, B, ·] of each member, or [B, ·] of a single model,
            and the `order_margin` [B]. The last two may be missing.
        members: S.
    """
    of_members = logits = found["logits"]
    if members > 1:
        logits = of_members.log_softmax(-1).logsumexp(0) - math.log(members)
    outputs = {"logits": logits, "probabilities": logits.softmax(-1)}
    if "graph_embedding" in found:
        embedding = found["graph_embedding"]
        outputs["graph_embedding"] = embedding if members == 1 else embedding.mean(0)
    if "order_margin" in found:
        outputs["order_margin"] = found["order_margin"]
    if members > 1:
        outputs["uncertainty"] = _spread(of_members.softmax(-1), logits)
    return outputs


def _spread(of_members: Tensor, logits: Tensor) -> Tensor:
    """[B] the standard deviation over members of the predicted class's probability.

    Sums are products with ones: for an empty batch, sums of onnxruntime have a wrong shape.
    """
    members, _, classes = of_members.shape
    predicted = logits.topk(1, -1).indices == torch.arange(classes, device=logits.device)
    winning = torch.where(predicted, of_members, 0.0) @ of_members.new_ones(1, classes, 1)
    winning = winning.squeeze(-1)
    average = of_members.new_full((1, members), 1 / members)
    return (average @ (winning - average @ winning).square()).squeeze(0).sqrt()


def select(rows: Tensor, index: Tensor) -> Tensor:
    """The rows at these positions: rows[index], or for each member its own rows[s][index[s]].

    Args:
        rows: [n, ...] or [S, n, ...].
        index: [k] or [S, k].
    """
    if index.dim() == 1:
        return rows.index_select(0, index)
    members, size = rows.shape[:2]
    first = torch.arange(members, device=index.device).unsqueeze(1) * size
    taken = rows.flatten(0, 1).index_select(0, (first + index).flatten())
    return taken.view(*index.shape, *rows.shape[2:])


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

    def rows(self, labels: Tensor, degrees: Callable[[], Tensor]) -> Tensor:
        """Rows for label ids, or for node degrees if these are the labels; others are unknown."""
        if self.counts_degrees:
            known = degrees().clamp(max=len(self.positions) - 1)
            return self.positions.index_select(0, known.flatten())
        return torch.where((labels >= 0) & (labels < self.size), labels, self.size)


class FoldedNodes(nn.Module):
    """Node embeddings: input, layers and the sum of the layers.

    Args:
        weights: as in `folding_weights`.
        settings: the model's settings.
        card: the model's inputs and classes.
    """

    table: Tensor
    first_own: Tensor
    first_message: Tensor
    first_part: Tensor

    def __init__(self, weights: Weights, settings: IHGNNSettings, card: ModelCard) -> None:
        super().__init__()
        names = ["input", *(f"convs.{k}.mlp" for k in range(settings.layers))]
        tails = [
            _Affine(weights[f"{name}.second.weight"], weights[f"{name}.second.bias"])
            for name in names
        ]
        own, messages = [], []
        for name, tail in zip(names[1:], tails, strict=False):
            slope, shift = _normalization(weights, name)
            here, *there = _blocks(weights[f"{name}.first.weight"], settings.variant)
            own.append(tail.then(here * slope, shift))
            messages.append(tail.then(torch.cat([each * slope for each in there], -1)))
        total = _total(weights, tails, settings.variant)
        slope, shift = _normalization(weights, "input")
        of_attributes, of_label = weights["input.first.weight"].tensor_split([card.attributes], -2)
        # The last row is for the zero vector.
        table = nn.functional.pad(of_label * slope, (0, 0, 0, 1)) + shift
        self.attributes = Linear(of_attributes * slope) if card.attributes else None
        # Everything that depends on the label alone is looked up.
        self.looked_up = self.attributes is None and bool(own)
        if self.looked_up:
            first, total_weight = total.weight.tensor_split([settings.width], -2)
            table = table.relu()
            self.register_buffer("first_own", own.pop(0).of(table))
            self.register_buffer("first_message", messages.pop(0).of(table))
            self.register_buffer("first_part", _Affine(first, total.bias).of(table))
            total_bias = None
        else:
            self.register_buffer("table", table)
            total_weight, total_bias = total.weight, total.bias
        *earlier, last = (
            [total_weight]
            if total_weight.dim() == 2
            else torch.split(total_weight, settings.width, -2)
        )
        # For members, a product for each layer takes less time than to put all layers side by side.
        self.earlier = nn.ModuleList(Linear(each) for each in earlier)
        self.total = Linear(last, total_bias)
        self.own = nn.ModuleList(each.layer() for each in own)
        self.messages = nn.ModuleList(each.layer() for each in messages)
        self.descending = settings.sort_order == SortOrder.DESCENDING
        self.last_column: Linear | None = None
        # Concatenated layers end with the last layer, so its last column is there already.
        summed = settings.variant != Variant.NO_ADAPTIVE
        if summed and settings.sort_key == SortKey.LAST_LAYER:
            self.last_column = Linear(tails[-1].weight[..., -1:], tails[-1].bias[..., -1:])

    def forward(
        self, row: Tensor, attributes: Tensor | None, spread: Spread
    ) -> tuple[Tensor, Tensor]:
        """The aggregated embeddings [n, ·] and the sort keys [n], in ascending order.

        Of several members they are [S, n, ·] and [S, n], like the rows and messages of `spread`.

        Args:
            row: [n] rows of the table, from `Vocabulary`.
            attributes: [n, a], for models that read attributes.
            spread: the layout's message passing, of messages [n, T · width] for T edge labels.
        """
        if self.looked_up:
            y = spread(
                self.first_own.index_select(-2, row), self.first_message.index_select(-2, row)
            ).relu()
        else:
            x = self.table.index_select(-2, row)
            y = (x if self.attributes is None else x + self.attributes(attributes)).relu()
        found = [y]
        for own, messages in zip(self.own, self.messages, strict=True):
            y = spread(own(y), messages(y)).relu()
            found.append(y)
        if self.earlier:
            h: Tensor = self.total(y)
            for linear, each in zip(self.earlier, found[:-1], strict=True):
                h = h + linear(each)
        else:
            h = self.total(torch.cat(found, -1))
        if self.looked_up:
            h = h + self.first_part.index_select(-2, row)
        key = (h if self.last_column is None else self.last_column(y))[..., -1]
        return h, -key if self.descending else key


class Linear(nn.Module):
    """x·W + b, of each member with its own W [S, ·, ·] and b [S, 1, ·] if there are several."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight.clone())
        self.register_buffer(
            "bias", bias.flatten() if weight.dim() == 2 and bias is not None else bias
        )

    def forward(self, x: Tensor) -> Tensor:
        """[n, columns], or [S, n, columns] of several members."""
        if x.dim() < self.weight.dim():
            x = x.expand(len(self.weight), -1, -1)  # OpenVINO does not broadcast to constants
        if self.bias is None:
            return x @ self.weight
        if self.weight.dim() == 2:
            return torch.addmm(self.bias, x, self.weight)
        return x @ self.weight + self.bias


@dataclass(frozen=True, eq=False)
class _Affine:
    """x·W + b, which can be composed with others."""

    weight: Tensor
    bias: Tensor
    """[1, columns]; [S, 1, columns] of several members."""

    def then(self, weight: Tensor, bias: Tensor | float = 0) -> "_Affine":
        """This map followed by x·W + b."""
        return _Affine(self.weight @ weight, self.bias @ weight + bias)

    def of(self, table: Tensor) -> Tensor:
        """[rows, columns] for the rows of a table."""
        return table @ self.weight + self.bias

    def layer(self) -> "Linear":
        return Linear(self.weight, self.bias)


def _normalization(weights: Weights, name: str) -> tuple[Tensor, Tensor]:
    """Slope and shift [1, width] of BatchNorm with its running statistics."""
    mean = weights[f"{name}.norm.running_mean"]
    variance = weights[f"{name}.norm.running_var"]
    slope = weights[f"{name}.norm.weight"] * torch.rsqrt(variance + EPS)
    return slope, weights[f"{name}.norm.bias"] - mean * slope


def _blocks(weight: Tensor, variant: Variant) -> Sequence[Tensor]:
    """The matrices of H and of A·H for each edge label; see `models.stacked.layer`."""
    if variant == Variant.NO_SEPARATION:
        return weight, weight
    blocks = weight.chunk(weight.shape[-2] // weight.shape[-1], -2)
    if variant == Variant.NO_INTEGRATION:
        return blocks
    return [each + blocks[-1] for each in blocks[:-1]]


def _total(weights: Weights, tails: Sequence[_Affine], variant: Variant) -> _Affine:
    """The map from all y side by side to H: the sum or the concatenation of the layers."""
    if variant == Variant.NO_ADAPTIVE:
        sizes = [each.weight.shape[-1] for each in tails]
        parts = [
            nn.functional.pad(each.weight, (sum(sizes[:k]), sum(sizes[k + 1 :])))
            for k, each in enumerate(tails)
        ]
        return _Affine(torch.cat(parts, -2), torch.cat([each.bias for each in tails], -1))
    factors = weights["theta"].unsqueeze(-1).unsqueeze(-1).unbind(-3)
    parts = [factor * each.weight for factor, each in zip(factors, tails, strict=True)]
    biases = [factor * each.bias for factor, each in zip(factors, tails, strict=True)]
    return _Affine(torch.cat(parts, -2), torch.stack(biases).sum(0))
