"""A network's result beside the references on the same folds."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import Fold
from ihgnn_cli.studies.fold_scores import Scores, fold_scores
from ihgnn_cli.studies.signal.references import Reference, best_reference, left_out_note
from ihgnn_cli.studies.statistics import Method, Paired, family, paired
from ihgnn_cli.studies.units import Record


def graph_accuracies(
    predictions: Sequence[tuple[int, Sequence[int]]],
    folds: Sequence[Fold],
    truth: NDArray[np.integer],
) -> tuple[float | None, ...]:
    """The accuracy of each graph over runs and repeats; `None` if it is in no test part.

    Args:
        predictions: the fold and the predicted classes of its test graphs, for every run.
        folds: the folds of all partitions.
        truth: [G] the class of each graph.
    """
    right, times = np.zeros(len(truth)), np.zeros(len(truth))
    for fold, predicted in predictions:
        test = folds[fold].test
        right[test] += np.equal(predicted, truth[test])
        times[test] += 1
    pairs = zip(right.tolist(), times.tolist(), strict=True)
    return tuple(hits / of if of else None for hits, of in pairs)


def tested_method(
    final: Sequence[Record], folds: Sequence[Fold], truth: NDArray[np.integer]
) -> Method:
    """The accuracies of the final runs, for comparisons."""
    tested = [(each.validated.unit.fold, each.tested) for each in final if each.tested is not None]
    by_fold: dict[int, list[float]] = {}
    for fold, outcome in tested:
        right = np.equal(outcome.predictions, truth[folds[fold].test])
        by_fold.setdefault(fold, []).append(float(np.mean(right)))
    means = tuple(fmean(by_fold[fold]) for fold in sorted(by_fold))
    predictions = [(fold, outcome.predictions) for fold, outcome in tested]
    return Method(means, graph_accuracies(predictions, folds, truth))


def tested_share(folds: Sequence[Fold], graphs: int) -> float:
    """n_test/n_train of a fold on average; validation graphs count as training."""
    tested = fmean(len(fold.test) for fold in folds)
    return tested / (graphs - tested)


def beside(
    found: Sequence[Reference],
    final: Sequence[Record],
    folds: Sequence[Fold],
    dataset: GraphDataset,
) -> dict[str, Any]:
    """The references, and the paired difference of the final runs from each of them.

    Args:
        found: the references on these folds.
        final: the final runs of all folds.
        folds: the folds of all partitions.
        dataset: the graphs.
    """
    truth = dataset.graph_class
    own, share = tested_method(final, folds, truth), tested_share(folds, len(truth))
    gaps = family([paired(own, reference_method(each, folds, truth), share) for each in found])
    best = best_reference(found, dataset)
    gap = gaps[found.index(best)]
    return {
        "methods": [
            {**_scores(each), **_numbers(of)} for each, of in zip(found, gaps, strict=True)
        ],
        "best": best.key,
        **_numbers(gap),
        "comparisons": gap.comparisons,
        "above": gap.above,
        "sentence": _sentence(best, gap),
        "note": left_out_note(dataset),
    }


def reference_method(
    reference: Reference, folds: Sequence[Fold], truth: NDArray[np.integer]
) -> Method:
    """The accuracies of a reference, for comparisons."""
    predictions = list(enumerate(reference.predictions))
    return Method(reference.scores.folds, graph_accuracies(predictions, folds, truth))


def _numbers(gap: Paired) -> dict[str, float | bool | None]:
    return {
        "difference": gap.difference,
        "error": gap.error,
        "p": gap.p,
        "p_holm": gap.p_holm,
        "significant": gap.significant,
    }


def final_scores(
    final: Sequence[Record], folds: Sequence[Fold], truth: NDArray[np.integer], repeats: int = 1
) -> Scores | None:
    """The scores of the final runs, averaged over runs; `None` if one has no probabilities.

    Those of several partitions are joined as those of references are.
    """
    tested = [(each.validated.unit.fold, each.tested) for each in final]
    if any(each is None or not each.probabilities for _, each in tested):  # of older versions
        return None
    parts: dict[int, list[tuple[NDArray[np.float64], NDArray[np.integer]]]] = {}
    for fold, each in tested:
        if each is not None:
            part = parts.setdefault(fold * repeats // len(folds), [])
            part.append((np.array(each.probabilities), truth[folds[fold].test]))
    return Scores.joined([fold_scores(*zip(*parts[at], strict=True)) for at in sorted(parts)])


def _scores(found: Reference) -> Mapping[str, Any]:
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
    return f"{gap.verdict} the best reference, {best.title}: {gap.told}."
