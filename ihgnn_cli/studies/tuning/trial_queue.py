"""The trials of a study as a queue that several processes share, also on several machines.

An interrupted trial goes back to the queue with its number. A trial whose process died is marked as
failed, and Optuna's retry callback queues its settings again. Optuna's heartbeat finds processes
that died on other machines; on this machine a death is noticed immediately. Optuna's journal has no
heartbeat: a counter in the attributes of each running trial replaces it there.
"""

import copy
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from functools import wraps
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

import sqlalchemy.exc
from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.storages import RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from ihgnn_cli.jobs.alive import this_process, who_from_plain
from ihgnn_cli.signals import held, safe_point
from ihgnn_cli.studies.tuning.samplers import TrialSampler
from ihgnn_cli.studies.tuning.storage import HEARTBEAT_SECONDS, STALE_SECONDS
from ihgnn_cli.studies.tuning.trials import (
    FAILURE,
    HEARTBEAT,
    MAX_ATTEMPTS,
    OUTCOME,
    SUPERFLUOUS,
    WORKER,
    Outcome,
    RequestedTrial,
    all_finished,
    requested,
)

if TYPE_CHECKING:
    from optuna.storages._heartbeat import BaseHeartbeat

_GONE = (ValueError, UpdateFinishedTrialError)
"""Raised for a trial that another process has marked as failed."""
# Seconds until the next attempt if a database restarts or the network is interrupted.
_PAUSE = 2.0
_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


