"""Workers group trials into stacks, and lose none; here the workers are threads."""

import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from optuna.trial import TrialState
from worker_threads import use_threads

from ihgnn_cli.data import load_dataset
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.jobs.alive import this_process
from ihgnn_cli.studies.places import Places
from ihgnn_cli.studies.tuning import tune_job
from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.search import Search, prepare
from ihgnn_cli.studies.tuning.space import make_space
from ihgnn_cli.studies.tuning.storage import address
from ihgnn_cli.studies.tuning.study import open_study
from ihgnn_cli.studies.tuning.trials import RequestedTrial
from ihgnn_cli.studies.tuning.tune_job import TuneJob, TuneProgress
from ihgnn_cli.studies.tuning.worker import Worker, WorkerPlan, work
from ihgnn_cli.training import cohort
from ihgnn_cli.training.config import configure

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def workers_are_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    use_threads(monkeypatch, pickled=False)
    monkeypatch.chdir(tmp_path)


def search(sampler: SamplerName, pruner: PrunerName = PrunerName.NONE, epochs: int = 1) -> Search:
    config = configure(overrides={"width": 4, "hidden": 8, "epochs": epochs, "device": "cpu"})
    given = {"layers": "1,2", "batch_size": "64,128"}
    grid = sampler is SamplerName.GRID
    space, config = make_space(config, given, None, grid=grid)
    return prepare(config, space, load_dataset("MUTAG"), sampler=sampler, pruner=pruner)


def run_trials(
    asked: Search,
    trials: int,
    *,
    stack: int = 5,
    workers: int = 1,
    timeout: float | None = None,
    watch: Callable[[TuneProgress], None] = lambda _: None,
) -> list[RequestedTrial]:
    where = address("sqlite:///study.db", Path())
    open_study(asked, where, Path(), "one")
    places = Places(("cpu",) * workers, CPU, 2**40)
    job = TuneJob(asked, "one", where, Path(), places, trials, stack, "")
    return list(job.run_trials(watch, timeout).trials)


def shape(trial: RequestedTrial) -> tuple[object, object]:
    return trial.params["layers"], trial.params["batch_size"]


def test_random_trials_are_trained_with_others_of_their_shape() -> None:
    trials = run_trials(search(SamplerName.RANDOM), 20)
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 20
    assert len({shape(trial) for trial in trials}) == 4
    together = [trial.outcome.members for trial in trials]
    assert max(together) == 5
    assert sum(1 / members for members in together) < 12  # stacks, of 20 trials


def test_after_its_first_trials_tpe_fills_a_stack_with_one_shape() -> None:
    trials = run_trials(search(SamplerName.TPE), 20)
    assert len({shape(trial) for trial in trials[:10]}) == 4  # at random
    stack = trials[10:15]
    assert len({shape(trial) for trial in stack}) == 1
    assert len({trial.params["lr"] for trial in stack}) == 5
    assert {trial.outcome.members for trial in stack} == {5}


def test_a_grid_is_trained_shape_by_shape() -> None:
    trials = run_trials(search(SamplerName.GRID), 12)
    assert [trial.outcome.members for trial in trials] == [3] * 12
    assert len({(*shape(trial), trial.params["lr"]) for trial in trials}) == 12


def test_several_workers_do_every_trial_once() -> None:
    trials = run_trials(search(SamplerName.RANDOM), 12, workers=2)
    assert [trial.number for trial in trials] == list(range(12))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert {len(trial.attempts) for trial in trials} == {1}


def test_trials_below_the_median_are_pruned() -> None:
    trials = run_trials(search(SamplerName.RANDOM, PrunerName.MEDIAN, epochs=12), 14, stack=2)
    pruned = [trial for trial in trials if trial.state is TrialState.PRUNED]
    assert pruned
    assert all(len(trial.outcome.hits[0]) < 12 for trial in pruned)


def test_when_memory_is_full_stacks_of_that_shape_become_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = cohort.Cohort.advance

    def full(self: cohort.Cohort) -> None:
        if len(self.present) > 2 and self.stack.batch_size == 128:
            raise torch.OutOfMemoryError("CUDA out of memory")
        real(self)

    monkeypatch.setattr(cohort.Cohort, "advance", full)
    told: list[int] = []

    def watch(now: TuneProgress) -> None:
        told.extend([now.halved] if now.halved else [])

    trials = run_trials(search(SamplerName.RANDOM), 24, stack=4, watch=watch)
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert max(trial.outcome.members for trial in trials if shape(trial)[1] == 128) == 2
    assert max(trial.outcome.members for trial in trials if shape(trial)[1] == 64) == 4
    assert 1 <= len(told) <= 4  # once or twice a shape, and then it is known


