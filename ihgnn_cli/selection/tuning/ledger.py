"""A study as one process sees it: takes trials, tells what became of them, and loses none.

A trial whose process died, or was interrupted, is failed and tried again with the same settings;
both belong to one slot, and a slot counts once. Several processes on several machines may take
trials at the same time: a trial that is one too many is marked as such and never counted.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import optuna
from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.trial import TrialState

from ihgnn_cli.selection.tuning.presence import Presence
from ihgnn_cli.selection.tuning.samplers import TrialSampler
from ihgnn_cli.selection.tuning.slots import (
    FAILURE,
    OUTCOME,
    RETRY_OF,
    RETURNED,
    SUPERFLUOUS,
    WORKER,
    Outcome,
    Slot,
    slots_of,
)

_GONE = (ValueError, optuna.exceptions.UpdateFinishedTrialError)
"""What telling a trial raises that another process took for dead."""


class Ledger:
    """A study as one process sees it that takes trials and tells what became of them.

    Args:
        study: with a `TrialSampler`.
        presence: by which others know this process.
        distributions: of the settings.
        total: trials that are asked for, by whomever they are done.
    """

    def __init__(
        self,
        study: Study,
        presence: Presence,
        distributions: Mapping[str, BaseDistribution],
        total: int,
    ) -> None:
        self.study = study
        self.total = total
        self._presence = presence
        self._distributions = dict(distributions)
        self._mine: dict[int, Trial] = {}
        self._epochs: dict[int, int] = {}
        """The last epoch that was reported, trial by trial."""

    def slots(self) -> list[Slot]:
        """As many as were asked for, or fewer where there are fewer as yet."""
        return slots_of(self.study.get_trials(deepcopy=False))[: self.total]

    def finished(self) -> bool:
        """Whether every slot has come to its result."""
        slots = self.slots()
        return len(slots) >= self.total and all(slot.settled for slot in slots)

    def take(self, fixed: Mapping[str, Any] | None = None) -> Trial | None:
        """A trial to work on, one that waits if there is one; `None` where there is none now.

        Args:
            fixed: settings that a new trial is to have; one that waits has its own.
        """
        slots = self.slots()
        waiting = any(slot.last.state is TrialState.WAITING for slot in slots)
        if not waiting and len(slots) >= self.total:
            return None
        sampler = self.study.sampler
        if isinstance(sampler, TrialSampler):
            sampler.fixed = {} if waiting else fixed or {}
        trial = self.study.ask(self._distributions)
        trial.set_user_attr(WORKER, self._presence.token)
        if not any(slot.last.number == trial.number for slot in self.slots()):
            # Somebody else took the last one at the same moment, or it waited twice.
            trial.set_user_attr(SUPERFLUOUS, True)
            self._tell(trial, TrialState.FAIL)
            return None
        self._mine[trial.number] = trial
        return trial

    def report(self, number: int, epoch: int, accuracy: float) -> bool:
        """Take note of how a trial is doing, and say whether to give it up."""
        trial = self._mine.get(number)
        if trial is None:
            return True
        try:
            # One that begins anew, in a smaller stack, was reported before.
            if epoch > self._epochs.get(number, 0):
                trial.report(accuracy, epoch)
                self._epochs[number] = epoch
            return trial.should_prune()
        except _GONE:  # somebody took us for dead, and has it now
            del self._mine[number]
            return True

    def finish(self, number: int, outcome: Outcome, *, pruned: bool) -> None:
        """Write down what a trial came to."""
        self._end(
            number,
            {OUTCOME: asdict(outcome)},
            TrialState.PRUNED if pruned else TrialState.COMPLETE,
            None if pruned else outcome.accuracy,
        )

    def fail(self, number: int, reason: str) -> None:
        """Write down that a trial cannot be trained."""
        self._end(number, {FAILURE: reason}, TrialState.FAIL)

    def give_back(self, numbers: Iterable[int]) -> None:
        """Let trials of this process whose worker died be tried again, by whomever."""
        for number in list(numbers):
            self._end(number, {}, TrialState.FAIL)
        self._try_again()

    def give_all_back(self) -> None:
        """Return all that this process still has, because it stops; nobody has died of them."""
        for number in list(self._mine):
            self._end(number, {RETURNED: True}, TrialState.FAIL)
        self._try_again()

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
        trial = self._mine.pop(number, None)
        if trial is None:
            return
        try:
            for name, content in attrs.items():
                trial.set_user_attr(name, content)
        except _GONE:
            return
        self._tell(trial, state, value)

    def _tell(self, trial: Trial | int, state: TrialState, value: float | None = None) -> None:
        with suppress(*_GONE):  # another process did
            self.study.tell(trial, value, state)
