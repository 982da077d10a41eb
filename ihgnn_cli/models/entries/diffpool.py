"""The registry entry of DiffPool: settings, cost and grid; see `baselines/diffpool.py`."""

from dataclasses import dataclass

from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily

_MOST_POOLS = 20  # far above any real use, and low enough that an untrusted file does no harm


@dataclass(frozen=True)
class DiffPoolSettings(ModelSettings):
    """`layers` and `width` apply to each GNN; `hidden` and `dropout` apply to the classifier."""

    hidden: int = 50
    dropout: float = 0.0
    pools: int = 1
    """Number of poolings."""
    cluster_share: float = 0.1
    """Clusters per node of the largest graph; in later poolings, per previous cluster."""
    most_clusters: int = 50
    """Maximum number of clusters, however large the largest graph."""
    link_weight: float = 1.0
    """Weight of the link penalty in the loss."""
    entropy_weight: float = 1.0
    """Weight of the entropy penalty in the loss."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("layers", "most_clusters"):
            self.require(name, 1)
        self.require("pools", 1, _MOST_POOLS)
        self.require("cluster_share", 0, 1)
        for name in ("link_weight", "entropy_weight"):
            self.require(name, 0)

    def clusters(self, largest: int) -> tuple[int, ...]:
        """Number of clusters of each pooling, given the size of the largest graph."""
        found = []
        for _ in range(self.pools):
            largest = max(1, min(self.most_clusters, int(largest * self.cluster_share)))
            found.append(largest)
        return tuple(found)


def _numbers(settings: DiffPoolSettings, load: Load) -> float:
    depth, width = settings.layers, settings.width
    rows, padded, numbers = float(load.nodes), float(load.graphs * load.largest), 4.0 * load.edges
    for clusters in settings.clusters(load.largest):
        # Two GNNs, whose layers keep their input (twice the width), the normalized rows, and the
        # input and output of batch normalization; then S, and the product with it.
        numbers += rows * (2 * depth * 7 * width + 4 * clusters)
        numbers += padded * (depth * width + 3 * clusters)
        rows = padded = load.graphs * clusters
        numbers += load.graphs * 3 * clusters**2
    return numbers + rows * depth * 7 * width


MODEL = ModelSpec(
    name="diffpool",
    title="DiffPool",
    reference=(
        "Ying, You, Morris, Ren, Hamilton, Leskovec 2018, Hierarchical graph representation "
        "learning with differentiable pooling"
    ),
    settings=DiffPoolSettings,
    cost=Cost.EDGES,
    parameters=29_946,
    numbers=_numbers,
    make=lazily("ihgnn_cli.models.baselines.diffpool:DiffPool"),
    grid={
        "pools": (1, 2),
        "cluster_share": (0.1, 0.25),
        "width": (20, 30, 64),
        "lr": (0.001,),
        "batch_size": (20,),
    },
    grid_source=(
        "Section 4 has no grid: it names 2 poolings to 25 % of the nodes and 1 pooling to 10 %. "
        "Here all combinations of both are searched. The width of 20, the learning rate of 0.001 "
        "and batches of 20 are from the authors' code, RexYing/diffpool; widths of 30 and 64 are "
        "from others who have run it."
    ),
    note=(
        "GraphSAGE with means, no ReLU and no batch normalization after the last layer of a stack, "
        "as in the authors' code. The first pooling goes over edges, and there are at most "
        "most_clusters clusters, so no matrix is quadratic in the largest graph. The link penalty "
        "is divided by the number of nodes."
    ),
    layouts_note="Pooling multiplies matrices of all nodes and clusters.",
)
