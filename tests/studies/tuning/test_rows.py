"""Trials as rows for tables and figures."""

from typing import Any

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from ihgnn_cli.studies.tuning.rows import TrialRow, trial_rows
from ihgnn_cli.studies.tuning.trials import MAX_ATTEMPTS, Outcome, RequestedTrial

DISTRIBUTIONS = {"lr": FloatDistribution(0, 1), "layers": IntDistribution(1, 9)}
WHOLE = Outcome(0.5, (2, 1), ((1, 3, 2), (1, 0)), (4, 2), 1.5, 3)


def trial(
    number: int,
    state: TrialState,
    *,
    value: float | None = None,
    lr: float = 0.5,
    layers: int = 3,
    **attrs: Any,
) -> FrozenTrial:
    made = optuna.create_trial(
        state=state,
        value=value,
        params={"lr": lr, "layers": layers},
        distributions=DISTRIBUTIONS,
        user_attrs=attrs,
    )
    made.number = number
    return made


def test_a_finished_trial_has_its_curve_as_the_mean_over_the_splits_that_got_as_far() -> None:
    """1/4 and 1/2, then 3/4 and 0/2, then 2/4 alone."""
    whole = RequestedTrial((trial(4, TrialState.COMPLETE, value=0.625, outcome=WHOLE.as_plain()),))
    assert trial_rows([whole]) == [
        TrialRow(
            number=4,
            state=TrialState.COMPLETE,
            params={"lr": 0.5, "layers": 3},
            distributions=DISTRIBUTIONS,
            tries=1,
            failure=None,
            accuracy=0.625,
            loss=0.5,
            best_epoch=1.5,
            seconds=1.5,
            curve=(0.375, 0.375, 0.5),
        )
    ]


@pytest.mark.parametrize(
    ("epochs", "shown"), [((10,), "10"), ((10, 12), "11"), ((10, 11), "10.5"), ((1, 1, 2), "1.33")]
)
def test_the_best_epoch_is_a_whole_number_where_it_can_be(epochs, shown: str) -> None:
    splits = len(epochs)
    outcome = Outcome(0.5, epochs, ((0,) * 12,) * splits, (4,) * splits, 1.5, 3)
    tries = (trial(0, TrialState.COMPLETE, value=0.0, outcome=outcome.as_plain()),)
    (row,) = trial_rows([RequestedTrial(tries)])
    assert str(row.best_epoch).startswith(shown)
    assert type(row.best_epoch) is (float if "." in shown else int)
    (averaged,) = trial_rows([RequestedTrial(tries)], chooses_epoch=False)
    assert averaged.best_epoch is None
    assert averaged.accuracy == row.accuracy


def test_a_trial_that_was_given_up_has_what_it_came_to() -> None:
    (row,) = trial_rows([RequestedTrial((trial(0, TrialState.PRUNED, outcome=WHOLE.as_plain()),))])
    assert (row.state_name, row.accuracy, len(row.curve)) == ("pruned", 0.625, 3)


@pytest.mark.parametrize(
    ("tries", "state", "failure"),
    [
        ((trial(0, TrialState.RUNNING),), "running", None),
        ((trial(0, TrialState.WAITING),), "waiting", None),
        ((trial(0, TrialState.FAIL),), "waiting", None),
        ((trial(0, TrialState.FAIL, failure="out of memory"),), "failed", "out of memory"),
        (
            tuple(trial(number, TrialState.FAIL) for number in range(MAX_ATTEMPTS)),
            "failed",
            "its process died 3 times",
        ),
        ((trial(0, TrialState.FAIL), trial(5, TrialState.RUNNING)), "running", None),
    ],
)
def test_a_trial_without_an_outcome_has_empty_places(
    tries: tuple[FrozenTrial, ...], state: str, failure: str | None
) -> None:
    (row,) = trial_rows([RequestedTrial(tries)])
    assert (row.number, row.state_name, row.failure) == (0, state, failure)
    assert row.tries == len(tries)
    assert row.curve == ()
    assert {row.accuracy, row.loss, row.best_epoch, row.seconds} == {None}


def test_a_trial_that_waits_has_the_settings_that_it_will_have() -> None:
    study = optuna.create_study()
    study.enqueue_trial({"lr": 0.25, "layers": 2})
    (row,) = trial_rows([RequestedTrial((study.trials[0],))])
    assert (row.state_name, row.params) == ("waiting", {"lr": 0.25, "layers": 2})
