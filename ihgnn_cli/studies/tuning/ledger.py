"""A study as one process sees it: takes trials, tells what became of them, and loses none.

A trial whose process was interrupted goes back to the queue. One whose process died is failed and
tried again with the same settings; both belong to one slot, and a slot counts once. Several
processes on several machines may take trials at the same time: a trial that is one too many is
marked as such and never counted.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import optuna
import sqlalchemy.exc
from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.trial import TrialState

from ihgnn_cli.signals import safe_point
from ihgnn_cli.studies.tuning.presence import STALE, Presence
from ihgnn_cli.studies.tuning.samplers import TrialSampler
from ihgnn_cli.studies.tuning.slots import (
    FAILURE,
    OUTCOME,
    RETRY_OF,
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
    """Try again for as long as others would take this process for alive.

    Whatever of a call was done before it failed may be done twice: what is written is the same,
    and a trial that was taken by nobody is found by `reclaim`.
    """

    @wraps(method)
    def tried(*args: _Args.args, **options: _Args.kwargs) -> _Result:
        deadline = time.monotonic() + STALE
        while True:
            try:
                return method(*args, **options)
            except (sqlalchemy.exc.OperationalError, optuna.exceptions.StorageInternalError):
                if time.monotonic() >= deadline:
                    raise
            safe_point()
            time.sleep(_PAUSE)

    return tried


class Ledger:
    """A study as one process sees it that takes trials and tells what became of them.

    Args:
        study: with a `TrialSampler`.
        presence: by which others know this process.
        distributions: of the settings.
        total: trials that are asked for, by whomever they are done.
        alone: keeps others of this machine out while a trial is taken, where the storage does not.
    """

    def __init__(
        self,
        study: Study,
        presence: Presence,
        distributions: Mapping[str, BaseDistribution],
        total: int,
        alone: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.study = study
        self.total = total
        self._presence = presence
        self._distributions = dict(distributions)
        self._alone = alone
        self._mine: dict[int, Trial] = {}
        self._epochs: dict[int, int] = {}
        """The last epoch that was reported, trial by trial."""

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
        trial.set_user_attr(WORKER, self._presence.token)
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
    def give_back(self, numbers: Iterable[int]) -> None:
        """Let trials of this process whose worker died be tried again, by whomever."""
        for number in list(numbers):
            self._end(number, {}, TrialState.FAIL)
        self._try_again()

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
        """Let trials of dead processes be tried again; says how many were found."""
        trials = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        others = {
            str(each.number): each.user_attrs.get(WORKER)
            for each in trials
            if each.number not in self._mine
        }
        dead = self._presence.dead(others) if others else []
        for number in dead:
            self._tell(int(number), TrialState.FAIL)
        self._try_again()
        return len(dead)

    def _try_again(self) -> None:
        """Queue every slot that was lost, also one whose process died while it did this."""
        for slot in self.slots():
            if slot.lost:
                attrs = {RETRY_OF: slot.last.number}
                self.study.enqueue_trial(slot.params, user_attrs=attrs)

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
