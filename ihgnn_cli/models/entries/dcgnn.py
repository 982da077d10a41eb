"""The registry entry of DCGNN: settings, cost and grid; see `baselines/dcgnn.py`."""

from dataclasses import dataclass

from ihgnn_cli.models.entries.shared import kept_of_pairs, likely_pairs
from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily


@dataclass(frozen=True)
class DCGNNSettings(ModelSettings):
    """`layers` is K, the largest distance; `width` is the width of H and Z.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 3
    width: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 1)


def _numbers(settings: DCGNNSettings, load: Load) -> float:
    # For each distance its sum and its output; for H the ReLU and the dropout; for each pair its
    # ends and its weight.
    rows = load.nodes * settings.width * (2 * (settings.layers + 1) + 2)
    pairs = likely_pairs(load, settings.layers)
    return rows + 3 * pairs + load.graphs * settings.hidden * 3


MODEL = ModelSpec(
    name="dcgnn",
    title="DCGNN",
    reference="Wu et al. 2024, DCGNN: Adaptive deep graph convolution for heterophily graphs",
    settings=DCGNNSettings,
    cost=Cost.HOPS,
    parameters=25_734,
    numbers=_numbers,
    derived=lambda settings, load: kept_of_pairs(load, settings.layers),
    make=lazily("ihgnn_cli.models.baselines.dcgnn:DCGNN"),
    grid={
        "layers": (2, 3, 4),
        "lr": (0.001, 0.01),
        "dropout": (0.0, 0.5),
        "weight_decay": (0.0, 0.0005),
    },
    grid_source=(
        "NOT the paper's own grid: neither its text nor the authors' code was available. These are "
        "values that the other methods for heterophily search, and distances up to 2, 3 or 4."
    ),
    note=(
        "There is no public code. This follows the paper's description (adaptive aggregation of "
        "higher-order local neighbourhoods instead of stacked layers): one sum over the nodes at "
        "each shortest-path distance, with its own weights, and learned weights of the distances. "
        "Sum pooling and a two-layer MLP on top."
    ),
    layouts_note="The nodes at each distance would be matrices of all pairs of nodes.",
)
