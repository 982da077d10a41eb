"""Average ranks of methods over data sets, and which of them differ (Demšar, JMLR 7, 2006).

On each data set the methods are ranked by mean accuracy, 1 for the highest; equal means share the
average of their ranks. Friedman's test asks whether all methods have the same expected rank. If it
rejects that, Nemenyi's test compares all pairs: two methods differ if their average ranks differ by
the critical difference q · sqrt(k (k + 1) / (6 N)) or more, for k methods and N data sets. q is
the quantile of the studentized range over sqrt(2), which accounts for all k (k - 1) / 2 pairs.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from ihgnn_cli.studies.comparison import Comparison
from ihgnn_cli.studies.statistics import LEVEL, p_text

LEAST = 3
"""Fewest data sets and methods that are ranked."""


@dataclass(frozen=True)
class Ranks:
    """Average ranks over the data sets on which every method has a result."""

    datasets: tuple[str, ...]
    left_out: tuple[str, ...]
    """Data sets on which a method has no result."""
    models: tuple[str, ...]
    """The keys of the methods, the best average rank first."""
    titles: tuple[str, ...]
    average: tuple[float, ...]
    """The average rank of each method."""
    chi_square: float
    """Friedman's statistic, corrected for ties."""
    p: float
    critical_difference: float
    pairs: int
    """Pairs of methods that Nemenyi's test covers."""

    @property
    def sentence(self) -> str:
        """What the test shows."""
        over = (
            f"Average ranks of {len(self.models)} methods over {len(self.datasets)} data sets: "
            f"Friedman's test, {p_text(self.p)}."
        )
        if self.left_out:
            names = ", ".join(self.left_out)
            over += f" Left out, because a method has no result there: {names}."
        if self.p >= LEVEL:
            return f"{over} No difference between the methods is significant."
        return (
            f"{over} Methods differ if their average ranks differ by "
            f"{self.critical_difference:.2f} or more (Nemenyi's test over all {self.pairs} pairs, "
            f"level {LEVEL:g})."
        )


def rank_methods(comparison: Comparison) -> Ranks | str:
    """Rank the methods that were run, or say why they cannot be ranked.

    The paper's numbers are not ranked: they come from other folds and other rules of selection.
    """
    titles = {
        entry.cell.model: entry.cell.title
        for model in comparison.models
        for entry in comparison.entries
        if entry.cell.model == model and entry.cell.mean is not None
    }
    run = list(titles)
    if len(run) < LEAST:
        return f"No ranks: they need results of at least {LEAST} methods."
    rows: dict[str, list[float]] = {}
    for dataset in comparison.datasets:
        entries = [comparison.of(dataset, model) for model in run]
        means = [None if entry is None else entry.cell.mean for entry in entries]
        known = [mean for mean in means if mean is not None]
        if len(known) == len(run):
            rows[dataset] = known
    if len(rows) < LEAST:
        return (
            f"No ranks: they need at least {LEAST} data sets on which all {len(run)} methods "
            f"have a result, and there are {len(rows)}."
        )
    # Rounded, because equal accuracies may differ in their last bit.
    ranks = np.array([rankdata(-np.round(row, 12)) for row in rows.values()])
    average = ranks.mean(axis=0)
    chi_square, p = _friedman(ranks)
    order = np.argsort(average, kind="stable")
    return Ranks(
        datasets=tuple(rows),
        left_out=tuple(each for each in comparison.datasets if each not in rows),
        models=tuple(run[place] for place in order),
        titles=tuple(titles[run[place]] for place in order),
        average=tuple(average[order].tolist()),
        chi_square=chi_square,
        p=p,
        critical_difference=critical_difference(len(run), len(rows)),
        pairs=len(run) * (len(run) - 1) // 2,
    )


def critical_difference(methods: int, datasets: int) -> float:
    """Nemenyi's critical difference of two average ranks."""
    q = float(studentized_range.ppf(1 - LEVEL, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * datasets))


def _friedman(ranks: NDArray[np.float64]) -> tuple[float, float]:
    """Friedman's chi-square, corrected for ties, and its p-value."""
    if not np.ptp(ranks):
        return 0.0, 1.0  # all methods are equal everywhere, which scipy cannot divide by
    found = friedmanchisquare(*ranks.T)
    return float(found.statistic), float(found.pvalue)
