"""The numbers of a finished job: per fold, over folds and over runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.units import Record, Score, Tested


@dataclass(frozen=True)
class FinalRun:
    """One of the final runs of a fold, which are tested."""

    run: int
    seed: int
    split_sha256: str
    epoch: int
    """The best epoch by validation, out of `epochs`."""
    epochs: int
    validation_accuracy: float
    test_accuracy: float


@dataclass(frozen=True)
class FoldResult:
    """The result of a fold."""

    fold: int
    configuration: Configuration
    validation_accuracy: float
    """From the selection: the mean over splits of the configuration's best epochs; NaN if nothing
    was selected."""
    validation_loss: float
    test_graphs: int
    runs: tuple[FinalRun, ...]
    test_mean: float
    """The mean over the runs, or the accuracy of their mean prediction if nothing was selected."""
    test_std: float
    """Over the runs."""


@dataclass(frozen=True)
class Summary:
    """The protocol's result. Standard deviations divide by n, as in the protocol."""

    folds: tuple[FoldResult, ...]
    test_mean: float
    test_std: float
    """Over the fold means."""
    runs: tuple[float, ...]
    """The mean over the folds for run 0, run 1, ..."""
    runs_std: float
    """Over `runs`: the variation from seeds alone."""


def summarize(
    chosen: Mapping[int, Configuration],
    scores: Mapping[int, Mapping[Configuration, Score]],
    final: Sequence[Record],
    runs: int,
    averaged: Sequence[Record] = (),
) -> Summary:
    """Average the final runs, if none is missing.

    Args:
        chosen: the configuration of each fold.
        scores: validation scores by fold; empty if nothing was selected.
        final: the final runs.
        runs: their number per fold.
        averaged: the `ensembles` of the final runs, to give their accuracy instead of the mean.

    Raises:
        IhgnnError: a run of a fold is missing; a mean over the others would mislead.
    """
    by_fold: dict[int, dict[int, Record]] = {fold: {} for fold in chosen}
    for record in final:
        by_fold[record.validated.unit.fold][record.validated.unit.run] = record
    together = {
        each.validated.unit.fold: each.tested.accuracy
        for each in averaged
        if each.tested is not None and each.tested.accuracy is not None
    }
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
        accuracy, loss = scores[fold][configuration] if scores else (math.nan, math.nan)
        tests = [each.test_accuracy for each in of_fold]
        tested = found[0].tested
        folds.append(
            FoldResult(
                fold=fold,
                configuration=configuration,
                validation_accuracy=float(accuracy),
                validation_loss=-loss,
                test_graphs=tested.graphs if tested else 0,
                runs=of_fold,
                test_mean=together.get(fold, fmean(tests)),
                test_std=pstdev(tests),
            )
        )
    means = [fold.test_mean for fold in folds]
    by_run = tuple(fmean(fold.runs[run].test_accuracy for fold in folds) for run in range(runs))
    return Summary(tuple(folds), fmean(means), pstdev(means), by_run, pstdev(by_run))


def ensembles(final: Sequence[Record], truth: Mapping[int, NDArray[np.integer]]) -> list[Record]:
    """One record per fold, with the mean prediction of its runs; `truth` by fold."""
    by_fold: dict[int, list[Record]] = {}
    for each in final:
        by_fold.setdefault(each.validated.unit.fold, []).append(each)
    found = []
    for fold, runs in by_fold.items():
        likely = np.mean([each.tested.probabilities for each in runs if each.tested], axis=0)
        predicted = likely.argmax(axis=1)
        tested = Tested(
            graphs=len(likely),
            accuracy=float(np.mean(predicted == truth[fold])),
            predictions=tuple(predicted.tolist()),
            probabilities=tuple(map(tuple, likely.tolist())),
        )
        validated = runs[0].validated
        if all(each.validated.probabilities for each in runs):
            others = np.mean([each.validated.probabilities for each in runs], axis=0)
            validated = replace(validated, probabilities=tuple(map(tuple, others.tolist())))
        found.append(Record(validated, tested))
    return found


def _final_run(record: Record) -> FinalRun:
    known, tested = record.validated, record.tested
    if tested is None or tested.accuracy is None or known.best is None:
        raise IhgnnError(
            f"{known.unit.name} was not tested. Remove its file, and it is trained again."
        )
    return FinalRun(
        run=known.unit.run,
        seed=known.seed,
        split_sha256=known.split_sha256,
        epoch=known.best.epoch,
        epochs=known.epochs,
        validation_accuracy=known.best.validation_accuracy,
        test_accuracy=tested.accuracy,
    )
