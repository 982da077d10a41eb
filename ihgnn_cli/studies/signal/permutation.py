"""A permutation test: is there anything about the classes that features of graphs can predict?

The statistic is the accuracy (or ROC-AUC) of kernel ridge classifiers under cross-validation, the
best of a few kernels and of always predicting the majority class. Under the null hypothesis,
classes have nothing to do with graphs, and the statistic is as large with shuffled classes. The
best kernel is taken for each shuffle too, so the choice does not make p too small. Classes are
shuffled within the test part of each fold, so that folds remain stratified. All shuffles are
targets of one regression, because a ridge solution is linear in them.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ihgnn_cli.data.splits import Fold
from ihgnn_cli.studies.signal.features import WL_ROUNDS, GraphFeatures

RIDGE = 0.1  # λ; kernels have the diagonal 1
MOST_GRAPHS = 5000  # a kernel takes quadratic memory
_TARGETS = 10_000_000  # numbers of the targets of one regression
_DIGITS = 6  # of scores: twins have equal ones, up to rounding
_ROUNDING = 1e-9
_KERNELS = ("RBF, labels", "RBF, histograms", "1-WL, 1 round", f"1-WL, {WL_ROUNDS} rounds")

Kernel = NDArray[np.float64]
Parts = Sequence[NDArray[np.int64]]


@dataclass(frozen=True)
class Permuted:
    """One statistic with the true classes and with shuffled ones."""

    value: float
    p: float
    null_mean: float
    null_high: float
    """The 95 % quantile with shuffled classes."""

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "Permuted":
        """The statistic of the true classes, which is first, and of the shuffled ones."""
        value, null = float(values[0]), values[1:]
        if math.isnan(value):  # no fold tests two classes
            return cls(value, math.nan, math.nan, math.nan)
        return cls(value, p_value(value, null), float(null.mean()), float(np.quantile(null, 0.95)))


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
    report: Callable[[int, int, str], None] = lambda _done, _total, _text: None,
) -> PermutationTest:
    """Test whether the classes can be predicted better than shuffled ones.

    Args:
        features: of the graphs.
        folds: their test parts; graphs in none are left out.
        permutations: number of shuffles.
        seed: of the shuffles.
        report: receives the fits done, their number (one per shuffle and kernel), and the kernel.
    """
    graphs, parts = _drawn(folds, seed)
    classes = _shuffled(features.dataset.graph_class[graphs], parts, permutations, seed)
    count = len(features.dataset.class_values)
    majority = np.bincount(classes[:, 0]).argmax()  # the same in every shuffle
    always = np.mean([(classes[part, 0] == majority).mean() for part in parts])
    best = np.tile([[always], [0.5]], permutations + 1)  # accuracy and ROC-AUC
    true: dict[str, tuple[float, float]] = {}
    total, step = len(_KERNELS) * permutations, max(1, _TARGETS // (count * len(graphs)))
    for number, (title, kernel) in enumerate(_kernels(features, graphs)):
        text = f"{title} (kernel {number + 1} of {len(_KERNELS)})"
        report(number * permutations, total, text)
        found = []
        for start in range(0, permutations + 1, step):
            some = classes[:, start : start + step]
            scores = _scores(kernel, some, count, parts)
            found.append([_accuracy(scores, some, parts), _roc_auc(scores, some, parts)])
            report(number * permutations + min(start + step, permutations), total, text)
        values = np.concatenate(found, axis=1)
        true[title] = float(values[0, 0]), float(values[1, 0])
        best = np.maximum(best, values)
    fixed = sum(len(part) for part in parts if len(set(classes[part, 0].tolist())) == 1)
    accuracy, auc = map(Permuted.of, best)
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


def _shuffled(
    truth: NDArray[np.integer], parts: Parts, permutations: int, seed: int
) -> NDArray[np.int64]:
    """[G, 1 + permutations] the classes, and shuffles of them within each part."""
    random = np.random.default_rng(seed)
    found = np.tile(truth.astype(np.int64)[:, None], (1, permutations + 1))
    for part in parts:
        found[part, 1:] = random.permuted(found[part, 1:], axis=0)
    return found


def _kernels(features: GraphFeatures, graphs: NDArray[np.int64]) -> Iterator[tuple[str, Kernel]]:
    """The kernels of these graphs, with 1 on the diagonal."""
    yield _KERNELS[0], _rbf(features.labels[graphs])
    yield _KERNELS[1], _rbf(features.histograms[graphs])
    for title, rounds in zip(_KERNELS[2:], (1, WL_ROUNDS), strict=True):
        counts = features.subtrees(rounds)[graphs]
        yield title, (counts @ counts.T).toarray()


def _rbf(features: NDArray[np.float64]) -> Kernel:
    """exp(-d² / mean d²) of standardised features; uses no classes."""
    spread = features.std(axis=0)
    scaled = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1)
    square = (scaled**2).sum(axis=1)
    distance = np.maximum(square[:, None] + square - 2 * scaled @ scaled.T, 0)
    kernel: Kernel = np.exp(-distance / (distance.mean() or 1))
    return kernel


def _scores(
    kernel: Kernel, classes: NDArray[np.int64], count: int, parts: Parts
) -> NDArray[np.float64]:
    """[C, G, P] the score of each class for each graph and shuffle; of two, for the second.

    Each part is scored by a regression on all other graphs.
    """
    from sklearn.kernel_ridge import KernelRidge

    values = [1] if count == 2 else range(count)
    targets = np.concatenate([2.0 * (classes == each) - 1 for each in values], axis=1)
    found = np.empty_like(targets)
    for part in parts:
        rest = np.setdiff1d(np.arange(len(kernel)), part)
        model = KernelRidge(alpha=RIDGE, kernel="precomputed")
        model.fit(kernel[np.ix_(rest, rest)] + 1, targets[rest])  # + 1: a constant feature
        found[part] = model.predict(kernel[np.ix_(part, rest)] + 1)
    return np.stack(np.split(found, len(values), axis=1)).round(_DIGITS)


def _accuracy(
    scores: NDArray[np.float64], classes: NDArray[np.int64], parts: Parts
) -> NDArray[np.float64]:
    """[P] the mean over parts of the share of graphs whose highest score is that of their class."""
    predicted = scores[0] > 0 if len(scores) == 1 else scores.argmax(axis=0)
    right = predicted == classes
    mean: NDArray[np.float64] = np.mean([right[part].mean(axis=0) for part in parts], axis=0)
    return mean


def _roc_auc(
    scores: NDArray[np.float64], classes: NDArray[np.int64], parts: Parts
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
    if not found:
        return np.full(classes.shape[1], math.nan)
    mean: NDArray[np.float64] = np.mean(found, axis=0)
    return mean
