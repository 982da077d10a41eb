"""The trials of a study as slots: so many were asked for, and each comes to one result.

A trial whose process died, or was interrupted, is failed and tried again with the same settings;
both belong to one slot, and a slot counts once. Several processes on several machines may take
trials at the same time: a trial that is one too many is marked as such and never counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import optuna
from optuna import Study, Trial
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from ihgnn_cli.selection.tuning.presence import Presence
from ihgnn_cli.selection.tuning.samplers import TrialSampler

MOST_TRIES = 3
"""A trial that was lost so often is given up: it may be what kills its process.

One that was returned, as when somebody interrupts a search, was not lost."""
_WORKER, _RETRY_OF, _SUPERFLUOUS = "worker", "retry_of", "superfluous"
_FAILURE, _OUTCOME, _RETURNED = "failure", "outcome", "returned"
_QUEUED = "fixed_params"
"""What Optuna calls the settings of a trial that waits."""
_GONE = (ValueError, optuna.exceptions.UpdateFinishedTrialError)
"""What telling a trial raises that another process took for dead."""


@dataclass(frozen=True)
class Outcome:
    """What a trial was worth on validation."""

    loss: float
    """Mean over the splits, at their best epochs."""
    best_epochs: tuple[int, ...]
    """Split by split."""
    hits: tuple[tuple[int, ...], ...]
    """Validation graphs that are right: split by split, epoch by epoch."""
    graphs: tuple[int, ...]
    """That validate, split by split."""
    seconds: float
    """Its share of the time that its stacks took."""
    members: int
    """Trials in its stack."""

    @property
    def accuracy(self) -> float:
        """Mean over the splits, at their best epochs: what is searched for."""
        shares = [
            Fraction(hits[best - 1], graphs)
            for hits, best, graphs in zip(self.hits, self.best_epochs, self.graphs, strict=True)
        ]
        return float(sum(shares) / len(shares))

    @property
    def model_epochs(self) -> int:
        """That were trained."""
        return sum(map(len, self.hits))


@dataclass(frozen=True)
class Slot:
    """One of the trials that were asked for, with all tries of it, the last one last."""

    tries: tuple[FrozenTrial, ...]

    @property
    def number(self) -> int:
        """Of its first try: what people know it by."""
        return self.tries[0].number

    @property
    def last(self) -> FrozenTrial:
        """The try that counts."""
        return self.tries[-1]

    @property
    def params(self) -> dict[str, Any]:
        """Its settings; where no try has come so far as to have them, those it was queued with."""
        found: dict[str, Any] = {}
        for each in self.tries:
            found |= {**each.system_attrs.get(_QUEUED, {}), **each.params}
        return found

    @property
    def state(self) -> TrialState:
        """Of the try that counts; one that will be tried again is waiting."""
        return TrialState.WAITING if self.lost else self.last.state

    @property
    def lost(self) -> bool:
        """Whether its process died or returned it, and it is to be tried again."""
        failed = self.last.state is TrialState.FAIL and _FAILURE not in self.last.user_attrs
        return failed and self._deaths < MOST_TRIES

    @property
    def _deaths(self) -> int:
        """Tries that came to nothing because their process died."""
        failed = [each for each in self.tries if each.state is TrialState.FAIL]
        return sum(_RETURNED not in each.user_attrs for each in failed)

    @property
    def settled(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state.is_finished()

    @property
    def failure(self) -> str | None:
        """Why it came to nothing."""
        if self.state is not TrialState.FAIL:
            return None
        lost = f"its process was killed {self._deaths} times"
        return str(self.last.user_attrs.get(_FAILURE, lost))

    @property
    def outcome(self) -> Outcome | None:
        """What it was worth, where it was trained to its end or given up on the way."""
        plain = self.last.user_attrs.get(_OUTCOME)
        if plain is None:
            return None
        lists = {
            "best_epochs": tuple(plain["best_epochs"]),
            "hits": tuple(map(tuple, plain["hits"])),
            "graphs": tuple(plain["graphs"]),
        }
        return Outcome(**{**plain, **lists})

    @property
    def score(self) -> tuple[float, float, int]:
        """What finished trials compete by: accuracy, then loss, then the earlier."""
        outcome = self.outcome
        if outcome is None or self.last.value is None:
            raise ValueError("a trial without a result does not compete")
        return self.last.value, -outcome.loss, -self.number


def slots_of(trials: Iterable[FrozenTrial]) -> list[Slot]:
    """The slots in the order of their numbers."""
    counted = [each for each in trials if _SUPERFLUOUS not in each.user_attrs]
    counted.sort(key=lambda each: each.number)
    again: dict[int, FrozenTrial] = {}
    for each in counted:
        before = each.user_attrs.get(_RETRY_OF)
        if before is not None:
            again.setdefault(before, each)  # of two, the earlier counts
    slots = []
    for each in counted:
        if _RETRY_OF in each.user_attrs:
            continue
        tries = [each]
        while tries[-1].number in again:
            tries.append(again[tries[-1].number])
        slots.append(Slot(tuple(tries)))
    return slots


def rank(study: Study, number: int) -> int:
    """The slots that were there before that of the trial of a number."""
    slots = slots_of(study.get_trials(deepcopy=False))
    first = next(
        (slot.number for slot in slots if any(each.number == number for each in slot.tries)), number
    )
    return sum(slot.number < first for slot in slots)


def best_of(slots: Sequence[Slot]) -> Slot | None:
    """The best of those that were trained to their end."""
    complete = [slot for slot in slots if slot.last.state is TrialState.COMPLETE and slot.outcome]
    return max(complete, key=lambda slot: slot.score, default=None)


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
        trial.set_user_attr(_WORKER, self._presence.token)
        if not any(slot.last.number == trial.number for slot in self.slots()):
            # Somebody else took the last one at the same moment, or it waited twice.
            trial.set_user_attr(_SUPERFLUOUS, True)
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
            {_OUTCOME: asdict(outcome)},
            TrialState.PRUNED if pruned else TrialState.COMPLETE,
            None if pruned else outcome.accuracy,
        )

    def fail(self, number: int, reason: str) -> None:
        """Write down that a trial cannot be trained."""
        self._end(number, {_FAILURE: reason}, TrialState.FAIL)

    def give_back(self, numbers: Iterable[int]) -> None:
        """Let trials of this process whose worker died be tried again, by whomever."""
        for number in list(numbers):
            self._end(number, {}, TrialState.FAIL)
        self._try_again()

    def give_all_back(self) -> None:
        """Return all that this process still has, because it stops; nobody has died of them."""
        for number in list(self._mine):
            self._end(number, {_RETURNED: True}, TrialState.FAIL)
        self._try_again()

    def reclaim(self) -> int:
        """Let trials of dead processes be tried again; says how many were found."""
        trials = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        others = {
            str(each.number): each.user_attrs.get(_WORKER)
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
                attrs = {_RETRY_OF: slot.last.number}
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
