"""Conformal prediction sets, by hand."""

import numpy as np
import pytest

from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.conformal import calibrate_sets, measure_coverage, too_few
from ihgnn_cli.models.conformal import Conformal, conformal_from_plain, graphs_needed, rank


def rows(*of_first: float) -> np.ndarray:
    """Probabilities of two classes."""
    return np.array([[each, 1 - each] for each in of_first])


def zeros(count: int) -> np.ndarray:
    return np.zeros(count, dtype=np.int64)


def test_the_rank_is_the_finite_sample_quantile() -> None:
    # ceil((n + 1)(1 - alpha)): 9 of 9 graphs at 0.1, 18 of 19, 5 of 5 at 0.25 (4.5), 3 of 3.
    assert [rank(9, 0.1), rank(19, 0.1), rank(5, 0.25), rank(3, 0.25)] == [9, 18, 5, 3]
    assert [graphs_needed(each) for each in (0.5, 0.25, 0.1, 0.05)] == [1, 3, 9, 19]
    for alpha in (0.01, 0.05, 0.1, 0.3):  # one graph fewer is too few
        needed = graphs_needed(alpha)
        assert rank(needed, alpha) <= needed < rank(needed - 1, alpha) + 1
        assert rank(needed - 1, alpha) == needed


def test_the_threshold_is_the_probability_of_the_true_class_at_that_rank() -> None:
    likely = rows(0.9, 0.75, 0.5, 0.25)
    found = calibrate_sets(likely, zeros(4), 0.4)  # rank ceil(5 * 0.6) = 3
    assert (found.threshold, found.graphs, found.enough) == (pytest.approx(0.5, abs=2e-6), 4, True)


def test_the_graph_at_the_threshold_is_covered_whatever_the_rounding() -> None:
    found = calibrate_sets(rows(0.9, 0.75, 0.41, 0.25), zeros(4), 0.4)
    assert found.sets(rows(0.41 - 1e-7)).tolist() == [[True, True]]
    assert found.sets(rows(0.41 - 1e-5)).tolist() == [[False, True]]


def test_a_threshold_of_enough_graphs_is_above_0() -> None:
    found = calibrate_sets(rows(0.9, 0.8, 0.7, 1e-7), zeros(4), 0.2)  # rank 4
    assert 0 < found.threshold < 1e-7


def test_a_set_has_the_classes_at_the_threshold_and_is_never_empty() -> None:
    found = Conformal(0.1, 9, 0.4)
    assert found.sets(rows(0.6, 0.61)).tolist() == [[True, True], [True, False]]
    third = np.array([[0.3, 0.36, 0.34]])
    assert found.sets(third).tolist() == [[False, True, False]]


def test_too_few_graphs_list_every_class_and_say_so() -> None:
    found = calibrate_sets(rows(*[0.9] * 8), zeros(8), 0.1)
    assert found.threshold == 0
    assert found.sets(rows(1.0)).all()
    assert "at least 9 validation graphs, and there are 8" in too_few(8, 0.1)
    assert not too_few(9, 0.1)


def test_a_threshold_is_read_as_it_was_written() -> None:
    found = calibrate_sets(rows(0.9, 0.8, 0.7, 0.2), zeros(4), 0.25)
    assert conformal_from_plain(found.as_plain()) == found


def test_coverage_counts_true_classes_in_sets_overall_and_by_homophily() -> None:
    threshold = calibrate_sets(rows(0.9, 0.8, 0.7, 0.2), zeros(4), 0.25)
    # At 0.2: both classes, both, then only the second.
    likely, truth = rows(0.75, 0.75, 0.1), np.array([1, 0, 0])
    found = measure_coverage(threshold, likely, truth, np.array([0.95, 0.95, 0.5]))
    assert (found.overall.coverage, found.overall.mean_size) == pytest.approx((2 / 3, 5 / 3))
    assert [(each.low, each.sets.graphs) for each in found.bins] == [(0.5, 1), (0.9, 2)]
    assert [each.sets.coverage for each in found.bins] == [0, 1]


def test_coverage_is_at_least_what_was_asked_for_on_average() -> None:
    draws, shares = np.random.default_rng(0), []
    for _ in range(2000):
        truth = draws.integers(0, 3, 39)
        score = draws.normal(size=(39, 3)) + 1.2 * np.eye(3)[truth]
        likely = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
        found = calibrate_sets(likely[:19], truth[:19], 0.2)
        shares.append(found.sets(likely[19:])[np.arange(20), truth[19:]].mean())
    # The expected coverage is 16 / 20; the standard error of this mean is below 0.003.
    assert 0.795 <= np.mean(shares) <= 0.825


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.5, -0.1, float("nan")])
def test_a_share_outside_0_and_1_is_refused(alpha: float) -> None:
    with pytest.raises(InputError, match="conformal must be above 0 and below 1"):
        calibrate_sets(rows(0.5), zeros(1), alpha)


def test_distances_tell_how_close_a_class_is_to_entering_or_leaving() -> None:
    found = Conformal(0.1, 9, 0.4)
    np.testing.assert_allclose(found.distances(rows(0.625)), [[0.25, 0.025]])
    # Below the threshold the most probable class is listed: it leaves if another overtakes it.
    third = np.array([[0.25, 0.375, 0.3125]])
    np.testing.assert_allclose(found.distances(third), [[0.125, 0.0625, 0.0625]])
    assert np.isinf(Conformal(0.1, 2, 0.0).distances(rows(0.0))).all()
