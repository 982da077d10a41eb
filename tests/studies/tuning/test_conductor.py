"""Trials are put together to stacks, and none is lost: with workers that are threads here."""

import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import optuna
import pytest
import torch
from optuna.trial import TrialState

from ihgnn_cli.data import load_dataset
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.jobs.processes import Workers
from ihgnn_cli.studies.tuning import conductor
from ihgnn_cli.studies.tuning.conductor import Conductor, Sight
from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.ledger import Ledger
from ihgnn_cli.studies.tuning.presence import Presence
from ihgnn_cli.studies.tuning.samplers import make_pruner, make_sampler
from ihgnn_cli.studies.tuning.search import Search, prepare
from ihgnn_cli.studies.tuning.slots import MOST_TRIES, Slot, rank
from ihgnn_cli.studies.tuning.space import make_space
from ihgnn_cli.studies.tuning.trainer import Assignment, Task, Verdict
from ihgnn_cli.training import cohort
from ihgnn_cli.training.config import configure


class Process:
    """As much of a process as the conductor asks of one."""

    exitcode = -9

    def join(self, timeout: float) -> None:
        pass

    def is_alive(self) -> bool:
        return False


class Overheard:
    """A worker's channel; whatever it is sent is looked at first, and may kill the worker."""

    def __init__(self, channel: Connection, kills: Callable[[object], bool]) -> None:
        self._channel = channel
        self._kills = kills

    def send(self, message: object) -> None:
        self._channel.send(message)

    def recv(self) -> object:
        message = self._channel.recv()
        if self._kills(message):
            self._channel.close()  # as a process that is killed does
            raise EOFError
        return message


def overhear(monkeypatch: pytest.MonkeyPatch, kills: Callable[[object], bool]) -> None:
    real = conductor.live

    def live(task: Task, device: str, channel: Connection) -> None:
        real(task, device, Overheard(channel, kills))  # type: ignore[arg-type]

    monkeypatch.setattr(conductor, "live", live)


@pytest.fixture(autouse=True)
def workers_are_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(workers: Workers, device: str, core: int | None) -> tuple[Connection, Process]:
        ours, theirs = Pipe()

        def run() -> None:
            with suppress(OSError, SystemExit):  # nobody listens any more
                workers.life(device, theirs)

        threading.Thread(target=run, daemon=True).start()
        return ours, Process()

    monkeypatch.setattr(Workers, "launch", launch)


def search(sampler: SamplerName, pruner: PrunerName = PrunerName.NONE, epochs: int = 1) -> Search:
    config = configure(overrides={"width": 4, "hidden": 8, "epochs": epochs, "device": "cpu"})
    given = {"layers": "1,2", "batch_size": "64,128"}
    grid = sampler is SamplerName.GRID
    space, config = make_space(config, given, None, grid=grid)
    return prepare(config, space, load_dataset("MUTAG"), sampler=sampler, pruner=pruner)


def conducted(
    asked: Search,
    trials: int,
    *,
    stack: int = 5,
    workers: int = 1,
    timeout: float | None = None,
    watch: Callable[[Sight], None] = lambda _: None,
) -> list[Slot]:
    study = optuna.create_study(direction="maximize")
    study.sampler = make_sampler(asked.sampler, asked.space, 0, lambda number: rank(study, number))
    study.pruner = make_pruner(asked.pruner, asked.config.training.epochs, asked.interval)
    with Presence(study) as presence:
        ledger = Ledger(study, presence, asked.space.distributions(), trials)
        made = Conductor(
            ledger,
            asked.space,
            asked.config,
            asked.sampler,
            stack=stack,
            timeout=timeout,
            watch=watch,
        )
        made.run(asked.task(), ["cpu"] * workers)
        return ledger.slots()


def shape(slot: Slot) -> tuple[object, object]:
    return slot.params["layers"], slot.params["batch_size"]


def test_random_trials_are_trained_with_others_of_their_shape() -> None:
    slots = conducted(search(SamplerName.RANDOM), 20)
    assert [slot.state for slot in slots] == [TrialState.COMPLETE] * 20
    assert len({shape(slot) for slot in slots}) == 4
    together = [slot.outcome.members for slot in slots]
    assert max(together) == 5
    assert sum(1 / members for members in together) < 12  # stacks, of 20 trials


