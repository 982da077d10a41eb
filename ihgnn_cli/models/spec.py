"""What the rest of the program knows of a model: its name, its settings, its cost, how it is made.

A model of this package and one of somebody else's have the same kind of entry: see
docs/models.md for how to write one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ihgnn_cli.models.settings import Inputs, ModelSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ihgnn_cli.data.batching import Batch
    from ihgnn_cli.models.stacked.mlp import Generators

Grid = Mapping[str, tuple[Any, ...]]
"""Values that compete, by setting: of the model's own settings, `lr`, `batch_size` and
`weight_decay`."""


class Cost(StrEnum):
    """What time and memory of a step grow with; n nodes, e edges of a graph."""

    EDGES = "n + e"
    HOPS = "pairs within K hops"
    PAIRS = "n²"
    TOKENS = "(n + e)²"
    CUBES = "n³"
    SETS = "sets of up to 3 nodes"


@dataclass(frozen=True)
class Load:
    """What a model holds in memory at a time: a step's graphs, or those of them that it takes."""

    graphs: int
    nodes: int
    edges: int
    """Each in both directions."""
    largest: int
    """Nodes of the largest graph."""
    pairs: int
    """The sum of the squares of the sizes, padded where the model pads."""


@dataclass(frozen=True)
class ModelSpec:
    """An entry of the registry.

    A model is made one of two ways: `make` gives one torch module, whose gradients are found by
    automatic differentiation; `stacked` gives a stack of them that takes each step together (see
    `models.factory.StackedModel`).
    """

    name: str
    """What `--model` is given."""
    title: str
    """As tables call it."""
    reference: str
    """Authors, year and title of the method's paper."""
    settings: type[ModelSettings]
    cost: Cost
    numbers: Callable[[Any, Load], float]
    """About how many numbers the backward pass needs, of the settings and a load; or what is
    derived from a graph takes while it is made, where that is more."""
    feature_rows: Callable[[Load], float] = lambda load: load.nodes
    """How many feature vectors it is given at a time, where that is not one a node."""
    derived: Callable[[Any, Load], float] = lambda _settings, _load: 0.0
    """About how many numbers (of 4 bytes) it derives from one graph and keeps."""
    make: "Callable[[Any, Inputs], nn.Module] | None" = None
    """One module of the settings and the inputs: `forward(graphs: models.graphs.Graphs)` gives the
    logits [B, classes], or a tuple of these and a penalty that is added to the loss."""
    stacked: "Callable[[Any, Inputs, Generators], nn.Module] | None" = None
    grid: Grid = field(default_factory=dict)
    """Of the method's own paper."""
    grid_source: str = ""
    """Where in that paper, and what is left out of it here and why."""
    note: str = ""
    """Which of its variants this is, and where it departs from its paper."""
    by_size: bool = False
    """Whether a step is cut into parts of graphs of similar size: for methods that pad. The graphs
    of a step must not influence each other (no batch normalization)."""
    rounds: Callable[[Any], int | None] = lambda _: None
    """Rounds of message passing after which nodes of one colour are alike, or `None` where nodes
    have to be seen one by one: only a `stacked` model may give a number."""
    node_limit: Callable[[Any, int], int | None] = lambda _settings, _max_nodes: None
    """Nodes of a graph that count, of the settings and m: the first in sorted order. `None` where
    all nodes count."""
    without_each_node: "Callable[[Any, Batch], tuple[list[int | None], Tensor]] | None" = None
    """How a stacked model explains a graph: see `models.stacked.explain`. Without it, the features
    of each node in turn are set to zero."""
    layer_weights: "Callable[[Mapping[str, Tensor]], Tensor | None]" = lambda _: None
    """[S, layers] the learned weight of each layer, of a checkpoint's weights, if there are any."""
    exportable: bool = False
    """Whether `deploy` has ONNX graphs for it."""
    recipes: tuple[str, ...] = ()
    """Named settings that it has: files in `ihgnn_cli/recipes`."""
    package: str = "ihgnn"
    """Where it comes from."""
