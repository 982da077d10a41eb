"""Scores over folds."""

import math

import numpy as np
import pytest

from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.fold_scores import Scores, fold_scores


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


def test_the_folds_of_two_partitions_count_alike() -> None:
    first = Scores(0.5, 0.1, 0.4, math.nan, (0.4, 0.6))
    second = Scores(0.8, 0.0, 0.6, 0.7, (0.8, 0.8))
    found = Scores.joined([first, second])
    assert found.folds == (0.4, 0.6, 0.8, 0.8)
    assert (found.accuracy, found.balanced_accuracy) == pytest.approx((0.65, 0.5))
    assert found.accuracy_std == pytest.approx(math.sqrt((625 + 25 + 225 + 225) / 4) / 100)
    assert found.roc_auc == 0.7  # the only one that is defined
