"""A network's result beside the references on the same folds."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.splits import Fold
from ihgnn_cli.studies.fold_scores import Paired, Scores, fold_scores, paired
from ihgnn_cli.studies.references import Reference, best_reference
from ihgnn_cli.studies.units import Record


def beside(
    found: Sequence[Reference],
    final: Sequence[Record],
    folds: Sequence[Fold],
    truth: NDArray[np.integer],
) -> dict[str, Any]:
    """The references, and the paired difference of the final runs from the best one.

    Args:
        found: the references on these folds.
        final: the final runs of all folds.
        folds: the folds.
        truth: [G] the class of each graph.
    """
    best = best_reference(found)
    hits, others = [], []
    for number, fold in enumerate(folds):
        true = truth[fold.test]
        runs = [
            np.equal(each.tested.predictions, true)
            for each in final
            if each.validated.unit.fold == number and each.tested is not None
        ]
        hits += np.mean(runs, axis=0).tolist()
        others += np.equal(best.predictions[number], true).tolist()
    gap = paired(hits, others)
    return {
        "methods": [_method(each) for each in found],
        "best": best.key,
        "difference": gap.difference,
        "error": gap.error,
        "above": gap.above,
        "sentence": _sentence(best, gap),
    }


def final_scores(
    final: Sequence[Record], folds: Sequence[Fold], truth: NDArray[np.integer]
) -> Scores | None:
    """The scores of the final runs, averaged over runs; `None` if one has no probabilities."""
    tested = [(each.validated.unit.fold, each.tested) for each in final]
    if any(each is None or not each.probabilities for _, each in tested):  # of older versions
        return None
    return fold_scores(
        [np.array(each.probabilities) for _, each in tested if each is not None],
        [truth[folds[fold].test] for fold, _ in tested],
    )


def _method(found: Reference) -> Mapping[str, Any]:
    scores = found.scores
    return {
        "key": found.key,
        "title": found.title,
        "accuracy": scores.accuracy,
        "accuracy_std": scores.accuracy_std,
        "balanced_accuracy": scores.balanced_accuracy,
        "roc_auc": scores.roc_auc,
    }


def _sentence(best: Reference, gap: Paired) -> str:
    points, error = 100 * gap.difference, 100 * gap.error
    than = f"the best reference, {best.title}"
    if not gap.distinguishable:
        return (
            f"Not distinguishable from {than}: {points:+.1f} ± {error:.1f} points "
            "(paired over graphs, ± standard error)."
        )
    where = "Better" if gap.difference > 0 else "Worse"
    return (
        f"{where} than {than}: {points:+.1f} ± {error:.1f} points "
        "(paired over graphs, ± standard error)."
    )
