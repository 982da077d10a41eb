"""Quality of predictions, over all graphs and by their homophily.

Throughout, `probabilities` is [G, C] with one row per graph that sums to 1, and `truth` is [G], the
position of each graph's class. The predicted class is the most probable one, the first in a tie.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.errors import InputError
from ihgnn_cli.homophily.summary import bin_positions

RESAMPLES = 10_000
CALIBRATION_BINS = 15  # as Guo et al., On Calibration of Modern Neural Networks (2017)
HOMOPHILY_BINS = 10
_CONFIDENCE = 0.95
# Half precision stays within this distance of 1; logits passed by mistake do not.
_SUM_TOLERANCE = 0.01


@dataclass(frozen=True)
class Metrics:
    """Quality of the predictions for some graphs."""

    graphs: int
    accuracy: float
    accuracy_low: float
    """Lower end of the 95 % percentile-bootstrap interval over graphs. The interval covers the
    choice of graphs, not of seeds or splits. If all graphs are right or all are wrong, the
    bootstrap has no spread, and this is the Wilson interval."""
    accuracy_high: float
    majority_share: float
    """Share of the majority class: the accuracy of always predicting it."""
    balanced_accuracy: float
    """Mean recall over the classes that occur."""
    macro_f1: float
    """Mean F1 over the classes that occur or are predicted."""
    roc_auc: float
    """For two classes, that of the second; for more, the mean of one against the rest over the
    classes that occur. NaN if only one class occurs."""
    log_loss: float
    """Mean of -ln(probability of the true class), with the probability clipped at 2.2e-16."""
    calibration_error: float
    """Expected calibration error: the mean gap between the predicted class's probability and the
    accuracy, over 15 equal bins of that probability, weighted by graphs."""
    confusion: tuple[tuple[int, ...], ...]
    """[C, C] numbers of graphs by true class (row) and predicted class (column)."""


@dataclass(frozen=True)
class ReliabilityBin:
    """The graphs whose predicted class has a probability from `low` up to `high`."""

    low: float
    high: float
    graphs: int
    confidence: float
    """Mean probability of the predicted class."""
    accuracy: float


@dataclass(frozen=True)
class HomophilyBin:
    """Accuracy over the graphs with a homophily from `low` up to `high`.

    `high` itself belongs to the next bin, except in the last bin. Without graphs, everything but
    the bounds and `graphs` is NaN.
    """

    low: float
    high: float
    graphs: int
    accuracy: float
    accuracy_low: float
    """Lower end of the 95 % Wilson interval, which holds for few graphs too."""
    accuracy_high: float
    majority_share: float
    """Share of the majority class of these graphs."""
    mean_beta: float


@dataclass(frozen=True)
class HomophilySides:
    """Accuracy on either side of a node homophily of 0.5."""

    heterophilic: HomophilyBin
    """Below 0.5."""
    homophilic: HomophilyBin
    """At or above 0.5."""


def mean_probabilities(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """[G, C] softmax(logits [S, G, C]), averaged over the members of a stack."""
    mean: NDArray[np.float64] = member_probabilities(logits).mean(axis=0)
    return mean


def member_probabilities(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """[S, G, C] the softmax of each member."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=-1, keepdims=True)
    np.exp(shifted, out=shifted)
    shifted /= shifted.sum(axis=-1, keepdims=True)
    return shifted


def member_spread(members: NDArray[np.float64]) -> NDArray[np.float64]:
    """[G] standard deviation, over the members [S, G, C], of the predicted class's probability."""
    predicted = members.mean(axis=0).argmax(axis=-1)
    spread: NDArray[np.float64] = members[:, np.arange(len(predicted)), predicted].std(axis=0)
    return spread


