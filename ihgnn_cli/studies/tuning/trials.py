"""The requested trials of a search, each with its retries and its result.

Optuna retries a trial of a dead process as a new trial with the same settings. Both are attempts at
one requested trial, which counts once.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from optuna import Study
from optuna.trial import FrozenTrial, TrialState

MAX_ATTEMPTS = 3
"""A trial is not retried after this many dead processes: it may be the cause."""
WORKER, HEARTBEAT, SUPERFLUOUS = "worker", "heartbeat", "superfluous"
FAILURE, OUTCOME = "failure", "outcome"
"""User attributes of a trial."""
_QUEUED_PARAMS = "fixed_params"
"""Optuna's attribute for the settings of an enqueued trial."""


@dataclass(frozen=True)
class Outcome:
    """The validation result of a trial."""

    loss: float
    """Mean over the splits, each at its best epoch or of the mean prediction of its snapshots."""
    best_epochs: tuple[int, ...]
    """One per split; the last if snapshots are averaged."""
    hits: tuple[tuple[int, ...], ...]
    """Number of correct validation graphs, by split and epoch."""
    graphs: tuple[int, ...]
    """Number of validation graphs, by split."""
    seconds: float
    """Its share of the training time of its stack."""
    members: int
    """Number of trials in its stack."""
    averaged: tuple[int, ...] = ()
    """Correct validation graphs of the mean prediction of the snapshots, by split; empty without
    snapshots, or if the trial was stopped early."""

    @property
    def accuracy(self) -> float:
        """Mean over the splits: the objective of the search.

        Of each split, that of its best epoch or of the mean prediction of its snapshots.
        """
        best = zip(self.hits, self.best_epochs, strict=True)
        right = self.averaged or [hits[epoch - 1] for hits, epoch in best]
        shares = [Fraction(hits, of) for hits, of in zip(right, self.graphs, strict=True)]
        return float(sum(shares) / len(shares))

    @property
    def model_epochs(self) -> int:
        """Number of trained epochs, summed over the splits."""
        return sum(map(len, self.hits))

    def as_plain(self) -> dict[str, Any]:
        """As stored in a database: the curves are compressed."""
        packed = zlib.compress(json.dumps(self.hits, separators=(",", ":")).encode())
        return {**asdict(self), "hits": base64.b64encode(packed).decode()}


def outcome_from_plain(plain: Mapping[str, Any]) -> Outcome:
    """The outcome that `as_plain` stored."""
    hits = json.loads(zlib.decompress(base64.b64decode(plain["hits"])))
    lists = {
        "best_epochs": tuple(plain["best_epochs"]),
        "hits": tuple(map(tuple, hits)),
        "graphs": tuple(plain["graphs"]),
        "averaged": tuple(plain.get("averaged", ())),  # missing in older studies
    }
    return Outcome(**{**plain, **lists})


@dataclass(frozen=True)
class RequestedTrial:
    """One of the requested trials."""

    attempts: tuple[FrozenTrial, ...]
    """The first attempt and its retries, in order."""

    @property
    def number(self) -> int:
        """The number of the first attempt, which users see."""
        return self.attempts[0].number

    @property
    def last(self) -> FrozenTrial:
        """The last attempt, whose result counts."""
        return self.attempts[-1]

    @property
    def params(self) -> dict[str, Any]:
        """The settings; if no attempt got far enough to store them, those it was queued with."""
        found: dict[str, Any] = {}
        for each in self.attempts:
            found |= {**each.system_attrs.get(_QUEUED_PARAMS, {}), **each.params}
        return found

    @property
    def state(self) -> TrialState:
        """The state of the last attempt; waiting if it is going to be retried."""
        return TrialState.WAITING if self.needs_retry else self.last.state

    @property
    def needs_retry(self) -> bool:
        """Whether the process of the last attempt died and another attempt is due."""
        died = self.last.state is TrialState.FAIL and FAILURE not in self.last.user_attrs
        return died and self.deaths < MAX_ATTEMPTS

    @property
    def deaths(self) -> int:
        """Number of attempts that failed, almost always because their process died."""
        return sum(each.state is TrialState.FAIL for each in self.attempts)

    @property
    def finished(self) -> bool:
        """Whether it is complete, pruned or failed for good."""
        return self.state.is_finished()

    @property
    def failure(self) -> str | None:
        """The reason, if it failed."""
        if self.state is not TrialState.FAIL:
            return None
        died = f"its process died {self.deaths} times"
        return str(self.last.user_attrs.get(FAILURE, died))

    @property
    def outcome(self) -> Outcome | None:
        """The result, if it is complete or pruned."""
        plain = self.last.user_attrs.get(OUTCOME)
        return None if plain is None else outcome_from_plain(plain)

    @property
    def score(self) -> tuple[float, float, int]:
        """What complete trials are ranked by: accuracy, then loss, then the earlier trial."""
        outcome = self.outcome
        if outcome is None or self.last.value is None:
            raise ValueError("the trial has no result")
        return self.last.value, -outcome.loss, -self.number