def test_after_its_first_trials_tpe_fills_a_stack_with_one_shape() -> None:
    slots = conducted(search(SamplerName.TPE), 20)
    assert len({shape(slot) for slot in slots[:10]}) == 4  # at random
    for stack in (slots[10:15], slots[15:20]):
        assert len({shape(slot) for slot in stack}) == 1
        assert len({slot.params["lr"] for slot in stack}) == 5
        assert {slot.outcome.members for slot in stack} == {5}


def test_a_grid_is_walked_along_shapes() -> None:
    slots = conducted(search(SamplerName.GRID), 12)
    assert [slot.outcome.members for slot in slots] == [3] * 12
    assert len({(*shape(slot), slot.params["lr"]) for slot in slots}) == 12


def test_several_workers_do_every_trial_once() -> None:
    slots = conducted(search(SamplerName.RANDOM), 12, workers=2)
    assert [slot.number for slot in slots] == list(range(12))
    assert {slot.state for slot in slots} == {TrialState.COMPLETE}
    assert {len(slot.tries) for slot in slots} == {1}


def test_trials_below_the_median_are_given_up() -> None:
    slots = conducted(search(SamplerName.RANDOM, PrunerName.MEDIAN, epochs=12), 14, stack=2)
    pruned = [slot for slot in slots if slot.state is TrialState.PRUNED]
    assert pruned
    assert all(len(slot.outcome.hits[0]) < 12 for slot in pruned)


def test_where_memory_is_too_small_stacks_of_that_shape_become_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = cohort.Cohort.advance

    def full(self: cohort.Cohort) -> None:
        if len(self.present) > 2 and self.stack.batch_size == 128:
            raise torch.OutOfMemoryError("CUDA out of memory")
        real(self)

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    told: list[int] = []

    def watch(sight: Sight) -> None:
        told.extend([sight.smaller] if sight.smaller else [])

    slots = conducted(search(SamplerName.RANDOM), 40, stack=4, watch=watch)
    assert {slot.state for slot in slots} == {TrialState.COMPLETE}
    assert max(slot.outcome.members for slot in slots if shape(slot)[1] == 128) == 2
    assert max(slot.outcome.members for slot in slots if shape(slot)[1] == 64) == 4
    assert 1 <= len(told) <= 4  # once or twice a shape, and then it is known


def test_a_trial_that_does_not_fit_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    real = cohort.Cohort.advance

    def full(self: cohort.Cohort) -> None:
        if self.stack.batch_size == 128:
            raise torch.OutOfMemoryError("CUDA out of memory")
        real(self)

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    slots = conducted(search(SamplerName.RANDOM), 12)
    for slot in slots:
        fits = shape(slot)[1] == 64
        assert slot.state is (TrialState.COMPLETE if fits else TrialState.FAIL)
        assert slot.failure == (None if fits else "out of memory")


