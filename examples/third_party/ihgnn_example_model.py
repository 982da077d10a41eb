"""GraphSAGE with mean pooling: a model of one's own, in a package of one's own.

William Hamilton, Rex Ying, Jure Leskovec (2017), Inductive Representation Learning on Large Graphs.
"""

from dataclasses import dataclass
from itertools import pairwise

import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs, ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec


@dataclass(frozen=True)
class SageSettings(ModelSettings):
    """`layers`, `width`, `hidden` and `dropout` are there already, here with other defaults."""

    layers: int = 2
    width: int = 64
    normalize: bool = False
    """Whether each node's vector is divided by its length after every layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 1)


class Sage(nn.Module):
    """h' = relu(W_1 h + W_2 mean of the neighbours' h), then the mean of the nodes, then an MLP."""

    def __init__(self, settings: SageSettings, inputs: Inputs) -> None:
        super().__init__()
        widths = [inputs.features, *[settings.width] * settings.layers]
        self.layers = nn.ModuleList(
            SAGEConv(before, after, normalize=settings.normalize)
            for before, after in pairwise(widths)
        )
        self.first = nn.Linear(settings.width, settings.hidden)
        self.second = nn.Linear(settings.hidden, inputs.classes)
        self.dropout = settings.dropout

    def forward(self, graphs: Graphs) -> Tensor:
        """[B, classes] logits."""
        h = graphs.x
        for layer in self.layers:
            h = layer(h, graphs.edge_index).relu()
        hidden = self.first(graphs.mean_nodes(h)).relu()
        logits: Tensor = self.second(F.dropout(hidden, self.dropout, self.training))
        return logits


def numbers(settings: SageSettings, load: Load) -> float:
    """A layer keeps what comes out of it and the mean of the neighbours, for each node."""
    return 2.0 * settings.layers * settings.width * load.nodes


MODEL = ModelSpec(
    name="sage",
    title="GraphSAGE",
    reference="Hamilton et al. 2017, Inductive Representation Learning on Large Graphs",
    settings=SageSettings,
    cost=Cost.EDGES,
    numbers=numbers,
    make=Sage,
    grid={"layers": (2, 3), "width": (32, 64), "lr": (0.001, 0.01)},
    grid_source="our own choice",
    note="mean aggregator, mean pooling",
    layouts=("padded", "sparse"),  # forward uses only what traced graphs have, too
)
