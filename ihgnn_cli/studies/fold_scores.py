"""Accuracy, balanced accuracy and ROC-AUC over folds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.inference.metrics import measure

Probabilities = NDArray[np.float64]
"""[graphs, classes]"""


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

    @classmethod
    def joined(cls, repeats: "Sequence[Scores]") -> "Scores":
        """The scores over the folds of several partitions with as many folds each."""
        folds = tuple(accuracy for each in repeats for accuracy in each.folds)
        defined = [each.roc_auc for each in repeats if not math.isnan(each.roc_auc)]
        return cls(
            accuracy=fmean(folds),
            accuracy_std=pstdev(folds),
            balanced_accuracy=fmean(each.balanced_accuracy for each in repeats),
            roc_auc=fmean(defined) if defined else math.nan,
            folds=folds,
        )


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
