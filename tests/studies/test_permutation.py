"""The permutation test: its p-value, its shuffles, and the ridge scores behind it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from graph_makers import dataset_of
from sklearn.metrics import roc_auc_score

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits.folds import Fold
from ihgnn_cli.data.splits.split import Split
from ihgnn_cli.studies import permutation
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.graph_features import GraphFeatures
from ihgnn_cli.studies.permutation import RIDGE, p_value, permutation_test

PARTS = [np.arange(0, 4), np.arange(4, 9), np.arange(9, 12)]


def labelled_paths(count: int) -> GraphDataset:
    """Paths of six nodes with random labels; class 1 has more nodes of label 0."""
    random = np.random.default_rng(0)
    edges = [(node, node + 1) for node in range(5)]
    labels = random.integers(0, 3, (count, 6))
    zeros = (labels == 0).sum(axis=1)
    classes = (zeros > np.median(zeros)).astype(int).tolist()
    return dataset_of([(each, edges) for each in labels.tolist()], classes)


def test_the_p_value_counts_the_true_classes_as_one_shuffle() -> None:
    null = np.array([0.5, 0.6, 0.7, 0.8])
    assert p_value(0.9, null) == 1 / 5
    assert p_value(0.7, null) == 3 / 5  # reached by 0.7 and 0.8
    assert p_value(0.1, null) == 1


def test_graphs_of_parts_with_one_class_are_counted() -> None:
    data = labelled_paths(12)
    order = np.argsort(data.graph_class, kind="stable")  # six graphs of each class
    parts = [order[:4], np.append(order[4:6], order[6:8]), order[8:]]
    folds = [
        Fold((Split(np.setdiff1d(order, each)[1:], np.setdiff1d(order, each)[:1], each),))
        for each in parts
    ]
    found = permutation_test(GraphFeatures(data), folds, 5, 0)
    assert (found.graphs, found.fixed) == (12, 8)


def test_shuffles_keep_the_class_counts_of_each_part() -> None:
    truth = np.array([0, 0, 1, 2, 0, 1, 1, 1, 1, 2, 2, 0])
    found = permutation._shuffled(truth, PARTS, 50, 0)
    assert found[:, 0].tolist() == truth.tolist()
    for part in PARTS:
        expected = np.bincount(truth[part], minlength=3).tolist()
        assert all(
            np.bincount(column[part], minlength=3).tolist() == expected for column in found.T
        )
    assert len(np.unique(found.T, axis=0)) > 25


def test_the_scores_of_a_part_are_those_of_ridge_regression_on_the_others() -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(12, 5))
    kernel = features @ features.T
    target = random.choice([-1.0, 1.0], 12)
    solver = permutation._ridge(kernel.copy(), PARTS)
    for part in PARTS:
        rest = np.setdiff1d(np.arange(12), part)
        whole = kernel + 1
        weights = np.linalg.solve(
            whole[np.ix_(rest, rest)] + RIDGE * np.eye(len(rest)), target[rest]
        )
        expected = whole[np.ix_(part, rest)] @ weights
        assert (solver @ target)[part] == pytest.approx(expected)
        other = target.copy()
        other[part] *= -1  # classes of the part itself are not used
        assert (solver @ other)[part] == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 3])
def test_areas_are_those_of_scikit_learn_averaged_over_parts(classes: int) -> None:
    random = np.random.default_rng(1)
    truth = np.concatenate([np.arange(len(part)) % classes for part in PARTS])
    scores = random.normal(size=(1 if classes == 2 else classes, 12, 1)).round(1)  # with ties
    expected = []
    for part in PARTS:
        if classes == 2:
            expected.append(roc_auc_score(truth[part], scores[0, part, 0]))
        else:
            one = [roc_auc_score(truth[part] == each, scores[each, part, 0]) for each in range(3)]
            expected.append(np.mean(one))
    found = permutation._roc_auc(scores, truth[:, None], PARTS)
    assert found == pytest.approx([np.mean(expected)])


def test_a_planted_signal_is_found_and_shuffled_classes_have_none() -> None:
    planted = labelled_paths(40)
    found = permutation_test(GraphFeatures(planted), make_folds(planted, 0, folds=4), 99, 0)
    assert found.accuracy.p == found.roc_auc.p == 1 / 100
    assert found.roc_auc.value > 0.9 > found.roc_auc.null_high
    random = np.random.default_rng(5).permutation(planted.graph_class)
    chance = replace(planted, graph_class=random)
    none = permutation_test(GraphFeatures(chance), make_folds(chance, 0, folds=4), 99, 0)
    assert none.accuracy.p > 0.05
    assert none.accuracy.value >= 0.5  # of the majority class


def test_the_same_seed_gives_the_same_test() -> None:
    graphs = labelled_paths(20)
    folds = make_folds(graphs, 0, folds=2)
    assert permutation_test(GraphFeatures(graphs), folds, 20, 3) == permutation_test(
        GraphFeatures(graphs), folds, 20, 3
    )


def test_large_data_is_tested_on_some_of_its_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permutation, "MOST_GRAPHS", 12)
    graphs = labelled_paths(20)
    folds = make_folds(graphs, 0, folds=2)
    assert permutation_test(GraphFeatures(graphs), folds, 5, 0).graphs == 12
    chosen, parts = permutation._drawn(folds, 0)
    assert len(set(chosen.tolist())) == 12
    for part, fold in zip(parts, folds, strict=True):
        assert set(chosen[part]) <= set(fold.test)


def test_dhfr_md_has_signal_that_accuracy_hides(real_data: Path) -> None:
    graphs = load_dataset("DHFR_MD", data_root=real_data)
    found = permutation_test(GraphFeatures(graphs), make_folds(graphs, 0), 199, 0)
    majority = np.bincount(graphs.graph_class).max() / len(graphs)
    assert found.accuracy.value < majority + 0.01
    assert found.roc_auc.p == 1 / 200
    assert found.roc_auc.value > 0.69
