"""The entry of IHGNN itself; its four ablations are its setting `variant`."""

from typing import TYPE_CHECKING

from ihgnn_cli.models.registry import IHGNN
from ihgnn_cli.models.settings import IHGNNSettings, Inputs
from ihgnn_cli.models.spec import Cost, Load, ModelSpec

if TYPE_CHECKING:
    from torch import nn

    from ihgnn_cli.models.mlp import Generators

# Numbers kept for the backward pass, a unit of width: by row of a layer, by node of the readout.
_PER_ROW, _PER_NODE = 6, 3
_PAIR = 6  # of 4 bytes: an adjacent pair of rows in a batch


def _stacked(settings: IHGNNSettings, inputs: Inputs, generators: "Generators") -> "nn.Module":
    from ihgnn_cli.models import ihgnn  # noqa: PLC0415  torch takes long

    return ihgnn.IHGNN(settings, inputs, generators)


def _numbers(settings: IHGNNSettings, load: Load) -> float:
    by_node = settings.width * ((settings.layers + 1) * _PER_ROW + _PER_NODE)
    return load.nodes * by_node + _PAIR * load.edges


MODEL = ModelSpec(
    name=IHGNN,
    title="IHGNN",
    reference="Incorporating Heterophily into Graph Neural Networks for Graph Classification "
    "(arXiv 2203.07678)",
    settings=IHGNNSettings,
    cost=Cost.EDGES,
    numbers=_numbers,
    stacked=_stacked,
    grid={"lr": (0.01, 0.001, 0.0001), "batch_size": (32, 64, 128), "layers": (3, 4, 5)},
    grid_source="Section Experimental setup: 27 configurations.",
    note="The paper's text; what the authors' code does otherwise is the recipe 'authors'. "
    "Its ablations are variants.",
    rounds=lambda settings: settings.layers,
)
