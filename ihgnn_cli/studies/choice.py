"""Model selection by validation alone. No code here has access to test results."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import fmean

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.units import Score, Validated

CHOSEN_BY = "validation accuracy, then validation loss, then the earlier"


def scores(
    found: Iterable[Validated], grid: Sequence[Configuration]
) -> dict[int, dict[Configuration, Score]]:
    """The score of each configuration per fold: the mean over splits of its best epochs."""
    by_fold: dict[int, dict[Configuration, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        by_fold[each.unit.fold][each.unit.configuration].append(each.score)
    return {
        fold: {each: _mean(by_fold[fold][each]) for each in grid if each in by_fold[fold]}
        for fold in sorted(by_fold)
    }


def choose(
    found: Iterable[Validated], grid: Sequence[Configuration], folds: int
) -> dict[int, Configuration]:
    """The best configuration of each fold; ties go to the earlier one in the grid.

    Raises:
        IhgnnError: some trainings of a fold are missing, or all of them diverged.
    """
    found = list(found)
    by_fold = scores(found, grid)
    splits = Counter((each.unit.fold, each.unit.configuration) for each in found)
    chosen = {}
    for fold in range(folds):
        of_fold = by_fold.get(fold, {})
        asked = max((splits[fold, each] for each in grid), default=0)
        missing = [each for each in grid if not splits[fold, each] or splits[fold, each] < asked]
        if missing:
            raise IhgnnError(f"Fold {fold} is not complete: results of {missing[0]} are missing.")
        best = _best(of_fold)
        if not math.isfinite(of_fold[best][1]):
            raise IhgnnError(
                f"All configurations of fold {fold} diverged. Give smaller learning rates with "
                "--lr, or check the node attributes for huge values."
            )
        chosen[fold] = best
    return chosen


def common(by_fold: Mapping[int, Mapping[Configuration, Score]]) -> Configuration:
    """The configuration with the best average over the folds."""
    of_all = {
        each: _mean([of_fold[each] for of_fold in by_fold.values()])
        for each in next(iter(by_fold.values()))
    }
    return _best(of_all)


def most_chosen(
    chosen: Mapping[int, Configuration], by_fold: Mapping[int, Mapping[Configuration, Score]]
) -> tuple[Configuration, int]:
    """The configuration that most folds chose, and how many did; on ties, the better average."""
    counts = Counter(chosen.values())

    def rank(each: Configuration) -> tuple[int, Score]:
        return counts[each], _mean([of_fold[each] for of_fold in by_fold.values()])

    best = max(counts, key=rank)
    return best, counts[best]


def _best(of: Mapping[Configuration, Score]) -> Configuration:
    """The best one, the first on ties; those that failed to train in some split come last."""
    return max(of, key=lambda each: (math.isfinite(of[each][1]), of[each]))


def _mean(values: Sequence[Score]) -> Score:
    accuracy = sum((each[0] for each in values), Fraction(0)) / len(values)
    return accuracy, fmean(each[1] for each in values)
