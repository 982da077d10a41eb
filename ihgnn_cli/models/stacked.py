"""IHGNN for many models at once: `models.ihgnn.IHGNN` with a leading member axis S.

Models of one shape take each step together, because at this size launching an operation costs more
than the operation. Parameters have the names of the readable model. Matrices are transposed,
[S, inputs, outputs], and vectors are [S, 1, columns]. Tests hold logits, losses and gradients to
the readable model. What differs:

- Nodes with equal 1-WL colours have equal embeddings, so a row may stand for several nodes. `share`
  is its weight in the mean and variance of BatchNorm, and 0 for padding.
- H·W1 + A·H·W2 + (H + A·H)·W3 = H·(W1 + W3) + A·H·(W2 + W3), which is a third less work. H is
  multiplied by [W1 + W3, W2 + W3] at once, then one sum adds up a row's own product and those of
  its neighbours. With edge labels there is one column block more for each further label.
- Without attributes, the input's MLP runs once per label, not once per node.
- The readout is a sum of products over blocks of ranks, each for the graphs that reach it. The zero
  rows up to m are never built.

Two autograd Functions have a written gradient: the input and the layers, which share one tensor for
their results, and the sorted product. They write the gradients of their parameters into the
parameters' own buffers, so that autograd only connects them with theta, the end of the classifier
and the loss.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from ihgnn_cli.data.batching.batches import Batch, Block, StackRows
from ihgnn_cli.models.settings import (
    IHGNNSettings,
    Inputs,
    SortKey,
    SortOrder,
    ThetaInit,
    Variant,
    WeightInit,
)
from ihgnn_cli.models.sparse import SparseMatrix, sums

if TYPE_CHECKING:
    from ihgnn_cli.models.factory import Loss

EPS, MOMENTUM = 1e-5, 0.1
"""Both as in torch.nn.BatchNorm1d."""
Generators = Sequence[torch.Generator]
"""One per member, so that each starts as it would alone."""


def uniform(generators: Generators, shape: tuple[int, ...], bound: float) -> nn.Parameter:
    """[S, *shape] uniform between -bound and bound, drawn by each member's own generator."""
    found = torch.empty(len(generators), *shape)
    for own, generator in zip(found, generators, strict=True):
        own.copy_(torch.rand(shape, generator=generator))
    return nn.Parameter((found * 2 - 1) * bound)


class Linear(nn.Module):
    """x·W + b of each member, initialized as torch.nn.Linear."""

    bias: Tensor

    def __init__(
        self, generators: Generators, rows: int, columns: int, *, bias: bool = True
    ) -> None:
        super().__init__()
        bound = 1 / math.sqrt(max(1, rows))
        self.weight = uniform(generators, (rows, columns), bound)
        if bias:
            self.bias = uniform(generators, (1, columns), bound)

    def forward(self, x: Tensor) -> Tensor:
        """[S, n, columns] from [S, n, rows]."""
        return torch.baddbmm(self.bias, x, self.weight)


class Norm(nn.Module):
    """Parameters and statistics of BatchNorm."""

    running_mean: Tensor
    running_var: Tensor
    seen: tuple[Tensor, Tensor]
    """Mean and variance of the last training batch."""

    def __init__(self, members: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(members, 1, width))
        self.bias = nn.Parameter(torch.zeros(members, 1, width))
        self.register_buffer("running_mean", torch.zeros(members, 1, width))
        self.register_buffer("running_var", torch.ones(members, 1, width))


