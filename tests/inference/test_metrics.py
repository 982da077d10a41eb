"""Metrics on a handful of graphs by hand, and on many as scikit-learn has them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ihgnn_cli.data import load_dataset
from ihgnn_cli.errors import InputError
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.summary import summarize
from ihgnn_cli.inference.metrics import (
    accuracy_by_homophily,
    accuracy_by_side,
    measure,
    reliability,
    wilson_interval,
)

Predictions = tuple[NDArray[np.float64], NDArray[np.int64]]

# Four graphs, the third one wrong.
TWO_CLASSES = np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.3, 0.7]])
TWO_CLASSES_TRUTH = np.array([0, 0, 1, 1])

# Six graphs of three classes; the middle class is predicted once, and wrongly so.
THREE_CLASSES = np.array(
    [[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.2, 0.7, 0.1], [0.4, 0.3, 0.3], [0, 0, 1], [0.1, 0.2, 0.7]]
)
THREE_CLASSES_TRUTH = np.array([0, 0, 0, 1, 2, 2])


def sure(predicted: list[int], classes: int = 2) -> NDArray[np.float64]:
    """Predictions without a doubt."""
    return np.eye(classes)[predicted]


# By hand


def test_two_classes() -> None:
    found = measure(TWO_CLASSES, TWO_CLASSES_TRUTH)
    assert found.graphs == 4
    assert found.accuracy == 3 / 4
    assert found.majority_share == 1 / 2
    assert found.balanced_accuracy == (1 + 1 / 2) / 2
    assert found.macro_f1 == pytest.approx((4 / 5 + 2 / 3) / 2)
    # Of the pairs of second and first class, 0.2 above 0.1, 0.7 above 0.1 and 0.4; 0.2 below 0.4.
    assert found.roc_auc == 3 / 4
    assert found.log_loss == pytest.approx(-math.log(0.9 * 0.6 * 0.2 * 0.7) / 4)
    # Each graph alone in its bin: gaps of 0.1, 0.4, 0.8 and 0.3.
    assert found.calibration_error == pytest.approx(1.6 / 4)
    assert found.confusion == ((2, 0), (1, 1))


def test_three_classes() -> None:
    found = measure(THREE_CLASSES, THREE_CLASSES_TRUTH)
    assert found.accuracy == 4 / 6
    assert found.majority_share == 3 / 6
    assert found.balanced_accuracy == pytest.approx((2 / 3 + 0 + 1) / 3)
    assert found.macro_f1 == pytest.approx((2 * 2 / (3 + 3) + 0 + 1) / 3)
    # First class: 0.8, 0.5, 0.2 against 0.4, 0, 0.1; second: 0.3 against 0.1, 0.3, 0.7, 0, 0.2,
    # one of them a tie; third: all right.
    assert found.roc_auc == pytest.approx((8 / 9 + 3.5 / 5 + 1) / 3)
    assert found.confusion == ((2, 1, 0), (1, 0, 0), (0, 0, 2))


def test_calibration_pools_the_graphs_of_a_bin() -> None:
    # Said 0.8 four times (the bin from 12/15 on) and right three times; said 0.5 once, rightly.
    probabilities = np.array([[0.8, 0.2]] * 4 + [[0.5, 0.5]])
    found = measure(probabilities, np.array([0, 0, 0, 1, 0]))
    assert found.calibration_error == pytest.approx((4 * (0.8 - 0.75) + 0.5) / 5)


def test_ties_go_to_the_class_that_comes_first() -> None:
    found = measure(np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0, 1]))
    assert found.confusion == ((1, 0), (1, 0))
    assert found.roc_auc == 0.5


def test_perfect_predictions() -> None:
    found = measure(sure([0, 1, 1]), np.array([0, 1, 1]))
    # The bootstrap has no spread here: Wilson's 3 / (3 + 1.96²) is lower than 1.
    assert (found.accuracy, found.accuracy_high) == (1, 1)
    assert found.accuracy_low == pytest.approx(0.4385, abs=1e-4)
    assert (found.balanced_accuracy, found.macro_f1, found.roc_auc) == (1, 1, 1)
    assert (found.log_loss, found.calibration_error) == (0, 0)
    assert not math.copysign(1, found.log_loss) < 0


def test_a_sure_wrong_answer_costs_much_but_not_everything() -> None:
    found = measure(sure([0, 1]), np.array([0, 0]))
    assert found.log_loss == pytest.approx(-math.log(2**-52) / 2)


def test_the_area_is_undefined_where_one_class_occurs() -> None:
    found = measure(TWO_CLASSES, np.array([1, 1, 1, 1]))
    assert math.isnan(found.roc_auc)
    assert (found.majority_share, found.accuracy, found.balanced_accuracy) == (1, 1 / 4, 1 / 4)
    assert math.isnan(measure(np.ones((2, 1)), np.array([0, 0])).roc_auc)


def test_a_class_that_the_model_does_not_know_has_no_probability() -> None:
    found = measure(TWO_CLASSES, np.array([0, 0, 2, 1]), classes=3)
    assert found.confusion == ((2, 0, 0), (0, 1, 0), (1, 0, 0))
    assert found.accuracy == 3 / 4
    assert found.log_loss == pytest.approx(-math.log(0.9 * 0.6 * 2**-52 * 0.7) / 4)


def test_single_precision_will_do() -> None:
    single = measure(THREE_CLASSES.astype(np.float32), THREE_CLASSES_TRUTH.astype(np.int32))
    double = measure(THREE_CLASSES, THREE_CLASSES_TRUTH)
    assert single.confusion == double.confusion
    assert single.log_loss == pytest.approx(double.log_loss, rel=1e-6)


# As scikit-learn has it


@st.composite
def predictions(draw: st.DrawFn) -> Predictions:
    """Up to 40 graphs of up to 5 classes, with ties, certainties and classes that do not occur."""
    classes = draw(st.integers(2, 5))
    graphs = draw(st.integers(1, 40))
    occurring = draw(st.lists(st.integers(0, classes - 1), min_size=1, unique=True))
    truth = draw(st.lists(st.sampled_from(occurring), min_size=graphs, max_size=graphs))
    weights = np.random.default_rng(draw(st.integers(0, 2**32))).integers(0, 4, (graphs, classes))
    weights[weights.sum(axis=1) == 0] = 1
    return weights / weights.sum(axis=1, keepdims=True), np.array(truth)


@given(predictions())
def test_metrics_equal_those_of_scikit_learn(made: Predictions) -> None:
    from sklearn import metrics

    probabilities, truth = made
    classes = probabilities.shape[1]
    found = measure(probabilities, truth, resamples=10)
    predicted = probabilities.argmax(axis=1)
    occurring = np.unique(truth)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, predicted))
    recall = metrics.recall_score(truth, predicted, labels=occurring, average="macro")
    assert found.balanced_accuracy == pytest.approx(recall)
    assert found.macro_f1 == pytest.approx(
        metrics.f1_score(truth, predicted, average="macro", zero_division=0)
    )
    labels = list(range(classes))
    assert found.log_loss == pytest.approx(metrics.log_loss(truth, probabilities, labels=labels))
    confusion = metrics.confusion_matrix(truth, predicted, labels=labels)
    assert found.confusion == tuple(map(tuple, confusion.tolist()))
    if len(occurring) == 1:
        assert math.isnan(found.roc_auc)
        return
    of = [1] if classes == 2 else occurring
    areas = [metrics.roc_auc_score(truth == each, probabilities[:, each]) for each in of]
    assert found.roc_auc == pytest.approx(np.mean(areas))


def test_the_area_of_all_classes_is_scikit_learn_s_one_against_the_rest() -> None:
    from sklearn.metrics import roc_auc_score

    expected = roc_auc_score(THREE_CLASSES_TRUTH, THREE_CLASSES, multi_class="ovr")
    assert measure(THREE_CLASSES, THREE_CLASSES_TRUTH).roc_auc == pytest.approx(expected)


# Intervals


def test_the_bootstrap_is_that_of_drawing_graphs_with_replacement() -> None:
    truth = np.array([0] * 70 + [1] * 30)  # 70 of 100 right
    found = measure(sure([0] * 100), truth)
    drawn = np.random.default_rng(1).choice(truth == 0, (20_000, 100)).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.accuracy_low == pytest.approx(low, abs=0.011)  # one graph more or less
    assert found.accuracy_high == pytest.approx(high, abs=0.011)
    assert (found.accuracy_low, found.accuracy_high) == pytest.approx((0.61, 0.79), abs=0.011)


def test_the_bootstrap_repeats_itself_for_a_seed() -> None:
    truth = np.arange(1000) % 3 // 2
    first, again, other = (measure(sure([0] * 1000), truth, seed=seed) for seed in (5, 5, 6))
    assert first == again
    assert first.accuracy_low < first.accuracy < first.accuracy_high
    assert other.accuracy_low == pytest.approx(first.accuracy_low, abs=0.005)
    few = measure(sure([0] * 1000), truth, resamples=1)
    assert few.accuracy_low == few.accuracy_high


def test_wilson_s_interval_of_eight_in_ten() -> None:
    assert wilson_interval(8, 10) == pytest.approx((0.4901625, 0.9433178), abs=1e-7)


@pytest.mark.parametrize(("hits", "trials"), [(0, 1), (1, 1), (0, 10), (3, 7), (49, 49), (5, 900)])
def test_wilson_s_interval_is_scipy_s(hits: int, trials: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(hits, trials).proportion_ci(method="wilson")
    low, high = wilson_interval(hits, trials)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0 <= low <= hits / trials <= high <= 1


# By homophily


def test_accuracy_in_bins_of_homophily() -> None:
    truth = np.array([0, 0, 1, 0, 1])
    beta = np.array([0.1, 0.2, 0.0, 0.5, 1.0])
    first, second, third, fourth = accuracy_by_homophily(sure([0, 1, 1, 0, 1]), truth, beta, 4)
    assert (first.low, first.high, fourth.low, fourth.high) == (0, 0.25, 0.75, 1)
    assert (first.graphs, first.accuracy, first.majority_share) == (3, 2 / 3, 2 / 3)
    assert first.mean_beta == pytest.approx(0.1)
    assert (first.accuracy_low, first.accuracy_high) == wilson_interval(2, 3)
    assert (third.graphs, fourth.graphs) == (1, 1)
    assert second.graphs == 0
    unknown = (second.accuracy, second.accuracy_low, second.accuracy_high)
    assert all(map(math.isnan, (*unknown, second.majority_share, second.mean_beta)))


def test_graphs_on_an_edge_are_counted_as_in_the_homophily_histogram() -> None:
    """MUTAG has graphs at just 0.5 and 0.6, which float means of thirds miss."""
    dataset = load_dataset("MUTAG")
    found = summarize(dataset).of(Measure.NODE)
    arguments = sure([0] * 188), dataset.graph_class, found.values
    bins = accuracy_by_homophily(*arguments, bins=20)
    assert [each.graphs for each in bins] == found.bin_counts.tolist()
    sides = accuracy_by_side(*arguments)
    assert Fraction(sides.homophilic.graphs, 188) == Fraction(
        found.overall.homophilic_share
    ).limit_denominator(188)


def test_sides_part_at_one_half() -> None:
    beta = np.array([0.0, 0.49, 0.5 - 1e-16, 0.5, 1.0])
    sides = accuracy_by_side(sure([0, 1, 1, 1, 0]), np.array([0, 0, 1, 1, 1]), beta)
    assert (sides.heterophilic.graphs, sides.heterophilic.accuracy) == (2, 1 / 2)
    assert (sides.homophilic.graphs, sides.homophilic.accuracy) == (3, 2 / 3)
    assert (sides.heterophilic.high, sides.homophilic.low) == (0.5, 0.5)


# What is refused


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_probabilities_that_are_no_numbers_are_told_to_the_user(broken: float) -> None:
    probabilities = TWO_CLASSES.copy()
    probabilities[1, 0] = broken
    with pytest.raises(InputError, match=r"not numbers for 1 of 4 graphs.*lower learning rate"):
        measure(probabilities, TWO_CLASSES_TRUTH)


def test_no_graphs_are_told_to_the_user() -> None:
    with pytest.raises(InputError, match="no graphs to evaluate"):
        measure(np.empty((0, 2)), np.empty(0, dtype=np.int64))


@pytest.mark.parametrize(
    ("probabilities", "truth", "classes", "message"),
    [
        (TWO_CLASSES[:, 0], TWO_CLASSES_TRUTH, None, r"\[4\] and true classes \[4\]"),
        (TWO_CLASSES, TWO_CLASSES_TRUTH[:3], None, r"\[4, 2\] and true classes \[3\]"),
        (TWO_CLASSES * 3, TWO_CLASSES_TRUTH, None, "sum to 1"),
        (TWO_CLASSES * [[3, -1]] / 1.7, TWO_CLASSES_TRUTH, None, "sum to 1"),
        (np.array([[1.5, -0.5]]), np.array([0]), None, "sum to 1"),
        (TWO_CLASSES, TWO_CLASSES_TRUTH + 1, None, "from 0 to 1"),
        (TWO_CLASSES, TWO_CLASSES_TRUTH - 1, None, "from 0 to 1"),
        (TWO_CLASSES, TWO_CLASSES_TRUTH / 2, None, "must be integers"),
        (TWO_CLASSES, TWO_CLASSES_TRUTH, 1, "for 2 classes, but there are 1"),
    ],
)
def test_what_cannot_be_is_a_mistake_of_the_program(
    probabilities: NDArray[np.float64],
    truth: NDArray[np.int64],
    classes: int | None,
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        measure(probabilities, truth, classes)


def test_a_bootstrap_needs_a_draw() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        measure(TWO_CLASSES, TWO_CLASSES_TRUTH, resamples=0)


@pytest.mark.parametrize(
    ("beta", "bins", "message"),
    [
        ([0.5] * 3, 10, "one per graph"),
        ([0, 0, 0, 1.1], 10, "between 0 and 1"),
        ([0, 0, 0, math.nan], 10, "between 0 and 1"),
        ([0, 0, 0, 1], 0, "Cannot make 0 bins"),
    ],
)
def test_betas_and_bins_have_to_be_such(beta: list[float], bins: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        accuracy_by_homophily(TWO_CLASSES, TWO_CLASSES_TRUTH, np.array(beta), bins)


def test_reliability_compares_confidence_with_accuracy() -> None:
    likely = np.array([[0.9, 0.1], [0.91, 0.09], [0.4, 0.6]])
    low, high = reliability(likely, np.array([0, 1, 1]))
    assert (low.graphs, low.confidence, low.accuracy) == (1, 0.6, 1.0)
    assert (high.graphs, high.accuracy) == (2, 0.5)
    assert high.confidence == pytest.approx(0.905)
