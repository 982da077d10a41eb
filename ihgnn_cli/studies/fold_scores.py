"""Accuracy, balanced accuracy and ROC-AUC over folds, and the paired comparison of two methods."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.inference.metrics import measure

Probabilities = NDArray[np.float64]
"""[graphs, classes]"""

# Differences within this many standard errors are called noise.
NOISE = 2.0


@dataclass(frozen=True)
class Scores:
    """Means over folds; the standard deviation divides by n, as in the protocol."""

    accuracy: float
    accuracy_std: float
    balanced_accuracy: float
    roc_auc: float
    """Over the folds whose test graphs have two classes or more; NaN if there are none."""
    folds: tuple[float, ...]
    """The accuracy of each fold."""

    @classmethod
    def parsed(cls, plain: Mapping[str, Any]) -> "Scores":
        """Scores read from JSON, in which NaN is null."""
        auc = plain["roc_auc"]
        given = {"folds": tuple(plain["folds"]), "roc_auc": math.nan if auc is None else auc}
        return cls(**{**plain, **given})


def fold_scores(
    probabilities: Sequence[Probabilities], truth: Sequence[NDArray[np.integer]]
) -> Scores:
    """Score the test graphs of each fold."""
    found = [
        measure(each, true, resamples=1) for each, true in zip(probabilities, truth, strict=True)
    ]
    defined = [each.roc_auc for each in found if not math.isnan(each.roc_auc)]
    return Scores(
        accuracy=fmean(each.accuracy for each in found),
        accuracy_std=pstdev(each.accuracy for each in found),
        balanced_accuracy=fmean(each.balanced_accuracy for each in found),
        roc_auc=fmean(defined) if defined else math.nan,
        folds=tuple(each.accuracy for each in found),
    )


@dataclass(frozen=True)
class Paired:
    """The accuracy of one method minus that of another on the same graphs, with standard error."""

    difference: float
    error: float

    @property
    def distinguishable(self) -> bool:
        """Whether the difference is larger than two standard errors."""
        return abs(self.difference) > NOISE * self.error

    @property
    def above(self) -> bool:
        """Whether the first method is better by more than two standard errors."""
        return self.difference > 0 and self.distinguishable


def paired(hits: Sequence[float], others: Sequence[float]) -> Paired:
    """Compare the hits of two methods graph by graph; a hit is 1, or its mean over several runs.

    The standard error covers the choice of graphs, not of folds or of training sets.
    """
    gaps = [one - other for one, other in zip(hits, others, strict=True)]
    return Paired(fmean(gaps), stdev(gaps) / math.sqrt(len(gaps)))