class MLP(nn.Module):
    """Linear, BatchNorm, ReLU, Linear; the caller computes the first product."""

    def __init__(self, generators: Generators, rows: int, width: int) -> None:
        super().__init__()
        self.first = Linear(generators, rows, width, bias=False)
        self.norm = Norm(len(generators), width)
        self.second = Linear(generators, width, width)

    def forward(self, x: Tensor, share: Tensor, out: Tensor) -> tuple[Tensor, ...]:
        """Fill `out` [S, n, width] from the first product of the same shape, which is overwritten.

        Rows count by their share [S, 1, n] of the nodes. Returns what `backward` needs, in
        training.
        """
        norm, second = self.norm, self.second
        if not self.training:
            slope = norm.weight * (norm.running_var + EPS).rsqrt_()
            active = torch.addcmul(norm.bias - norm.running_mean * slope, x, slope).relu_()
            torch.baddbmm(second.bias, active, second.weight, out=out)
            return ()
        mean = torch.bmm(share, x)
        centered = x.sub_(mean)
        variance = torch.bmm(share, centered.square())
        norm.seen = mean, variance
        inverse = (variance + EPS).rsqrt_()
        scaled = centered.mul_(inverse)
        active = torch.addcmul(norm.bias, scaled, norm.weight).relu_()
        torch.baddbmm(second.bias, active, second.weight, out=out)
        return scaled, inverse, active, share

    def backward(self, gradient: Tensor, kept: tuple[Tensor, ...]) -> Tensor:
        """The gradient to the first product; sets those of the parameters behind it."""
        scaled, inverse, active, share = kept
        norm, second = self.norm, self.second
        torch.bmm(active.mT, gradient, out=gradient_of(second.weight))
        torch.sum(gradient, 1, keepdim=True, out=gradient_of(second.bias))
        to_active = torch.bmm(gradient, second.weight.mT)
        to_active = torch.ops.aten.threshold_backward(to_active, active, 0)  # where it is above 0
        to_shift = torch.sum(to_active, 1, keepdim=True, out=gradient_of(norm.bias))
        to_scale = torch.sum(to_active * scaled, 1, keepdim=True, out=gradient_of(norm.weight))
        # Each row also affects the others through mean and variance, by its share of the nodes.
        common = torch.addcmul(to_shift, scaled, to_scale)
        found: Tensor = to_active.addcmul_(common, share.mT, value=-1)
        found.mul_(norm.weight * inverse)
        return found


class StackedInput(MLP):
    """H^(0) = MLP^(0)(X); an unknown label is the zero vector."""

    def fill(self, rows: StackRows, out: Tensor) -> tuple[Tensor, ...]:
        """Fill `out` [S, R, width]; returns what `set_gradients` needs, in training."""
        weight, attributes = self.first.weight, rows.attribute_count
        flat = out.flatten(0, 1)
        # A one-hot vector times a matrix is one of its rows; the last row is for the zero vector.
        table = F.pad(weight[:, attributes:], (0, 0, 0, 1))
        if rows.attributes is None:
            found = torch.empty_like(table)
            kept: tuple[Tensor, ...] = self(table, rows.label_share, found)
            torch.index_select(found.flatten(0, 1), 0, rows.label, out=flat)
            return kept
        x = table.flatten(0, 1).index_select(0, rows.label).view_as(out)
        x.baddbmm_(rows.attributes, weight[:, :attributes])
        return self(x, rows.share, out)  # type: ignore[no-any-return]

    def set_gradients(self, gradient: Tensor, rows: StackRows, kept: tuple[Tensor, ...]) -> None:
        """Set those of all parameters from the gradient to the result."""
        to_weight, attributes = gradient_of(self.first.weight), rows.attribute_count
        if rows.attributes is None:
            to_table = self.backward(_label_sums(gradient, rows), kept)
        else:
            to_product = self.backward(gradient, kept)
            torch.bmm(rows.attributes.mT, to_product, out=to_weight[:, :attributes])
            to_table = _label_sums(to_product, rows)
        to_weight[:, attributes:] = to_table[:, :-1]


def _label_sums(gradient: Tensor, rows: StackRows) -> Tensor:
    """[S, L + 1, width] the sums over the rows of each label."""
    summed = sums(gradient.flatten(0, 1), rows.label_rows, rows.label_ptr)
    return summed.view(len(gradient), -1, summed.shape[-1])


