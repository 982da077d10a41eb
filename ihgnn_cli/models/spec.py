"""The registry entry of a model: its name, settings, cost and constructor.

Models of this package and of other packages have the same kind of entry. docs/models.md explains
how to write one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ihgnn_cli.models.settings import Inputs, ModelSettings

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ihgnn_cli.data.batching.batches import Batch
    from ihgnn_cli.models.stacked import Generators

Grid = Mapping[str, tuple[Any, ...]]
"""Candidate values by setting: the model's own settings, `lr`, `batch_size` and `weight_decay`."""


class Layout(StrEnum):
    """How a batch of graphs is laid out in the inputs of an exported file."""

    PADDED = "padded"
    """Matrices, padded to one size."""
    SPARSE = "sparse"
    """Lists of nodes and edges."""


class Cost(StrEnum):
    """What the time and memory of a step grow with, for graphs of n nodes and e edges."""

    EDGES = "n + e"
    HOPS = "pairs within K hops"
    PAIRS = "n²"
    TOKENS = "(n + e)²"
    CUBES = "n³"
    SETS = "sets of up to 3 nodes"


@dataclass(frozen=True)
class Load:
    """The graphs that a model holds in memory at a time: those of a step, or a part of them."""

    graphs: int
    nodes: int
    edges: int
    """Each edge counts in both directions."""
    largest: int
    """Number of nodes of the largest graph."""
    pairs: int
    """Sum of the squared graph sizes, with padding if the model pads."""
    edge_types: int = 1
    """Number of edge labels that are told apart."""


@dataclass(frozen=True)
class ModelSpec:
    """An entry of the registry.

    A model is made in one of two ways. `make` returns one torch module, trained with automatic
    differentiation. `stacked` returns a stack of models that take each step together (see
    `models.factory.StackedModel`).
    """

    name: str
    """Name for `--model`."""
    title: str
    """Name in tables."""
    reference: str
    """Authors, year and title of the method's paper."""
    settings: type[ModelSettings]
    cost: Cost
    numbers: Callable[[Any, Load], float]
    """Estimates how many numbers the backward pass keeps, given the settings and a load; or, if
    that is more, how many it takes to compute what is derived from a graph."""
    feature_rows: Callable[[Load], float] = lambda load: load.nodes
    """Number of feature vectors that the model receives at a time; by default one per node."""
    derived: Callable[[Any, Load], float] = lambda _settings, _load: 0.0
    """Estimates how many numbers (of 4 bytes) the model derives from one graph and keeps."""
    make: "Callable[[Any, Inputs], nn.Module] | None" = None
    """Makes one module from the settings and the inputs (`lazily` imports its class when needed).
    Its `forward(graphs: Graphs)` returns the logits [B, classes], or a tuple of the logits and a
    penalty that is added to the loss."""
    stacked: "Callable[[Any, Inputs, Generators], nn.Module] | None" = None
    grid: Grid = field(default_factory=dict)
    """The search grid of the method's own paper."""
    grid_source: str = ""
    """Where the grid comes from, and what is left out here and why."""
    note: str = ""
    """Which variant of the method this is, and how it differs from the paper."""
    by_size: bool = False
    """Whether to split a step into parts of graphs of similar size, for methods that pad. The
    graphs of a step must not influence each other (no batch normalization)."""
    rounds: Callable[[Any], int | None] = lambda _: None
    """Rounds of message passing after which nodes of one colour have equal embeddings. `None` if
    every node must be computed separately; only a `stacked` model may return a number."""
    edge_labels: Callable[[Any], bool] = lambda _: False
    """Whether the model reads edge labels, given the settings; only a `stacked` model may."""
    node_limit: Callable[[Any, int], int | None] = lambda _settings, _max_nodes: None
    """Number of nodes per graph that the readout uses, the first in sorted order, given the
    settings and m. `None` if it uses all nodes."""
    without_each_node: "Callable[[Any, Batch], tuple[list[int | None], Tensor]] | None" = None
    """How a stacked model explains a graph; see `models.stacked.explain`. By default, the features
    of one node at a time are set to zero."""
    layer_weights: "Callable[[Mapping[str, Tensor]], Tensor | None]" = lambda _: None
    """[S, layers] the learned weight of each layer, from a checkpoint's weights; may be `None`."""
    layouts: tuple[str, ...] = ()
    """Layouts in which `ihgnn export` writes the model: `padded`, `sparse`. Its `forward` must work
    on the graphs of `models.traced`."""
    layouts_note: str = ""
    """Why the model cannot be exported, in one sentence."""
    traced: str = ""
    """`module:Class` of a module for export, where the model's `forward` does not run on
    `models.traced` graphs; see `models.ihgnn_traced`."""
    recipes: tuple[str, ...] = ()
    """Names of its recipes: files in `ihgnn_cli/recipes`."""
    parameters: int | None = None
    """Number of parameters with default settings for MUTAG (`Inputs(7, 0, 2, 28)`), for tables."""
    package: str = "ihgnn"
    """The package that provides the model."""

    @property
    def exportable(self) -> bool:
        """Whether `ihgnn export` can write the model in any layout."""
        return bool(self.layouts)


def lazily(path: str) -> "Callable[[Any, Inputs], nn.Module]":
    """For `make`: the class `module:Class`, imported when the first model is made.

    Importing torch takes seconds, which listing models and refusing settings should not.
    """
    module, name = path.split(":")

    def make(settings: Any, inputs: Inputs) -> "nn.Module":
        made: nn.Module = getattr(import_module(module), name)(settings, inputs)
        return made

    return make
