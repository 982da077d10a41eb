"""Samplers, which choose the settings of trials, and pruners, which stop trials early."""

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
"""Random trials before TPE or the Gaussian process start to learn, as in Optuna."""
# The median of fewer trials says little.
_PRUNER_STARTUP = 5
# Share of the epochs without pruning, since early epochs say little.
_WARMUP_SHARE = 0.1
# Hyperband keeps one in three trials from rung to rung.
_REDUCTION = 3


def make_sampler(
    name: SamplerName, space: SearchSpace, seed: int, rank: Callable[[int], int]
) -> "TrialSampler":
    """Make a sampler.

    Args:
        name: the kind of sampler.
        space: the search space.
        seed: the draws of each trial follow from it and the trial's number.
        rank: maps a trial's number to its position among the requested trials, which chooses its
            point of the grid.
    """
    match name:
        case SamplerName.TPE:
            # Running trials count as bad ones, so that a stack does not try the same point twice.
            return TrialSampler(lambda each: TPESampler(seed=each, constant_liar=True), seed)
        case SamplerName.GP:
            return TrialSampler(lambda each: GPSampler(seed=each), seed)
        case SamplerName.RANDOM:
            return TrialSampler(lambda each: RandomSampler(seed=each), seed)
        case SamplerName.GRID:
            points = tuple(space.points())
            return TrialSampler(lambda _: _GridSampler(points, rank), seed)


def make_pruner(name: PrunerName, epochs: int, interval: int) -> BasePruner:
    """Make a pruner.

    Args:
        name: the kind of pruner.
        epochs: epochs of a training.
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
    """A sampler whose random numbers depend only on the seed and the number of the trial.

    A search that continues after a break or on another machine does not repeat earlier draws, and
    its draws do not depend on which process made the earlier ones.
    """

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self._make = make
        self._seed = seed
        self._inner: BaseSampler = make(seed)
        self.fixed: Mapping[str, Any] = {}
        """Settings of the next trial that are not sampled."""

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Seed the sampler for this trial."""
        digest = hashlib.sha256(f"{self._seed} trial {trial.number}".encode()).digest()
        self._inner = self._make(int.from_bytes(digest[:4], "big"))
        self._inner.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The settings that are sampled jointly."""
        found = self._inner.infer_relative_search_space(study, trial)
        return {name: each for name, each in found.items() if name not in self.fixed}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Sample the joint settings."""
        return self._inner.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Sample one setting."""
        if param_name in self.fixed:
            return self.fixed[param_name]
        return self._inner.sample_independent(study, trial, param_name, param_distribution)


class _GridSampler(BaseSampler):
    """Takes the points in order; Optuna's own sampler shuffles them and stops the study."""

    def __init__(self, points: Sequence[Params], rank: Callable[[int], int]) -> None:
        self._points = points
        self._rank = rank
        self._point: Params = {}

    def before_trial(self, _study: Study, trial: FrozenTrial) -> None:
        # Chosen once per trial, so that other processes cannot make it mix two points.
        self._point = self._points[self._rank(trial.number) % len(self._points)]

    def infer_relative_search_space(self, *_: Any) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(self, *_: Any) -> dict[str, Any]:
        return {}

    def sample_independent(
        self, _study: Study, _trial: FrozenTrial, param_name: str, _distribution: BaseDistribution
    ) -> Any:
        return self._point[param_name]