class StackedConv(nn.Module):
    """A layer, equations 5 and 6; `types` is the number of edge labels told apart, or 1."""

    def __init__(self, generators: Generators, width: int, variant: Variant, types: int) -> None:
        super().__init__()
        self.separate = variant != Variant.NO_SEPARATION
        self.integrate = variant != Variant.NO_INTEGRATION
        self.columns = 1 + types
        blocks = self.columns * self.separate + self.integrate
        self.mlp = MLP(generators, blocks * width, width)

    def forward(self, h: Tensor, rows: StackRows, out: Tensor) -> tuple[Tensor, ...]:
        """Fill `out` with H^(k) from h = H^(k-1); returns what `backward` needs, in training."""
        folded = self.folded()
        products = torch.bmm(h, folded).view(-1, h.shape[-1])
        x = sums(products, rows.columns, rows.column_ptr, rows.weight).view_as(h)
        return folded, *self.mlp(x, rows.share, out)

    def backward(
        self, h: Tensor, rows: StackRows, kept: tuple[Tensor, ...], to_out: Tensor, to_h: Tensor
    ) -> Tensor:
        """The gradient to h, added to what it receives from elsewhere; sets the parameters'."""
        folded, *of_mlp = kept
        to_x = self.mlp.backward(to_out, tuple(of_mlp)).view(-1, h.shape[-1])
        to_products = sums(to_x, rows.receivers, rows.receiver_ptr, rows.receiver_weight)
        to_products = to_products.view(*h.shape[:2], -1)
        self.set_gradient(torch.bmm(h.mT, to_products))
        return torch.baddbmm(to_h, to_products, folded.mT)

    def folded(self) -> Tensor:
        """[S, width, (1 + types) · width] the matrix of a row's own part and of its neighbours'."""
        blocks, columns = self._blocks(self.mlp.first.weight), self.columns
        if not self.separate:
            return blocks.expand(-1, -1, columns, -1).flatten(2)
        if not self.integrate:
            return blocks.flatten(2)
        found = blocks.new_empty(*blocks.shape[:2], columns, blocks.shape[-1])
        torch.add(blocks[:, :, :columns], blocks[:, :, columns:], out=found)
        return found.flatten(2)

    def set_gradient(self, to_folded: Tensor) -> None:
        """Set the gradient of the first matrix from that of `folded`."""
        weight, columns = self.mlp.first.weight, self.columns
        blocks, found = (
            self._blocks(gradient_of(weight)),
            to_folded.view(*to_folded.shape[:2], columns, -1),
        )
        if self.separate:
            blocks[:, :, :columns] = found
        if self.integrate:
            torch.sum(found, 2, keepdim=True, out=blocks[:, :, columns * self.separate :])

    def _blocks(self, matrix: Tensor) -> Tensor:
        """[S, width, blocks, width] of [S, blocks · width, width]."""
        width = matrix.shape[-1]
        return matrix.view(len(matrix), -1, width, width).transpose(1, 2)


