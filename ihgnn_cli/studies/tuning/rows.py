"""The trials of a search as rows of a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optuna.trial import FrozenTrial

from ihgnn_cli.studies.tuning.space import Value
from ihgnn_cli.studies.tuning.trials import (
    earlier_deaths,
    failure,
    outcome_of,
    params_of,
    state_name,
)


@dataclass(frozen=True)
class TrialRow:
    """One trial of a search; fields without a value are `None`."""

    number: int
    state: str
    """complete, pruned, failed, running or waiting"""
    params: Mapping[str, Value]
    tries: int
    failure: str | None
    accuracy: float | None = None
    """On validation, as a share; for a pruned trial, when it was stopped."""
    loss: float | None = None
    best_epoch: float | None = None
    """Averaged over the splits; `None` if no epoch is chosen."""
    seconds: float | None = None


def trial_rows(trials: Sequence[FrozenTrial], *, chooses_epoch: bool = True) -> list[TrialRow]:
    """One row per trial that counts, by number; without best epochs if none is chosen."""
    rows = []
    for trial in sorted(trials, key=lambda each: each.number):
        outcome, epoch = outcome_of(trial), None
        if outcome is not None and chooses_epoch:
            mean = sum(outcome.best_epochs) / len(outcome.best_epochs)
            epoch = int(mean) if mean.is_integer() else mean
        rows.append(
            TrialRow(
                number=trial.number,
                state=state_name(trial),
                params=params_of(trial),
                tries=len(earlier_deaths(trial)) + 1,
                failure=failure(trial),
                accuracy=None if outcome is None else outcome.accuracy,
                loss=None if outcome is None else outcome.loss,
                best_epoch=epoch,
                seconds=None if outcome is None else outcome.seconds,
            )
        )
    return rows
