"""A permutation test: is there anything about the classes that features of graphs can predict?

The statistic is the accuracy (or ROC-AUC) of kernel ridge classifiers under cross-validation, the
best of a few kernels and of always predicting the majority class. Under the null hypothesis,
classes have nothing to do with graphs, and the statistic is as large with shuffled classes. As each
shuffle takes the best, too, that choice is paid for. Classes are shuffled within the test part of
each fold, so that folds remain stratified.

Ridge scores are linear in the classes. With M = (K + 1 + λI)⁻¹ over all graphs and B the graphs of
a fold, the scores of B after training on the others are y_B - M_BB⁻¹ (M y)_B. So one inverse per
kernel serves all folds and all shuffles.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.stats import rankdata

from ihgnn_cli.data.splits.folds import Fold
from ihgnn_cli.studies.graph_features import WL_ROUNDS, GraphFeatures

RIDGE = 0.1  # λ; kernels have the diagonal 1
MOST_GRAPHS = 5000  # a kernel takes quadratic memory
_CHUNK = 100  # shuffles at a time
_DIGITS = 6  # of scores: twins have equal ones, up to rounding
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Permuted:
    """One statistic with the true classes and with shuffled ones."""

    value: float
    p: float
    null_mean: float
    null_high: float
    """The 95 % quantile with shuffled classes."""


@dataclass(frozen=True)
class PermutationTest:
    """The best of several classifiers, compared with the same on shuffled classes."""

    permutations: int
    graphs: int
    """Of larger data sets, some graphs are drawn."""
    accuracy: Permuted
    roc_auc: Permuted
    kernels: dict[str, tuple[float, float]]
    """Accuracy and ROC-AUC of each kernel, with the true classes."""
    fixed: int = 0
    """Graphs in test parts with a single class, where shuffling changes nothing."""

    @property
    def p(self) -> float:
        """The smaller of the two p-values."""
        return float(np.nanmin([self.accuracy.p, self.roc_auc.p]))


def p_value(value: float, null: NDArray[np.float64]) -> float:
    """(1 + number of shuffles that reach the value) / (1 + number of shuffles)."""
    return (1 + int((null >= value - _ROUNDING).sum())) / (1 + len(null))


def permutation_test(
    features: GraphFeatures,
    folds: Sequence[Fold],
    permutations: int,
    seed: int,
    tell: Callable[[int, int, str], None] = lambda _done, _total, _text: None,
) -> PermutationTest:
    """Test whether the classes can be predicted better than shuffled ones.

    Args:
        features: of the graphs.
        folds: their test parts; graphs in none are left out.
        permutations: number of shuffles.
        seed: of the shuffles.
        tell: receives the fits done, their number (one per shuffle and kernel), and the kernel.
    """
    dataset = features.dataset
    graphs, parts = _drawn(folds, seed)
    classes = _shuffled(dataset.graph_class[graphs], parts, permutations, seed)
    majority = np.bincount(classes[:, 0]).argmax()  # the same in every shuffle
    always = np.mean([(classes[part, 0] == majority).mean() for part in parts])
    best = np.tile([[always], [0.5]], permutations + 1)  # accuracy and ROC-AUC
    true: dict[str, tuple[float, float]] = {}
    total = len(_KERNELS) * permutations
    for number, (title, kernel) in enumerate(_kernels(features, graphs)):
        text = f"{title} (kernel {number + 1} of {len(_KERNELS)})"
        tell(number * permutations, total, text)
        solver = _ridge(kernel, parts)
        found = []
        for start in range(0, permutations + 1, _CHUNK):
            some = classes[:, start : start + _CHUNK]
            scores = _scores(solver, some, len(dataset.class_values))
            found.append([_accuracy(scores, some, parts), _roc_auc(scores, some, parts)])
            tell(number * permutations + min(start + _CHUNK, permutations), total, text)
        values = np.concatenate(found, axis=1)
        true[title] = float(values[0, 0]), float(values[1, 0])
        best = np.maximum(best, values)
    accuracy, auc = map(_permuted, best)
    fixed = sum(len(part) for part in parts if len(set(classes[part, 0].tolist())) == 1)
    return PermutationTest(permutations, len(graphs), accuracy, auc, true, fixed)


def _drawn(folds: Sequence[Fold], seed: int) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """The test graphs of all folds, at most `MOST_GRAPHS`, and the positions of each fold in them.

    Folds without any are left out.
    """
    tests = [fold.test for fold in folds]
    of_fold = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
    kept = np.random.default_rng(seed).permutation(len(of_fold))[:MOST_GRAPHS]
    kept.sort()
    parts = [np.flatnonzero(of_fold[kept] == number) for number in range(len(tests))]
    return np.concatenate(tests)[kept], [part for part in parts if len(part)]


def _permuted(values: NDArray[np.float64]) -> Permuted:
    """Of the true classes, which are first, and the shuffled ones."""
    value, null = float(values[0]), values[1:]
    if math.isnan(value):  # no fold tests two classes
        return Permuted(value, math.nan, math.nan, math.nan)
    return Permuted(value, p_value(value, null), float(null.mean()), float(np.quantile(null, 0.95)))


def _shuffled(
    truth: NDArray[np.integer], parts: Sequence[NDArray[np.int64]], permutations: int, seed: int
) -> NDArray[np.int64]:
    """[G, 1 + permutations] the classes, and shuffles of them within each part."""
    random = np.random.default_rng(seed)
    found = np.tile(truth.astype(np.int64)[:, None], (1, permutations + 1))
    for part in parts:
        found[part, 1:] = random.permuted(found[part, 1:], axis=0)
    return found


_KERNELS = ("RBF, labels", "RBF, histograms", "1-WL, 1 round", f"1-WL, {WL_ROUNDS} rounds")


def _kernels(
    features: GraphFeatures, graphs: NDArray[np.int64]
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The kernels of these graphs, with 1 on the diagonal."""
    yield _KERNELS[0], _rbf(features.labels[graphs])
    yield _KERNELS[1], _rbf(features.histograms[graphs])
    for title, rounds in zip(_KERNELS[2:], (1, WL_ROUNDS), strict=True):
        counts = features.subtrees(rounds)[graphs]
        yield title, (counts @ counts.T).toarray()


