"""The model as one would write it with torch-geometric: the readable reference.

Nothing here is tuned: one-hot features, a convolution an edge list, dense padding to m. The tests
compare losses and gradients with it, the benchmarks speed.
"""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv
from torch_geometric.utils import to_dense_batch

from ihgnn_cli.models.settings import IHGNNSettings, Inputs, SortKey, SortOrder, Variant


def mlp(inputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width, bias=False),  # the normalization would take a bias away
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, width),
    )


class PlainIHGNN(nn.Module):
    def __init__(self, settings: IHGNNSettings, inputs: Inputs) -> None:
        super().__init__()
        self.settings = settings
        self.max_nodes = inputs.max_nodes
        width, variant = settings.width, settings.variant
        blocks = {Variant.NO_INTEGRATION: 2, Variant.NO_SEPARATION: 1}.get(variant, 3)
        self.input = mlp(inputs.attributes + inputs.labels, width)
        self.layers = nn.ModuleList(mlp(blocks * width, width) for _ in range(settings.layers))
        self.conv = SimpleConv(aggr="sum")
        self.theta = nn.Parameter(torch.full((settings.layers + 1,), 1 / (settings.layers + 1)))
        if variant is Variant.NO_ADAPTIVE:
            width *= settings.layers + 1
        rows = 1 if variant is Variant.NO_CONCAT else inputs.max_nodes
        self.classifier = nn.Sequential(
            nn.Linear(rows * width, settings.hidden),
            nn.ReLU(),
            nn.Dropout(settings.dropout),
            nn.Linear(settings.hidden, inputs.classes),
        )

    def forward(self, data: Data) -> Tensor:
        variant = self.settings.variant
        h = self.input(data.x)
        layers = [h]
        for layer in self.layers:
            a_h = self.conv(h, data.edge_index)
            if variant is Variant.NO_INTEGRATION:
                seen = [h, a_h]
            elif variant is Variant.NO_SEPARATION:
                seen = [h + a_h]
            else:
                seen = [h, a_h, h + a_h]
            h = layer(torch.cat(seen, dim=1))
            layers.append(h)
        if variant is Variant.NO_ADAPTIVE:
            h = torch.cat(layers, dim=1)
        else:
            h = sum(theta * layer for theta, layer in zip(self.theta, layers, strict=True))
        return self.classifier(self.readout(h, layers[-1], data))

    def readout(self, h: Tensor, last_layer: Tensor, data: Data) -> Tensor:
        # A graph larger than m keeps its first m nodes in the order of the sort: pad to the
        # largest of the batch first.
        dense, real = to_dense_batch(h, data.batch)
        if self.settings.variant is Variant.NO_CONCAT:
            found = dense.sum(dim=1)
        else:
            key = h if self.settings.sort_key is SortKey.AGGREGATED else last_layer
            keys, _ = to_dense_batch(key[:, -1], data.batch)
            if self.settings.sort_order is SortOrder.DESCENDING:
                keys = -keys
            order = keys.masked_fill(~real, torch.inf).argsort(dim=1, stable=True)
            dense = dense.gather(1, order.unsqueeze(-1).expand_as(dense))[:, : self.max_nodes]
            dense = nn.functional.pad(dense, (0, 0, 0, self.max_nodes - dense.shape[1]))
            found = dense.flatten(1)
        return found.relu() if self.settings.readout_relu else found

    @torch.no_grad()
    def take(self, stack: nn.Module, member: int = 0) -> None:
        """Take the parameters and running statistics of one member of a stack."""
        state = {name: value[member] for name, value in stack.state_dict().items()}
        for name, block in [("input", self.input)] + [
            (f"layers.{k}", each) for k, each in enumerate(self.layers)
        ]:
            block[0].weight.copy_(state[f"{name}.weight"].T)
            block[1].weight.copy_(state[f"{name}.tail.scale"][0])
            block[1].bias.copy_(state[f"{name}.tail.shift"][0])
            block[1].running_mean.copy_(state[f"{name}.tail.mean"][0])
            block[1].running_var.copy_(state[f"{name}.tail.variance"][0])
            block[3].weight.copy_(state[f"{name}.tail.weight"].T)
            block[3].bias.copy_(state[f"{name}.tail.bias"][0])
        if "aggregation.theta" in state:
            self.theta.copy_(state["aggregation.theta"])
        self.classifier[0].weight.copy_(state["readout.weight"].T)
        self.classifier[0].bias.copy_(state["hidden_bias"][0])
        self.classifier[3].weight.copy_(state["weight"].T)
        self.classifier[3].bias.copy_(state["bias"][0])

    def gradients(self) -> dict[str, Tensor]:
        """The gradients under the names of a stack's parameters, in a member's shapes."""
        found = {
            "readout.weight": self.classifier[0].weight.grad.T,
            "hidden_bias": self.classifier[0].bias.grad[None],
            "weight": self.classifier[3].weight.grad.T,
            "bias": self.classifier[3].bias.grad[None],
        }
        for name, block in [("input", self.input)] + [
            (f"layers.{k}", each) for k, each in enumerate(self.layers)
        ]:
            found[f"{name}.weight"] = block[0].weight.grad.T
            found[f"{name}.tail.scale"] = block[1].weight.grad[None]
            found[f"{name}.tail.shift"] = block[1].bias.grad[None]
            found[f"{name}.tail.weight"] = block[3].weight.grad.T
            found[f"{name}.tail.bias"] = block[3].bias.grad[None]
        if self.settings.variant is not Variant.NO_ADAPTIVE:
            found["aggregation.theta"] = self.theta.grad
        return found
