"""The corrected t-test, Holm's correction, and the comparison of two methods graph by graph."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import make_moons
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.svm import SVC

from ihgnn_cli.studies.statistics import (
    Method,
    Paired,
    TTest,
    corrected_error,
    corrected_t_test,
    family,
    holm,
    p_text,
    paired,
)

FIRST = (0.80, 0.90, 0.85, 0.75, 0.90)
SECOND = (0.78, 0.84, 0.85, 0.77, 0.86)

shares = st.integers(0, 40).map(lambda right: right / 40)
folds = st.lists(st.tuples(shares, shares), min_size=2, max_size=10)


def test_t_and_p_of_five_folds_worked_out_by_hand() -> None:
    """Differences 2, 6, 0, -2, 4 points: mean 2, variance (0 + 16 + 4 + 16 + 4) / 4 = 10.

    t = 2 / sqrt((1/5 + 1/4) · 10) = 2 / sqrt(4.5) = 0.942809. With 4 degrees of freedom the
    two-sided p is 1 - s·(1.5 - s²/2) for s = t / sqrt(t² + 4): t² = 8/9, s² = 2/11, s = 0.426401.
    """
    found = corrected_t_test(FIRST, SECOND, 1 / 4)
    assert found is not None
    assert found.difference == pytest.approx(0.02)
    assert (found.t, found.freedom) == (pytest.approx(0.942809, abs=1e-6), 4)
    s = math.sqrt(2 / 11)
    assert found.p == pytest.approx(1 - s * (1.5 - s**2 / 2), abs=1e-12)


def test_it_gives_the_numbers_of_scikit_learns_documentation() -> None:
    """Its "Statistical comparison of models using grid search": 0.750 and 0.227 (one-sided)."""
    x, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    cut = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    rbf, linear = (
        cross_val_score(SVC(kernel=kernel, random_state=0), x, y, cv=cut, scoring="roc_auc")
        for kernel in ("rbf", "linear")
    )
    found = corrected_t_test(rbf.tolist(), linear.tolist(), 10 / 90)
    assert found is not None
    assert (round(found.t, 3), round(found.p / 2, 3), found.freedom) == (0.750, 0.227, 99)
    assert corrected_error([0.5], 1 / 9) is None


def test_without_a_correction_it_is_the_paired_t_test() -> None:
    found = corrected_t_test(FIRST, SECOND, 0.0)
    plain = stats.ttest_rel(FIRST, SECOND)
    assert found is not None
    assert (found.t, found.p) == pytest.approx((plain.statistic, plain.pvalue))


@given(folds, st.floats(0.01, 1))
def test_p_is_the_same_both_ways_and_never_below_the_paired_tests(
    pairs: list[tuple[float, float]], share: float
) -> None:
    first, second = zip(*pairs, strict=True)
    found, swapped = corrected_t_test(first, second, share), corrected_t_test(second, first, share)
    plain = corrected_t_test(first, second, 0.0)
    if found is None or swapped is None or plain is None:
        assert found is swapped is plain is None
        assert len({round(one - other, 9) for one, other in pairs}) == 1
        return
    assert (swapped.t, swapped.p) == pytest.approx((-found.t, found.p))
    assert plain.p <= found.p <= 1


def test_without_spread_there_is_no_test() -> None:
    """A variance of 0 would make any difference certain."""
    assert corrected_t_test([0.8, 0.9, 0.7], [0.7, 0.8, 0.6], 0.1) is None
    assert corrected_t_test([0.8], [0.7], 0.1) is None
    assert corrected_t_test(FIRST, FIRST, 1 / 4) == TTest(0, 0, 4, 1)
    with pytest.raises(ValueError, match="shorter"):
        corrected_t_test([0.8, 0.9], [0.7], 0.1)


def test_holm_multiplies_the_smallest_by_all_the_next_by_one_less_and_never_falls() -> None:
    """0.01·4, 0.02·3 = 0.06, 0.03·2 = 0.06, 0.04·1 raised to 0.06."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))
    # The example in the documentation of pingouin.
    published = holm([0.50, 0.003, 0.32, 0.054, 0.0003])
    assert published == pytest.approx((0.64, 0.012, 0.64, 0.162, 0.0015))
    assert (holm([]), holm([0.03]), holm([0.9, 0.6])) == ((), (0.03,), (1.0, 1.0))


def test_a_difference_is_paired_over_the_graphs_that_both_tested() -> None:
    first = Method((1.0, 0.5), (1.0, 1.0, 0.0, 1.0, None))
    second = Method((0.5, 0.25), (1.0, 0.0, 0.0, 0.5, 1.0))
    found, tested = paired(first, second, 1.0), corrected_t_test(first.folds, second.folds, 1.0)
    # Gaps 0, 1, 0, 1/2: mean 3/8, sample variance (9 + 25 + 9 + 1) / 64 / 3 = 11/48.
    assert found.difference == pytest.approx(3 / 8)
    assert found.error == pytest.approx(math.sqrt(11 / 48 / 4))
    assert tested is not None
    assert (found.p, found.t) == (tested.p, tested.t)
    folds_only = paired(Method(first.folds), Method(second.folds), 1.0)
    assert (folds_only.difference, folds_only.error) == (0.375, None)
    with pytest.raises(ValueError, match="zip"):
        paired(Method((1.0, 0.0), (1.0, 0.0)), Method((0.5, 0.5), (1.0,)), 1.0)


def test_a_family_counts_the_comparisons_that_have_a_p_value() -> None:
    """0.01 · 2 = 0.02, and 0.04 · 1."""
    found = family([Paired(0.1, 0.04, 0.04), Paired(0.2, 0.1, None), Paired(-0.1, 0.04, 0.01)])
    assert [each.p_holm for each in found] == [0.04, None, 0.02]
    assert [each.comparisons for each in found] == [2, 2, 2]
    assert [each.significant for each in found] == [True, False, True]
    assert [each.above for each in found] == [True, False, False]


def test_a_difference_within_two_standard_errors_is_noise_whatever_the_folds_say() -> None:
    """Counts of one graph in every fold: the t-test sees hardly any spread."""
    found = family([Paired(0.07, 0.08, 0.01), Paired(0.07, None, 0.01), Paired(0.17, 0.08, 0.01)])
    assert [each.noise for each in found] == [True, False, False]
    assert [each.significant for each in found] == [False, True, True]


def test_a_difference_is_told_with_its_test() -> None:
    found = family([Paired(0.07, 0.08, 0.01), Paired(0.17, 0.08, 0.04), Paired(-0.02, None, 0.5)])
    assert {each.verdict for each in found} == {"Not distinguishable from"}
    of_three = "after Holm's correction over 3 comparisons"
    assert found[0].told == (
        "+7.0 ± 8.0 points (paired over graphs, ± standard error; corrected resampled t-test, "
        f"p = 0.030 {of_three}, but within two standard errors)"
    )
    assert found[2].told == (
        f"-2.0 points (mean over folds; corrected resampled t-test, p = 0.500 {of_three})"
    )
    (alone,) = family([Paired(-0.2, 0.05, 0.01)])
    assert alone.verdict == "Worse than"
    assert alone.told.endswith("t-test, p = 0.010)")
    assert (p_text(0.00049), p_text(0.0005)) == ("p < 0.001", "p = 0.001")
