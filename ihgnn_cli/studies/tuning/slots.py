"""A slot: one of the trials that were asked for, with all tries of it and what it came to."""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

MOST_TRIES = 3
"""A trial that was lost so often is given up: it may be what kills its process."""
WORKER, HEARTBEAT, SUPERFLUOUS = "worker", "heartbeat", "superfluous"
FAILURE, OUTCOME = "failure", "outcome"
"""The attributes of a trial."""
_QUEUED = "fixed_params"
"""What Optuna calls the settings of a trial that waits."""


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

    def as_plain(self) -> dict[str, Any]:
        """As a database stores it: curves are compressed."""
        packed = zlib.compress(json.dumps(self.hits, separators=(",", ":")).encode())
        return {**asdict(self), "hits": base64.b64encode(packed).decode()}


def outcome_from_plain(plain: Mapping[str, Any]) -> Outcome:
    """The outcome again."""
    hits = json.loads(zlib.decompress(base64.b64decode(plain["hits"])))
    lists = {
        "best_epochs": tuple(plain["best_epochs"]),
        "hits": tuple(map(tuple, hits)),
        "graphs": tuple(plain["graphs"]),
    }
    return Outcome(**{**plain, **lists})


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
        """Whether its process died, and it is to be tried again."""
        failed = self.last.state is TrialState.FAIL and FAILURE not in self.last.user_attrs
        return failed and self.deaths < MOST_TRIES

    @property
    def deaths(self) -> int:
        """Tries that came to nothing because their process died."""
        return sum(each.state is TrialState.FAIL for each in self.tries)

    @property
    def settled(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state.is_finished()

    @property
    def failure(self) -> str | None:
        """Why it came to nothing."""
        if self.state is not TrialState.FAIL:
            return None
        lost = f"its process died {self.deaths} times"
        return str(self.last.user_attrs.get(FAILURE, lost))

    @property
    def outcome(self) -> Outcome | None:
        """What it was worth, where it was trained to its end or given up on the way."""
        plain = self.last.user_attrs.get(OUTCOME)
        if plain is None:
            return None
        return outcome_from_plain(plain)

    @property
    def score(self) -> tuple[float, float, int]:
        """What finished trials compete by: accuracy, then loss, then the earlier."""
        outcome = self.outcome
        if outcome is None or self.last.value is None:
            raise ValueError("a trial without a result does not compete")
        return self.last.value, -outcome.loss, -self.number


def asked_for(trials: Iterable[FrozenTrial], total: int) -> list[Slot]:
    """As many slots as are asked for, and all others that have come to their result."""
    slots = slots_of(trials)
    return [slot for place, slot in enumerate(slots) if place < total or slot.settled]


def slots_of(trials: Iterable[FrozenTrial]) -> list[Slot]:
    """The slots in the order of their numbers."""
    counted = [each for each in trials if SUPERFLUOUS not in each.user_attrs]
    counted.sort(key=lambda each: each.number)
    again: dict[int, FrozenTrial] = {}
    for each in counted:
        before = _retried(each)
        if before is not None:
            again.setdefault(before, each)  # of two, the earlier counts
    slots = []
    for each in counted:
        if _retried(each) is not None:
            continue
        tries = [each]
        while tries[-1].number in again:
            tries.append(again[tries[-1].number])
        slots.append(Slot(tuple(tries)))
    return slots


def _retried(trial: FrozenTrial) -> int | None:
    """The number of the trial that this one retries; Optuna's callback notes it.

    Studies of ihgnn 0.1 have an attribute of their own.
    """
    history = trial.system_attrs.get("retry_history", [])
    found: int | None = history[-1] if history else trial.user_attrs.get("retry_of")
    return found


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
