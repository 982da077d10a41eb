"""MLP0 and the layers of IHGNN.

    H^(0) = MLP0(X)
    H^(k) = MLPk(H^(k-1) || A·H^(k-1) || (H^(k-1) + A·H^(k-1)))        k = 1..K

X holds the nodes' one-hot labels (and attributes), A is the adjacency matrix without self-loops,
and || concatenates columns. The first two blocks separate a node from its neighbours (for
heterophily); the third integrates both (for homophily). If edge labels are used, A·H in the second
block is A_1·H || ... || A_T·H, with the matrix A_t of the edges with label t.
"""

import torch
from torch import Tensor, nn

from ihgnn_cli.data.batching.batch import Batch
from ihgnn_cli.models.settings import Inputs, Variant
from ihgnn_cli.models.stacked.kernels import (
    label_lookup,
    label_lookup_back,
    neighbor_sum,
    neighbor_sum_back,
)
from ihgnn_cli.models.stacked.mlp import (
    Generators,
    NormedTail,
    Tape,
    gradient_of,
    linear_weight,
    transposed,
)


class InputLayer(nn.Module):
    """H^(0) = MLP0(X); an unknown label is the zero vector."""

    def __init__(self, generators: Generators, inputs: Inputs, width: int) -> None:
        super().__init__()
        self.attributes = inputs.attributes
        # X has the attribute columns first, then the labels, as in torch-geometric.
        self.weight = linear_weight(generators, inputs.attributes + inputs.labels, width)
        self.tail = NormedTail(generators, width)

    def forward(self, batch: Batch, tape: Tape | None, out: Tensor) -> Tensor:
        """`out` [S, R, width], filled."""
        # A one-hot vector times a matrix is one of its rows; the last row is for the zero vector.
        of_label = nn.functional.pad(self.weight[:, self.attributes :], (0, 0, 0, 1))
        if batch.attributes is None:
            # Equal labels give equal rows, so the MLP runs once per label, not once per node.
            table = self.tail(of_label, batch.label_share, tape, torch.empty_like(of_label))
            return label_lookup(table, batch, out)
        x = label_lookup(of_label, batch, torch.empty_like(out))
        x.baddbmm_(batch.attributes, self.weight[:, : self.attributes])
        rows: Tensor = self.tail(x, batch.share, tape, out)
        return rows

    def backward(self, gradient: Tensor, batch: Batch, tape: Tape) -> None:
        """Set the parameters' gradients; this is the first layer, so nothing else needs one."""
        to_weight = gradient_of(self.weight)
        if batch.attributes is None:
            to_label = self.tail.backward(label_lookup_back(gradient, batch), tape)
        else:
            to_x = self.tail.backward(gradient, tape)
            torch.bmm(transposed(batch.attributes), to_x, out=to_weight[:, : self.attributes])
            to_label = label_lookup_back(to_x, batch)
        to_weight[:, self.attributes :] = to_label[:, :-1]


class IHGNNLayer(nn.Module):
    """H^(k) from H^(k-1); the variant selects the blocks that the MLP sees.

    There is one sum over neighbours for each of `types` edge labels.
    """

    def __init__(
        self, generators: Generators, width: int, variant: Variant, types: int = 1
    ) -> None:
        super().__init__()
        self.separate = variant != Variant.NO_SEPARATION
        self.integrate = variant != Variant.NO_INTEGRATION
        self.types = types
        blocks = (1 + types) * self.separate + self.integrate
        self.weight = linear_weight(generators, blocks * width, width)
        self.tail = NormedTail(generators, width)

    def forward(self, h: Tensor, batch: Batch, tape: Tape | None, out: Tensor) -> Tensor:
        """`out` [S, R, width], filled, from h of the same shape."""
        around = neighbor_sum(h, batch)
        matrices = self.folded()
        if tape is not None:
            tape.append((h, around, matrices))
        x = torch.bmm(h, matrices[0]).baddbmm_(around, matrices[1])
        y: Tensor = self.tail(x, batch.share, tape, out)
        return y

    def backward(self, gradient: Tensor, batch: Batch, tape: Tape) -> Tensor:
        """The gradient to h."""
        to_x = self.tail.backward(gradient, tape)
        h, around, (own, other) = tape.pop()
        self._learn(h, around, to_x)
        to_around = torch.bmm(to_x, transposed(other))
        return neighbor_sum_back(to_around, batch).baddbmm_(to_x, transposed(own))

    def folded(self) -> tuple[Tensor, Tensor]:
        """[S, ·, width] the two matrices for H and A·H that are equivalent to the three blocks.

        [H, AH, H + AH]·W = H·(W1 + W3) + AH·(W2 + W3), which saves a third of the multiplications.
        W2 has the rows of all edge labels, and W3 is added to those of each.
        """
        if not self.separate:
            return self.weight, self.weight
        first, second, *third = self._blocks(self.weight)
        if not third:
            return first, second
        both = third[0] if self.types == 1 else third[0].repeat(1, self.types, 1)
        return first + third[0], second + both

    def _blocks(self, weight: Tensor) -> tuple[Tensor, ...]:
        """W1, W2 and, if there is one, W3."""
        width = weight.shape[-1]
        end = (1 + self.types) * width
        third = [weight[:, end:]] if self.integrate else []
        return weight[:, :width], weight[:, width:end], *third

    def _learn(self, h: Tensor, around: Tensor, to_x: Tensor) -> None:
        """Set the gradients of W1, W2 and W3; that of W3 is the sum of the others."""
        to_weight = gradient_of(self.weight)
        if not self.separate:
            torch.bmm(transposed(h), to_x, out=to_weight).baddbmm_(transposed(around), to_x)
            return
        first, second, *third = self._blocks(to_weight)
        torch.bmm(transposed(h), to_x, out=first)
        torch.bmm(transposed(around), to_x, out=second)
        for each in third:
            one, *others = second.chunk(self.types, dim=1)
            torch.add(first, one, out=each)
            for other in others:
                each.add_(other)
