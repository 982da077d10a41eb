"""A support vector machine on 1-WL subtree kernels that chooses rounds and C on its own graphs."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from ihgnn_cli.studies.fold_scores import Probabilities
from ihgnn_cli.studies.signal.features import unit_rows

PENALTIES = (1.0, 10.0, 100.0)
INNER_FOLDS = 5
INNER_GRAPHS = 500
"""Training graphs among which rounds and C are chosen: an SVM takes quadratic time."""
MOST_GRAPHS = 5000
"""Training graphs: the kernel takes quadratic memory."""


class KernelSVM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types in scikit-learn
    """An SVM on counts of 1-WL colours up to a number of rounds; each graph has length 1.

    scikit-learn's `GridSearchCV` over a pipeline does the same in ten times the time, because it
    computes the kernel of each number of rounds for each C and inner fold.

    Args:
        rounds: number of columns up to each round.
        seed: of the inner folds and of the graphs that are drawn from many.
    """

    def __init__(self, rounds: tuple[int, ...], seed: int = 0) -> None:
        self.rounds = rounds
        self.seed = seed

    def fit(self, counts: sparse.csr_array, truth: NDArray[np.integer]) -> Self:
        """Choose rounds and C in inner folds, and train on all graphs."""
        self.columns_, penalty = self._chosen(counts, truth)
        some = _drawn(truth, MOST_GRAPHS, self.seed)
        self.train_ = unit_rows(counts[some, : self.columns_])
        self.svm_ = SVC(kernel="precomputed", C=penalty)
        self.svm_.fit((self.train_ @ self.train_.T).toarray(), truth[some])
        self.classes_ = self.svm_.classes_
        return self

    def predict_proba(self, counts: sparse.csr_array) -> Probabilities:
        """The scores as a softmax, which keeps their order but is not calibrated."""
        kernel = (unit_rows(counts[:, : self.columns_]) @ self.train_.T).toarray()
        score = self.svm_.decision_function(kernel)
        score = np.column_stack([-score, score]) if score.ndim == 1 else score
        score = np.exp(score - score.max(axis=1, keepdims=True))
        found: Probabilities = score / score.sum(axis=1, keepdims=True)
        return found

    def _chosen(self, counts: Any, truth: NDArray[np.integer]) -> tuple[int, float]:
        """Columns and C with the best accuracy; all rounds and C = 1 if there are too few graphs.

        Fewer rounds, then the smaller C, win a tie.
        """
        some = _drawn(truth, INNER_GRAPHS, self.seed)
        true = truth[some]
        # Rarer classes than the second largest are missing in some of the inner folds.
        inner = min(INNER_FOLDS, int(np.sort(np.unique(true, return_counts=True)[1])[-2]))
        best, chosen = -1, (self.rounds[-1], PENALTIES[0])
        if inner < 2:
            return chosen
        cut = StratifiedKFold(inner, shuffle=True, random_state=self.seed % 2**32)
        parts = list(cut.split(true, true))
        for columns in self.rounds:
            matrix = unit_rows(counts[some, :columns])
            kernel = (matrix @ matrix.T).toarray()
            for penalty in PENALTIES:
                right = 0
                for fit, held in parts:
                    model = SVC(kernel="precomputed", C=penalty)
                    model.fit(kernel[np.ix_(fit, fit)], true[fit])
                    right += int((model.predict(kernel[np.ix_(held, fit)]) == true[held]).sum())
                if right > best:
                    best, chosen = right, (columns, penalty)
        return chosen


def _drawn(truth: NDArray[np.integer], most: int, seed: int) -> NDArray[np.int64]:
    """The positions of about this many graphs, drawn with the same share of each class.

    At least two of each class that has two.
    """
    if len(truth) <= most:
        return np.arange(len(truth))
    drawn = np.random.default_rng(seed).permutation(len(truth))
    parts = []
    for each in np.unique(truth):
        members = drawn[truth[drawn] == each]
        parts.append(members[: max(2, round(most * len(members) / len(truth)))])
    return np.sort(np.concatenate(parts))
