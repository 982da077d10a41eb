"""Split conformal prediction: sets of classes that hold the true one for a given share of graphs.

The score of a graph is 1 - p(true class) (Sadinle et al. 2019), which gives the smallest sets on
average. With n calibration graphs that the model was not fitted to, the threshold is their score of
rank ceil((n + 1)(1 - alpha)); a set holds the classes with no larger score. If new graphs come from
the same distribution, at least 1 - alpha of the sets contain the true class, on average over
calibration parts. The most probable class is always listed, which can only raise that share.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.errors import InputError
from ihgnn_cli.homophily.summary import bin_positions
from ihgnn_cli.inference.metrics import HOMOPHILY_BINS, wilson_interval
from ihgnn_cli.inference.prediction import Classifier
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.conformal import Conformal, check_alpha, graphs_needed, rank
from ihgnn_cli.words import counted

# The probability of the same graph usually differs by less in other batches and runtimes, so that
# the calibration graph at the threshold is covered in them, too. Half precision differs by more.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Covered:
    """Prediction sets of some graphs."""

    graphs: int
    coverage: float
    """Share of the sets that contain the true class."""
    coverage_low: float
    """Lower end of the 95 % Wilson interval."""
    coverage_high: float
    mean_size: float
    """Mean number of classes in a set."""


@dataclass(frozen=True)
class CoveredBin:
    """Prediction sets of the graphs with a homophily from `low` up to `high`."""

    low: float
    high: float
    sets: Covered


@dataclass(frozen=True)
class Coverage:
    """Prediction sets of the evaluated graphs."""

    threshold: Conformal
    overall: Covered
    bins: tuple[CoveredBin, ...]
    """Bins with evaluated graphs."""


def calibrate_sets(
    probabilities: NDArray[np.float64], truth: NDArray[np.int64], alpha: float
) -> Conformal:
    """The threshold from calibration graphs.

    Args:
        probabilities: [G, C]
        truth: [G]
        alpha: the share of graphs whose true class may be missing.

    Raises:
        SettingError: alpha is not between 0 and 1.
    """
    alpha = check_alpha(alpha)
    of_truth = probabilities[np.arange(len(truth)), truth]
    return Conformal(alpha, len(truth), _threshold(of_truth, alpha))


def measure_coverage(
    found: Conformal,
    probabilities: NDArray[np.float64],
    truth: NDArray[np.int64],
    beta: NDArray[np.float64],
) -> Coverage:
    """How often the sets of other graphs contain the true class, and how large they are."""
    places, sets = bin_positions(beta, 0, 1, HOMOPHILY_BINS), found.sets(probabilities)
    bins = tuple(
        CoveredBin(
            low=place / HOMOPHILY_BINS,
            high=(place + 1) / HOMOPHILY_BINS,
            sets=_covered(sets[places == place], truth[places == place]),
        )
        for place in np.unique(places).tolist()
    )
    return Coverage(found, _covered(sets, truth), bins)


def calibrated(classifier: Classifier, dataset: GraphDataset, alpha: float) -> Conformal:
    """The threshold of a model, from the validation graphs of its own data.

    Raises:
        InputError: alpha is not between 0 and 1, the model has no validation graphs, or the data is
            not its own.
    """
    card = classifier.card
    alpha = check_alpha(alpha)
    refuse_uncalibrated(card)
    if dataset.fingerprint != card.fingerprint:
        raise InputError(
            f"{dataset.name} is not the data set the model was trained on ({card.dataset_name}, or "
            "its content has changed), so it has no validation graphs to calibrate on."
        )
    graphs, encoded = card.split.validation, encode_dataset(card, dataset).dataset
    truth = encoded.graph_class[graphs].astype(np.int64)
    likely = classifier.probabilities(encoded, graphs)
    return calibrate_sets(likely, truth, alpha)


def refuse_uncalibrated(card: ModelCard) -> None:
    """Check that a model has graphs to calibrate on.

    Raises:
        InputError: it was trained on all graphs.
    """
    if not len(card.split.validation):
        raise InputError(
            "The model was trained on all graphs, so none are left to calibrate prediction sets "
            "on. Train with a validation part, such as --split 0.8/0.1/0.1, instead of --final."
        )


def too_few(graphs: int, alpha: float) -> str:
    """What to say about few calibration graphs; empty if there are enough."""
    needed = graphs_needed(alpha)
    if graphs >= needed:
        return ""
    return (
        f"prediction sets at {alpha:g} take at least {counted(needed, 'validation graph')}, and "
        f"there are {graphs:,}: every set holds all classes. Use a larger --conformal, or a larger "
        "validation part."
    )


def _threshold(of_truth: NDArray[np.float64], alpha: float) -> float:
    """Just below the probability of the given rank from above; 0 if there are too few."""
    place = rank(len(of_truth), alpha)
    if place > len(of_truth):
        return 0.0
    found = np.sort(of_truth)[::-1][place - 1]
    return float(np.float32(max(found - _ROUNDING, found / 2)))  # as in an exported file


def _covered(sets: NDArray[np.bool_], truth: NDArray[np.int64]) -> Covered:
    hits = int(sets[np.arange(len(truth)), truth].sum())
    low, high = wilson_interval(hits, len(truth))
    size = float(sets.sum(axis=1).mean()) if len(truth) else math.nan
    return Covered(len(truth), hits / len(truth) if len(truth) else math.nan, low, high, size)
