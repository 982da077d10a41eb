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

from scipy.special import stdtr

LEVEL = 0.05
"""A p-value below this level is called significant."""
NOISE = 2.0
"""Standard errors within which a difference is called noise."""
UNTESTED = "the difference is the same in all folds, or there is only one fold"
"""Why there is no p-value."""
_ROUNDING = 1e-12  # accuracy differences closer than this count as equal


@dataclass(frozen=True)
class TTest:
    """A two-sided t-test of the mean difference."""

    difference: float
    """The mean over folds of the first method's accuracy minus the second's, from -1 to 1."""
    t: float
    freedom: int
    """Degrees of freedom."""
    p: float


@dataclass(frozen=True)
class Method:
    """The accuracies of a method."""

    folds: tuple[float, ...]
    """Of each fold of each repeat."""
    graphs: tuple[float | None, ...] = ()
    """Of each graph, `None` if it was not tested; empty if only those of folds are known."""


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
    def above(self) -> bool:
        """Whether the first method is significantly better."""
        return self.difference > 0 and self.significant

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


def paired(first: Method, second: Method, test_share: float) -> Paired:
    """Compare two methods on the same folds, without a correction for other comparisons.

    Args:
        first: one method.
        second: the other one, on the same folds in the same order.
        test_share: n_test/n_train of a fold, as in `corrected_t_test`.
    """
    difference, error = fmean(first.folds) - fmean(second.folds), None
    if first.graphs and second.graphs:
        both = zip(first.graphs, second.graphs, strict=True)
        gaps = [one - other for one, other in both if one is not None and other is not None]
        if len(gaps) > 1:
            difference, error = fmean(gaps), stdev(gaps) / math.sqrt(len(gaps))
    tested = corrected_t_test(first.folds, second.folds, test_share)
    if tested is None:
        return Paired(difference, error, None)
    return Paired(difference, error, tested.p, t=tested.t)


def family(found: Sequence[Paired]) -> list[Paired]:
    """Comparisons with the same method, with Holm's correction over those that have a p-value."""
    tested = [each.p for each in found if each.p is not None]
    corrected, count = iter(holm(tested)), len(tested) or 1
    return [
        replace(each, p_holm=None if each.p is None else next(corrected), comparisons=count)
        for each in found
    ]


def corrected_error(values: Sequence[float], test_share: float) -> float | None:
    """The standard error of the mean of one value per fold, by Nadeau and Bengio.

    sqrt((1/n + n_test/n_train) · var), where var divides by n - 1: the folds share most of their
    training graphs, so the mean varies more than that of n independent values. With repeats, n is
    the number of folds of all partitions; the second term then bounds the error from below.

    Returns:
        `None` for fewer than two values.
    """
    if len(values) < 2:
        return None
    return math.sqrt(1 / len(values) + test_share) * stdev(values)


def corrected_t_test(
    first: Sequence[float], second: Sequence[float], test_share: float
) -> TTest | None:
    """Nadeau and Bengio's corrected resampled t-test of two methods on the same folds.

    Null hypothesis: the two methods have the same expected accuracy when trained on data sets of
    this size; the alternative is two-sided. With the n fold-wise differences d,

        t = mean(d) / sqrt((1/n + n_test/n_train) · var(d)),   n - 1 degrees of freedom,

    where var divides by n - 1. The plain paired t-test has 1/n alone, as if the folds were
    independent. But any two folds share most of their training graphs, so it finds differences too
    often. The added n_test/n_train accounts for that correlation (Machine Learning 52, 2003).

    Limits: the factor is a rule of thumb, derived for random splits and in common use for
    cross-validation; the test assumes normal differences, which is wrong for a few test graphs per
    fold; and with ten folds it detects only large differences, so a large p does not show equality.

    Args:
        first: accuracies of one method, one per fold.
        second: accuracies of the other method on the same folds in the same order.
        test_share: n_test/n_train of a fold; validation graphs count as training, because the
            method learns from them too.

    Returns:
        `None` if there are fewer than two folds, or if all folds have the same nonzero difference,
        so that its spread is unknown. If there is no difference at all, p is 1.
    """
    differences = [one - other for one, other in zip(first, second, strict=True)]
    count = len(differences)
    if count < 2:
        return None
    mean = fmean(differences)
    if max(differences) - min(differences) <= _ROUNDING:
        return TTest(0.0, 0.0, count - 1, 1.0) if abs(mean) <= _ROUNDING else None
    error = corrected_error(differences, test_share)
    t = mean / (error or 1.0)  # not 0: the differences are not all equal
    return TTest(mean, t, count - 1, min(1.0, 2 * float(stdtr(count - 1, -abs(t)))))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down correction of a family of p-values, in the given order.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none becomes smaller than
    the one before it, none larger than 1. This bounds the probability of one or more false
    positives per family by the level, whatever the dependence between the tests.
    """
    corrected = [1.0] * len(p_values)
    least = 0.0
    ranked = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for rank, place in enumerate(ranked):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return tuple(corrected)


def p_text(p: float) -> str:
    """A p-value in a sentence, with three digits; never 0."""
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"
