"""The trials of a search: Optuna's study is the queue that processes and machines share.

A worker calls Optuna's `optimize` for one trial after the other. A trial whose process died is
failed, by its heartbeat or by the process that started the worker, and whoever asks for a trial
next queues it again with Optuna's retry callback. An interrupted trial waits with its number.
"""

import copy
import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState

from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.job_folder import difference
from ihgnn_cli.studies.tuning import storage
from ihgnn_cli.studies.tuning.names import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.search import Search
from ihgnn_cli.studies.tuning.space import Params
from ihgnn_cli.studies.tuning.storage import Address

MOST_DEATHS = 3
"""A trial is not retried after this many dead processes: it may be the cause."""
WORKER, FAILURE, OUTCOME = "worker", "failure", "outcome"
"""User attributes of a trial."""
_IDENTITY = "ihgnn"  # user attribute of a study
_QUEUED_PARAMS = "fixed_params"  # Optuna's attribute for the settings of an enqueued trial
_GONE = (ValueError, UpdateFinishedTrialError)  # another process has failed the trial
_PRUNER_STARTUP = 5  # trials: the median of fewer says little
_WARMUP_SHARE = 0.1  # of the epochs, without pruning: early epochs say little
_REDUCTION = 3  # Hyperband keeps one in three trials from rung to rung

Trials = Sequence[FrozenTrial]


@dataclass(frozen=True)
class Outcome:
    """The validation result of a trial."""

    loss: float
    """Mean over the splits, each at its best epoch or of the mean prediction of its snapshots."""
    best_epochs: tuple[int, ...]
    """One per split; the last if snapshots are averaged."""
    model_epochs: int
    """Number of trained epochs, summed over the splits."""
    seconds: float
    accuracy: float
    """The mean over the splits; for a pruned trial, when it was stopped."""


def outcome_of(trial: FrozenTrial) -> Outcome | None:
    """The result of a trial, if it is complete or pruned."""
    plain = trial.user_attrs.get(OUTCOME)
    if plain is None or trial.state not in (TrialState.COMPLETE, TrialState.PRUNED):
        return None
    return Outcome(**{**plain, "best_epochs": tuple(plain["best_epochs"])})


def set_outcome(trial: optuna.Trial, outcome: Outcome) -> None:
    """Store the result of a trial that is about to end."""
    trial.set_user_attr(OUTCOME, asdict(outcome))


def earlier_deaths(trial: FrozenTrial) -> list[int]:
    """The numbers of the trials that this one retries."""
    found: list[int] = trial.system_attrs.get("retry_history", [])
    return found


def failure(trial: FrozenTrial) -> str | None:
    """Why a trial failed for good; `None` if it did not, or is going to be retried."""
    if trial.state is not TrialState.FAIL:
        return None
    deaths = len(earlier_deaths(trial)) + 1
    died = f"its process died {deaths} times" if deaths >= MOST_DEATHS else None
    return trial.user_attrs.get(FAILURE, died)


def is_finished(trial: FrozenTrial) -> bool:
    """Whether a trial has a result, or failed for good."""
    return trial.state in (TrialState.COMPLETE, TrialState.PRUNED) or failure(trial) is not None


def requested(trials: Trials) -> list[FrozenTrial]:
    """The trials that count; those that were retried do not."""
    return [each for each in trials if is_finished(each) or not each.state.is_finished()]


def params_of(trial: FrozenTrial) -> dict[str, Any]:
    """The settings of a trial, also before it has begun."""
    return {**trial.system_attrs.get(_QUEUED_PARAMS, {}), **trial.params}


def best_trials(trials: Trials) -> list[FrozenTrial]:
    """The complete trials, best first: by accuracy, then loss, then the earlier one."""

    def score(trial: FrozenTrial) -> tuple[float, float, int]:
        outcome = outcome_of(trial)
        return (-(trial.value or 0.0), outcome.loss if outcome else 0.0, trial.number)

    return sorted((each for each in trials if each.state is TrialState.COMPLETE), key=score)


