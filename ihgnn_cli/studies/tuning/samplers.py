"""Which settings a trial tries, and which trials are given up: samplers and pruners by name."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial

from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.space import Params, SearchSpace

STARTUP = 10
"""Trials at random before a sampler that learns begins to, as in Optuna."""
# The median of fewer trials says little.
_PRUNER_STARTUP = 5
# Share of the epochs in which nothing is given up, since early epochs tell little.
_WARMUP_SHARE = 0.1
# Hyperband keeps one in so many from rung to rung.
_REDUCTION = 3


def make_sampler(
    name: SamplerName, space: SearchSpace, seed: int, rank: Callable[[int], int]
) -> "TrialSampler":
    """The sampler of a name.

    Args:
        name: which.
        space: what is searched.
        seed: from which each trial's randomness follows.
        rank: of a trial's number, its place among all that were asked for: its point of the grid.
    """
    match name:
        case SamplerName.TPE:
            # Trials that run count as bad ones, so that a stack does not try the same twice.
            return TrialSampler(lambda each: TPESampler(seed=each, constant_liar=True), seed)
        case SamplerName.GP:
            return TrialSampler(lambda each: GPSampler(seed=each), seed)
        case SamplerName.RANDOM:
            return TrialSampler(lambda each: RandomSampler(seed=each), seed)
        case SamplerName.GRID:
            points = tuple(space.points())
            return TrialSampler(lambda _: _GridSampler(points, rank), seed)


def make_pruner(name: PrunerName, epochs: int, interval: int) -> BasePruner:
    """The pruner of a name.

    Args:
        name: which.
        epochs: of a training.
        interval: epochs between two reports.
    """
    match name:
        case PrunerName.MEDIAN:
            return MedianPruner(
                n_startup_trials=_PRUNER_STARTUP,
                n_warmup_steps=int(_WARMUP_SHARE * epochs),
                interval_steps=interval,
            )
        case PrunerName.HYPERBAND:
            least = max(1, min(epochs, interval))
            return HyperbandPruner(
                min_resource=least, max_resource=epochs, reduction_factor=_REDUCTION
            )
        case PrunerName.NONE:
            return NopPruner()


class TrialSampler(BaseSampler):
    """A sampler whose randomness is a function of the seed and of the trial's number.

    A search that goes on after a break, or on another machine, neither repeats its draws nor
    depends on who made the ones before.
    """

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self._make = make
        self._seed = seed
        self._inner: BaseSampler = make(seed)
        self.fixed: Mapping[str, Any] = {}
        """Settings that are not sampled at the moment."""

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Begin anew for this trial."""
        digest = hashlib.sha256(f"{self._seed} trial {trial.number}".encode()).digest()
        self._inner = self._make(int.from_bytes(digest[:4], "big"))
        self._inner.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """What is sampled together."""
        found = self._inner.infer_relative_search_space(study, trial)
        return {name: each for name, each in found.items() if name not in self.fixed}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values of what is sampled together."""
        return self._inner.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The value of one setting."""
        if param_name in self.fixed:
            return self.fixed[param_name]
        return self._inner.sample_independent(study, trial, param_name, param_distribution)


class _GridSampler(BaseSampler):
    """Point after point; Optuna's own takes them at random, and stops the study itself."""

    def __init__(self, points: Sequence[Params], rank: Callable[[int], int]) -> None:
        self._points = points
        self._rank = rank
        self._point: Params = {}

    def before_trial(self, _study: Study, trial: FrozenTrial) -> None:
        # Once, so that what others do meanwhile never mixes two points.
        self._point = self._points[self._rank(trial.number) % len(self._points)]

    def infer_relative_search_space(self, *_: Any) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(self, *_: Any) -> dict[str, Any]:
        return {}

    def sample_independent(
        self, _study: Study, _trial: FrozenTrial, param_name: str, _distribution: BaseDistribution
    ) -> Any:
        return self._point[param_name]
