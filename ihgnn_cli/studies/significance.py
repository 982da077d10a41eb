"""Whether two methods differ over the same folds, and what remains of it among many comparisons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.special import stdtr

LEVEL = 0.05
"""Below it, a p-value is called significant."""
_ROUNDING = 1e-12  # differences of accuracies that are closer than this are equal


@dataclass(frozen=True)
class TTest:
    """A two-sided t-test of the mean difference."""

    difference: float
    """The mean over folds of the first method's accuracy minus the second's, as a share of 1."""
    t: float
    freedom: int
    """Degrees of freedom."""
    p: float


def corrected_t_test(
    first: Sequence[float], second: Sequence[float], test_share: float
) -> TTest | None:
    """Nadeau and Bengio's corrected resampled t-test of two methods on the same folds.

    Null hypothesis: the two methods are expected to be equally accurate when trained on data sets
    of this size; the alternative, two-sided: they are not. With the n fold-wise differences d,

        t = mean(d) / sqrt((1/n + n_test/n_train) · var(d)),   n - 1 degrees of freedom,

    where var divides by n - 1. The plain paired t-test has 1/n alone, as if the folds were
    independent: but any two share most of their training graphs, so it finds differences too
    often. The added n_test/n_train stands for that correlation (Machine Learning 52, 2003).

    Its limits: the factor is a rule of thumb, derived for random splits and in common use for
    cross-validation; differences are taken as normal, which those of a few test graphs a fold are
    not; and with ten folds only large differences are found, so a large p is no sign of equality.

    Args:
        first: accuracies of one method, a fold each.
        second: those of the other on the same folds in the same order.
        test_share: n_test/n_train, of a fold; what validates counts as training, because the
            method learns from it too.

    Returns:
        `None` where there are fewer than two folds, or where all folds have the very same
        difference but none, so that its spread is unknown. Without any difference p is 1.
    """
    differences = [one - other for one, other in zip(first, second, strict=True)]
    count = len(differences)
    if count < 2:
        return None
    mean = fmean(differences)
    if max(differences) - min(differences) <= _ROUNDING:
        return TTest(0.0, 0.0, count - 1, 1.0) if abs(mean) <= _ROUNDING else None
    t = mean / (math.sqrt(1 / count + test_share) * stdev(differences))
    return TTest(mean, t, count - 1, min(1.0, 2 * float(stdtr(count - 1, -abs(t)))))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down correction of a family of p-values, in the order given.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none becomes smaller than
    the one before it, none larger than 1. Calling those below a level significant then errs once
    or more in at most that share of families, however the tests depend on each other.
    """
    corrected = [1.0] * len(p_values)
    least = 0.0
    ranked = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for rank, place in enumerate(ranked):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return tuple(corrected)
