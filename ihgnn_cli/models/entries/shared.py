"""Estimates and checks that several entries share."""

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.spec import Load

DECOMPOSITION = 16
"""Numbers of 4 bytes per matrix entry during an eigendecomposition: the matrix, the vectors, the
solver's workspace and temporaries, all in double precision (measured: 15 to 24)."""


def likely_pairs(load: Load, distance: int) -> float:
    """Estimated number of pairs within a distance, as in a tree with the mean degree."""
    degree = load.edges / max(load.nodes, 1)
    reached = sum(degree * max(degree - 1, 1) ** at for at in range(distance))
    return min(load.nodes * reached, load.pairs)


def kept_of_pairs(load: Load, distance: int) -> float:
    """Estimated numbers that `within` keeps per graph: three per pair, and the counts."""
    return 3 * likely_pairs(load, distance) + load.nodes * distance


def require_heads(width: int, heads: int) -> None:
    """Check that the width is a multiple of the number of heads.

    Raises:
        InputError: it is not.
    """
    if heads < 1 or width % heads:
        raise InputError(f"width must be a multiple of heads, not {width} with {heads} heads.")
