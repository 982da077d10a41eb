"""The registry entry of PGCN: settings, cost and grid; see `baselines/pgcn.py`."""

from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily

READ = 3
"""Mean, sum and maximum."""


class Operator(StrEnum):
    """T, whose powers are taken."""

    ADJACENCY = "adjacency"
    LAPLACIAN = "laplacian"
    """Symmetric and normalized."""


class Readout(StrEnum):
    """The classifier on top of the readout."""

    FUNNEL = "funnel"
    RESTRICTED = "restricted-funnel"


@dataclass(frozen=True)
class PGCNSettings(ModelSettings):
    """`layers` is k, the highest power; `width` is m, units per power; `hidden` is not used."""

    operator: Operator = Operator.ADJACENCY
    readout: Readout = Readout.FUNNEL
    project: bool = True
    """Whether X is a projection of the features over one hop (the code) or the features."""

    @property
    def unused(self) -> tuple[str, ...]:
        """As of `ModelSettings`."""
        return ("hidden",)


def _numbers(settings: PGCNSettings, load: Load) -> float:
    powers = settings.layers + 1
    of_power = settings.width * powers
    # R and H before and after normalization, with the places of the largest values; the
    # projection; then the classifier.
    nodes = load.nodes * (3.5 * of_power + 2 * settings.width + 4)
    return nodes + load.graphs * (READ * 3 + 6) * of_power + 4 * load.edges


MODEL = ModelSpec(
    name="pgcn",
    title="PGCN",
    reference=(
        "Pasa, Navarin, Sperduti 2022, Polynomial-based graph convolutional neural networks for "
        "graph classification"
    ),
    settings=PGCNSettings,
    cost=Cost.EDGES,
    parameters=143_650,
    numbers=_numbers,
    make=lazily("ihgnn_cli.models.baselines.pgcn:PGCN"),
    grid={
        "operator": (Operator.ADJACENCY, Operator.LAPLACIAN),
        "layers": (2, 4, 6, 8),
        "width": (50,),
        "lr": (5e-4, 1e-4),
        "readout": (Readout.FUNNEL, Readout.RESTRICTED),
        "dropout": (0.5,),
        "weight_decay": (5e-4,),
        "batch_size": (32,),
    },
    grid_source=(
        "The authors' code, lpasa/PGCN, has a script for each data set: the adjacency with k of 3 "
        "to 6 for molecules and proteins, the Laplacian with k of 3, 5, 7 or 9 for COLLAB and both "
        "IMDB (k - 1 is layers here). The grid does not depend on the data, so both operators "
        "compete; for social networks, --set operator=laplacian in crossval gives theirs. Their "
        "grids have hundreds of combinations; this one has values that most scripts share. Left "
        "out are k of 4 and 6, widths other than 50 (7 to 100), rates of 0.001 (all but DD and "
        "both IMDB) and 0.00005 or 0.00001 (DD, IMDB), weight decays other than 0.0005 (0.005, "
        "0.00005), dropout other than 0.5 (0 to 0.6) and batches of 16. All values are from the "
        "code, not the text."
    ),
    note=(
        "Powers of the adjacency unless operator says laplacian. The projection before the powers, "
        "the normalizations and the classifiers follow the authors' code."
    ),
    layouts=("padded", "sparse"),
)
