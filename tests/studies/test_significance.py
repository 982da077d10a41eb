"""The corrected t-test and Holm's correction give the numbers that a hand or scipy gives."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ihgnn_cli.studies.significance import corrected_t_test, holm

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
    assert found.t == pytest.approx(0.942809, abs=1e-6)
    assert found.freedom == 4
    s = math.sqrt(2 / 11)
    assert found.p == pytest.approx(1 - s * (1.5 - s**2 / 2), abs=1e-12)
    assert found.p == pytest.approx(0.399162, abs=1e-6)


def test_without_a_correction_it_is_the_paired_t_test() -> None:
    found = corrected_t_test(FIRST, SECOND, 0.0)
    assert found is not None
    plain = stats.ttest_rel(FIRST, SECOND)
    assert (found.t, found.p) == pytest.approx((plain.statistic, plain.pvalue))


def test_in_ten_folds_the_variance_is_more_than_twice_that_of_the_paired_test() -> None:
    """1/10 + 1/9 against 1/10: t shrinks by sqrt(19/9)."""
    first, second = (*FIRST, *FIRST), (*SECOND, *SECOND)
    found = corrected_t_test(first, second, 1 / 9)
    assert found is not None
    assert found.t * math.sqrt(19 / 9) == pytest.approx(stats.ttest_rel(first, second).statistic)


@given(folds, st.floats(0.01, 1))
def test_p_is_a_probability_the_same_both_ways_and_never_below_the_paired_tests(
    pairs: list[tuple[float, float]], share: float
) -> None:
    first, second = zip(*pairs, strict=True)
    found, swapped = corrected_t_test(first, second, share), corrected_t_test(second, first, share)
    if found is None:
        assert swapped is None
        assert len({round(one - other, 9) for one, other in pairs}) == 1
        return
    assert swapped is not None
    assert (swapped.t, swapped.difference) == pytest.approx((-found.t, -found.difference))
    assert swapped.p == pytest.approx(found.p)
    assert 0 <= found.p <= 1
    plain = corrected_t_test(first, second, 0.0)
    assert plain is not None
    assert found.p >= plain.p


def test_equal_accuracies_in_all_folds_are_no_difference() -> None:
    found = corrected_t_test(FIRST, FIRST, 1 / 4)
    assert found is not None
    assert (found.t, found.p) == (0, 1)


def test_the_same_difference_in_all_folds_has_no_test() -> None:
    """Its variance of 0 would make any difference certain."""
    assert corrected_t_test([0.8, 0.9, 0.7], [0.7, 0.8, 0.6], 0.1) is None


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_folds_have_no_test(count: int) -> None:
    assert corrected_t_test([0.8] * count, [0.7] * count, 0.1) is None


def test_different_numbers_of_folds_are_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match="shorter"):
        corrected_t_test([0.8, 0.9], [0.7], 0.1)


def test_holm_multiplies_the_smallest_by_all_the_next_by_one_less_and_never_falls() -> None:
    """0.01·4, 0.02·3 = 0.06, 0.03·2 = 0.06, 0.04·1 raised to 0.06."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx((0.06, 0.04, 0.06, 0.06))


def test_holm_leaves_a_single_test_alone_and_never_exceeds_1() -> None:
    assert holm([]) == ()
    assert holm([0.03]) == (0.03,)
    assert holm([0.9, 0.6]) == (1.0, 1.0)
