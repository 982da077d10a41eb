"""The queue of trials: each requested trial gets one result, whatever happens to processes."""

import threading
from collections.abc import Callable
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy.exc
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage
from optuna.trial import TrialState
from started import run_together

from ihgnn_cli.jobs.alive import this_process
from ihgnn_cli.studies.tuning import trial_queue as queues
from ihgnn_cli.studies.tuning.kinds import SamplerName
from ihgnn_cli.studies.tuning.samplers import make_sampler
from ihgnn_cli.studies.tuning.space import Choice, Range, SearchSpace
from ihgnn_cli.studies.tuning.storage import STALE_SECONDS, address, open_storage
from ihgnn_cli.studies.tuning.trial_queue import TrialQueue
from ihgnn_cli.studies.tuning.trials import (
    MAX_ATTEMPTS,
    Outcome,
    RequestedTrial,
    best_trial,
    group_attempts,
)

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

SPACE = SearchSpace({"lr": Range(1e-4, 1e-2, log=True), "layers": Choice((3, 4, 5))})
COMPLETE, PRUNED, FAIL = TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL
RUNNING, WAITING = TrialState.RUNNING, TrialState.WAITING
Telling = Callable[[TrialQueue, int], None]

TAKER = """
import sys
import time
from functools import partial
from pathlib import Path
import optuna
import sqlalchemy.event
from sqlalchemy.engine import Engine
from ihgnn_cli.files import exclusive
from ihgnn_cli.studies.tuning.kinds import SamplerName
from ihgnn_cli.studies.tuning.trial_queue import TrialQueue
from ihgnn_cli.studies.tuning.samplers import make_sampler
from ihgnn_cli.studies.tuning.space import Range, SearchSpace
from ihgnn_cli.studies.tuning.storage import address, open_storage

sqlalchemy.event.listen(
    Engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = OFF")  # as in conftest.py
)
where = address(sys.argv[1], Path())
study = optuna.load_study(storage=open_storage(where), study_name="one")
space = SearchSpace({"lr": Range(1e-4, 1e-2, log=True)})
study.sampler = make_sampler(SamplerName.RANDOM, space, 0, lambda number: number)
print("ready", flush=True)
sys.stdin.readline()
alone = partial(exclusive, where.lock)
queue = TrialQueue(study, space.distributions(), int(sys.argv[2]), alone)
started = Path(sys.argv[3])
while (trial := queue.take()) is not None:
    print(trial.number, flush=True)
    (started / str(trial.number)).touch()
    while len(list(started.iterdir())) < 2:  # each takes one trial before either continues
        time.sleep(0.002)
"""


class House:
    """A storage, and processes that come and go."""

    def __init__(self, storage: BaseStorage) -> None:
        self.storage = storage
        self.now = 0.0

    def comes(self, total: int) -> TrialQueue:
        """A process that asks for so many trials."""
        study = optuna.create_study(
            storage=self.storage, study_name="one", direction="maximize", load_if_exists=True
        )
        study.sampler = make_sampler(SamplerName.RANDOM, SPACE, 0, lambda number: number)
        return TrialQueue(study, SPACE.distributions(), total, clock=lambda: self.now)

    def dies(self, queue: TrialQueue) -> None:
        """Its process is of this machine and gone."""
        self._owned_by(queue, gone())

    def is_silent(self, queue: TrialQueue) -> None:
        """It is of another machine, and its heartbeat stands still."""
        self._owned_by(queue, {"machine": "x", "pid": 1, "started": 1})

    def _owned_by(self, queue: TrialQueue, who: dict[str, object]) -> None:
        for trial in queue._taken.values():
            trial.set_user_attr("worker", who)


def gone() -> dict[str, object]:
    """No process has this number or this start time; one of them suffices on any system."""
    return {**asdict(this_process()), "pid": 2**31 - 1, "started": -1}


def lose(queue: TrialQueue, number: int) -> None:
    """A worker dies while it trains a trial, and its parent notices."""
    trial = queue._taken.pop(number)
    trial.set_user_attr("worker", gone())
    queue.retry_dead()


