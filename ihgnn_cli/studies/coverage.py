"""How often conformal prediction sets contain the true class, over the folds of a cross-validation.

Each final run, or each fold's mean prediction if nothing is chosen, is calibrated on the validation
graphs of its split and measured on the test graphs of its fold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.homophily.measures import graph_homophily
from ihgnn_cli.inference.conformal import (
    Coverage,
    Covered,
    CoveredBin,
    calibrate_sets,
    measure_coverage,
)
from ihgnn_cli.studies.units import Record
from ihgnn_cli.studies.work import Job


@dataclass(frozen=True)
class BinCoverage:
    """Sets of the test graphs with a homophily from `low` up to `high`."""

    low: float
    high: float
    graphs: int
    """Test graphs, each counted once."""
    coverage: float
    """With the overall threshold."""
    mean_size: float
    own: float
    """Share of the calibrations in which the bin had enough graphs for a threshold of its own."""
    coverage_by_bin: float
    """With the threshold of the bin, or the overall one where it had too few graphs."""


@dataclass(frozen=True)
class FoldCoverage:
    """Sets of a fold's test graphs; means over its runs."""

    fold: int
    calibrated_on: int
    """Validation graphs; the fewest of its runs."""
    coverage: float
    mean_size: float


@dataclass(frozen=True)
class StudyCoverage:
    """Sets of all test graphs."""

    alpha: float
    calibrated_on: tuple[int, int]
    """The fewest and the most validation graphs of a run."""
    coverage: float
    """Mean over the folds."""
    coverage_std: float
    """Over the folds."""
    mean_size: float
    """Mean number of classes in a set, over the folds."""
    coverage_by_bin: float
    """The same with thresholds by homophily bin, where a bin has enough validation graphs."""
    mean_size_by_bin: float
    chosen_on_same: bool
    """Whether the validation graphs also chose the configuration and the epoch."""
    folds: tuple[FoldCoverage, ...]
    bins: tuple[BinCoverage, ...]


def study_coverage(job: Job, judged: Sequence[Record], alpha: float) -> StudyCoverage:
    """Calibrate and measure every final run of a finished job.

    Args:
        job: the job.
        judged: its final runs, or the ensembles of each fold.
        alpha: the share of graphs whose true class may be missing from the set.
    """
    beta = graph_homophily(job.dataset)
    by_fold: dict[int, list[Coverage]] = {number: [] for number in range(len(job.folds))}
    for each in judged:
        by_fold[each.validated.unit.fold].append(_of_record(job, each, beta, alpha))
    every = [each for found in by_fold.values() for each in found]

    def over_folds(number: Callable[[Coverage], float]) -> list[float]:
        return [fmean(map(number, found)) for found in by_fold.values()]

    shares = over_folds(lambda each: each.overall.coverage)
    sizes = over_folds(lambda each: each.overall.mean_size)
    calibrated = [each.thresholds.graphs for each in every]
    return StudyCoverage(
        alpha=alpha,
        calibrated_on=(min(calibrated), max(calibrated)),
        coverage=fmean(shares),
        coverage_std=pstdev(shares),
        mean_size=fmean(sizes),
        coverage_by_bin=fmean(over_folds(lambda each: each.by_bin.coverage)),
        mean_size_by_bin=fmean(over_folds(lambda each: each.by_bin.mean_size)),
        chosen_on_same=job.protocol.selects,
        folds=tuple(
            FoldCoverage(fold, min(each.thresholds.graphs for each in found), share, size)
            for (fold, found), share, size in zip(by_fold.items(), shares, sizes, strict=True)
        ),
        bins=_bins(every, runs=len(every) * job.repeats // len(by_fold)),
    )


def _of_record(job: Job, record: Record, beta: NDArray[np.float64], alpha: float) -> Coverage:
    split = job.split(record.validated.unit)
    truth, tested = job.dataset.graph_class.astype(np.int64), record.tested
    likely = np.array(record.validated.probabilities)
    thresholds = calibrate_sets(likely, truth[split.validation], beta[split.validation], alpha)
    found = np.array([] if tested is None else tested.probabilities)
    return measure_coverage(thresholds, found, truth[split.test], beta[split.test])


def _bins(every: Sequence[Coverage], runs: int) -> tuple[BinCoverage, ...]:
    """The bins of all test graphs; each graph is tested once per run and repeat."""
    found: dict[tuple[float, float], list[tuple[CoveredBin, bool]]] = {}
    for coverage in every:
        own = {each.low for each in coverage.thresholds.bins if each.own}
        for each in coverage.bins:
            found.setdefault((each.low, each.high), []).append((each, each.low in own))
    return tuple(
        BinCoverage(
            low=low,
            high=high,
            graphs=sum(each.overall.graphs for each, _ in parts) // runs,
            coverage=_mean([each.overall for each, _ in parts], "coverage"),
            mean_size=_mean([each.overall for each, _ in parts], "mean_size"),
            own=fmean(own for _, own in parts),
            coverage_by_bin=_mean([each.by_bin for each, _ in parts], "coverage"),
        )
        for (low, high), parts in sorted(found.items())
    )


def _mean(parts: Sequence[Covered], name: str) -> float:
    """The mean over graphs."""
    graphs = [each.graphs for each in parts]
    return float(np.average([getattr(each, name) for each in parts], weights=graphs))
