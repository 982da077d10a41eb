"""The trials of a study as a queue that several processes share, also on several machines.

An interrupted trial goes back to the queue with its number. A trial whose process died is failed
and retried with the same settings by Optuna's retry callback; both belong to one slot, and a slot
counts once. Optuna's heartbeat tells which processes live; on this machine a death is seen at once.
Several processes may take trials at the same time: one too many is marked as such and not counted.
"""

import copy
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict
from functools import wraps
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

import optuna
import sqlalchemy.exc
from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.storages import RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.trial import FrozenTrial, TrialState

from ihgnn_cli.signals import held, safe_point
from ihgnn_cli.studies.tuning.storage import HEARTBEAT_SECONDS, STALE_SECONDS

if TYPE_CHECKING:
    from optuna.storages._heartbeat import BaseHeartbeat
from ihgnn_cli.jobs.alive import this_process, who_from_plain
from ihgnn_cli.studies.tuning.samplers import TrialSampler
from ihgnn_cli.studies.tuning.slots import (
    FAILURE,
    HEARTBEAT,
    MOST_TRIES,
    OUTCOME,
    SUPERFLUOUS,
    WORKER,
    Outcome,
    Slot,
    asked_for,
)

_GONE = (ValueError, optuna.exceptions.UpdateFinishedTrialError)
"""What telling a trial raises that another process took for dead."""
# A database that restarts, or a network that is away for a moment, is waited for.
_PAUSE = 2.0
_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


