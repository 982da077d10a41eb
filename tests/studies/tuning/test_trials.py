"""Outcomes as stored in a database, and which trials count."""

import json
import random

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

from ihgnn_cli.studies.tuning.trials import MAX_ATTEMPTS, Outcome, RequestedTrial, requested
from ihgnn_cli.studies.tuning.trials import outcome_from_plain as from_plain

COMPLETE, PRUNED, FAIL = TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL
RUNNING, WAITING = TrialState.RUNNING, TrialState.WAITING
ROOM = 64 * 1024


def trial(number: int, state: TrialState, **attrs: object) -> FrozenTrial:
    value = 0.5 if state is COMPLETE else None
    made = optuna.create_trial(state=state, value=value, user_attrs=attrs)
    made.number = number
    return made


@pytest.mark.parametrize(
    "hits", [((3,),), ((1, 3, 2), (1, 0)), ((), ()), ((0,) * 500, (10**6,) * 500)]
)
def test_an_outcome_is_the_same_after_a_database(hits: tuple[tuple[int, ...], ...]) -> None:
    whole = Outcome(1 / 3, (1,) * len(hits), hits, (4,) * len(hits), 1.234, 5)
    assert from_plain(json.loads(json.dumps(whole.as_plain()))) == whole


def test_ten_folds_of_two_thousand_epochs_take_less_than_64_kib() -> None:
    """Of a large data set, with an accuracy that goes up and down at random."""
    chance = random.Random(0)
    hits = tuple(
        tuple(450 + epoch // 100 + chance.randrange(-9, 10) for epoch in range(2000))
        for _ in range(10)
    )
    whole = Outcome(1 / 3, (2000,) * 10, hits, (500,) * 10, 12345.678, 5)
    assert len(json.dumps(whole.as_plain())) < ROOM
    assert from_plain(whole.as_plain()) == whole


@pytest.mark.parametrize(
    ("states", "total", "shown"),
    [
        ([], 3, []),
        ([COMPLETE, RUNNING], 3, [0, 1]),
        ([COMPLETE, RUNNING, WAITING], 2, [0, 1]),
        ([COMPLETE, RUNNING, COMPLETE, PRUNED, WAITING], 1, [0, 2, 3]),
        ([RUNNING, RUNNING, COMPLETE], 0, [2]),
    ],
)
def test_beyond_the_requested_number_only_finished_trials_count(
    states: list[TrialState], total: int, shown: list[int]
) -> None:
    trials = [trial(number, state) for number, state in enumerate(states)]
    assert [each.number for each in requested(trials, total)] == shown


def test_beyond_the_requested_number_a_failed_trial_counts_and_one_to_retry_does_not() -> None:
    lost, given_up = trial(1, FAIL), trial(2, FAIL, failure="out of memory")
    assert [each.number for each in requested([trial(0, COMPLETE), lost, given_up], 1)] == [0, 2]


def test_a_trial_is_retried_until_its_process_has_died_too_often() -> None:
    died = trial(0, FAIL)
    assert RequestedTrial((died, trial(1, RUNNING))).deaths == 1
    assert RequestedTrial((died,) * (MAX_ATTEMPTS - 1)).needs_retry
    often = RequestedTrial((died,) * MAX_ATTEMPTS)
    assert not often.needs_retry
    assert often.failure == "its process died 3 times"