@pytest.fixture
def house() -> House:
    return House(InMemoryStorage())


def outcome(hits: int = 50, loss: float = 0.5) -> Outcome:
    return Outcome(loss, (1,), ((hits,),), (100,), 1.0, 1)


def taken(queue: TrialQueue) -> int:
    trial = queue.take()
    assert trial is not None
    return trial.number


def done(queue: TrialQueue, hits: int = 50, loss: float = 0.5) -> int:
    number = taken(queue)
    queue.finish(number, outcome(hits, loss), pruned=False)
    return number


def states(queue: TrialQueue) -> list[TrialState]:
    return [trial.state for trial in queue.trials()]


def test_an_outcome_is_the_mean_over_splits_at_their_best_epochs() -> None:
    """3 of 4 at epoch 2, and 1 of 2 at epoch 1."""
    found = Outcome(0.5, (2, 1), ((1, 3, 2), (1, 0)), (4, 2), 1.0, 1)
    assert found.accuracy == 0.625
    assert found.model_epochs == 5


def test_no_more_than_the_total_is_taken(house: House) -> None:
    queue = house.comes(3)
    assert [done(queue) for _ in range(3)] == [0, 1, 2]
    assert queue.take() is None
    assert queue.finished()
    assert states(queue) == [COMPLETE] * 3


def test_running_trials_count(house: House) -> None:
    queue = house.comes(2)
    taken(queue), taken(queue)
    assert queue.take() is None
    assert not queue.finished()


def test_two_processes_in_turns_never_take_more_than_the_total(house: House) -> None:
    one, other = house.comes(5), house.comes(5)
    numbers = [taken(each) for each in (one, other, one, other, one)]
    assert sorted(numbers) == [0, 1, 2, 3, 4]
    assert one.take() is None
    assert other.take() is None
    assert len(one.study.trials) == 5


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_processes_at_the_same_time_never_count_more_than_the_total(
    tmp_path: Path, kind: str
) -> None:
    """One too many may be created; it is marked and not counted."""
    total, workers = (40, 6) if kind == "memory" else (6, 3)
    storage: BaseStorage = InMemoryStorage()
    if kind == "sqlite":
        storage = RDBStorage(f"sqlite:///{tmp_path}/s.db")
    house = House(storage)
    queues_of = [house.comes(total) for _ in range(workers)]
    mine: dict[int, list[int]] = {place: [] for place in range(workers)}
    barrier = threading.Barrier(workers)

    def work(place: int) -> None:
        barrier.wait()
        while (trial := queues_of[place].take()) is not None:
            mine[place].append(trial.number)
            queues_of[place].finish(trial.number, outcome(), pruned=False)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while (late := queues_of[0].take()) is not None:  # who left early saw one being made
        mine[0].append(late.number)
        queues_of[0].finish(late.number, outcome(), pruned=False)
    assert queues_of[0].finished()
    trials = queues_of[0].trials()
    assert len(trials) == total
    assert sorted(trial.number for trial in trials) == sorted(chain(*mine.values()))
    assert {trial.state for trial in trials} == {COMPLETE}
    extra = [each for each in queues_of[0].study.trials if each.state is not COMPLETE]
    assert all(each.user_attrs["superfluous"] for each in extra)


def test_processes_that_share_a_file_of_sqlite_never_hold_the_same_waiting_trial(
    tmp_path: Path,
) -> None:
    total, url = 16, f"sqlite:///{tmp_path}/s.db"
    storage = open_storage(address(url, tmp_path))
    study = optuna.create_study(storage=storage, study_name="one", direction="maximize")
    for number in range(total):
        study.enqueue_trial({"lr": 0.0001 * (1 + number)})
    (tmp_path / "started").mkdir()
    said = run_together(TAKER, *[[url, str(total), tmp_path / "started"]] * 2)
    held = [[int(number) for number in words] for words in said]
    assert all(held)  # both had some
    assert sorted(chain(*held)) == list(range(total))