def _patient(method: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """Try again for as long as others take this process for alive; signals wait meanwhile.

    Part of a failed call may be done twice: what is written is the same, and a trial that was
    taken by nobody is found by `reclaim`.
    """

    @wraps(method)
    def tried(*args: _Args.args, **options: _Args.kwargs) -> _Result:
        deadline = time.monotonic() + STALE_SECONDS
        while True:
            try:
                with held():
                    return method(*args, **options)
            except (sqlalchemy.exc.OperationalError, optuna.exceptions.StorageInternalError):
                if time.monotonic() >= deadline:
                    raise
            safe_point()
            time.sleep(_PAUSE)

    return tried


class TrialQueue:
    """The trials of a study as one process sees them: takes them, and tells what became of them.

    Heartbeats of the trials in hand are recorded while the object is entered.

    Args:
        study: with a `TrialSampler`.
        distributions: of the settings.
        total: the number of trials in all, whichever process runs them.
        alone: keeps other processes of this machine out while a trial is taken or reclaimed, where
            the storage does not.
        clock: in seconds.
    """

    def __init__(
        self,
        study: Study,
        distributions: Mapping[str, BaseDistribution],
        total: int,
        alone: Callable[[], AbstractContextManager[None]] = nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.study = study
        self.total = total
        self._distributions = dict(distributions)
        self._alone = alone
        self._clock = clock
        self._me = asdict(this_process())
        # Optuna's own heartbeat, which a journal does not have.
        interval = getattr(study._storage, "get_heartbeat_interval", lambda: None)()
        self._has_heartbeat = interval is not None
        self._mine: dict[int, Trial] = {}
        self._epochs: dict[int, int] = {}
        """The last epoch that was reported, by trial."""
        self._seen: dict[int, tuple[object, float]] = {}
        """The last heartbeat of trials that Optuna does not watch, and when it was new."""
        self._ended = Event()
        self._thread = Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            with held():
                self.give_all_back()
        finally:
            self._ended.set()
            self._thread.join()

    @_patient
    def slots(self) -> list[Slot]:
        """As many as were asked for, or fewer where there are fewer as yet; see `asked_for`."""
        return asked_for(self.study.get_trials(deepcopy=False), self.total)

    def finished(self) -> bool:
        """Whether every slot has come to its result."""
        slots = self.slots()
        return len(slots) >= self.total and all(slot.settled for slot in slots)

    @_patient
    def take(self, fixed: Mapping[str, Any] | None = None) -> Trial | None:
        """A trial to work on, one that waits if there is one; `None` where there is none now.

        Args:
            fixed: settings that a new trial is to have; one that waits has its own.
        """
        with self._alone():
            return self._take(fixed or {})

    def _take(self, fixed: Mapping[str, Any]) -> Trial | None:
        slots = self.slots()
        waiting = any(slot.last.state is TrialState.WAITING for slot in slots)
        if not waiting and len(slots) >= self.total:
            return None
        sampler = self.study.sampler
        if isinstance(sampler, TrialSampler):
            sampler.fixed = {} if waiting else fixed
        trial = self.study.ask(self._distributions)
        trial.set_user_attr(WORKER, self._me)
        self._record_heartbeat(trial)
        slot = next((each for each in self.slots() if each.last.number == trial.number), None)
        if slot is None:
            # Somebody else took the last one at the same moment, or it waited twice.
            trial.set_user_attr(SUPERFLUOUS, True)
            self._tell(trial, TrialState.FAIL)
            return None
        self._mine[trial.number] = trial
        # One that was interrupted has its earlier reports.
        self._epochs[trial.number] = max(slot.last.intermediate_values, default=0)
        return trial

    def has_died(self, number: int) -> bool:
        """Whether a process has died at an earlier try of a trial."""
        return any(slot.last.number == number and slot.deaths for slot in self.slots())

    @_patient
    def report(self, number: int, epoch: int, accuracy: float) -> bool:
        """Take note of how a trial is doing, and say whether to give it up."""
        trial = self._mine.get(number)
        if trial is None:
            return True
        try:
            # One that starts again, interrupted or in a smaller stack, was reported before.
            if epoch <= self._epochs.get(number, 0):
                return False
            trial.report(accuracy, epoch)
            self._epochs[number] = epoch
            return trial.should_prune()
        except _GONE:  # somebody took us for dead, and has it now
            del self._mine[number]
            return True

    @_patient
    def finish(self, number: int, outcome: Outcome, *, pruned: bool) -> None:
        """Write down what a trial came to."""
        self._end(
            number,
            {OUTCOME: outcome.as_plain()},
            TrialState.PRUNED if pruned else TrialState.COMPLETE,
            None if pruned else outcome.accuracy,
        )

    @_patient
    def fail(self, number: int, reason: str) -> None:
        """Write down that a trial cannot be trained."""
        self._end(number, {FAILURE: reason}, TrialState.FAIL)

    @_patient
    def give_all_back(self) -> None:
        """Put the trials that this process still has back into the queue, because it stops."""
        for number, trial in list(self._mine.items()):
            with suppress(*_GONE):  # another process took it
                trial.set_user_attr(WORKER, None)  # nobody's, before somebody else has it
                trial.storage.set_trial_state_values(trial._trial_id, TrialState.WAITING)
            del self._mine[number]  # one that could not be written is still ours

    @_patient
    def reclaim(self) -> int:
        """Queue trials of dead processes again; returns how many."""
        with self._alone():
            fail_stale_trials(self.study)
            for each in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                if each.number not in self._mine and self._is_dead(each):
                    self._tell(each.number, TrialState.FAIL)
            return self._retry_lost()

    def _is_dead(self, trial: FrozenTrial) -> bool:
        """Whether the process of a trial has died; on this machine that is known at once."""
        signed = False
        with suppress(ValueError, KeyError, TypeError):
            who = who_from_plain(trial.user_attrs[WORKER])
            signed = True
            lives = who.lives()
            if lives is not None:
                return not lives
        if signed and self._has_heartbeat:
            return False  # `fail_stale_trials` knows
        # Optuna has no heartbeat in a journal, nor of a trial whose process died while taking it.
        beat, now = trial.user_attrs.get(HEARTBEAT), self._clock()
        before, since = self._seen.setdefault(trial.number, (beat, now))
        if beat != before:
            self._seen[trial.number] = beat, now
            return False
        return now - since >= STALE_SECONDS

    def _retry_lost(self) -> int:
        """Queue every slot whose last try died, also if a process died while it did this."""
        retry = RetryHeartbeatStaleTrialCallback(max_retry=MOST_TRIES - 1)
        lost = [slot.last for slot in self.slots() if slot.lost]
        for each in lost:
            again = copy.deepcopy(each)
            again.user_attrs = {}  # it has no owner yet
            retry(self.study, again)
        return len(lost)

    def _beat(self) -> None:
        beats = 0
        while not self._ended.wait(HEARTBEAT_SECONDS):
            beats += 1
            for trial in list(self._mine.values()):
                with suppress(Exception):  # a network that is away for a moment
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
        trial = self._mine.get(number)
        if trial is None:
            return
        with suppress(*_GONE):
            for name, content in attrs.items():
                trial.set_user_attr(name, content)
            self._tell(trial, state, value)
        del self._mine[number]  # what could not be written is still ours

    def _tell(self, trial: Trial | int, state: TrialState, value: float | None = None) -> None:
        with suppress(*_GONE):  # another process did
            self.study.tell(trial, value, state)