def _rbf(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """exp(-d² / mean d²) of standardised features; uses no classes."""
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1)
    square = (scaled**2).sum(axis=1)
    distance = np.maximum(square[:, None] + square - 2 * scaled @ scaled.T, 0)
    kernel: NDArray[np.float64] = np.exp(-distance / (distance.mean() or 1))
    return kernel


def _ridge(kernel: NDArray[np.float64], parts: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """[G, G] the matrix that turns targets into the scores of each part, trained on the others."""
    kernel += 1 + RIDGE * np.eye(len(kernel))  # + 1: a constant feature
    half = lapack.dpotri(lapack.dpotrf(kernel, lower=1)[0], lower=1)[0]
    inverse: NDArray[np.float64] = np.tril(half) + np.tril(half, -1).T
    for part in parts:
        inverse[part] = -np.linalg.solve(inverse[np.ix_(part, part)], inverse[part])
        inverse[np.ix_(part, part)] = 0
    return inverse


def _scores(
    solver: NDArray[np.float64], classes: NDArray[np.int64], count: int
) -> NDArray[np.float64]:
    """[C, G, P] the score of each class for each graph and shuffle; of two, for the second."""
    values = [1] if count == 2 else range(count)
    found = [solver @ (2.0 * (classes == each) - 1) for each in values]
    return np.stack(found).round(_DIGITS)


def _accuracy(
    scores: NDArray[np.float64], classes: NDArray[np.int64], parts: Sequence[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """[P] the mean over parts of the share of graphs whose highest score is that of their class."""
    predicted = scores[0] > 0 if len(scores) == 1 else scores.argmax(axis=0)
    right = predicted == classes
    mean: NDArray[np.float64] = np.mean([right[part].mean(axis=0) for part in parts], axis=0)
    return mean


def _roc_auc(
    scores: NDArray[np.float64], classes: NDArray[np.int64], parts: Sequence[NDArray[np.int64]]
) -> NDArray[np.float64]:
    """[P] the mean over parts, and classes that occur, of one against the rest; NaN without any."""
    found = []
    for part in parts:
        of_part = []
        for each, score in enumerate(scores, start=len(scores) == 1):
            positive = classes[part] == each
            count = int(positive[:, 0].sum())  # the same in every shuffle
            if 0 < count < len(part):
                ranks = (rankdata(score[part], axis=0) * positive).sum(axis=0)
                pairs = count * (len(part) - count)
                of_part.append((ranks - count * (count + 1) / 2) / pairs)
        if of_part:
            found.append(np.mean(of_part, axis=0))
    mean: NDArray[np.float64] = (
        np.mean(found, axis=0) if found else np.full(classes.shape[1], math.nan)
    )
    return mean