def test_a_trial_of_a_dead_process_is_retried_with_its_settings_and_counts_once(
    house: House,
) -> None:
    one, other = house.comes(2), house.comes(2)
    lost = one.take()
    assert lost is not None
    done(other)
    assert other.retry_dead() == 0
    house.dies(one)
    assert other.retry_dead() == 1
    assert states(other) == [WAITING, COMPLETE]
    again = other.take()
    assert again is not None
    assert again.params == lost.params
    assert other.take() is None
    other.finish(again.number, outcome(70), pruned=False)
    assert other.finished()
    (trial, _) = other.trials()
    assert [each.number for each in trial.attempts] == [0, 2]
    assert (trial.number, trial.state, trial.last.value) == (0, COMPLETE, 0.7)


def test_trials_of_a_dead_worker_and_of_a_stopped_search_are_queued_again(house: House) -> None:
    one, other = house.comes(3), house.comes(3)
    first, _ = taken(one), taken(one)
    lose(one, first)
    one.requeue()
    assert states(other) == [WAITING, WAITING]
    numbers = [done(other) for _ in range(3)]
    assert numbers == [1, 2, 3]  # the one given back, the lost one again, and a new one
    assert other.finished()
    assert [len(trial.attempts) for trial in other.trials()] == [2, 1, 1]


def test_a_trial_whose_process_died_too_often_fails(house: House) -> None:
    queue = house.comes(1)
    for tries in range(1, MAX_ATTEMPTS + 1):
        number = taken(queue)
        lose(queue, number)
        (trial,) = queue.trials()
        queued = tries < MAX_ATTEMPTS
        assert [each.state for each in trial.attempts] == [FAIL] * tries + [WAITING] * queued
    assert trial.state is FAIL
    assert trial.finished
    assert not trial.needs_retry
    assert trial.deaths == MAX_ATTEMPTS
    assert trial.failure == f"its process died {MAX_ATTEMPTS} times"
    assert queue.finished()
    assert queue.take() is None
    assert queue.retry_dead() == 0
    assert len(queue.study.trials) == MAX_ATTEMPTS


