"""Scores over folds, and the paired comparison of two methods."""

import math

import numpy as np
import pytest

from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.fold_scores import Paired, Scores, fold_scores, paired


def test_scores_are_means_over_folds() -> None:
    likely = [np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]]), np.array([[0.6, 0.4], [0.7, 0.3]])]
    truth = [np.array([0, 0, 1]), np.array([0, 1])]
    found = fold_scores(likely, truth)
    assert found.folds == pytest.approx((2 / 3, 1 / 2))
    assert found.accuracy == pytest.approx(7 / 12)
    assert found.accuracy_std == pytest.approx(1 / 12)
    assert found.balanced_accuracy == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert found.roc_auc == pytest.approx((1 + 0) / 2)


def test_folds_with_one_class_have_no_area() -> None:
    sure = np.array([[1.0, 0.0]])
    mixed = np.array([[0.9, 0.1], [0.1, 0.9]])
    zero, both = np.array([0]), np.array([0, 1])
    assert fold_scores([sure, mixed], [zero, both]).roc_auc == 1
    found = fold_scores([sure, sure], [zero, zero])
    assert math.isnan(found.roc_auc)
    again = Scores.parsed(jsonable({**vars(found)}))
    assert math.isnan(again.roc_auc)
    assert again.folds == (1, 1)


def test_the_paired_difference_has_the_standard_error_of_its_mean() -> None:
    found = paired([1, 1, 0, 1], [1, 0, 0, 0.5])
    # Gaps 0, 1, 0, 1/2: mean 3/8, sample variance (9 + 25 + 9 + 1) / 64 / 3 = 11/48.
    assert found.difference == pytest.approx(3 / 8)
    assert found.error == pytest.approx(math.sqrt(11 / 48 / 4))
    assert not found.distinguishable


def test_a_difference_counts_beyond_two_standard_errors() -> None:
    assert Paired(0.021, 0.01).above
    assert not Paired(0.019, 0.01).above
    assert Paired(-0.021, 0.01).distinguishable
    assert not Paired(-0.021, 0.01).above
