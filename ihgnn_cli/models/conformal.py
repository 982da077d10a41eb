"""The threshold of conformal prediction sets: which classes a model lists for a graph.

A set holds each class whose probability reaches the threshold, and always the most probable class.
`inference.conformal` computes the threshold.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.errors import SettingError
from ihgnn_cli.settings import checked

# So that 0.1 of 10 graphs is one graph, whatever the rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Conformal:
    """The threshold of a model's prediction sets."""

    alpha: float
    """The share of graphs whose true class may be missing from the set."""
    graphs: int
    """Calibration graphs."""
    threshold: float
    """The least probability of a listed class; 0 if there are too few calibration graphs, so that
    every class is listed."""

    @property
    def enough(self) -> bool:
        """Whether there are enough calibration graphs for this alpha."""
        return self.graphs >= graphs_needed(self.alpha)

    def sets(self, probabilities: NDArray[np.floating]) -> NDArray[np.bool_]:
        """[G, C] whether each class is in the set."""
        largest = probabilities.max(axis=1, keepdims=True)
        found: NDArray[np.bool_] = probabilities >= np.minimum(self.threshold, largest)
        return found

    def distances(self, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """[G, C] by how much each probability would have to change to enter or leave the set.

        Infinite for a threshold of 0, which every probability reaches.
        """
        if not self.threshold:
            return np.full_like(probabilities, np.inf)
        second, first = np.moveaxis(np.sort(probabilities, axis=1)[:, -2:, None], 1, 0)
        others = np.where(probabilities == first, second, first)  # the largest of them
        found: NDArray[np.float64] = np.abs(probabilities - np.minimum(self.threshold, others))
        return found

    def as_plain(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def check_alpha(alpha: float) -> float:
    """Check the share of graphs whose true class may be missing.

    Raises:
        SettingError: it is not between 0 and 1.
    """
    alpha = checked("conformal", alpha, float)
    if not 0 < alpha < 1:
        problem = (
            f"must be above 0 and below 1, not {alpha:g}: the share of graphs whose true class may "
            "be missing from the set, such as 0.1."
        )
        raise SettingError("conformal", problem)
    return alpha


def rank(graphs: int, alpha: float) -> int:
    """The rank of the score to use among those of the graphs, ceil((n + 1)(1 - alpha)), from 1."""
    return max(1, graphs + 1 - math.floor((graphs + 1) * alpha + _ROUNDING))


def graphs_needed(alpha: float) -> int:
    """The least number of calibration graphs that give a threshold above 0: 1 / alpha - 1."""
    return math.ceil(1 / alpha - 1 - _ROUNDING)


def conformal_from_plain(plain: Mapping[str, Any]) -> Conformal:
    """The threshold from plain values.

    Raises:
        KeyError, TypeError, ValueError, InputError: they are damaged.
    """
    alpha = check_alpha(plain["alpha"])
    found = Conformal(alpha, int(plain["graphs"]), float(plain["threshold"]))
    if not 0 <= found.threshold <= 1:
        raise ValueError(f"{found.threshold} is not a probability")
    return found
