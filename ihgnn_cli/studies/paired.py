"""Two methods on the same folds: the one comparison that every table and sentence uses.

The size of a difference is paired over graphs: each graph's accuracy (1 or 0, its mean over runs
and repeats) under one method minus that under the other, with the standard error of the mean over
graphs. Averaging over repeats comes first, because the same graph tested again is not another
graph. That error covers the choice of graphs, not of training sets. A difference is therefore
called significant only if the corrected resampled t-test over folds says so, after Holm's
correction over all methods that are compared with the same one. As a precaution it must also be
larger than two standard errors: in small folds the differences are counts of one or two graphs,
which can be almost equal by chance.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from ihgnn_cli.studies.significance import LEVEL, NOISE, corrected_t_test, holm, p_text

UNTESTED = "the difference is the same in all folds, or there is only one fold"
"""Why there is no p-value."""


@dataclass(frozen=True)
class Method:
    """The accuracies of a method."""

    folds: tuple[float, ...]
    """Of each fold of each repeat."""
    graphs: tuple[float | None, ...] = ()
    """Of each graph, `None` if it was not tested; empty in results of older versions."""


@dataclass(frozen=True)
class Paired:
    """The accuracy of one method minus that of another on the same folds."""

    difference: float
    """The mean over graphs; over folds if the graphs are not known."""
    error: float | None
    """Its standard error over graphs; `None` if they are not known."""
    p: float | None
    """Of the corrected resampled t-test; `None` where that is not defined (`UNTESTED`)."""
    p_holm: float | None = None
    """Corrected over all comparisons with the same method."""
    comparisons: int = 1
    """The number of those comparisons."""
    t: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is below the level, and the difference is not noise."""
        return self.p_holm is not None and self.p_holm < LEVEL and not self.noise

    @property
    def noise(self) -> bool:
        """Whether the difference is within two standard errors."""
        return self.error is not None and abs(self.difference) <= NOISE * self.error

    @property
    def verdict(self) -> str:
        """Whether the first method is better than the second, to be followed by its name."""
        if self.p_holm is None:
            return "Not tested against"
        if not self.significant:
            return "Not distinguishable from"
        return "Better than" if self.difference > 0 else "Worse than"

    @property
    def told(self) -> str:
        """The difference and how it was tested."""
        points, how = f"{100 * self.difference:+.1f}", "mean over folds"
        if self.error is not None:
            points += f" ± {100 * self.error:.1f}"
            how = "paired over graphs, ± standard error"
        test = UNTESTED
        if self.p_holm is not None:
            test = f"corrected resampled t-test, {p_text(self.p_holm)}"
            if self.comparisons > 1:
                test += f" after Holm's correction over {self.comparisons} comparisons"
            if self.noise and self.p_holm < LEVEL:
                test += ", but within two standard errors"
        return f"{points} points ({how}; {test})"

    @property
    def above(self) -> bool:
        """Whether the first method is significantly better."""
        return self.difference > 0 and self.significant


def paired(first: Method, second: Method, test_share: float) -> Paired:
    """Compare two methods on the same folds, without a correction for other comparisons.

    Args:
        first: one method.
        second: the other one, on the same folds in the same order.
        test_share: n_test/n_train of a fold, as in `corrected_t_test`.
    """
    tested = corrected_t_test(first.folds, second.folds, test_share)
    difference, error = fmean(first.folds) - fmean(second.folds), None
    known = bool(first.graphs and second.graphs)
    gaps = (
        [
            one - other
            for one, other in zip(first.graphs, second.graphs, strict=True)
            if one is not None and other is not None
        ]
        if known
        else []
    )
    if len(gaps) > 1:
        difference, error = fmean(gaps), stdev(gaps) / math.sqrt(len(gaps))
    if tested is None:
        return Paired(difference, error, None)
    return Paired(difference, error, tested.p, t=tested.t)


def family(found: Sequence[Paired]) -> list[Paired]:
    """Comparisons with the same method, with Holm's correction over those that have a p-value."""
    tested = [each.p for each in found if each.p is not None]
    corrected = iter(holm(tested))
    return [
        replace(
            each, p_holm=None if each.p is None else next(corrected), comparisons=len(tested) or 1
        )
        for each in found
    ]
