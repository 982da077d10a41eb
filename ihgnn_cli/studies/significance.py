"""Tests whether two methods differ on the same folds, and corrects for multiple comparisons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.special import stdtr

LEVEL = 0.05
"""A p-value below this level is called significant."""
NOISE = 2.0
"""Standard errors within which a difference is called noise."""
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


def p_text(p: float) -> str:
    """A p-value in a sentence, with three digits; never 0."""
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"


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
