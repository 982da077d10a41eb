"""Temperature scaling and reliability, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from ihgnn_cli.inference.calibration import (
    Calibration,
    Reliability,
    calibrate,
    fit_temperature,
    reliability,
    with_temperature,
)
from ihgnn_cli.inference.metrics import member_spread

# Nine in ten claimed, two in three right.
SURE = np.array([[0.9, 0.1]] * 6)
TRUTH = np.array([0, 0, 0, 0, 1, 1])


def test_the_temperature_turns_confidence_into_accuracy() -> None:
    temperature = fit_temperature(SURE, TRUTH)
    # logit(0.9) / T = logit(2/3), so T = ln 9 / ln 2.
    assert temperature == pytest.approx(np.log(9) / np.log(2), rel=1e-2)
    assert with_temperature(SURE, temperature)[0, 0] == pytest.approx(2 / 3, abs=1e-3)


def test_a_temperature_of_1_changes_nothing_and_none_changes_a_class() -> None:
    rows = np.random.default_rng(0).dirichlet([1, 1, 1], size=20)
    np.testing.assert_allclose(with_temperature(rows, 1.0), rows, atol=1e-12)
    for temperature in (0.1, 7.0):
        scaled = with_temperature(rows, temperature)
        np.testing.assert_allclose(scaled.sum(axis=1), 1)
        assert (scaled.argmax(axis=1) == rows.argmax(axis=1)).all()


def test_a_temperature_stays_in_its_range() -> None:
    assert fit_temperature(SURE, np.zeros(6, dtype=np.int64)) == pytest.approx(1 / 20)
    assert fit_temperature(SURE, np.ones(6, dtype=np.int64)) == pytest.approx(20)


def test_reliability_has_one_bin_per_confidence() -> None:
    found = reliability(SURE, TRUTH)
    (only,) = found.bins
    assert (only.graphs, only.confidence) == (6, pytest.approx(0.9))
    assert only.accuracy == pytest.approx(2 / 3)
    assert found.calibration_error == pytest.approx(0.9 - 2 / 3)


def test_the_temperature_comes_from_validation_alone() -> None:
    found = calibrate(SURE, np.zeros(6, dtype=np.int64), (SURE, TRUTH))
    assert found.temperature == fit_temperature(SURE, TRUTH)
    assert found.fitted_on == 6
    assert found.scaled.calibration_error == pytest.approx(1 / 3, abs=1e-3)
    assert calibrate(SURE, TRUTH, None).scaled is None


def test_a_difference_that_is_not_shown_makes_nothing_worse() -> None:
    plain, slightly = (Reliability(0.158 + more, 0.4 + more, ()) for more in (0, 1e-5))
    assert Calibration(plain, 1.0, 100, slightly).caution is None
    visibly = replace(slightly, log_loss=0.402)
    assert "makes the log-loss of" in (Calibration(plain, 1.0, 100, visibly).caution or "")


def test_the_spread_is_that_of_the_class_that_wins_on_average() -> None:
    members = np.array([[[0.9, 0.1]], [[0.5, 0.5]], [[0.4, 0.6]]])  # the mean is 0.6, 0.4
    assert member_spread(members) == pytest.approx([np.std([0.9, 0.5, 0.4])])


def test_a_temperature_that_is_uncertain_or_makes_calibration_worse_is_called_so() -> None:
    # Validation wants T = ln 9 / ln 2; the evaluated graphs are all right, so less sure is worse.
    worse = calibrate(SURE, np.zeros(6, dtype=np.int64), (SURE, TRUTH))
    assert worse.caution == (
        "Do not rely on the temperature: it makes the calibration error and the log-loss of the "
        "evaluated graphs worse, and it was fitted on 6 validation graphs, fewer than 100."
    )
    many = np.tile(SURE, (17, 1)), np.tile(TRUTH, 17)  # 102 graphs
    assert calibrate(SURE, TRUTH, many).caution is None
    only = calibrate(SURE, np.zeros(6, dtype=np.int64), many).caution
    assert only is not None
    assert only.endswith("of the evaluated graphs worse.")
    few = calibrate(SURE, TRUTH, (SURE, TRUTH)).caution
    assert few == (
        "Do not rely on the temperature: it was fitted on 6 validation graphs, fewer than 100."
    )
    assert calibrate(SURE, TRUTH, None).caution is None