@pytest.mark.parametrize("sampler", [SamplerName.RANDOM, SamplerName.TPE, SamplerName.GP])
def test_the_first_worker_leaves_trials_for_the_others(sampler: SamplerName) -> None:
    asked = search(sampler)
    where = address("sqlite:///study.db", Path())
    open_study(asked, where, Path(), "one")
    plan = WorkerPlan(asked, where, "one", 20, 5, None, workers=8)
    with plan.queue() as one, plan.queue() as other:
        for queue in (one, other):
            worker = Worker(queue, plan, CPU, lambda _: None)
            assert worker._next_stack()
            assert len(queue._taken) <= 3  # 20 trials for 8 workers


def test_trials_in_hand_go_to_other_workers_when_there_are_no_new_ones() -> None:
    asked = search(SamplerName.RANDOM)
    where = address("sqlite:///study.db", Path())
    open_study(asked, where, Path(), "one")
    plan = WorkerPlan(asked, where, "one", 2, 5, None, workers=2)
    with plan.queue() as one, plan.queue() as other:
        assert len(Worker(one, plan, CPU, lambda _: None)._next_stack() or ()) == 1
        assert len(Worker(other, plan, CPU, lambda _: None)._next_stack() or ()) == 1
        assert one.take() is None


def test_no_trial_starts_after_the_timeout_and_none_is_left_running() -> None:
    trials = run_trials(search(SamplerName.RANDOM), 12, timeout=1e-9)
    assert all(trial.state is not TrialState.RUNNING for trial in trials)
    assert sum(trial.state is TrialState.COMPLETE for trial in trials) < 12


def test_a_worker_that_dies_is_replaced_and_the_search_is_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = threading.Lock()

    def live(plan: WorkerPlan, device: str, callback: Callable[..., None]) -> None:
        if first.acquire(blocking=False):
            raise SystemExit  # as a process that is killed does
        work(plan, device, callback)

    monkeypatch.setattr(tune_job, "work", live)
    deaths: list[int] = []
    trials = run_trials(search(SamplerName.RANDOM), 4, watch=lambda now: deaths.append(now.killed))
    assert sum(deaths) == 1
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}


def test_trials_whose_process_died_are_trained_alone() -> None:
    asked = search(SamplerName.RANDOM)
    where = address("sqlite:///study.db", Path())
    open_study(asked, where, Path(), "one")
    dying = WorkerPlan(asked, where, "one", 12, 5, None).queue()
    lost = [dying.take() for _ in range(3)]
    for trial in lost:
        trial.set_user_attr("worker", {**asdict(this_process()), "started": -1})
    found: list[int] = []
    trials = run_trials(asked, 12, watch=lambda now: found.append(now.retried))
    assert sum(found) == 3
    assert [trial.state for trial in trials] == [TrialState.COMPLETE] * 12
    assert [(trial.deaths, trial.outcome.members) for trial in trials[:3]] == [(1, 1)] * 3
    assert [trial.params for trial in trials[:3]] == [trial.params for trial in lost]
    assert max(trial.outcome.members for trial in trials[3:]) > 1


def test_trials_report_also_without_a_pruner() -> None:
    trials = run_trials(search(SamplerName.RANDOM, PrunerName.NONE, epochs=3), 2)
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert all({1, 2} <= set(trial.last.intermediate_values) for trial in trials)


def test_when_every_new_worker_is_killed_the_search_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def live(_plan: WorkerPlan, device: str, _callback: Callable[..., None]) -> None:
        started.append(device)
        raise SystemExit

    monkeypatch.setattr(tune_job, "work", live)
    with pytest.raises(IhgnnError, match="All workers were killed"):
        run_trials(search(SamplerName.RANDOM), 4)
    assert len(started) == 5


def test_an_error_in_a_worker_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def live(_plan: WorkerPlan, _device: str, _callback: Callable[..., None]) -> None:
        raise IhgnnError("A worker failed")

    monkeypatch.setattr(tune_job, "work", live)
    with pytest.raises(IhgnnError, match="A worker failed"):
        run_trials(search(SamplerName.RANDOM), 4)


def test_settings_that_exclude_each_other_fail_only_their_trial() -> None:
    config = configure(overrides={"epochs": 1, "device": "cpu"}, model="graphormer")
    given = {"width": "4:8", "heads": "4", "lr": "0.01", "batch_size": "128", "layers": "1"}
    space, config = make_space(config, given, None, grid=False)
    asked = prepare(config, space, load_dataset("MUTAG"), sampler=SamplerName.RANDOM)
    trials = run_trials(asked, 8, stack=1)
    found = {(trial.last.params["width"] % 4 == 0, trial.last.state) for trial in trials}
    assert found == {(True, TrialState.COMPLETE), (False, TrialState.FAIL)}
