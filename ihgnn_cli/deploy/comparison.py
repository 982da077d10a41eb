"""Compares outputs of an exported model with the expected ones, graph by graph; needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLERANCE = 1e-4
"""Allowed difference of an output, relative to the graph's largest expected value or 1."""

MAY_BE_OPEN = ("order_margin", "uncertainty")
"""Outputs that rounding can change by more than any tolerance. Where it can, NaN is expected, and
they are not compared."""

Outputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Differences per graph; NaN if an output is not a number."""

    absolute: dict[str, NDArray[np.float64]]
    """[G] the largest difference of each output."""
    relative: dict[str, NDArray[np.float64]]
    """[G] the same, relative to the graph's largest expected value or 1."""
    changed: NDArray[np.bool_]
    """[G] whether the class differs."""

    @property
    def largest(self) -> NDArray[np.float64]:
        """[G] the largest relative difference of any output."""
        found: NDArray[np.float64] = np.stack(list(self.relative.values())).max(axis=0)
        return found

    def beside(self, other: "Comparison") -> "Comparison":
        """These graphs together with others."""
        return Comparison(
            _joined(self.absolute, other.absolute),
            _joined(self.relative, other.relative),
            np.concatenate([self.changed, other.changed]),
        )

    def beyond(self, tolerance: float) -> NDArray[np.bool_]:
        """[G] whether an output differs by more than this, or the class differs."""
        return ~(self.largest <= tolerance) | self.changed  # NaN counts too


def compared(expected: Outputs, found: Outputs, tolerance: float) -> Comparison:
    """Compare all expected outputs, [G, ·] or [G] each.

    If the expected probabilities of two classes are equal within the tolerance, either may be
    predicted.
    """
    absolute, relative = {}, {}
    for name, values in expected.items():
        rows = values.reshape(len(values), -1)
        apart = np.abs(found[name].astype(np.float64).reshape(rows.shape) - rows).max(axis=1)
        if name in MAY_BE_OPEN:
            apart[np.isnan(values)] = 0
        absolute[name] = apart
        relative[name] = apart / np.fmax(1, np.abs(rows).max(axis=1))
    p = expected["probabilities"]
    answered = found["probabilities"].argmax(axis=1)[:, None]
    reached = np.take_along_axis(p, answered, axis=1)[:, 0]
    return Comparison(absolute, relative, ~(reached >= p.max(axis=1) - tolerance))


def _joined(
    first: dict[str, NDArray[np.float64]], second: dict[str, NDArray[np.float64]]
) -> dict[str, NDArray[np.float64]]:
    return {name: np.concatenate([each, second[name]]) for name, each in first.items()}
