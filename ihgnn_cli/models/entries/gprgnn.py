"""The registry entry of GPR-GNN: settings, cost and grid; see `baselines/gprgnn.py`."""

from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily


class GammaInit(StrEnum):
    """Initial values of the K + 1 step weights."""

    PPR = "ppr"
    """Personalized PageRank: α(1 - α)^k, and (1 - α)^K for the last."""
    NPPR = "nppr"
    """α^k, scaled so that the absolute values sum to 1; α may be negative."""
    RANDOM = "random"
    """Uniform, scaled so that the absolute values sum to 1."""


@dataclass(frozen=True)
class GPRGNNSettings(ModelSettings):
    """`layers` is K, the steps of the walk; `width` is the width of the MLP and the H_k.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 10
    width: int = 64
    init: GammaInit = GammaInit.PPR
    alpha: float = 0.1
    """α for `init`."""
    walk_dropout: float = 0.5
    """Dropout rate on H_0 (the authors' `dprate`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("alpha", -1 if self.init == GammaInit.NPPR else 0, 1)
        if not 0 <= self.walk_dropout < 1:
            rate = f"{self.walk_dropout:g}"
            raise InputError(f"walk_dropout must be at least 0 and below 1, not {rate}.")


def _numbers(settings: GPRGNNSettings, load: Load) -> float:
    # For each step its output, for the gradient of its γ; for the MLP three dropout masks and two
    # inputs; for an edge its two ends and its weight.
    rows = load.nodes * settings.width
    return rows * (settings.layers + 1 + 4) + 6 * load.edges + load.graphs * settings.hidden * 3


MODEL = ModelSpec(
    name="gprgnn",
    title="GPR-GNN",
    reference="Chien et al. 2021, Adaptive universal generalized PageRank graph neural network",
    settings=GPRGNNSettings,
    cost=Cost.EDGES,
    parameters=13_261,
    numbers=_numbers,
    make=lazily("ihgnn_cli.models.baselines.gprgnn:GPRGNN"),
    grid={
        "alpha": (0.0, 0.1, 0.2, 0.5, 0.9, 1.0),
        "lr": (0.002, 0.01, 0.05),
        "weight_decay": (0.0, 0.0005),
    },
    grid_source=(
        "The authors' code (train_model.py, Reproduce_GPRGNN.sh), for node classification: K = 10, "
        "64 hidden units, dropout 0.5; PPR with α 0.1 to 0.9, or 1 (starts at the first step only) "
        "and 0 (at the last only) for heterophily; learning rate 0.002 (the default), 0.01 or "
        "0.05; weight decay 0 or 0.0005. Left out: dropout of 0.7 on H_0 (two of their ten data "
        "sets), and random initialization."
    ),
    note=(
        "Sum pooling and a two-layer MLP on top; one weight decay for all weights. Linear between "
        "the first MLP and the pooling, so it sees where labels are, not which are neighbours."
    ),
    layouts=("padded", "sparse"),
)
