"""The registry entry of PCNet: settings, cost and grid; see `baselines/pcnet.py`."""

from dataclasses import dataclass

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily

_MOST_TERMS = 100  # far above any real use, and low enough that an untrusted file does no harm


@dataclass(frozen=True)
class PCNetSettings(ModelSettings):
    """`layers` is K, the number of filters; `width` is the width of the MLP and of H.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 4
    width: int = 64
    terms: int = 5
    """N, the number of terms per filter: a node sees others up to N - 1 steps away."""
    t: float = 1.0
    """t, the time of the reversed heat flow; 0 leaves only the low-pass filters."""
    beta: float = 1.0
    """β, subtracted from the diagonal."""
    power: float = 0.5
    """c, the exponent of the degrees."""
    theta: float = 0.5
    """Initial value of all K + 1 filter weights."""
    walk_dropout: float = 0.5
    """Dropout rate on H."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("terms", 1, _MOST_TERMS)
        for name in ("t", "beta", "power"):
            self.require(name, 0)
        if not 0 <= self.walk_dropout < 1:
            rate = f"{self.walk_dropout:g}"
            raise InputError(f"walk_dropout must be at least 0 and below 1, not {rate}.")


def _numbers(settings: PCNetSettings, load: Load) -> float:
    # For each term its step's output, for the gradient of the θ; for the MLP three dropout masks
    # and two inputs; for an edge its ends and its weight.
    rows = load.nodes * settings.width
    return rows * (settings.terms + 4) + 6 * load.edges + load.graphs * settings.hidden * 3


MODEL = ModelSpec(
    name="pcnet",
    title="PCNet",
    reference=(
        "Li et al. 2024, PC-Conv: Unifying homophily and heterophily with two-fold filtering"
    ),
    settings=PCNetSettings,
    cost=Cost.EDGES,
    parameters=13_255,
    numbers=_numbers,
    make=lazily("ihgnn_cli.models.baselines.pcnet:PCNet"),
    grid={
        "layers": (4, 6),
        "t": (0.0, 1.0, 2.0),
        "beta": (1.0, 1.5),
        "lr": (0.005, 0.05),
    },
    grid_source=(
        "The Optuna search of the authors' code (training.py), for node classification with 64 "
        "hidden units: K 4, 5 or 6; N 4, 5, 6 or 10; t 0 to 2, β 1 to 4 and c 0 to 0.8 in small "
        "steps; θ from 0.5 to 2; three learning rates of 0.005 to 0.1, three weight decays of 0 to "
        "5e-3 and three dropouts of 0 to 0.9. Here a few values of K, t, β (most of their best "
        "values are below 2) and one learning rate; the rest keeps its default."
    ),
    note=(
        "Follows the authors' code, with a ReLU in the MLP for all data. Sum pooling and a "
        "two-layer MLP on top. Linear between the first MLP and the pooling, so it sees where "
        "labels are, not which are neighbours."
    ),
    layouts=("padded", "sparse"),
)