def requested(trials: Iterable[FrozenTrial], total: int) -> list[RequestedTrial]:
    """The first `total` trials of a study, and all others that are finished."""
    grouped = group_attempts(trials)
    return [each for place, each in enumerate(grouped) if place < total or each.finished]


def all_finished(trials: Sequence[RequestedTrial], total: int) -> bool:
    """Whether there are as many trials as requested, and all are finished."""
    return len(trials) >= total and all(each.finished for each in trials)


@dataclass(frozen=True)
class TrialsRun:
    """The trials after a command has run its part of them."""

    trials: tuple[RequestedTrial, ...]
    total: int
    """Number of requested trials."""
    model_epochs: int
    """Trained by this command."""
    seconds: float

    @property
    def finished(self) -> bool:
        """Whether every requested trial is finished."""
        return all_finished(self.trials, self.total)


def group_attempts(trials: Iterable[FrozenTrial]) -> list[RequestedTrial]:
    """All trials with their retries, ordered by number."""
    counted = [each for each in trials if SUPERFLUOUS not in each.user_attrs]
    counted.sort(key=lambda each: each.number)
    retries: dict[int, FrozenTrial] = {}
    for each in counted:
        before = _retry_of(each)
        if before is not None:
            retries.setdefault(before, each)  # if two processes queued a retry, the first counts
    found = []
    for each in counted:
        if _retry_of(each) is not None:
            continue
        attempts = [each]
        while attempts[-1].number in retries:
            attempts.append(retries[attempts[-1].number])
        found.append(RequestedTrial(tuple(attempts)))
    return found


def _retry_of(trial: FrozenTrial) -> int | None:
    """The number of the trial that this one retries, as noted by Optuna's retry callback.

    Studies of earlier versions note it in a user attribute.
    """
    history = trial.system_attrs.get("retry_history", [])
    found: int | None = history[-1] if history else trial.user_attrs.get("retry_of")
    return found


def rank(study: Study, number: int) -> int:
    """How many requested trials come before the one that this trial is an attempt at."""
    grouped = group_attempts(study.get_trials(deepcopy=False))
    first = next(
        (each.number for each in grouped if any(one.number == number for one in each.attempts)),
        number,
    )
    return sum(each.number < first for each in grouped)


def best_trials(trials: Sequence[RequestedTrial]) -> list[RequestedTrial]:
    """The complete trials, best first."""
    complete = [each for each in trials if each.last.state is TrialState.COMPLETE and each.outcome]
    return sorted(complete, key=lambda each: each.score, reverse=True)


def best_trial(trials: Sequence[RequestedTrial]) -> RequestedTrial | None:
    """The best complete trial, if there is one."""
    return next(iter(best_trials(trials)), None)


def progress_line(trials: Sequence[RequestedTrial]) -> str:
    """Trials by state, and the best so far."""
    best = best_trial(trials)
    line = states_in_words(trials)
    if best is not None and best.last.value is not None:
        line += f"; best {100 * best.last.value:.1f} % (trial {best.number})"
    return line


def states_in_words(trials: Sequence[RequestedTrial]) -> str:
    """Trials by state, such as `12 complete, 3 pruned, 1 failed, 4 running`."""
    states = [each.state.name.lower().replace("fail", "failed") for each in trials]
    names = ("complete", "pruned", "failed", "running", "waiting")
    found = [f"{states.count(name):,} {name}" for name in names if name in states]
    return ", ".join(found) or "none so far"
