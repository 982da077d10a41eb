"""The registry entry of TokenGT: settings, cost and grid; see `baselines/tokengt.py`."""

from dataclasses import dataclass

from ihgnn_cli.models.entries.shared import DECOMPOSITION, require_heads
from ihgnn_cli.models.settings import ModelSettings
from ihgnn_cli.models.spec import Cost, Load, ModelSpec, lazily


@dataclass(frozen=True)
class TokenGTSettings(ModelSettings):
    """`layers` are transformer layers; `dropout` applies to their MLPs and the head."""

    layers: int = 3
    width: int = 32
    hidden: int = 64
    dropout: float = 0.1
    heads: int = 2
    """Attention heads, which share the width."""
    identifiers: int = 16
    """d_p, the width of node identifiers: the number of eigenvectors."""
    both_directions: bool = False
    """Whether an edge is two tokens, one per direction."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("layers", 1)
        require_heads(self.width, self.heads)
        self.require("identifiers", 1)


def _numbers(settings: TokenGTSettings, load: Load) -> float:
    edges = load.edges if settings.both_directions else load.edges / 2
    # Padded to the longest of a run; the amount of padding is not known in advance.
    tokens = load.graphs * (1 + load.largest) + 1.5 * edges
    return max(
        settings.width * tokens * (10 * settings.layers + 2), DECOMPOSITION * load.largest**2
    )


MODEL = ModelSpec(
    name="tokengt",
    title="TokenGT",
    reference="Kim et al. 2022, Pure Transformers are Powerful Graph Learners",
    settings=TokenGTSettings,
    cost=Cost.TOKENS,
    parameters=23_074,
    numbers=_numbers,
    derived=lambda settings, load: load.nodes * settings.identifiers,
    make=lazily("ihgnn_cli.models.baselines.tokengt:TokenGT"),
    grid={"layers": (3, 6), "width": (32, 64), "identifiers": (16,), "lr": (2e-4, 1e-3)},
    grid_source=(
        "The paper has no search for graphs: it trains 12 layers of width 768 on 3.4 million "
        "molecules, with 16 eigenvectors, learning rate 2e-4 and dropout 0.1 (the authors' "
        "public code). The eigenvectors, the dropout and the lower learning rate are theirs; "
        "layers, widths and the higher rate suit data sets of a few hundred graphs."
    ),
    note=(
        "Laplacian eigenvectors as node identifiers, signs flipped at random in training; one "
        "token per undirected edge. Weights are initialized as in the authors' code. Signs and "
        "bases come from a canonical order of the nodes, so predictions do not depend on the node "
        "numbering, unless that order cannot be found (some regular graphs, or too much work)."
    ),
    by_size=True,
    layouts_note=(
        "Its node identifiers are eigenvectors with signs and bases from a canonical order of the "
        "nodes, which ONNX has no operators for."
    ),
)
