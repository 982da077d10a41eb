"""The registry entry of Graphormer: settings, cost and grid; see `baselines/graphormer.py`."""

from dataclasses import dataclass

from ihgnn_cli.models.entries.shared import require_heads
from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily

# Distances are stored as bytes, with two more values above the largest.
_MOST_DISTANCE = 253


@dataclass(frozen=True)
class GraphormerSettings(ModelSettings):
    """`layers` are transformer layers; `dropout` applies to attention, MLPs and head."""

    layers: int = 4
    width: int = 32
    hidden: int = 64
    dropout: float = 0.1
    heads: int = 4
    """Attention heads, which share the width."""
    max_degree: int = 64
    """Higher degrees count as this one."""
    max_distance: int = 20
    """Larger distances count as this one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 1)
        require_heads(self.width, self.heads)
        self.require("max_degree", 1)
        self.require("max_distance", 1, _MOST_DISTANCE)


def _numbers(settings: GraphormerSettings, load: Load) -> float:
    tokens = load.graphs * (1 + load.largest)
    squares = load.graphs * (1 + load.largest) ** 2
    # The last layer computes one token only: it keeps keys, values and the norms before them.
    of_layer = 10 * settings.width * tokens + 3 * settings.heads * squares
    return settings.layers * of_layer + squares


MODEL = ModelSpec(
    name="graphormer",
    title="Graphormer",
    reference="Ying et al. 2021, Do Transformers Really Perform Badly for Graph Representation?",
    settings=GraphormerSettings,
    cost=Cost.PAIRS,
    parameters=30_622,
    numbers=_numbers,
    derived=lambda _settings, load: load.pairs / 4,  # distances, a byte each
    make=lazily("ihgnn_cli.models.baselines.graphormer:Graphormer"),
    grid={"layers": (6, 12), "width": (80,), "heads": (8,), "lr": (2e-4, 3e-4)},
    grid_source=(
        "The paper searches only the parameters of FLAG, its data augmentation, which is left out "
        "here. These are the sizes it trains: 12 layers and MLPs of width 80 with 8 heads at 2e-4 "
        "(Graphormer-SLIM, as in the authors' script for ZINC, whose decoupled weight decay of "
        "0.01 is left out); the 6 layers and 3e-4 of Graphormer-Small could not be checked against "
        "the text. Widths 512 and 768, for millions of molecules, are left out."
    ),
    note=(
        "Centrality encoding, spatial encoding, [VNode]; without edge encoding, since only node "
        "labels are used. Weights are initialized as in the authors' code. Constant learning rate "
        "without warm-up, no FLAG."
    ),
    by_size=True,
    layouts_note="Attention and shortest paths are matrices of all pairs of nodes.",
)