@pytest.mark.parametrize("url", ["sqlite:///study.db", "journal:study.log"])
def test_a_search_may_be_interrupted_any_number_of_times(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial goes back to the queue with its settings and its number; none is left as failed."""
    monkeypatch.chdir(tmp_path)
    house = House(open_storage(address(url, tmp_path)))
    settings = []
    for _ in range(3 * MAX_ATTEMPTS):
        queue = house.comes(1)
        trial = queue.take()
        assert trial is not None
        settings.append(trial.params)
        queue.requeue()
        assert queue.retry_dead() == 0
    (trial,) = queue.trials()
    assert (trial.state, trial.deaths, len(queue.study.trials)) == (WAITING, 0, 1)
    assert len(settings[0]) == 2
    assert settings == settings[:1] * len(settings)
    for _ in range(MAX_ATTEMPTS):  # and deaths count as before
        assert not queue.finished()
        lose(queue, taken(queue))
    (trial,) = queue.trials()
    assert trial.failure == f"its process died {MAX_ATTEMPTS} times"


def test_a_trial_that_fails_while_it_is_taken_is_retried(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heartbeat of an interrupted trial is old until it is recorded again."""
    queue, other = house.comes(1), house.comes(1)
    settings = queue.take().params
    queue.requeue()
    ask = queue.study.ask

    def slow_ask(*args: Any) -> optuna.Trial:
        trial = ask(*args)
        other.study.tell(trial.number, state=FAIL)  # as stale
        return trial

    with monkeypatch.context() as patch:
        patch.setattr(queue.study, "ask", slow_ask)
        assert queue.take() is None
    assert other.retry_dead() == 1
    assert other.take().params == settings


def test_an_interrupted_trial_can_be_pruned_after_its_last_report(
    house: House,
) -> None:
    one = house.comes(1)
    number = taken(one)
    for epoch in (1, 2):
        one.report(number, epoch, 0.5)
    one.requeue()
    other = house.comes(1)
    other.study.pruner = optuna.pruners.ThresholdPruner(lower=0.6)
    assert taken(other) == number
    assert [other.report(number, epoch, 0.5) for epoch in (1, 2, 3)] == [False, False, True]
    (trial,) = other.trials()
    assert trial.last.intermediate_values == {1: 0.5, 2: 0.5, 3: 0.5}


def test_a_retry_after_a_death_is_known(house: House) -> None:
    queue = house.comes(3)
    died, _ = taken(queue), taken(queue)
    assert not queue.has_died(died)  # it runs for the first time
    lose(queue, died)
    queue.requeue()
    returned, again, new = taken(queue), taken(queue), taken(queue)
    assert [trial.last.number for trial in queue.trials()] == [again, returned, new]
    assert [queue.has_died(number) for number in (again, returned, new)] == [True, False, False]


class Shaky:
    """A storage whose methods fail some times before they work again."""

    def __init__(self, patch: pytest.MonkeyPatch, storage: BaseStorage) -> None:
        self._patch = patch
        self._storage = storage
        self.failures = 0

    def fails(self, name: str, error: Exception, times: int = 2) -> None:
        real = getattr(self._storage, name)
        left = [error] * times

        def shaky(*args: Any, **options: Any) -> Any:
            if left:
                self.failures += 1
                raise left.pop()
            return real(*args, **options)

        self._patch.setattr(self._storage, name, shaky)


@pytest.fixture
def shaky(house: House, monkeypatch: pytest.MonkeyPatch) -> Shaky:
    monkeypatch.setattr(queues, "_PAUSE", 0.0)
    return Shaky(monkeypatch, house.storage)


AWAY = [
    sqlalchemy.exc.OperationalError("SELECT 1", None, Exception("server closed the connection")),
    StorageInternalError("An exception is raised during the commit."),
]


@pytest.mark.parametrize("error", AWAY)
@pytest.mark.parametrize(
    "what",
    [
        (
            "set_trial_user_attr",
            lambda queue, number: queue.finish(number, outcome(70), pruned=False),
            COMPLETE,
        ),
        (
            "set_trial_state_values",
            lambda queue, number: queue.finish(number, outcome(70), pruned=False),
            COMPLETE,
        ),
        (
            "set_trial_state_values",
            lambda queue, number: queue.finish(number, outcome(70), pruned=True),
            PRUNED,
        ),
        ("set_trial_user_attr", lambda queue, number: queue.fail(number, "no"), FAIL),
        ("set_trial_state_values", lose, WAITING),
        ("create_new_trial", lose, WAITING),
        ("set_trial_user_attr", lambda queue, _: queue.requeue(), WAITING),
        ("set_trial_state_values", lambda queue, _: queue.requeue(), WAITING),
    ],
)
def test_no_result_is_lost_while_a_database_is_unavailable(
    house: House, shaky: Shaky, error: Exception, what: tuple[str, Telling, TrialState]
) -> None:
    where, how, state = what
    queue = house.comes(1)
    number = taken(queue)
    shaky.fails(where, error)
    how(queue, number)
    assert shaky.failures == 2
    (trial,) = queue.trials()
    assert trial.state is state
    assert trial.outcome == (outcome(70) if state in (COMPLETE, PRUNED) else None)
    assert len(trial.attempts) == len(queue.study.trials) == 1 + (trial.deaths and state is WAITING)
    assert trial.finished or taken(queue) == trial.last.number


@pytest.mark.parametrize("error", AWAY)
def test_no_trial_is_lost_while_a_database_is_unavailable(
    house: House, shaky: Shaky, error: Exception
) -> None:
    queue = house.comes(3)
    for where in ("get_all_trials", "create_new_trial", "get_all_trials"):
        shaky.fails(where, error)
        done(queue)
    assert shaky.failures == 6
    assert queue.finished()
    assert len(queue.study.trials) == 3


@pytest.mark.parametrize("error", AWAY)
def test_a_trial_that_the_database_loses_while_it_is_taken_is_taken_again(
    house: House, shaky: Shaky, error: Exception
) -> None:
    queue = house.comes(1)
    shaky.fails("set_trial_user_attr", error, times=1)
    assert taken(queue) == 0
    assert states(queue) == [RUNNING]


def test_a_trial_whose_process_died_before_it_was_its_owner_is_retried(house: House) -> None:
    queue = house.comes(1)
    queue.study.ask()
    assert queue.take() is None
    assert queue.retry_dead() == 0
    house.now += STALE_SECONDS
    assert queue.retry_dead() == 1
    done(queue)
    assert queue.finished()


def test_trials_that_another_worker_can_have_go_back_one_by_one(house: House) -> None:
    queue = house.comes(3)
    numbers = [taken(queue) for _ in range(3)]
    queue.requeue(numbers[1:])
    assert states(queue) == [RUNNING, WAITING, WAITING]
    assert taken(house.comes(3)) in numbers[1:]


@pytest.mark.parametrize("error", AWAY)
def test_reports_and_retries_wait_while_a_database_is_unavailable(
    house: House, shaky: Shaky, error: Exception
) -> None:
    one, queue = house.comes(2), house.comes(2)
    taken(one)
    number = taken(queue)
    shaky.fails("set_trial_intermediate_value", error)
    assert queue.report(number, 1, 0.5) is False
    assert queue.study.trials[number].intermediate_values == {1: 0.5}
    house.dies(one)
    shaky.fails("get_all_trials", error)
    assert queue.retry_dead() == 1
    assert states(queue) == [WAITING, RUNNING]
    assert shaky.failures == 4


@pytest.mark.parametrize("error", AWAY)
def test_a_database_that_stays_unavailable_is_an_error_when_this_process_counts_as_dead(
    house: House, shaky: Shaky, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    queue = house.comes(1)
    clock = iter(range(0, 1000, 25))
    monkeypatch.setattr(queues.time, "monotonic", lambda: next(clock))
    shaky.fails("get_all_trials", error, times=99)
    with pytest.raises(type(error)):
        queue.take()
    assert shaky.failures == 3  # after 25, 50 and 75 seconds


def test_other_errors_are_raised_immediately(house: House, shaky: Shaky) -> None:
    queue = house.comes(1)
    shaky.fails("create_new_trial", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        queue.take()
    assert shaky.failures == 1


def test_of_two_retries_of_the_same_trial_one_counts(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, a, b = house.comes(2), house.comes(2), house.comes(2)
    taken(one)
    house.dies(one)
    # Both see the trial as lost before either has queued it.
    seen = b.study.get_trials
    a.study.tell(0, state=FAIL)
    before = seen(deepcopy=True)
    a.retry_dead()
    with monkeypatch.context() as patch:
        patch.setattr(b.study, "get_trials", lambda **_: before)
        b._retry_failed()
    assert [each.state for each in a.study.trials] == [FAIL, WAITING, WAITING]
    assert states(a) == [WAITING]
    got = [each.take() for each in (a, b, a, b)]
    numbers = [each.number for each in got if each is not None]
    assert len(numbers) == 2  # the retry, and the other trial
    assert numbers[0] == 1
    a.finish(numbers[0], outcome(), pruned=False)
    b.finish(numbers[0], outcome(), pruned=False)
    for each in (a, b):
        each.finish(numbers[1], outcome(), pruned=False)
    assert a.finished()
    assert [len(trial.attempts) for trial in a.trials()] == [2, 1]


def test_a_retry_that_was_queued_twice_is_trained_once(house: House) -> None:
    one, a, b = house.comes(1), house.comes(1), house.comes(1)
    taken(one)
    lose(one, 0)
    one.study.enqueue_trial(one.trials()[0].last.params, user_attrs={"retry_of": 0})  # twice
    mine = taken(a)
    assert b.take() is None
    a.finish(mine, outcome(), pruned=False)
    assert b.finished()
    assert b.take() is None


def test_late_reports_of_a_process_that_counts_as_dead_change_nothing(house: House) -> None:
    one, other = house.comes(1), house.comes(1)
    number = taken(one)
    house.is_silent(one)
    assert other.retry_dead() == 0
    house.now += STALE_SECONDS
    assert other.retry_dead() == 1
    again = taken(other)
    assert one.report(number, 1, 0.9) is True  # it is told to give up
    assert one.report(number, 2, 0.9) is True
    one.finish(number, outcome(99), pruned=False)
    other.finish(again, outcome(10), pruned=False)
    (trial,) = other.trials()
    assert (trial.last.value, len(trial.attempts)) == (0.1, 2)


@pytest.mark.parametrize("how", ["finish", "prune", "fail", "give back"])
def test_late_results_of_a_process_that_counts_as_dead_change_nothing(
    house: House, how: str
) -> None:
    one, other = house.comes(1), house.comes(1)
    number = taken(one)
    house.dies(one)
    other.retry_dead()
    match how:
        case "finish" | "prune":
            one.finish(number, outcome(99), pruned=how == "prune")
        case "fail":
            one.fail(number, "no")
        case "give back":
            one.requeue()
    (trial,) = other.trials()
    assert trial.state is WAITING
    assert trial.attempts[0].state is FAIL
    assert trial.attempts[0].user_attrs.keys() == {"worker", "heartbeat"}
    assert len(one.study.trials) == 2  # nothing was queued twice


def test_a_death_between_the_failure_and_the_retry_is_repaired(house: House) -> None:
    one, other = house.comes(1), house.comes(1)
    taken(one)
    one.study.tell(0, state=FAIL)  # and its process dies here
    assert states(other) == [WAITING]
    assert other.take() is None
    assert not other.finished()
    assert other.retry_dead() == 1
    assert taken(other) == 1


def test_a_death_before_the_trial_had_an_owner_is_noticed_after_a_while(house: House) -> None:
    queue = house.comes(1)
    queue.study.ask({})  # without settings as yet
    assert queue.retry_dead() == 0
    house.now += STALE_SECONDS
    assert queue.retry_dead() == 1
    trial = queue.take()
    assert trial is not None
    assert trial.params.keys() == {"lr", "layers"}
    queue.finish(trial.number, outcome(), pruned=False)
    assert queue.finished()


@pytest.mark.parametrize("queued", [True, False])
def test_a_death_while_a_trial_was_taken_loses_no_setting(house: House, queued: bool) -> None:
    """Settings are written one by one when a trial is taken; the next try has all of them."""
    queue = house.comes(1)
    if queued:
        queue.study.enqueue_trial({"lr": 0.005, "layers": 4})
    else:
        first = queue.take()
        assert first is not None
        lose(queue, first.number)
    expected = queue.trials()[0].params
    assert expected.keys() == {"lr", "layers"}
    for name in ("lr", "layers"):
        dying = queue.study.ask({name: SPACE.distributions()[name]})
        queue.study.tell(dying, state=FAIL)
        queue.retry_dead()
        if not queued:
            break
    again = queue.take()
    assert again is not None
    assert again.params == expected


def test_a_process_never_retries_its_own_trials(house: House) -> None:
    queue = house.comes(2)
    taken(queue)
    house.dies(queue)
    assert queue.retry_dead() == 0
    assert states(queue) == [RUNNING]


def test_more_trials_continue_and_fewer_show_all_finished_ones(house: House) -> None:
    few = house.comes(2)
    done(few, 50), done(few, 60)
    more = house.comes(4)
    assert not more.finished()
    done(more, 90), done(more, 70)
    assert more.finished()
    assert few.finished()
    for queue in (few, more):
        assert [trial.number for trial in queue.trials()] == [0, 1, 2, 3]
        best = best_trial(queue.trials())
        assert best is not None
        assert (best.number, best.last.value) == (2, 0.9)
    assert few.take() is None


def test_fewer_trials_do_not_disturb_running_ones(house: House) -> None:
    more = house.comes(3)
    done(more)
    running = [taken(more), taken(more)]
    few = house.comes(1)
    assert few.finished()
    assert few.take() is None
    assert few.retry_dead() == 0
    assert [trial.number for trial in few.trials()] == [0]
    for number in running:
        more.finish(number, outcome(), pruned=False)
    assert more.finished()


def test_a_waiting_trial_beyond_a_smaller_total_is_kept(house: House) -> None:
    more = house.comes(2)
    done(more)
    taken(more)
    more.requeue()
    few = house.comes(1)
    assert few.finished()
    assert few.take() is None
    again = house.comes(2)
    assert taken(again) == 1
    assert len(again.trials()) == 2


def test_a_trial_that_cannot_be_trained_fails_with_its_reason_and_is_not_retried(
    house: House,
) -> None:
    queue = house.comes(1)
    queue.fail(taken(queue), "out of memory")
    (trial,) = queue.trials()
    assert (trial.state, trial.failure, trial.outcome) == (FAIL, "out of memory", None)
    assert queue.finished()
    assert queue.retry_dead() == 0
    assert len(queue.study.trials) == 1


def test_a_pruned_trial_has_an_outcome_but_no_value(house: House) -> None:
    queue = house.comes(1)
    number = taken(queue)
    queue.report(number, 1, 0.4)
    queue.finish(number, outcome(40), pruned=True)
    (trial,) = queue.trials()
    assert trial.state is PRUNED
    assert trial.outcome == outcome(40)
    assert trial.failure is None
    assert best_trial([trial]) is None


def test_an_outcome_survives_a_database(tmp_path: Path) -> None:
    whole = Outcome(1 / 3, (2, 1), ((1, 3, 2), (1, 0)), (4, 2), 1.234, 5)
    queue = House(RDBStorage(f"sqlite:///{tmp_path}/s.db")).comes(1)
    queue.finish(taken(queue), whole, pruned=False)
    (trial,) = queue.trials()
    assert trial.outcome == whole
    assert trial.last.value == 0.625


def test_a_second_result_of_a_trial_is_ignored(house: House) -> None:
    """As for a trial that ended in a stack before memory was full."""
    queue = house.comes(1)
    number = taken(queue)
    queue.finish(number, outcome(40), pruned=False)
    queue.finish(number, outcome(90), pruned=False)
    queue.fail(number, "out of memory")
    assert queue.report(number, 1, 0.5) is True
    (trial,) = queue.trials()
    assert trial.last.value == 0.4


def test_a_trial_that_starts_again_does_not_report_an_epoch_twice(house: House) -> None:
    queue = house.comes(1)
    number = taken(queue)
    for epoch in (1, 2, 1, 2, 3):
        assert queue.report(number, epoch, epoch / 10) is False
    assert queue.study.trials[0].intermediate_values == {1: 0.1, 2: 0.2, 3: 0.3}


def trial(number: int, state: TrialState, hits: int = 50, loss: float = 0.5) -> RequestedTrial:
    attrs: dict[str, Any] = {"outcome": outcome(hits, loss).as_plain()}
    value = hits / 100 if state is COMPLETE else None
    trial = optuna.create_trial(state=state, value=value, user_attrs=attrs)
    trial.number = number
    return RequestedTrial((trial,))


@pytest.mark.parametrize(
    ("trials", "best"),
    [
        ([], None),
        ([trial(0, FAIL), trial(1, PRUNED, 99)], None),
        ([trial(0, COMPLETE, 50), trial(1, COMPLETE, 60)], 1),
        ([trial(0, COMPLETE, 60, 0.9), trial(1, COMPLETE, 50, 0.1)], 0),
        ([trial(0, COMPLETE, 60, 0.9), trial(1, COMPLETE, 60, 0.1)], 1),
        ([trial(0, COMPLETE, 60), trial(1, COMPLETE, 60)], 0),
        ([trial(1, COMPLETE, 60), trial(0, COMPLETE, 60)], 0),
        ([trial(0, COMPLETE, 50), trial(1, PRUNED, 90)], 0),
        ([trial(0, COMPLETE, 0)], 0),
    ],
)
def test_the_best_has_the_highest_accuracy_then_the_lowest_loss_then_was_earlier(
    trials: list[RequestedTrial], best: int | None
) -> None:
    found = best_trial(trials)
    assert (found.number if found else None) == best


def test_trials_are_ordered_by_number_in_every_database() -> None:
    made = [trial(number, COMPLETE).last for number in (2, 0, 1)]
    assert [each.number for each in group_attempts(made)] == [0, 1, 2]
