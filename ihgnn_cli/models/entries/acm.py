"""The registry entry of ACM: settings, cost and grid; see `baselines/acm.py`."""

import math
from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily

CHANNELS = 3


class Order(StrEnum):
    """Order of filter and ReLU in a channel."""

    ACM = "acm"
    """The filter, then the ReLU."""
    ACMII = "acmii"
    """The ReLU, then the filter."""


@dataclass(frozen=True)
class ACMSettings(ModelSettings):
    """`layers` counts the layers that mix channels; `width` is the width of their outputs.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 2
    width: int = 64
    order: Order = Order.ACM
    temperature: float = 3.0
    """T; a higher value mixes the channels more evenly."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 1)
        if not 0 < self.temperature < math.inf:
            raise InputError(f"temperature must be above 0, not {self.temperature:g}.")


def _numbers(settings: ACMSettings, load: Load) -> float:
    # Rows of a layer's width: the three channels (ACMII: before and after the filter), the mixture,
    # and, in all but the first layer, the ReLU and the dropout before it. What the first layer
    # keeps of the features is left out, since a load does not include their number.
    channels = CHANNELS * (2 if settings.order == Order.ACMII else 1) + 1
    rows = channels * settings.layers + 2.5 * (settings.layers - 1)
    return load.nodes * settings.width * rows + 3 * (load.edges + load.graphs * settings.hidden)


MODEL = ModelSpec(
    name="acm",
    title="ACM",
    reference="Luan et al. 2022, Revisiting heterophily for graph neural networks",
    settings=ACMSettings,
    cost=Cost.EDGES,
    parameters=22_612,
    numbers=_numbers,
    make=lazily("ihgnn_cli.models.baselines.acm:ACM"),
    grid={
        "lr": (0.01, 0.05, 0.1),
        "weight_decay": (0.0, 5e-5, 5e-3),
        "dropout": (0.0, 0.3, 0.6),
    },
    grid_source=(
        "The search of the authors' code (hyperparameter_searching.py), for node classification "
        "with 64 hidden units: learning rate 0.01, 0.05 or 0.1; weight decay 0 or 5e-6 to 1e-2 in "
        "nine steps; dropout 0 to 0.9 in ten steps. Here weight decay and dropout have three "
        "values each, over most of their range."
    ),
    note=(
        'ACM-GCN (`order = "acmii"` is ACMII-GCN), without the structure channel of ACM-GCN+ and '
        "ACM-GCN++, which is made for a single graph. Sum pooling and a two-layer MLP on top."
    ),
    layouts=("padded", "sparse"),
)
