"""Model settings: the paper's hyper-parameters and its ablations."""

import math
from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.errors import SettingError
from ihgnn_cli.settings import Settings

MOST_MEMBERS = 1_000
"""Most models that are trained, kept or loaded together."""


class Variant(StrEnum):
    """The paper's model and the four ablations of its Table 2."""

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
        """Number of nodes per graph that the readout uses, given m; `None` if it sums all."""
        return None if self == Variant.NO_CONCAT else max_nodes


class SortKey(StrEnum):
    """The matrix whose last column orders the nodes."""

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
    """Settings that every model has; each model adds its own fields and defaults.

    A field is an int, float, bool, str or StrEnum. Its name is also its key in a configuration
    file.

    Raises:
        InputError: a value has the wrong type or is out of range.
    """

    layers: int = 3
    """Depth of the model; each model defines what it counts."""
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
            problem = f"must be at least 0 and below 1, not {self.dropout:g}."
            raise SettingError("dropout", problem)

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of settings that the model does not read with these values of the others."""
        return ()

    def require(self, name: str, least: float, most: float = math.inf) -> None:
        """Check that a field is finite and in its range.

        Raises:
            InputError: the field is not.
        """
        value = getattr(self, name)
        if not (least <= value <= most and math.isfinite(value)):
            range_ = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise SettingError(name, f"must be {range_}, not {value}.")


@dataclass(frozen=True)
class IHGNNSettings(ModelSettings):
    """Settings of IHGNN, including what the paper leaves open; defaults follow its text.

    `layers` is K, the number of layers on top of MLP0. `width` is the width of the MLPs in the
    layers. `dropout` applies to the classifier only.

    Raises:
        InputError: a value is out of range.
    """

    variant: Variant = Variant.FULL
    sort_key: SortKey = SortKey.AGGREGATED
    sort_order: SortOrder = SortOrder.ASCENDING
    readout_relu: bool = False
    """Apply a ReLU to the concatenated nodes (as the authors' code does)."""
    theta_init: ThetaInit = ThetaInit.MEAN
    weight_init: WeightInit = WeightInit.TORCH


@dataclass(frozen=True)
class Inputs:
    """What a model needs to know about the data to be built."""

    labels: int
    """Number of node label values; 0 if labels are not used as features."""
    attributes: int
    """Number of node attribute columns; 0 if attributes are not used as features."""
    classes: int
    max_nodes: int
    """m, the size of the largest graph."""
    edge_labels: int = 0
    """Number of edge label values; 0 if edge labels are not used."""

    @property
    def features(self) -> int:
        """Length of a node's feature vector."""
        return self.attributes + self.labels
