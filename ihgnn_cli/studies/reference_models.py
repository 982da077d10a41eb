"""The classifiers behind the references. Only this file imports scikit-learn, which is slow."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ihgnn_cli.studies.fold_scores import Probabilities
from ihgnn_cli.studies.graph_features import WL_ROUNDS, GraphFeatures
from ihgnn_cli.studies.references import MAJORITY, ON_ATTRIBUTES

TREES = 300
PENALTY = 0.1  # C of logistic regression
SVM_PENALTIES = (1.0, 10.0, 100.0)
INNER_FOLDS = 5  # in which the SVM chooses C and the number of rounds
INNER_GRAPHS = 500  # at most, drawn from the training graphs: an SVM takes quadratic time
SVM_GRAPHS = 5000  # at most, drawn from the training graphs: its kernel takes quadratic memory
_PARALLEL = 1000  # graphs from which several cores build a forest faster than one

Fit = Callable[[NDArray[np.int64], NDArray[np.int64]], Probabilities]
"""Takes training and test graphs, and returns the probabilities of the test graphs' classes."""


def fitters(features: GraphFeatures, seed: int) -> dict[str, tuple[str, Fit]]:
    """The title of each reference, and the function that fits it."""
    dataset = features.dataset
    truth = dataset.graph_class
    jobs = -1 if len(truth) > _PARALLEL else 1

    def majority(train: NDArray[np.int64], test: NDArray[np.int64]) -> Probabilities:
        shares = np.bincount(truth[train], minlength=len(dataset.class_values))
        return np.tile(shares / len(train), (len(test), 1))

    def forest_on(matrix: NDArray[np.float64]) -> Fit:
        def forest(train: NDArray[np.int64], test: NDArray[np.int64]) -> Probabilities:
            model = RandomForestClassifier(TREES, random_state=seed % 2**32, n_jobs=jobs)
            return _fitted(model, matrix, truth, train, test)

        return forest

    def logistic(train: NDArray[np.int64], test: NDArray[np.int64]) -> Probabilities:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=PENALTY, max_iter=1000))
        return _fitted(model, features.histograms, truth, train, test)

    def logistic_wl(train: NDArray[np.int64], test: NDArray[np.int64]) -> Probabilities:
        if not features.logarithms.shape[1]:  # no colour occurs in two graphs
            return majority(train, test)
        model = LogisticRegression(C=PENALTY, max_iter=1000)
        return _fitted(model, features.logarithms, truth, train, test)

    subtrees = [features.subtrees(rounds) for rounds in range(WL_ROUNDS + 1)]

    def svm(train: NDArray[np.int64], test: NDArray[np.int64]) -> Probabilities:
        return _svm(subtrees, truth, train, test, seed)

    found = {
        "majority": (MAJORITY, majority),
        "forest": ("random forest, histograms", forest_on(features.histograms)),
        "logistic": ("logistic regression, histograms", logistic),
        "logistic-wl": ("logistic regression, 1-WL counts", logistic_wl),
        "svm-wl": ("SVM, 1-WL kernel", svm),
    }
    if features.edge_attributes is not None:
        fit = forest_on(features.edge_attributes)
        found[ON_ATTRIBUTES] = "random forest, edge attributes", fit
    return found


def _fitted(
    model: Any,
    matrix: Any,
    truth: NDArray[np.integer],
    train: NDArray[np.int64],
    test: NDArray[np.int64],
) -> Probabilities:
    found: Probabilities = model.fit(matrix[train], truth[train]).predict_proba(matrix[test])
    return found


def _svm(
    subtrees: Sequence[Any],
    truth: NDArray[np.integer],
    train: NDArray[np.int64],
    test: NDArray[np.int64],
    seed: int,
) -> Probabilities:
    """An SVM; its scores as a softmax, which keeps their order but is not calibrated."""
    rounds, penalty = _chosen(subtrees, truth, train, seed)
    train = _some(train, truth, SVM_GRAPHS, seed)
    matrix = subtrees[rounds]
    model = SVC(kernel="precomputed", C=penalty)
    model.fit((matrix[train] @ matrix[train].T).toarray(), truth[train])
    score = model.decision_function((matrix[test] @ matrix[train].T).toarray())
    score = np.column_stack([-score, score]) if score.ndim == 1 else score
    score = np.exp(score - score.max(axis=1, keepdims=True))
    found: Probabilities = score / score.sum(axis=1, keepdims=True)
    return found


def _chosen(
    subtrees: Sequence[Any], truth: NDArray[np.integer], train: NDArray[np.int64], seed: int
) -> tuple[int, float]:
    """The rounds and C with the best accuracy in inner folds; all rounds and C = 1 if too few."""
    some = _some(train, truth, INNER_GRAPHS, seed)
    true = truth[some]
    # Rarer classes than the second largest are missing in some of the inner folds.
    inner = min(INNER_FOLDS, int(np.sort(np.unique(true, return_counts=True)[1])[-2]))
    best, chosen = -1, (WL_ROUNDS, SVM_PENALTIES[0])
    if inner < 2:
        return chosen
    cut = StratifiedKFold(inner, shuffle=True, random_state=seed % 2**32)
    parts = list(cut.split(true, true))
    for rounds, matrix in enumerate(subtrees):
        kernel = (matrix[some] @ matrix[some].T).toarray()
        for penalty in SVM_PENALTIES:
            right = 0
            for fit, held in parts:
                model = SVC(kernel="precomputed", C=penalty).fit(
                    kernel[np.ix_(fit, fit)], true[fit]
                )
                right += int((model.predict(kernel[np.ix_(held, fit)]) == true[held]).sum())
            if right > best:
                best, chosen = right, (rounds, penalty)
    return chosen


def _some(
    graphs: NDArray[np.int64], truth: NDArray[np.integer], most: int, seed: int
) -> NDArray[np.int64]:
    """About this many of the graphs, drawn at random, with the same share of each class.

    At least two of each class that has two.
    """
    if len(graphs) <= most:
        return np.sort(graphs)
    drawn = np.random.default_rng(seed).permutation(graphs)
    parts = []
    for each in np.unique(truth[graphs]):
        members = drawn[truth[drawn] == each]
        parts.append(members[: max(2, round(most * len(members) / len(graphs)))])
    return np.sort(np.concatenate(parts))
