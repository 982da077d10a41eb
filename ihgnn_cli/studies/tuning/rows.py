"""The trials of a search as rows for tables and figures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from optuna.distributions import BaseDistribution
from optuna.trial import TrialState

from ihgnn_cli.studies.tuning.trials import Outcome, RequestedTrial

Value = float | int | str | bool


@dataclass(frozen=True)
class TrialRow:
    """One trial of a search; fields without a value are `None`."""

    number: int
    state: TrialState
    params: Mapping[str, Value]
    distributions: Mapping[str, BaseDistribution]
    """The search space of each setting; empty before a trial has started."""
    tries: int
    failure: str | None
    accuracy: float | None = None
    """On validation, as a share; for a pruned trial, when it was stopped."""
    loss: float | None = None
    best_epoch: float | None = None
    """Averaged over the splits; `None` if no epoch is chosen."""
    seconds: float | None = None
    curve: tuple[float, ...] = ()
    """Validation accuracy at each epoch, averaged over the splits."""

    @property
    def percent(self) -> float:
        """The accuracy in percent, NaN if there is none."""
        return math.nan if self.accuracy is None else 100 * self.accuracy

    @property
    def state_name(self) -> str:
        """The state in lower case: complete, pruned, failed, running or waiting."""
        return "failed" if self.state is TrialState.FAIL else self.state.name.lower()


def trial_rows(trials: Sequence[RequestedTrial], *, chooses_epoch: bool = True) -> list[TrialRow]:
    """One row per requested trial, ordered by number; without best epochs if none is chosen."""
    return [_row(each, chooses_epoch) for each in trials]


def _row(trial: RequestedTrial, chooses_epoch: bool) -> TrialRow:
    row = TrialRow(
        number=trial.number,
        state=trial.state,
        params=trial.params,
        distributions=trial.last.distributions,
        tries=len(trial.attempts),
        failure=trial.failure,
    )
    outcome = trial.outcome
    if outcome is None:
        return row
    return replace(
        row,
        accuracy=outcome.accuracy,
        loss=outcome.loss,
        best_epoch=_mean_epoch(outcome.best_epochs) if chooses_epoch else None,
        seconds=outcome.seconds,
        curve=_curve(outcome),
    )


def _mean_epoch(epochs: Sequence[int]) -> float:
    """The mean, a whole number where it can be."""
    mean = sum(epochs) / len(epochs)
    return int(mean) if mean.is_integer() else mean


def _curve(outcome: Outcome) -> tuple[float, ...]:
    """Accuracy at each epoch, averaged over the splits that were trained that far."""
    longest = max(map(len, outcome.hits))
    means = []
    for epoch in range(longest):
        shares = [
            Fraction(hits[epoch], graphs)
            for hits, graphs in zip(outcome.hits, outcome.graphs, strict=True)
            if epoch < len(hits)
        ]
        means.append(float(sum(shares) / len(shares)))
    return tuple(means)
