"""The registry entry of IHGNN; the setting `variant` selects one of its four ablations."""

from typing import TYPE_CHECKING, Any

from ihgnn_cli.models.registry import IHGNN
from ihgnn_cli.models.settings import IHGNNSettings, Inputs, Variant
from ihgnn_cli.models.spec import Cost, Load, ModelSpec

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ihgnn_cli.data.batching.batches import Batch
    from ihgnn_cli.models.stacked import Generators

# Numbers kept for the backward pass per unit of width: per row of a layer, per node of the readout.
_PER_ROW, _PER_NODE = 6, 3
_PAIR = 6  # numbers (of 4 bytes) per adjacent pair of rows in a batch


def _stacked(settings: IHGNNSettings, inputs: Inputs, generators: "Generators") -> "nn.Module":
    from ihgnn_cli.models.stacked import StackedIHGNN

    return StackedIHGNN(settings, inputs, generators)


def _without_each_node(model: Any, batch: "Batch") -> "tuple[list[int | None], Tensor]":
    found: tuple[list[int | None], Tensor] = model.without_each_node(batch)
    return found


def _numbers(settings: IHGNNSettings, load: Load) -> float:
    by_node = settings.width * ((settings.layers + 1) * _PER_ROW + _PER_NODE)
    by_node += settings.width * settings.layers * (load.edge_types - 1)
    return load.nodes * by_node + _PAIR * load.edges


MODEL = ModelSpec(
    name=IHGNN,
    title="IHGNN",
    reference="Incorporating Heterophily into Graph Neural Networks for Graph Classification "
    "(arXiv 2203.07678)",
    settings=IHGNNSettings,
    cost=Cost.EDGES,
    parameters=128_998,
    numbers=_numbers,
    stacked=_stacked,
    grid={"lr": (0.01, 0.001, 0.0001), "batch_size": (32, 64, 128), "layers": (3, 4, 5)},
    grid_source="Section Experimental setup: 27 configurations.",
    note="Follows the paper's text; the recipe 'authors' follows the authors' code. "
    "The ablations are variants.",
    rounds=lambda settings: settings.layers,
    edge_labels=lambda settings: settings.variant != Variant.NO_SEPARATION,
    node_limit=lambda settings, max_nodes: settings.variant.node_limit(max_nodes),
    without_each_node=_without_each_node,
    layer_weights=lambda weights: weights.get("theta"),
    layouts=("padded", "sparse"),
    traced="ihgnn_cli.models.ihgnn_traced:TracedIHGNN",
    recipes=("paper", "authors", "robust"),
)
