"""IHGNN for the export to ONNX, on `models.traced` graphs; for inference only.

The members of an ensemble are computed together: weights [S, ·, ·] and rows [S, n, ·] have a
leading member axis, so the network has the same operations for 2 members and for 50. A single model
has no member axis, because runtimes are faster with matrices.

BatchNorm is part of the product before it, computed in double precision. With
[H, A·H, H + A·H]·W = H·(W1 + W3) + A·(H·(W2 + W3)), a layer sends each node's message through the
edges; with edge labels a node has a message for each label.
"""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor, nn

from ihgnn_cli.models.ihgnn import IHGNN
from ihgnn_cli.models.settings import SortKey, SortOrder, Variant
from ihgnn_cli.models.traced import TracedGraphs

_EPS = 1e-5  # of nn.BatchNorm1d


class TracedIHGNN(nn.Module):
    """The models of an ensemble as one.

    Args:
        models: trained, all of the same settings.
        attributes: how many of the input's columns are node attributes, the first ones; the others
            are one-hot labels.
    """

    def __init__(self, models: Sequence[IHGNN], attributes: int) -> None:
        super().__init__()
        first = models[0]
        self.settings, self.max_nodes = first.settings, first.max_nodes
        states = [each.state_dict() for each in models]
        weights = {
            name: torch.stack([each[name].double() for each in states])
            if len(states) > 1
            else value.double()
            for name, value in states[0].items()
        }

        def normalized(name: str) -> tuple[Tensor, Tensor]:
            """Linear and BatchNorm as a matrix and a shift."""
            scale = weights[f"{name}.norm.weight"] * torch.rsqrt(
                weights[f"{name}.norm.running_var"] + _EPS
            )
            shift = weights[f"{name}.norm.bias"] - weights[f"{name}.norm.running_mean"] * scale
            return weights[f"{name}.first.weight"].mT * scale.unsqueeze(-2), shift.unsqueeze(-2)

        def linear(name: str) -> _Linear:
            return _Linear(weights[f"{name}.weight"].mT, weights[f"{name}.bias"].unsqueeze(-2))

        matrix, shift = normalized("input")
        of_attributes, of_label = matrix.tensor_split([attributes], -2)
        self.attributes = _Linear(of_attributes) if attributes else None
        # By label; the last row is for unknown ones.
        self.table = nn.Buffer((nn.functional.pad(of_label, (0, 0, 0, 1)) + shift).float())
        self.own, self.messages = nn.ModuleList(), nn.ModuleList()
        for number in range(self.settings.layers):
            matrix, shift = normalized(f"convs.{number}.mlp")
            own, *messages = _blocks(matrix, self.settings.variant)
            self.own.append(_Linear(own, shift))
            self.messages.append(_Linear(torch.cat(messages, -1)))
        names = ["input", *(f"convs.{number}.mlp" for number in range(self.settings.layers))]
        self.tails = nn.ModuleList(linear(f"{name}.second") for name in names)
        if "theta" in weights:
            self.theta = nn.Buffer(weights["theta"].float().unsqueeze(-1).unsqueeze(-1))
        self.readout = linear("classifier.first")
        self.classifier = linear("classifier.second")

    def forward(
        self, graphs: TracedGraphs, row: Tensor, attributes: Tensor | None
    ) -> dict[str, Tensor]:
        """`logits` and `graph_embedding` [B, ·], or [S, B, ·] of several members.

        Args:
            graphs: whose nodes these are.
            row: [n] the label of each node.
            attributes: [n, a], if the model reads them.
        """
        settings, width = self.settings, self.settings.width
        y = self.table.index_select(-2, row)
        if self.attributes is not None and attributes is not None:
            y = y + self.attributes(attributes)
        found = [self.tails[0](y.relu())]
        for own, message, tail in zip(self.own, self.messages, self.tails[1:], strict=True):
            sent = message(found[-1])
            if sent.shape[-1] > width:  # a message for each edge label
                sent = sent.view(*sent.shape[:-2], -1, width)
            found.append(tail((own(found[-1]) + graphs.sum_neighbours(sent)).relu()))
        if settings.variant == Variant.NO_ADAPTIVE:
            h = torch.cat(found, -1)
        else:
            weighted = [t * h for t, h in zip(self.theta.unbind(-3), found, strict=True)]
            h = reduce(torch.add, weighted)
        if settings.variant == Variant.NO_CONCAT:
            read = graphs.sum_nodes(h)
        else:
            key = (h if settings.sort_key == SortKey.AGGREGATED else found[-1])[..., -1]
            key = -key if settings.sort_order == SortOrder.DESCENDING else key
            read = graphs.first_nodes(h, key, self.max_nodes)
        if settings.readout_relu:
            read = read.relu()
        hidden = self.readout(read, rows=read.shape[-1]).relu()
        return {"logits": self.classifier(hidden), "graph_embedding": hidden}


class _Linear(nn.Module):
    """x·W + b, of each member with its own W [S, ·, ·] and b [S, 1, ·] if there are several."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.weight = nn.Buffer(weight.float().contiguous())
        single = weight.dim() == 2 and bias is not None
        self.bias = None if bias is None else nn.Buffer((bias[0] if single else bias).float())

    def forward(self, x: Tensor, rows: int | None = None) -> Tensor:
        """[n, columns], or [S, n, columns]; `rows` reads only the first rows of W."""
        weight = self.weight if rows is None else self.weight[..., :rows, :]
        if x.dim() < weight.dim():
            x = x.expand(len(weight), -1, -1)  # OpenVINO does not broadcast to constants
        if self.bias is None:
            return x @ weight
        return torch.addmm(self.bias, x, weight) if x.dim() == 2 else x @ weight + self.bias


def _blocks(weight: Tensor, variant: Variant) -> list[Tensor]:
    """The matrices of a node's own embedding, and of its message for each edge label."""
    if variant == Variant.NO_SEPARATION:
        return [weight, weight]
    blocks = list(weight.chunk(weight.shape[-2] // weight.shape[-1], -2))
    if variant == Variant.NO_INTEGRATION:
        return blocks
    return [each + blocks[-1] for each in blocks[:-1]]
