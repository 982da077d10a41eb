"""The registry entry of GNNML: settings, cost and grid; see `baselines/gnnml.py`."""

from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.models.entries.shared import DECOMPOSITION
from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily


class Kind(StrEnum):
    """The method of the paper."""

    GNNML1 = "gnnml1"
    """As powerful as 1-WL."""
    GNNML3 = "gnnml3"
    """More powerful than 1-WL; uses the spectrum."""


class Design(StrEnum):
    """The network around the layers, named after the authors' script that uses it."""

    MUTAG = "mutag"
    """Batch normalization after each layer, mean over nodes, classifier with a hidden layer."""
    PROTEINS = "proteins"
    """No product part, mean and maximum over nodes, linear classifier."""
    ENZYMES = "enzymes"
    """No product part, sum and maximum over nodes, normalized, linear classifier."""


@dataclass(frozen=True)
class GNNMLSettings(ModelSettings):
    """`width` is the width of each part of a layer: GNNML3 has one or two parts, GNNML1 three.

    `hidden` is used by the classifier of design mutag only.

    Raises:
        InputError: a value is out of range.
    """

    layers: int = 3
    width: int = 24
    hidden: int = 32
    dropout: float = 0.0
    kind: Kind = Kind.GNNML3
    bands: int = 3
    """Number of frequencies; each gives one support."""
    sharpness: float = 4.0
    """b; a larger value makes the bands narrower."""
    hops: int = 1
    """Maximum distance of two nodes that a support joins."""
    learn_supports: bool = False
    """Whether layers learn their own supports (the paper's text) or use those of the spectrum."""
    design: Design = Design.MUTAG

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 1)
        self.require("bands", 1, 100)
        self.require("hops", 1, 20)
        self.require("sharpness", 0)

    @property
    def unused(self) -> tuple[str, ...]:
        """As of `ModelSettings`."""
        return () if self.design == Design.MUTAG else ("hidden",)


def _numbers(settings: GNNMLSettings, load: Load) -> float:
    width, learned = settings.width, settings.learn_supports
    if settings.kind == Kind.GNNML1:
        # Five parts of a layer, their three results, and these normalized.
        return settings.layers * load.nodes * width * 11 + 3 * load.edges
    supports = settings.bands + 1
    entries = _entries(settings, load) * supports
    # Each entry keeps its MLP's activations, if there is an MLP, and once for all layers its value
    # and its 64-bit position. A node keeps both parts and these normalized, or only the first part.
    parts = 7.0 if settings.design == Design.MUTAG else 1.5
    of_node = width * (parts + 1.3 * (settings.dropout > 0) + supports * learned)
    kept = settings.layers * (entries * 12 * learned + load.nodes * of_node) + 3 * entries
    return max(kept, DECOMPOSITION * load.largest**2)


def _derived(settings: GNNMLSettings, load: Load) -> float:
    # A pair's supports and its 64-bit sender; each node's number of pairs.
    if settings.kind == Kind.GNNML1:
        return 0.0
    return _entries(settings, load) * (settings.bands + 1 + 2) + 2 * load.nodes


def _entries(settings: GNNMLSettings, load: Load) -> float:
    """Estimated number of pairs of nodes that the supports join."""
    reached = load.edges * max(1.0, load.edges / load.nodes) ** (settings.hops - 1)
    return min(load.pairs, load.nodes + reached)


MODEL = ModelSpec(
    name="gnnml",
    title="GNNML",
    reference=(
        "Balcilar, Héroux, Gaüzère, Vasseur, Adam and Honeine 2021, Breaking the Limits of Message "
        "Passing Graph Neural Networks"
    ),
    settings=GNNMLSettings,
    cost=Cost.EDGES,
    parameters=16_970,
    numbers=_numbers,
    derived=_derived,
    make=lazily("ihgnn_cli.models.baselines.gnnml:GNNML"),
    grid={
        "design": tuple(Design),
        "layers": (2, 3, 4),
        "width": (24, 64),
        "dropout": (0.0, 0.1),
        "lr": (0.001,),
    },
    grid_source=(
        "The paper gives no grid for graph classification. These are the values of the authors' "
        "scripts for MUTAG (design mutag, 3 layers, width 24, no dropout), PROTEINS (proteins, 2, "
        "64, 0.1) and ENZYMES (enzymes, 4, 64, 0.1), all with learning rate 0.001 and without "
        "learned supports; all combinations are searched here. Their batches of 16, 180 and 60 are "
        "left out, since they depend on the size of the data set."
    ),
    note=(
        "GNNML3 with supports of the normalized Laplacian, on A + I. Supports are not learned, as "
        "in the authors' scripts; learn_supports follows the paper's text. The readout, the "
        "normalization and the classifier are those of the authors' script for MUTAG, or for "
        "PROTEINS or ENZYMES by design. GNNML1 with kind = gnnml1. Degrees are not features."
    ),
    layouts_note="Its filters are matrices of all pairs of nodes.",
)