class Classifier(nn.Module):
    """The two linear maps after the readout."""

    filled: int | None = None
    """How many rows of the first map's gradient are not 0, if that is known."""

    def __init__(self, generators: Generators, rows: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = Linear(generators, rows, hidden)
        self.second = Linear(generators, hidden, classes)


class StackedIHGNN(nn.Module):
    """S models of the same shape.

    Args:
        settings: shared by all members.
        inputs: sizes of the data.
        generators: one per member, for its initial parameters.
    """

    theta: nn.Parameter

    def __init__(self, settings: IHGNNSettings, inputs: Inputs, generators: Generators) -> None:
        super().__init__()
        self.settings, self.max_nodes = settings, inputs.max_nodes
        self.sorts = settings.variant != Variant.NO_CONCAT
        """Whether the readout sorts nodes."""
        width, layers = settings.width, settings.layers
        self.input = StackedInput(generators, inputs.features, width)
        types = max(1, inputs.edge_labels)
        self.convs = nn.ModuleList(
            StackedConv(generators, width, settings.variant, types) for _ in range(layers)
        )
        if settings.variant == Variant.NO_ADAPTIVE:
            width *= layers + 1
        else:
            self.theta = _initial_theta(generators, layers + 1, settings.theta_init)
        rows = inputs.max_nodes * width if self.sorts else width
        self.classifier = Classifier(generators, rows, settings.hidden, inputs.classes)
        self._norms = [each for each in self.modules() if isinstance(each, Norm)]
        if settings.weight_init == WeightInit.GLOROT:
            self._start_glorot(generators)

    @property
    def dropped_units(self) -> int:
        """Number of hidden units of the classifier."""
        return self.settings.hidden

    @property
    def ranked(self) -> tuple[nn.Parameter, int] | None:
        """The readout's matrix and m, if its rows are ordered by rank."""
        return (self.classifier.first.weight, self.max_nodes) if self.sorts else None

    @torch.no_grad()
    def forward(self, batch: Batch) -> Tensor:
        """[S, B, classes] logits, with the running statistics and without dropout."""
        return self._logits(batch.rows)

    @torch.no_grad()
    def graph_embedding(self, batch: Batch) -> Tensor:
        """[S, B, hidden] the hidden layer of the classifier, without dropout."""
        return self._hidden(batch.rows)

    @torch.no_grad()
    def sort_keys(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Rows of H [n, ·] and sort keys [n] of all members' nodes, and the graph of each."""
        rows = batch.rows
        h, last = self.embed(rows)
        own = h.flatten(0, 1).index_select(0, rows.node_row)
        return own, self._sort_key(h, last, rows), rows.graph_key >> 32

    def train_step(
        self, batch: Batch, factor: Tensor, seeds: Sequence[int], loss: "Loss"
    ) -> Tensor:
        """[S, B, classes] the logits of a batch in training; sets the gradients.

        Dropout multiplies the hidden units by `factor` [S, B, hidden]; nothing else is random.
        """
        del seeds
        logits = self._logits(batch.rows, factor)
        self._remember(batch.rows, MOMENTUM)
        # The Functions set the other gradients; the first parameter is where the way back ends.
        connected = [] if self.settings.variant == Variant.NO_ADAPTIVE else [self.theta]
        connected += (self.classifier.second if self.sorts else self.classifier).parameters()
        wanted = [self.input.first.weight, *connected]
        losses = loss.losses(logits, batch.truth)
        found = torch.autograd.grad(losses, wanted, loss.shares(batch), allow_unused=True)
        torch._foreach_copy_([gradient_of(each) for each in connected], list(found[1:]))
        return logits.detach()

    @torch.no_grad()
    def recompute_statistics(self, batches: Iterable[Batch]) -> None:
        """Replace the running statistics by their means over these batches."""
        for number, batch in enumerate(batches, 1):
            self.embed(batch.rows)
            self._remember(batch.rows, 1 / number)

    def embed(self, rows: StackRows) -> tuple[Tensor, Tensor]:
        """[S, R, ·] the aggregated embeddings H of the rows, and those of the last layer."""
        # The first parameter connects the layers with autograd.
        layers = _Layers.apply(self.input.first.weight, self, rows)  # type: ignore[no-untyped-call]
        if self.settings.variant == Variant.NO_ADAPTIVE:
            return torch.cat(layers.unbind(), -1), layers[-1]
        stacked = layers.flatten(2).transpose(0, 1)
        return torch.bmm(self.theta.unsqueeze(1), stacked).view_as(layers[0]), layers[-1]

    @torch.no_grad()
    def without_each_node(self, batch: Batch) -> tuple[list[int | None], Tensor]:
        """Leave out one node's row at a time in the readout; the other nodes keep their positions.

        `batch` is one graph, the same for every member, with one row per node.

        Returns:
            The sorted position of each node for the first member, `None` if the nodes are summed or
            the position is beyond m; and the logits [S, 1 + n, classes] with all nodes, then
            without each node.
        """
        h, last = self.embed(batch.rows)
        members, nodes, width = h.shape
        first = self.classifier.first
        position: list[int | None] = [None] * nodes
        if self.sorts:
            order = self._order(h, last, batch.rows).view(members, nodes)
            rank = order.argsort(1)
            position = [at if at < self.max_nodes else None for at in rank[0].tolist()]
            h = h.relu() if self.settings.readout_relu else h
            matrix = first.weight.view(members, self.max_nodes, width, -1)
            # Each node adds its row times its rank's block of the matrix to the hidden layer.
            added = torch.stack(
                [
                    torch.einsum("nw,nwh->nh", own, blocks[at.clamp(max=self.max_nodes - 1)])
                    for own, blocks, at in zip(h, matrix, rank, strict=True)
                ]
            )
            added *= (rank < self.max_nodes).unsqueeze(-1)
            whole = added.sum(1, keepdim=True)
            hidden = torch.cat([whole, whole - added], 1) + first.bias
        else:
            whole = h.sum(1, keepdim=True)
            read = torch.cat([whole, whole - h], 1)
            hidden = first(read.relu() if self.settings.readout_relu else read)
        logits: Tensor = self.classifier.second(hidden.relu())
        return position, logits

    def _logits(self, rows: StackRows, factor: Tensor | None = None) -> Tensor:
        hidden = self._hidden(rows)
        found: Tensor = self.classifier.second(hidden if factor is None else hidden * factor)
        return found

    def _hidden(self, rows: StackRows) -> Tensor:
        return self._read(*self.embed(rows), rows).relu()

    def _read(self, h: Tensor, last: Tensor, rows: StackRows) -> Tensor:
        """[S, B, hidden] from the nodes to the hidden layer of the classifier, before its ReLU."""
        found: Tensor
        relu = self.settings.readout_relu
        if self.sorts:
            given = h.relu() if relu else h, self._order(h, last, rows), self.classifier, rows
            found = _SortedProduct.apply(*given)  # type: ignore[no-untyped-call]
            return found
        nodes_of = SparseMatrix(rows.node_row, rows.graph_ptr, rows.graph_key >> 32, rows.node_ptr)
        summed = (nodes_of @ h.flatten(0, 1)).view(len(h), rows.graphs, -1)
        found = self.classifier.first(summed.relu() if relu else summed)
        return found

    @torch.no_grad()
    def _order(self, h: Tensor, last: Tensor, rows: StackRows) -> Tensor:
        """[n] the nodes, sorted by graph and then by key."""
        # One sort by both: the float's bits, changed so that they compare as integers, and -0 is 0.
        bits = self._sort_key(h, last, rows).float().view(torch.int32)
        ordered = torch.where(bits < 0, -(2**31) - bits, bits)
        return (rows.graph_key + ordered).argsort(stable=True)

    def _sort_key(self, h: Tensor, last: Tensor, rows: StackRows) -> Tensor:
        """[n] the key that the nodes are sorted by, ascending."""
        by = h if self.settings.sort_key == SortKey.AGGREGATED else last
        key = by.flatten(0, 1)[:, -1].index_select(0, rows.node_row)
        return -key if self.settings.sort_order == SortOrder.DESCENDING else key

    @torch.no_grad()
    def _remember(self, rows: StackRows, weight: float) -> None:
        """Give the statistics of the last batch this weight in the running ones.

        The variance is the unbiased one of the nodes, as in torch. A member without nodes keeps its
        own statistics.
        """
        norms = self._norms
        running = [each.running_mean for each in norms] + [each.running_var for each in norms]
        means, variances = zip(*(each.seen for each in norms), strict=True)
        unbiased = torch._foreach_mul(variances, [rows.unbiased] * len(norms))
        seen = [*means, *unbiased]
        if rows.present is None:
            torch._foreach_lerp_(running, seen, weight)
        else:
            torch._foreach_lerp_(running, seen, [rows.present * weight] * len(running))

    @torch.no_grad()
    def _start_glorot(self, generators: Generators) -> None:
        """Draw all matrices Glorot-uniformly, and set the biases of linear maps to 0."""
        *others, last = (each for each in self.modules() if isinstance(each, Linear))
        for linear in (last, *others):
            shape = linear.weight.shape[1:]
            bound = math.sqrt(6 / max(1, sum(shape)))
            linear.weight.copy_(uniform(generators, tuple(shape), bound))
            if "bias" in linear._parameters:
                linear.bias.zero_()


def _initial_theta(generators: Generators, count: int, init: ThetaInit) -> nn.Parameter:
    # Not 0: the layers would get no gradient, and after a ReLU theta neither.
    if init == ThetaInit.GLOROT:
        return uniform(generators, (count,), math.sqrt(3 / count))
    start = 1.0 if init == ThetaInit.ONES else 1 / count
    return nn.Parameter(torch.full((len(generators), count), start))


def gradient_of(parameter: Tensor) -> Tensor:
    """The tensor that receives a parameter's gradient; the same one at every step."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


class _Layers(torch.autograd.Function):
    """[K + 1, S, R, width] the input and the layers; sets the gradients of their parameters."""

    @staticmethod
    def forward(ctx: Any, _: Tensor, model: StackedIHGNN, rows: StackRows) -> Tensor:
        shape = len(model.convs) + 1, *rows.share.mT.shape[:2], model.settings.width
        layers = rows.share.new_empty(shape)
        ctx.kept = [model.input.fill(rows, layers[0])]
        for k, conv in enumerate(model.convs):
            ctx.kept.append(conv(layers[k], rows, layers[k + 1]))
        ctx.model, ctx.rows = model, rows
        ctx.save_for_backward(layers)
        return layers

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None]:
        (layers,), (gradient,) = ctx.saved_tensors, gradients
        model, rows, (of_input, *kept) = ctx.model, ctx.rows, ctx.kept
        to_h = gradient[-1]
        for k in reversed(range(len(kept))):
            to_h = model.convs[k].backward(layers[k], rows, kept[k], to_h, gradient[k])
        model.input.set_gradients(to_h, rows, of_input)
        return None, None, None


class _SortedProduct(torch.autograd.Function):
    """[S, B, hidden]: the sorted and concatenated nodes times the classifier's first matrix."""

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, order: Tensor, classifier: Classifier, rows: StackRows
    ) -> Tensor:
        first = classifier.first
        places = h.new_zeros(rows.places + 1, h.shape[-1])
        sorted_rows = rows.node_row.index_select(0, order)
        places.index_copy_(0, rows.place, h.flatten(0, 1).index_select(0, sorted_rows))
        out = first.bias.repeat(1, rows.graphs, 1)
        for block, part, ranks in _by_block(rows, places, len(h)):
            out[:, : block.graphs].baddbmm_(part, first.weight[:, ranks])
        ctx.order, ctx.places, ctx.classifier, ctx.rows = order, places, classifier, rows
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        rows, first, (gradient,) = ctx.rows, ctx.classifier.first, gradients
        torch.sum(gradient, 1, keepdim=True, out=gradient_of(first.bias))
        to_weight = _cleared(ctx.classifier, rows.blocks[-1].high * ctx.places.shape[-1])
        to_places = torch.empty_like(ctx.places)
        to_places[-1] = 0  # nodes beyond m
        both = (_by_block(rows, each, len(gradient)) for each in (ctx.places, to_places))
        for (block, part, ranks), (_, to_part, _) in zip(*both, strict=True):
            received = gradient[:, : block.graphs]
            torch.bmm(part.mT, received, out=to_weight[:, ranks])
            torch.bmm(received, first.weight[:, ranks].mT, out=to_part)
        node_place = torch.empty_like(rows.place).index_copy_(0, ctx.order, rows.place)
        to_h = sums(to_places, node_place, rows.node_ptr)
        return to_h.view(len(gradient), -1, to_h.shape[-1]), None, None, None


def _by_block(
    rows: StackRows, places: Tensor, members: int
) -> Iterator[tuple[Block, Tensor, slice]]:
    """Each block, its places [S, graphs, ranks · width], and its rows of the matrix."""
    start, width = 0, places.shape[-1]
    for block in rows.blocks:
        end = start + members * block.places
        part = places[start:end].view(members, block.graphs, -1)
        yield block, part, slice(block.low * width, block.high * width)
        start = end


def _cleared(classifier: Classifier, reached: int) -> Tensor:
    """The gradient of the readout's matrix, 0 in the rows that this batch does not reach.

    The matrix can be the largest tensor in memory, so only what the previous step has filled is
    cleared.
    """
    gradient = gradient_of(classifier.first.weight)
    filled = gradient.shape[1] if classifier.filled is None else classifier.filled
    if filled > reached:
        gradient[:, reached:filled] = 0
    classifier.filled = reached
    return gradient


def readable_weights(stack: Mapping[str, Tensor], member: int) -> dict[str, Tensor]:
    """The weights (or the gradients) of one member, in the form of the readable model."""
    matrices = ("first.weight", "second.weight")
    found = {}
    for name, value in stack.items():
        own = value[member]
        vector = own if name == "theta" else own[0]
        found[name] = own.T if name.endswith(matrices) else vector
    return found
