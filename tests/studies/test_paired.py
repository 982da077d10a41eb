"""The comparison of two methods: paired over graphs, tested over folds, counted with the others."""

import math

import pytest

from ihgnn_cli.studies.paired import Method, Paired, family, paired
from ihgnn_cli.studies.significance import corrected_t_test

FIRST = Method((1.0, 0.5), (1.0, 1.0, 0.0, 1.0))
SECOND = Method((0.5, 0.25), (1.0, 0.0, 0.0, 0.5))


def test_the_difference_over_graphs_has_the_standard_error_of_its_mean() -> None:
    found = paired(FIRST, SECOND, 1.0)
    # Gaps 0, 1, 0, 1/2: mean 3/8, sample variance (9 + 25 + 9 + 1) / 64 / 3 = 11/48.
    assert found.difference == pytest.approx(3 / 8)
    assert found.error == pytest.approx(math.sqrt(11 / 48 / 4))


def test_the_p_value_is_that_of_the_corrected_test_over_folds() -> None:
    tested = corrected_t_test(FIRST.folds, SECOND.folds, 1.0)
    assert tested is not None
    found = paired(FIRST, SECOND, 1.0)
    assert (found.p, found.t) == (tested.p, tested.t)


def test_graphs_that_were_not_tested_are_left_out() -> None:
    found = paired(Method((1.0, 0.0), (1.0, None, 0.0)), Method((0.5, 0.5), (0.0, None, 1.0)), 1.0)
    assert found.difference == 0
    assert found.error == pytest.approx(1.0)  # gaps 1 and -1


def test_older_results_have_the_difference_of_the_folds_and_no_error() -> None:
    found = paired(Method((1.0, 0.5)), Method((0.5, 0.25)), 1.0)
    assert (found.difference, found.error) == (0.375, None)


def test_a_family_counts_the_comparisons_that_have_a_p_value() -> None:
    """0.01 · 2 = 0.02, and 0.04 · 1."""
    found = family([Paired(0.1, 0.04, 0.04), Paired(0.2, 0.1, None), Paired(-0.1, 0.04, 0.01)])
    assert [each.p_holm for each in found] == [0.04, None, 0.02]
    assert [each.comparisons for each in found] == [2, 2, 2]
    assert [each.significant for each in found] == [True, False, True]
    assert [each.above for each in found] == [True, False, False]


def test_a_difference_within_two_standard_errors_is_noise_whatever_the_folds_say() -> None:
    """Counts of one graph in every fold: the t-test sees hardly any spread."""
    small, unknown, large = family(
        [Paired(0.07, 0.08, 0.01), Paired(0.07, None, 0.01), Paired(0.17, 0.08, 0.01)]
    )
    assert (small.noise, unknown.noise, large.noise) == (True, False, False)
    assert (small.significant, unknown.significant, large.significant) == (False, True, True)


def test_a_difference_is_told_with_its_test() -> None:
    found = family([Paired(0.07, 0.08, 0.01), Paired(0.17, 0.08, 0.04), Paired(-0.02, None, 0.5)])
    assert [each.verdict for each in found] == [
        "Not distinguishable from",
        "Not distinguishable from",
        "Not distinguishable from",
    ]
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


def test_accuracies_of_other_numbers_of_graphs_are_not_paired() -> None:
    with pytest.raises(ValueError, match="zip"):
        paired(Method((1.0, 0.0), (1.0, 0.0)), Method((0.5, 0.5), (1.0,)), 1.0)