def _patient(method: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """Repeat a call while the database is unavailable; signals wait until the call has ended.

    The limit is the time after which other machines consider this process dead. Repeating part of a
    call does no harm: it writes the same values, and a trial that was taken without an owner is
    found by `retry_dead`.
    """

    @wraps(method)
    def repeated(*args: _Args.args, **options: _Args.kwargs) -> _Result:
        deadline = time.monotonic() + STALE_SECONDS
        while True:
            try:
                with held():
                    return method(*args, **options)
            except (sqlalchemy.exc.OperationalError, StorageInternalError):
                if time.monotonic() >= deadline:
                    raise
            safe_point()
            time.sleep(_PAUSE)

    return repeated


class TrialQueue:
    """Takes trials from a study for this process, and stores their reports and results.

    Inside a `with` block, heartbeats of the taken trials are recorded. At its end, unfinished
    trials go back to the queue.

    Args:
        study: has a `TrialSampler`.
        distributions: the search space.
        total: number of requested trials, over all processes.
        exclusive: keeps other processes of this machine out while a trial is taken or retried, if
            the storage does not.
        clock: in seconds.
    """

    def __init__(
        self,
        study: Study,
        distributions: Mapping[str, BaseDistribution],
        total: int,
        exclusive: Callable[[], AbstractContextManager[object]] = nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.study = study
        self.total = total
        self._distributions = dict(distributions)
        self._exclusive = exclusive
        self._clock = clock
        self._owner = asdict(this_process())
        interval = getattr(study._storage, "get_heartbeat_interval", lambda: None)()
        self._has_heartbeat = interval is not None
        self._taken: dict[int, Trial] = {}
        self._asked: Trial | None = None
        """A trial that is being taken."""
        self._retries: set[int] = set()
        self._epochs: dict[int, int] = {}
        """The last reported epoch of each trial."""
        self._seen: dict[int, tuple[object, float]] = {}
        """The last heartbeat of trials that Optuna does not watch, and when it changed."""
        self._ended = Event()
        self._thread = Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            with held():
                self.requeue()
        finally:
            self._ended.set()
            self._thread.join()

    @_patient
    def trials(self) -> list[RequestedTrial]:
        """The requested trials so far."""
        return requested(self.study.get_trials(deepcopy=False), self.total)

    def finished(self) -> bool:
        """Whether every requested trial is finished."""
        return all_finished(self.trials(), self.total)

    @_patient
    def take(self, fixed: Mapping[str, Any] | None = None) -> Trial | None:
        """Take a waiting trial, or a new one; `None` if there is none at the moment.

        Args:
            fixed: settings of a new trial; a waiting one keeps its own.
        """
        with self._exclusive(), suppress(UpdateFinishedTrialError):  # taken for dead meanwhile
            return self._take(fixed or {})
        return None

    def _take(self, fixed: Mapping[str, Any]) -> Trial | None:
        if self._asked is not None:  # the database failed while it was being taken
            self._give_back(self._asked)
            self._asked = None
        trials = self.trials()
        waiting = any(each.last.state is TrialState.WAITING for each in trials)
        if not waiting and len(trials) >= self.total:
            return None
        sampler = self.study.sampler
        if isinstance(sampler, TrialSampler):
            sampler.fixed = {} if waiting else fixed
        if waiting:
            self._refresh_waiting()
        trial = self._asked = self.study.ask(self._distributions)
        self._record_heartbeat(trial)
        trial.set_user_attr(WORKER, self._owner)
        found = next((each for each in self.trials() if each.last.number == trial.number), None)
        if found is None:
            # Another process took the last one at the same time, or it was queued twice.
            trial.set_user_attr(SUPERFLUOUS, True)
            self._tell(trial, TrialState.FAIL)
            self._asked = None
            return None
        self._taken[trial.number] = trial
        self._asked = None
        if found.deaths:
            self._retries.add(trial.number)
        # A trial that was interrupted has reports already.
        self._epochs[trial.number] = max(found.last.intermediate_values, default=0)
        return trial

    def has_died(self, number: int) -> bool:
        """Whether a process died in an earlier attempt at a trial that was taken here."""
        return number in self._retries

    @_patient
    def report(self, number: int, epoch: int, accuracy: float) -> bool:
        """Store an intermediate result; returns whether to stop the trial."""
        trial = self._taken.get(number)
        if trial is None:
            return True
        try:
            # A trial that starts again, interrupted or in a smaller stack, has reported before.
            if epoch <= self._epochs.get(number, 0):
                return False
            trial.report(accuracy, epoch)
            self._epochs[number] = epoch
            return trial.should_prune()
        except _GONE:  # another process considered this one dead
            del self._taken[number]
            return True

    @_patient
    def finish(self, number: int, outcome: Outcome, *, pruned: bool) -> None:
        """Store the result of a trial."""
        self._end(
            number,
            {OUTCOME: outcome.as_plain()},
            TrialState.PRUNED if pruned else TrialState.COMPLETE,
            None if pruned else outcome.accuracy,
        )

    @_patient
    def fail(self, number: int, reason: str) -> None:
        """Mark a trial as failed for good."""
        self._end(number, {FAILURE: reason}, TrialState.FAIL)

    @_patient
    def requeue(self, numbers: Collection[int] | None = None) -> None:
        """Put unfinished trials of this process back in the queue; by default all of them."""
        for number, trial in list(self._taken.items()):
            if numbers is None or number in numbers:
                self._give_back(trial)
                del self._taken[number]  # only now: a failed write is repeated

    def _give_back(self, trial: Trial) -> None:
        with suppress(*_GONE):
            trial.set_user_attr(WORKER, None)  # before another process takes it
            trial.storage.set_trial_state_values(trial._trial_id, TrialState.WAITING)

    def _refresh_waiting(self) -> None:
        """Renew the heartbeat of interrupted trials, or others could take one for dead at once."""
        if self._has_heartbeat:
            for each in self.study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
                if WORKER in each.user_attrs:
                    storage = cast("BaseHeartbeat", self.study._storage)
                    storage.record_heartbeat(each._trial_id)

    @_patient
    def retry_dead(self) -> int:
        """Queue trials of dead processes again; returns their number."""
        with self._exclusive():
            fail_stale_trials(self.study)
            running = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
            numbers = {each.number for each in running}
            self._seen = {key: seen for key, seen in self._seen.items() if key in numbers}
            for each in running:
                if each.number not in self._taken and self._is_dead(each):
                    self._tell(each.number, TrialState.FAIL)
            return self._retry_failed()

    def _is_dead(self, trial: FrozenTrial) -> bool:
        """Whether the process of a running trial is dead."""
        has_owner = False
        with suppress(ValueError, KeyError, TypeError):
            lives = who_from_plain(trial.user_attrs[WORKER]).lives()
            if lives is not None:
                return not lives
            has_owner = True
        if has_owner and self._has_heartbeat:
            return False  # left to `fail_stale_trials`
        # In a journal, or if a process died while it took the trial.
        beat, now = trial.user_attrs.get(HEARTBEAT), self._clock()
        before, since = self._seen.setdefault(trial.number, (beat, now))
        if beat != before:
            self._seen[trial.number] = beat, now
            return False
        return now - since >= STALE_SECONDS

    def _retry_failed(self) -> int:
        """Queue all trials that need a retry, including those of a process that died here."""
        retry = RetryHeartbeatStaleTrialCallback(max_retry=MAX_ATTEMPTS - 1)
        found = [each.last for each in self.trials() if each.needs_retry]
        for each in found:
            again = copy.deepcopy(each)
            again.user_attrs = {}  # it has no owner yet
            retry(self.study, again)
        return len(found)

    def _beat(self) -> None:
        beats = 0
        while not self._ended.wait(HEARTBEAT_SECONDS):
            beats += 1
            for trial in list(self._taken.values()):
                with suppress(Exception):  # the network may be interrupted
                    self._record_heartbeat(trial, beats)

    def _record_heartbeat(self, trial: Trial, beats: int = 0) -> None:
        if self._has_heartbeat:
            cast("BaseHeartbeat", self.study._storage).record_heartbeat(trial._trial_id)
        else:
            trial.set_user_attr(HEARTBEAT, beats)

    def _end(
        self,
        number: int,
        attrs: Mapping[str, Any],
        state: TrialState,
        value: float | None = None,
    ) -> None:
        trial = self._taken.get(number)
        if trial is None:
            return
        with suppress(*_GONE):
            for name, content in attrs.items():
                trial.set_user_attr(name, content)
            self._tell(trial, state, value)
        del self._taken[number]  # only now: a failed write is repeated

    def _tell(self, trial: Trial | int, state: TrialState, value: float | None = None) -> None:
        with suppress(*_GONE):  # another process did it first
            self.study.tell(trial, value, state)
