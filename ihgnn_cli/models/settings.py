"""The choices that make a model: the paper's hyper-parameters and its ablations."""

import math
from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.errors import InputError
from ihgnn_cli.settings import Settings


class Variant(StrEnum):
    """The model of the paper, and the four ablations of its Table 2."""

    FULL = "full"
    NO_INTEGRATION = "no-integration"
    """w/o-Integ: a layer sees H and A·H, not their sum."""
    NO_SEPARATION = "no-separation"
    """w/o-Sepa: a layer sees only H + A·H."""
    NO_ADAPTIVE = "no-adaptive"
    """w/o-Adapt: the layers are concatenated instead of summed with learned weights."""
    NO_CONCAT = "no-concat"
    """w/o-Concat: the nodes are summed instead of sorted and concatenated."""

    def node_limit(self, max_nodes: int) -> int | None:
        """Nodes of a graph that count, given m; `None` where all are summed."""
        return None if self == Variant.NO_CONCAT else max_nodes


class SortKey(StrEnum):
    """Whose last column orders the nodes."""

    AGGREGATED = "aggregated"
    """H, the aggregate of all layers (the paper's text)."""
    LAST_LAYER = "last-layer"
    """H^(K), the last layer (the authors' code)."""


class SortOrder(StrEnum):
    """Which node comes first."""

    ASCENDING = "ascending"
    """The paper's text."""
    DESCENDING = "descending"
    """The authors' code."""


class ThetaInit(StrEnum):
    """The initial values of theta, the K + 1 weights of the layers."""

    MEAN = "mean"
    """1 / (K + 1): the aggregate starts as the mean of the layers."""
    GLOROT = "glorot"
    """Glorot-uniform (the authors' code)."""
    ONES = "ones"
    """The aggregate starts as the sum of the layers."""


class WeightInit(StrEnum):
    """The initial weights and biases of every linear map."""

    TORCH = "torch"
    """As torch.nn.Linear: both uniform within 1/√(inputs)."""
    GLOROT = "glorot"
    """Weights Glorot-uniform, biases 0 (the authors' code)."""


@dataclass(frozen=True)
class ModelSettings(Settings):
    """What every model has; each adds its own fields, and has its own defaults.

    A field is an int, a float, a bool, a text or a StrEnum: its name is its key in a
    configuration file, too.

    Raises:
        InputError: a value is not of its type, or out of its range.
    """

    layers: int = 3
    """How deep it is: what exactly, each model says."""
    width: int = 32
    """Hidden width of the layers."""
    hidden: int = 128
    """Hidden width of the classifier."""
    dropout: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("layers", 0), ("width", 1), ("hidden", 1)):
            self.require(name, least)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout must be at least 0 and below 1, not {self.dropout:g}.")

    def require(self, name: str, least: float, most: float = math.inf) -> None:
        """Make sure that a field is in its range, and finite.

        Raises:
            InputError: it is not.
        """
        value = getattr(self, name)
        if not (least <= value <= most and math.isfinite(value)):
            range_ = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
            raise InputError(f"{name} must be {range_}, not {value:g}.")


@dataclass(frozen=True)
class IHGNNSettings(ModelSettings):
    """What the paper sets and what it leaves open; defaults follow its text.

    `layers` is K, the layers on top of MLP0; `width` that of the MLPs in the layers; `dropout` is
    in the classifier only.

    Raises:
        InputError: a value is out of its range.
    """

    variant: Variant = Variant.FULL
    sort_key: SortKey = SortKey.AGGREGATED
    sort_order: SortOrder = SortOrder.ASCENDING
    readout_relu: bool = False
    """A ReLU on the concatenated nodes (the authors' code has one)."""
    theta_init: ThetaInit = ThetaInit.MEAN
    weight_init: WeightInit = WeightInit.TORCH


def as_ihgnn(settings: ModelSettings) -> IHGNNSettings:
    """Settings that are known to be those of IHGNN.

    Raises:
        TypeError: they are those of another model.
    """
    if not isinstance(settings, IHGNNSettings):
        raise TypeError(f"{type(settings).__name__}, not those of IHGNN")
    return settings


@dataclass(frozen=True)
class Inputs:
    """What a model has to know of its data before it can be built."""

    labels: int
    """Values that a node label can have; 0 where labels are no feature."""
    attributes: int
    """Columns of node attributes; 0 where they are no feature."""
    classes: int
    max_nodes: int
    """m, the size of the largest graph."""

    @property
    def features(self) -> int:
        """Columns of a node's feature vector."""
        return self.attributes + self.labels