def test_no_trial_begins_after_the_time_and_none_is_left_half_done() -> None:
    slots = conducted(search(SamplerName.RANDOM), 12, timeout=1e-9)
    assert all(slot.state is not TrialState.RUNNING for slot in slots)
    assert sum(slot.state is TrialState.COMPLETE for slot in slots) < 12


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_is_replaced_and_its_trials_are_done(
    monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    real, first = conductor.live, threading.Lock()

    def live(task, device: str, channel: Connection) -> None:
        if first.acquire(blocking=False):
            channel.send(conductor.Ready())
            channel.recv()
            channel.close()  # as a process that is killed does
        else:
            real(task, device, channel)

    monkeypatch.setattr(conductor, "live", live)
    deaths: list[int] = []
    slots = conducted(
        search(SamplerName.RANDOM),
        8,
        workers=workers,
        watch=lambda sight: deaths.append(sight.dead),
    )
    assert sum(deaths) == 1
    assert {slot.state for slot in slots} == {TrialState.COMPLETE}
    assert any(len(slot.tries) == 2 for slot in slots)


@pytest.mark.parametrize("sampler", [SamplerName.RANDOM, SamplerName.TPE])
def test_a_trial_that_kills_its_worker_takes_no_others_with_it(
    monkeypatch: pytest.MonkeyPatch, sampler: SamplerName
) -> None:
    """It dies in a stack of several, then alone, and alone again; the others are done."""
    turns, fatal = threading.Lock(), []
    stacks: list[tuple[int, ...]] = []

    def kills(message: object) -> bool:
        with turns:
            if not isinstance(message, Assignment):
                return False
            stack = message.trials
            if not fatal and len(stack) > 2:
                fatal.append(stack[1][1])
            if any(config in fatal for _, config in stack):
                stacks.append(tuple(number for number, _ in stack))
                return True
            return False

    overhear(monkeypatch, kills)
    deaths: list[int] = []
    slots = conducted(search(sampler), 12, workers=1, watch=lambda sight: deaths.append(sight.dead))
    assert sum(deaths) == MOST_TRIES
    first, *later = stacks
    assert len(first) > 2
    assert [len(stack) for stack in later] == [1] * (MOST_TRIES - 1)
    (killer,) = [slot for slot in slots if slot.state is not TrialState.COMPLETE]
    assert killer.number == first[1]
    assert killer.state is TrialState.FAIL
    assert killer.failure == "its process died 3 times"
    for slot in slots:
        if slot.number in first and slot is not killer:
            assert (slot.deaths, slot.outcome.members) == (1, 1)  # tried again alone
        elif slot is not killer:
            assert slot.deaths == 0
    assert len(slots) == 12


@pytest.mark.parametrize(
    ("pruner", "answers"), [(PrunerName.NONE, False), (PrunerName.MEDIAN, True)]
)
def test_reports_are_answered_only_where_trials_may_be_given_up(
    monkeypatch: pytest.MonkeyPatch, pruner: PrunerName, answers: bool
) -> None:
    heard: list[object] = []

    def listen(message: object) -> bool:
        heard.append(message)
        return False

    overhear(monkeypatch, listen)
    slots = conducted(search(SamplerName.RANDOM, pruner, epochs=3), 4)
    assert {slot.state for slot in slots} == {TrialState.COMPLETE}
    assert any(isinstance(each, Verdict) for each in heard) is answers
    # Those who look on see the same.
    assert all({1, 2} <= set(slot.last.intermediate_values) for slot in slots)


def test_when_every_new_worker_is_killed_the_search_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def live(task, device: str, channel: Connection) -> None:
        started.append(device)
        channel.send(conductor.Ready())
        channel.recv()
        channel.close()

    monkeypatch.setattr(conductor, "live", live)
    with pytest.raises(IhgnnError, match="All workers were killed"):
        conducted(search(SamplerName.RANDOM), 4)
    assert len(started) == 5


def test_a_mistake_in_a_worker_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def live(task, device: str, channel: Connection) -> None:
        channel.send(conductor.Ready())
        channel.recv()
        channel.send(IhgnnError("A worker failed"))

    monkeypatch.setattr(conductor, "live", live)
    with pytest.raises(IhgnnError, match="A worker failed"):
        conducted(search(SamplerName.RANDOM), 4)


def test_test_graphs_are_out_of_reach(tmp_path: Path) -> None:
    asked = search(SamplerName.RANDOM)
    for train, validation in asked.task().splits:
        used = {*train.tolist(), *validation.tolist()}
        assert not used & set(asked.split.test.tolist())


def test_settings_that_do_not_go_together_fail_their_trial_and_no_other() -> None:
    config = configure(overrides={"epochs": 1, "device": "cpu"}, model="graphormer")
    given = {"width": "4:8", "heads": "4", "lr": "0.01", "batch_size": "128", "layers": "1"}
    space, config = make_space(config, given, None, grid=False)
    asked = prepare(config, space, load_dataset("MUTAG"), sampler=SamplerName.RANDOM)
    slots = conducted(asked, 8, stack=1)
    found = {(slot.last.params["width"] % 4 == 0, slot.last.state) for slot in slots}
    assert found == {(True, TrialState.COMPLETE), (False, TrialState.FAIL)}