def measure(
    probabilities: NDArray[np.floating],
    truth: NDArray[np.integer],
    classes: int | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Metrics:
    """Compare predictions with the truth.

    Args:
        probabilities: [G, C]
        truth: [G]
        classes: Number of classes, if more than the C that the model knows; the others have
            probability 0.
        resamples: Number of bootstrap draws.
        seed: Random seed of the bootstrap.

    Raises:
        InputError: there are no graphs, or a probability is not a finite number.
        ValueError: shapes, classes or probabilities are invalid.
    """
    likely, true = _checked(probabilities, truth, classes)
    if resamples < 1:
        raise ValueError(f"Cannot bootstrap with {resamples} resamples: give at least 1.")
    from sklearn.metrics import f1_score, recall_score

    graphs, classes = likely.shape
    predicted = likely.argmax(axis=1)
    confusion = np.bincount(true * classes + predicted, minlength=classes**2)
    confusion = confusion.reshape(classes, classes)
    hits, occurring = int(confusion.trace()), np.unique(true)
    named = np.union1d(occurring, predicted)
    low, high = _bootstrap(hits, graphs, resamples, seed)
    return Metrics(
        graphs=graphs,
        accuracy=hits / graphs,
        accuracy_low=low,
        accuracy_high=high,
        majority_share=_majority_share(true),
        balanced_accuracy=float(recall_score(true, predicted, labels=occurring, average="macro")),
        macro_f1=float(f1_score(true, predicted, labels=named, average="macro")),
        roc_auc=_roc_auc(likely, true),
        log_loss=_log_loss(likely, true),
        calibration_error=_calibration_error(likely.max(axis=1), predicted == true),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
    )


def accuracy_by_homophily(
    probabilities: NDArray[np.floating],
    truth: NDArray[np.integer],
    beta: NDArray[np.float64],
    bins: int = HOMOPHILY_BINS,
) -> list[HomophilyBin]:
    """Accuracy in equal bins of node homophily, including empty bins.

    Args:
        probabilities: [G, C]
        truth: [G]
        beta: [G], from 0 to 1. Graphs on a bin's edge are counted as in the homophily histogram.
        bins: Number of bins between 0 and 1.

    Raises:
        InputError: there are no graphs, or a probability is not a finite number.
        ValueError: shapes, classes, probabilities or betas are invalid.
    """
    likely, true = _checked(probabilities, truth)
    if beta.shape != true.shape:
        raise ValueError(
            f"Betas are {list(beta.shape)} for {len(true)} graphs: give one per graph."
        )
    if not ((beta >= 0) & (beta <= 1)).all():
        raise ValueError("A beta is not between 0 and 1: give each graph's node homophily.")
    if bins < 1:
        raise ValueError(f"Cannot make {bins} bins: give at least 1.")
    correct = likely.argmax(axis=1) == true
    places = bin_positions(beta.astype(np.float64), 0, 1, bins)
    found = []
    for place in range(bins):
        inside = places == place
        hits, graphs = int(correct[inside].sum()), int(inside.sum())
        low, high = wilson_interval(hits, graphs)
        found.append(
            HomophilyBin(
                low=place / bins,
                high=(place + 1) / bins,
                graphs=graphs,
                accuracy=hits / graphs if graphs else math.nan,
                accuracy_low=low,
                accuracy_high=high,
                majority_share=_majority_share(true[inside]) if graphs else math.nan,
                mean_beta=float(beta[inside].mean()) if graphs else math.nan,
            )
        )
    return found


def accuracy_by_side(
    probabilities: NDArray[np.floating], truth: NDArray[np.integer], beta: NDArray[np.float64]
) -> HomophilySides:
    """Accuracy over heterophilic and homophilic graphs.

    Raises:
        InputError, ValueError: as `accuracy_by_homophily`.
    """
    return HomophilySides(*accuracy_by_homophily(probabilities, truth, beta, bins=2))


def reliability(
    probabilities: NDArray[np.floating], truth: NDArray[np.integer]
) -> tuple[ReliabilityBin, ...]:
    """Confidence and accuracy in 15 equal bins of confidence, without empty ones."""
    confidence, correct = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    places = bin_positions(confidence, 0, 1, CALIBRATION_BINS)
    return tuple(
        ReliabilityBin(
            low=place / CALIBRATION_BINS,
            high=(place + 1) / CALIBRATION_BINS,
            graphs=int((places == place).sum()),
            confidence=float(confidence[places == place].mean()),
            accuracy=float(correct[places == place].mean()),
        )
        for place in np.unique(places).tolist()
    )


def wilson_interval(hits: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927); NaN without trials."""
    if trials == 0:
        return math.nan, math.nan
    from scipy.stats import binomtest

    found = binomtest(hits, trials).proportion_ci(_CONFIDENCE, method="wilson")
    # With no hits or only hits, one bound is the share itself, which rounding may miss.
    return min(hits / trials, float(found.low)), max(hits / trials, float(found.high))


def _checked(
    probabilities: NDArray[np.floating], truth: NDArray[np.integer], classes: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    likely = np.asarray(probabilities, dtype=np.float64)
    true = np.asarray(truth)
    if likely.ndim != 2 or true.shape != likely.shape[:1]:
        raise ValueError(
            f"Probabilities are {list(likely.shape)} and true classes {list(true.shape)}: "
            "give [graphs, classes] and [graphs]."
        )
    if len(true) == 0:
        raise InputError("There are no graphs to evaluate. Choose a part with at least one.")
    finite = np.isfinite(likely).all(axis=1)
    if not finite.all():
        raise InputError(
            f"The model's probabilities are not numbers for {int((~finite).sum()):,} of "
            f"{len(true):,} graphs: its training diverged. Train with a lower learning rate."
        )
    if (likely < -_SUM_TOLERANCE).any() or (abs(likely.sum(axis=1) - 1) > _SUM_TOLERANCE).any():
        raise ValueError("A row of probabilities does not sum to 1: give the output of a softmax.")
    known = likely.shape[1]
    classes = known if classes is None else classes
    if classes < known:
        raise ValueError(f"Probabilities are for {known} classes, but there are {classes}.")
    if not np.issubdtype(true.dtype, np.integer) or true.min() < 0 or true.max() >= classes:
        raise ValueError(f"True classes must be integers from 0 to {classes - 1}.")
    return np.pad(likely, ((0, 0), (0, classes - known))), true.astype(np.int64)


def _bootstrap(hits: int, graphs: int, resamples: int, seed: int) -> tuple[float, float]:
    # The number of right graphs among G drawn with replacement is Binomial(G, accuracy), so no
    # graphs have to be drawn.
    if hits in (0, graphs):
        return wilson_interval(hits, graphs)
    draws = np.random.default_rng(seed).binomial(graphs, hits / graphs, resamples) / graphs
    low, high = np.quantile(draws, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)


def _majority_share(true: NDArray[np.int64]) -> float:
    return int(np.bincount(true).max()) / len(true)


def _roc_auc(likely: NDArray[np.float64], true: NDArray[np.int64]) -> float:
    from sklearn.metrics import roc_auc_score

    occurring = np.unique(true)
    if len(occurring) == 1:
        return math.nan
    of = [1] if likely.shape[1] == 2 else occurring.tolist()
    return float(np.mean([roc_auc_score(true == each, likely[:, each]) for each in of]))


def _log_loss(likely: NDArray[np.float64], true: NDArray[np.int64]) -> float:
    of_truth = likely[np.arange(len(true)), true]
    # Clipped, so that a wrong prediction with probability 1 costs 36, not infinity. + 0.0 turns
    # -0.0 into 0.0.
    return float(-np.log(np.clip(of_truth, np.finfo(np.float64).eps, 1)).mean() + 0.0)


def _calibration_error(confidence: NDArray[np.float64], correct: NDArray[np.bool_]) -> float:
    places = bin_positions(confidence, 0, 1, CALIBRATION_BINS)
    gaps = np.bincount(places, weights=confidence - correct, minlength=CALIBRATION_BINS)
    return float(abs(gaps).sum() / len(correct))
