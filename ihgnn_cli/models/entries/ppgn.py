"""The registry entry of PPGN: settings, cost and grid; see `baselines/ppgn.py`."""

from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily


class Suffix(StrEnum):
    """How the logits are computed from the blocks."""

    EACH = "each"
    """A linear map of each block, summed: the paper's suffix (ii)."""
    LAST = "last"
    """A classifier of the last block: the paper's suffix (i), with one hidden layer."""


@dataclass(frozen=True)
class PPGNSettings(ModelSettings):
    """`layers` is the number of blocks; `hidden` is used with `suffix` last only.

    Dropout applies to the blocks' readouts or in the classifier; the paper has none.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 3
    width: int = 16
    dropout: float = 0.0
    depth: int = 2
    """Number of linear maps in each of the MLPs m1 and m2."""
    suffix: Suffix = Suffix.EACH

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 1)
        self.require("depth", 1, 20)

    @property
    def unused(self) -> tuple[str, ...]:
        """As of `ModelSettings`."""
        return () if self.suffix == Suffix.LAST else ("hidden",)


def _numbers(settings: PPGNSettings, load: Load) -> float:
    # The ReLUs of m1 and m2, m1 scaled, the product and the block's output; of the input A and I.
    of_block = settings.width * (2 * settings.depth + 3)
    return load.pairs * (settings.layers * of_block + 2) + load.nodes


MODEL = ModelSpec(
    name="ppgn",
    title="PPGN",
    reference="Maron, Ben-Hamu, Serviansky and Lipman 2019, Provably Powerful Graph Networks",
    settings=PPGNSettings,
    cost=Cost.CUBES,
    parameters=4_710,
    numbers=_numbers,
    feature_rows=lambda load: load.pairs,  # each feature is a matrix
    make=lazily("ihgnn_cli.models.baselines.ppgn:PPGN"),
    grid={
        "lr": (5e-5, 1e-4, 5e-4, 1e-3),
        "width": (400, 256),
        "depth": (2, 3),
        "suffix": (Suffix.EACH, Suffix.LAST),
        "batch_size": (5,),
    },
    grid_source=(
        "The paper's experiments: learning rate 0.00005, 0.0001, 0.0005 or 0.001, and the "
        "architectures (width 400, depth 2, suffix ii), (400, 2, i), (256, 3, ii); here all their "
        "combinations. Cited from memory; the authors' code confirms the first architecture, "
        "batches of 5, and all these rates but 0.0005. The decay of the learning rate (0.5 to 1 "
        "every 20 epochs) is left out. This grid is made for a GPU: on one CPU core an epoch of "
        "MUTAG takes half a minute. --set width=16 in crossval replaces its widths."
    ),
    note=(
        "Suffix ii by default, and width 16 instead of the authors' 400, for CPUs; the grid has "
        "their widths and batches. The identity is one of the input's channels, A is not "
        "normalized, products are divided by the root of n, no edge features."
    ),
    by_size=True,
    layouts_note="Each channel is a matrix of all pairs of nodes.",
)
