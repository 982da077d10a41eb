"""The numbers of a finished cross-validation: per fold, over folds and runs, and per graph."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.splits import Fold
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.crossval.protocol import Configuration, Setting
from ihgnn_cli.studies.crossval.records import Record, Score, Tested
from ihgnn_cli.studies.statistics import Method


@dataclass(frozen=True)
class FinalRun:
    """One of the final runs of a fold, which are tested."""

    run: int
    seed: int
    split_sha256: str
    epoch: int
    """The best epoch by validation, out of `epochs`; the last one without a selection."""
    epochs: int
    validation_accuracy: float | None
    """`None` without a selection."""
    test_accuracy: float


@dataclass(frozen=True)
class FoldResult:
    """The result of a fold."""

    fold: int
    """Numbered through all repeats."""
    configuration: Mapping[str, Setting]
    validation_accuracy: float | None
    """From the selection: the mean over splits of the configuration's best epochs; `None` if
    nothing was selected."""
    validation_loss: float | None
    test_graphs: int
    runs: tuple[FinalRun, ...]
    test_mean: float
    """The mean over the runs, or the accuracy of their mean prediction if nothing was selected."""
    test_std: float
    """Over the runs."""


def fold_results(
    chosen: Mapping[int, Configuration],
    scores: Mapping[int, Mapping[Configuration, Score]],
    final: Sequence[Record],
    runs: int,
    averaged: Mapping[int, Tested],
) -> list[FoldResult]:
    """The result of each fold, if no final run is missing.

    Args:
        chosen: the configuration of each fold.
        scores: validation scores by fold; empty if nothing was selected.
        final: the final runs.
        runs: their number per fold.
        averaged: the `mean_prediction` of each fold, to give its accuracy instead of the mean.

    Raises:
        IhgnnError: a run of a fold is missing; a mean over the others would mislead.
    """
    by_fold: dict[int, dict[int, Record]] = {fold: {} for fold in chosen}
    for record in final:
        training = record.validated.training
        by_fold[training.fold][training.run] = record
    folds = []
    for fold, configuration in sorted(chosen.items()):
        found = by_fold[fold]
        missing = [run for run in range(runs) if run not in found]
        if missing:
            raise IhgnnError(
                f"Run {missing[0]} of fold {fold} is missing, and a mean over the others would "
                "mislead. The same command finishes it."
            )
        of_fold = tuple(_final_run(found[run]) for run in range(runs))
        accuracy, loss = scores[fold][configuration] if scores else (None, math.nan)
        tests = [each.test_accuracy for each in of_fold]
        tested, mean = found[0].tested, averaged.get(fold)
        folds.append(
            FoldResult(
                fold=fold,
                configuration=configuration.as_plain(),
                validation_accuracy=None if accuracy is None else float(accuracy),
                validation_loss=None if accuracy is None else -loss,
                test_graphs=tested.graphs if tested else 0,
                runs=of_fold,
                test_mean=fmean(tests) if mean is None else mean.accuracy or 0.0,
                test_std=pstdev(tests),
            )
        )
    return folds


def _final_run(record: Record) -> FinalRun:
    known, tested = record.validated, record.tested
    if tested is None or tested.accuracy is None or known.best is None:
        raise IhgnnError(
            f"{known.training.name} was not tested. Remove the file of its stack, and it is "
            "trained again."
        )
    accuracy = known.best.validation_accuracy
    return FinalRun(
        run=known.training.run,
        seed=known.seed,
        split_sha256=known.split_sha256,
        epoch=known.best.epoch,
        epochs=known.epochs,
        validation_accuracy=None if math.isnan(accuracy) else accuracy,
        test_accuracy=tested.accuracy,
    )


def by_fold(final: Sequence[Record]) -> dict[int, list[Tested]]:
    """The test results of the final runs of each fold."""
    found: dict[int, list[Tested]] = {}
    for each in final:
        if each.tested is not None:
            found.setdefault(each.validated.training.fold, []).append(each.tested)
    return found


def mean_prediction(runs: Sequence[Tested], truth: NDArray[np.integer]) -> Tested:
    """What the mean of the runs' probabilities predicts; `truth` of the fold's test graphs."""
    likely = np.mean([each.probabilities for each in runs], axis=0)
    predicted = likely.argmax(axis=1)
    return Tested(
        graphs=len(likely),
        accuracy=float(np.mean(predicted == truth)),
        predictions=tuple(predicted.tolist()),
        probabilities=tuple(map(tuple, likely.tolist())),
    )


def method_of(
    tested: Mapping[int, Sequence[Tested]], folds: Sequence[Fold], truth: NDArray[np.integer]
) -> Method:
    """The accuracies of a method's runs, for comparisons; `truth` of all graphs."""
    predictions = [(fold, run.predictions) for fold, runs in tested.items() for run in runs]
    means = [
        fmean(float(np.mean(np.equal(run.predictions, truth[folds[fold].test]))) for run in runs)
        for fold, runs in sorted(tested.items())
    ]
    return Method(tuple(means), graph_accuracies(predictions, folds, truth))


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


def tested_share(folds: Sequence[Fold], graphs: int) -> float:
    """n_test/n_train of a fold on average; validation graphs count as training."""
    tested = fmean(len(fold.test) for fold in folds)
    return tested / (graphs - tested)
