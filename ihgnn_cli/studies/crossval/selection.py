"""Model selection by validation alone. No code here has access to test results."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain
from statistics import fmean

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.crossval.protocol import Configuration
from ihgnn_cli.studies.crossval.records import Score, Validated

CHOSEN_BY = "validation accuracy, then validation loss, then the earlier"


def scores(
    found: Iterable[Validated], grid: Sequence[Configuration]
) -> dict[int, dict[Configuration, Score]]:
    """The score of each configuration per fold: the mean over splits of its best epochs."""
    by_fold: dict[int, dict[Configuration, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        by_fold[each.training.fold][each.training.configuration].append(each.score)
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
    best = leading(found, dict.fromkeys(range(folds), grid), 1)
    return {fold: configurations[0] for fold, configurations in best.items()}


def leading(
    found: Iterable[Validated], grids: Mapping[int, Sequence[Configuration]], count: int
) -> dict[int, list[Configuration]]:
    """The best configurations of each fold, the best first; ties go to the earlier in the grid.

    Args:
        found: results of the trainings.
        grids: the configurations that compete, by fold.
        count: how many to return; those that failed to train in some split come last.

    Raises:
        IhgnnError: some trainings of a fold are missing, or all of them diverged.
    """
    found = list(found)
    by_fold = scores(found, list(dict.fromkeys(chain.from_iterable(grids.values()))))
    splits = Counter((each.training.fold, each.training.configuration) for each in found)
    best = {}
    for fold, grid in grids.items():
        of_fold = by_fold.get(fold, {})
        asked = max((splits[fold, each] for each in grid), default=0)
        missing = [each for each in grid if not splits[fold, each] or splits[fold, each] < asked]
        if missing:
            raise IhgnnError(f"Fold {fold} is not complete: results of {missing[0]} are missing.")
        ranked = sorted(grid, key=partial(_rank, of_fold), reverse=True)
        if not math.isfinite(of_fold[ranked[0]][1]):
            raise IhgnnError(
                f"All configurations of fold {fold} diverged. Give smaller learning rates with "
                "--lr, or check the node attributes for huge values."
            )
        best[fold] = ranked[:count]
    return best


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
        return counts[each], _mean(
            [of_fold[each] for of_fold in by_fold.values() if each in of_fold]
        )

    best = max(counts, key=rank)
    return best, counts[best]


def _best(of: Mapping[Configuration, Score]) -> Configuration:
    """The best one, the first on ties."""
    return max(of, key=partial(_rank, of))


def _rank(of: Mapping[Configuration, Score], each: Configuration) -> tuple[bool, Score]:
    """Larger is better; those that failed to train in some split come last."""
    return math.isfinite(of[each][1]), of[each]


def _mean(values: Sequence[Score]) -> Score:
    accuracy = sum((each[0] for each in values), Fraction(0)) / len(values)
    return accuracy, fmean(each[1] for each in values)