def states_in_words(trials: Trials) -> str:
    """Trials by state, such as `12 complete, 3 pruned, 1 failed, 4 running`."""
    states = [state_name(each) for each in trials]
    names = ("complete", "pruned", "failed", "running", "waiting")
    found = [f"{states.count(name):,} {name}" for name in names if name in states]
    return ", ".join(found) or "none so far"


def state_name(trial: FrozenTrial) -> str:
    """The state in lower case: complete, pruned, failed, running or waiting."""
    return "failed" if trial.state is TrialState.FAIL else trial.state.name.lower()


def progress_line(trials: Trials) -> str:
    """Trials by state, and the best so far."""
    line = states_in_words(trials)
    for best in best_trials(trials)[:1]:
        line += f"; best {100 * (best.value or 0):.1f} % (trial {best.number})"
    return line


class EnoughTrialsError(Exception):
    """No trial is to be started now; `finished` if all requested ones are finished."""

    def __init__(self, *, finished: bool) -> None:
        super().__init__("enough trials")
        self.finished = finished


class Study(optuna.Study):
    """The study of a search, which gives each process the trials that are still to be done.

    Args:
        search: the search; in workers without the classes of test graphs.
        identity: that of the search.
        where: its storage.
        name: of the study.
        total: number of requested trials, over all processes.

    Raises:
        InputError: the study belongs to another search.
    """

    def __init__(
        self, search: Search, identity: Mapping[str, Any], where: Address, name: str, total: int
    ) -> None:
        with where.alone():
            self.storage = where.open()
            try:
                optuna.create_study(
                    storage=self.storage, study_name=name, direction="maximize", load_if_exists=True
                )
                super().__init__(name, self.storage, pruner=_pruner(search))
                self._describe(search, identity)
            except BaseException:
                self.close()
                raise
        self.search = search
        self.where = where
        self.total = total
        self.worker = ""
        """Identifies this process; set by workers."""
        self._unwatched: dict[int, float] = {}

    def _describe(self, search: Search, identity: Mapping[str, Any]) -> None:
        """Store what the search is; queue the configuration's own values as the first trial."""
        found = self.user_attrs.get(_IDENTITY)
        if found is None:
            trials = self.get_trials(deepcopy=False)
            if any(each.state is not TrialState.WAITING for each in trials):
                raise InputError(
                    f"The study '{self.study_name}' was not made by ihgnn. Choose another name "
                    "with --study."
                )
            defaults = search.space.defaults(search.config)
            if defaults is not None and search.sampler != SamplerName.GRID:
                self.enqueue_trial(defaults, skip_if_exists=True)
            self.set_user_attr(_IDENTITY, identity)
            return
        changed = difference(found, identity)
        if changed is not None:
            raise InputError(
                f"The study '{self.study_name}' is another search ({changed}). Choose another name "
                "with --study."
            )

    def close(self) -> None:
        """Close the connections to the database."""
        self.storage.remove_session()
        self.storage.engine.dispose()

    def requested(self) -> list[FrozenTrial]:
        """The trials that count."""
        return requested(self.get_trials(deepcopy=False))

    def ask(self, fixed_distributions: dict[str, BaseDistribution] | None = None) -> optuna.Trial:
        """Take a waiting trial, or make a new one.

        Raises:
            EnoughTrialsError: as many as requested are finished or running.
        """
        with self.where.alone():
            trials = self._retry_failed()
            finished = sum(map(is_finished, trials))
            running = sum(each.state is TrialState.RUNNING for each in trials)
            if finished + running >= self.total:
                raise EnoughTrialsError(finished=finished >= self.total)
            # The draws of a trial depend on the seed and its number only: a search that continues
            # on another machine does not repeat earlier draws.
            self.sampler = _sampler(self.search, len(self.get_trials(deepcopy=False)))
            if self.search.sampler == SamplerName.GRID and len(trials) == finished + running:
                self.enqueue_trial(self._next_point(trials))
            for each in trials:
                if each.state is TrialState.WAITING and WORKER in each.user_attrs:
                    self.storage.record_heartbeat(each._trial_id)  # its last one was long ago
            trial = super().ask(fixed_distributions)
            # Before it has an owner: see `_fail_unwatched`.
            self.storage.record_heartbeat(trial._trial_id)
            trial.set_user_attr(WORKER, self.worker)
        return trial

    def _next_point(self, trials: Trials) -> Params:
        """The first point of the grid without a trial."""
        taken = [params_of(each) for each in trials]
        return next(point for point in self.search.space.points() if point not in taken)

    def _retry_failed(self) -> list[FrozenTrial]:
        """Queue the trials of dead processes again; returns all trials that count.

        Only here, where this process is alone, so that no trial is queued twice.
        """
        self._fail_unwatched()
        trials = self.get_trials(deepcopy=False)
        retried = {number for each in trials for number in earlier_deaths(each)}
        retry = RetryHeartbeatStaleTrialCallback(max_retry=MOST_DEATHS - 1)
        for each in trials:
            died = each.state is TrialState.FAIL and not is_finished(each)
            if died and each.number not in retried:
                again = copy.deepcopy(each)
                again.user_attrs = {}  # it has no owner yet
                retry(self, again)
        return self.requested()

    def _fail_unwatched(self) -> None:
        """Fail trials whose process died before a first heartbeat, which Optuna does not see."""
        running = self.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        now, before = time.monotonic(), self._unwatched
        found = [each for each in running if not each.user_attrs.get(WORKER)]
        self._unwatched = {each.number: before.get(each.number, now) for each in found}
        for each in found:
            if now - self._unwatched[each.number] > storage.STALE_SECONDS:
                self._fail(each)

    def fail_of(self, worker: str) -> int:
        """Fail the trials of a worker that was killed; returns their number."""
        found = self._running(worker)
        for each in found:
            self._fail(each)
        return len(found)

    def give_back(self, worker: str) -> None:
        """Let the trials of workers that were stopped wait; that counts as no death.

        Args:
            worker: the beginning of their names.
        """
        for each in self._running(worker):
            with suppress(*_GONE):
                self.storage.set_trial_user_attr(each._trial_id, WORKER, "")
                self.storage.set_trial_state_values(each._trial_id, TrialState.WAITING)

    def _running(self, worker: str) -> list[FrozenTrial]:
        running = self.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return [each for each in running if each.user_attrs.get(WORKER, "").startswith(worker)]

    def _fail(self, trial: FrozenTrial) -> None:
        with suppress(*_GONE):
            self.tell(trial.number, state=TrialState.FAIL)


def _sampler(search: Search, number: int) -> BaseSampler:
    """The sampler for the trial with this number."""
    text = f"{search.config.training.seed} trial {number}"
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")
    match search.sampler:
        case SamplerName.TPE:
            # Running trials count as bad ones, so that workers do not try the same point twice.
            return TPESampler(seed=seed, constant_liar=True)
        case SamplerName.GP:
            return GPSampler(seed=seed)
        case SamplerName.RANDOM | SamplerName.GRID:
            return RandomSampler(seed=seed)


def _pruner(search: Search) -> BasePruner:
    epochs, interval = search.config.training.epochs, search.interval
    match search.pruner:
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


def suggested(trial: optuna.Trial, parts: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Settings for a trial, chosen by the sampler."""
    found: dict[str, Any] = {}
    for name, part in parts.items():
        match part:
            case optuna.distributions.FloatDistribution():
                found[name] = trial.suggest_float(name, part.low, part.high, log=part.log)
            case optuna.distributions.IntDistribution():
                found[name] = trial.suggest_int(name, part.low, part.high, log=part.log)
            case optuna.distributions.CategoricalDistribution():
                found[name] = trial.suggest_categorical(name, part.choices)
    return found
