"""The registry entry of H2GCN: settings, cost and grid; see `baselines/h2gcn.py`."""

from dataclasses import dataclass

from ihgnn_cli.models.entries.shared import kept_of_pairs, likely_pairs
from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily

DISTANCE = 2


# Z is 2^(K+1) - 1 times as wide as R_0: at ten rounds of width 64, 131,008 numbers per node.
_MOST_ROUNDS = 10


@dataclass(frozen=True)
class H2GCNSettings(ModelSettings):
    """`layers` is K, the rounds; `width` is the width of R_0, which doubles with each round.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 2
    width: int = 64
    relu: bool = True
    """Whether σ is a ReLU or the identity."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 0, _MOST_ROUNDS)

    @property
    def final_width(self) -> int:
        """Width of all rounds together."""
        return self.width * ((1 << self.layers + 1) - 1)


def _numbers(settings: H2GCNSettings, load: Load) -> float:
    # Mostly all rounds together, whose width doubles each time, and their dropout mask; then σ, the
    # graphs' sums, and for each pair its two ends and its weight.
    rows = load.nodes * (2 * settings.final_width + settings.width)
    graphs = load.graphs * (settings.final_width + 3 * settings.hidden)
    return rows + graphs + 3 * likely_pairs(load, DISTANCE)


MODEL = ModelSpec(
    name="h2gcn",
    title="H2GCN",
    reference="Zhu et al. 2020, Beyond homophily in graph neural networks",
    settings=H2GCNSettings,
    cost=Cost.HOPS,
    parameters=58_178,
    numbers=_numbers,
    derived=lambda _settings, load: kept_of_pairs(load, DISTANCE),
    make=lazily("ihgnn_cli.models.baselines.h2gcn:H2GCN"),
    grid={
        "layers": (1, 2),
        "relu": (True, False),
        "dropout": (0.0, 0.5),
        "weight_decay": (1e-5, 5e-4),
        "lr": (0.01,),
    },
    grid_source=(
        "The authors' code (configs/real-geomgcn/h2gcn.json), for node classification on real "
        "graphs, all 16 combinations: H2GCN-1 or H2GCN-2, with or without ReLU, dropout 0 or 0.5, "
        "L2 1e-5 or 5e-4 (here as weight decay); 64 hidden units and the code's default learning "
        "rate."
    ),
    note=(
        "H2GCN-K with K = `layers`. Sum pooling and a two-layer MLP on top. Linear between the "
        "first layer and the pooling, so it sees where labels are, not which are neighbours."
    ),
    layouts_note="The nodes at each distance would be matrices of all pairs of nodes.",
)
