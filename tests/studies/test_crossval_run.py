"""Running jobs: stacks are pulled under locks, failures are told, others go on."""

import json
import os
import signal
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from small_job import SLOW, at, finish, folder_of, small_job, with_classes

from ihgnn_cli import files
from ihgnn_cli.errors import IhgnnError, InUseError, NoLocksError
from ihgnn_cli.files import try_lock
from ihgnn_cli.studies.crossval import run
from ihgnn_cli.studies.crossval.job import JobFolder
from ihgnn_cli.studies.crossval.run import Progress, clean_up, run_jobs
from ihgnn_cli.studies.workers import local_workers

TWO = local_workers("cpu", 2)


def records(folder: JobFolder) -> dict[str, list[dict]]:
    """What is in the files of a job, without the times."""
    found = {}
    for path in sorted((folder.path / "units").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        found[path.name] = [{**line, "seconds": 0} for line in lines]
    return found


@pytest.mark.usefixtures("thread_workers")
def test_workers_share_the_stacks_of_all_jobs_and_progress_adds_up(tmp_path: Path) -> None:
    folders = [
        folder_of(tmp_path / str(seed), small_job(seed=seed), workers=2) for seed in range(2)
    ]
    seen: list[Progress] = []
    over: list[tuple[int, int | None]] = []
    ran = run_jobs(
        folders, TWO, seen.append, on_finished=lambda at, each: over.append((at, each.model_epochs))
    )
    assert ran.model_epochs == 2 * 4 * 12
    assert all(folder.finished for folder in folders)
    assert sorted(over) == [(0, 48), (1, 48)]
    last = seen[-1]
    assert (last.models, last.of_models, last.epochs, last.of_epochs) == (24, 24, 96, 96)
    assert all(one.epochs <= other.epochs for one, other in pairwise(seen))
    assert run_jobs(folders, TWO).model_epochs is None  # nothing is left to do
    for folder in folders:
        clean_up(folder)
        assert sorted(each.name for each in folder.path.iterdir()) == ["units"]


@pytest.mark.usefixtures("thread_workers")
def test_a_locked_stack_is_left_to_its_holder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, small_job(), most=3)
    first = folder.open_stacks()[0]
    with ExitStack() as holder:
        assert holder.enter_context(try_lock(tmp_path / "locks" / f"{first.name}.lock"))
        thread = threading.Thread(target=run_jobs, args=([folder_of(tmp_path, folder.job, 3)], TWO))
        thread.start()
        deadline = time.monotonic() + 60
        while len(folder.open_stacks()) > 1:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert folder.open_stacks() == [first]
        clean_up(folder)  # others are working
        assert (tmp_path / "locks").is_dir()
    thread.join(60)
    assert folder.finished


@pytest.mark.usefixtures("thread_workers")
def test_a_failed_job_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    wild = folder_of(tmp_path / "wild", small_job((at(1e30, layers=1),)))
    good = folder_of(tmp_path / "good", small_job())
    failures: list[tuple[int, str]] = []
    run_jobs(
        [wild, good], TWO, on_failure=lambda number, error: failures.append((number, str(error)))
    )
    assert good.finished
    assert [number for number, _ in failures] == [0]
    assert "diverged" in failures[0][1]
    with pytest.raises(IhgnnError, match="diverged"):
        run_jobs([wild], TWO)


@pytest.mark.usefixtures("thread_workers")
def test_a_job_that_another_command_gives_up_meanwhile_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, small_job())

    take = run._Work.take

    def after_a_failure(self: run._Work, skip: set[int]) -> object:
        self.fail(0)
        return take(self, skip)

    monkeypatch.setattr(run._Work, "take", after_a_failure)
    failures: list[tuple[int, str]] = []
    run_jobs([folder], TWO, on_failure=lambda at, error: failures.append((at, str(error))))
    ((number, why),) = failures
    assert number == 0
    assert why.startswith(f"Another command failed to train in {tmp_path}.")


@pytest.mark.skipif(not hasattr(os, "kill"), reason="sends signals")
def test_a_stack_whose_workers_are_killed_is_given_up_and_another_job_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = folder_of(tmp_path / "slow", small_job(epochs=5000, runs=1, folds=2), most=4)
    good = folder_of(tmp_path / "good", small_job())
    failures: dict[int, str] = {}
    killed = []
    step = run._Running.hear

    def hear(self: run._Running, message: object) -> None:
        step(self, message)
        if isinstance(message, run._Step) and message.stack and message.number == 0:
            killed.append(message.pid)
            os.kill(message.pid, signal.SIGKILL)

    monkeypatch.setattr(run._Running, "hear", hear)
    run_jobs(
        [slow, good],
        local_workers("cpu", 1),
        on_failure=lambda number, error: failures.update({number: str(error)}),
    )
    assert good.finished
    assert set(failures) == {0}
    assert failures[0].startswith("3 workers were killed while training the stack select-k1")
    assert len(set(killed)) == 3


@pytest.mark.usefixtures("thread_workers")
def test_without_locks_one_command_works_and_a_second_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path / "job", small_job())
    plain = files._file_lock

    def lock(path: Path, *, wait: bool):
        if tmp_path in path.parents:
            raise NoLocksError("The file system has no locks.")
        return plain(path, wait=wait)

    monkeypatch.setattr(files, "_file_lock", lock)
    warned: list[str] = []
    (folder.path / "in-use").touch()
    with pytest.raises(InUseError, match=r"remove .*in-use"):
        run_jobs([folder], TWO)
    (folder.path / "in-use").unlink()
    run_jobs([folder], TWO, warn=warned.append)
    assert folder.finished
    assert not (folder.path / "in-use").exists()
    assert warned == [
        "The file system has no locks. Only one command at a time can use a folder there."
    ]


@pytest.mark.parametrize(
    ("race", "patience", "most"), [(False, 0, 15), (True, 0, 15), (False, 3, 15), (True, 3, 4)]
)
@pytest.mark.usefixtures("thread_workers")
def test_selection_is_the_same_whatever_the_classes_of_test_graphs_are(
    tmp_path: Path, race: bool, patience: int, most: int
) -> None:
    """Of each fold: every training, epoch and score, to the last bit, with shared stacks."""
    grid = [at(lr, layers=k) for lr in (0.03, 0.003) for k in (1, 2)]
    job = small_job(grid, folds=3, race=race, patience=patience, epochs=12, curves=not race)

    def selection(job, name: str) -> dict:
        folder = folder_of(tmp_path / name, job, most, workers=2)
        run_jobs([folder], TWO)
        return {each.validated.training: each for each in folder.selection()}

    clean = selection(job, "clean")
    for number, fold in enumerate(job.folds):
        classes = job.dataset.graph_class.copy()
        classes[fold.test] = 1 - classes[fold.test]
        poisoned = selection(with_classes(job, classes), f"poisoned{number}")
        own = {training for training in clean if training.fold == number}
        assert own == {training for training in poisoned if training.fold == number}
        for training in own:
            one, other = (found[training] for found in (clean, poisoned))
            assert replace(one.validated, seconds=0) == replace(other.validated, seconds=0)
            if one.tested is not None and other.tested is not None:  # the curves did see them
                assert np.add(one.tested.hits, other.tested.hits).tolist() == (
                    [len(fold.test)] * len(one.tested.hits)
                )


@pytest.mark.usefixtures("thread_workers")
def test_what_a_killed_command_finished_is_kept_to_the_last_digit(tmp_path: Path) -> None:
    job = small_job()
    whole, part = (folder_of(tmp_path / name, job, most=3) for name in ("whole", "part"))
    run_jobs([whole], TWO)
    run_jobs([part], TWO)
    before = records(part)
    part.stack_file(whole.open_stacks()[0] if whole.open_stacks() else _a_stack(part)).unlink()
    again = folder_of(tmp_path / "part", job, most=3)
    ran = run_jobs([again], TWO)
    assert ran.model_epochs == 12  # one stack
    assert records(again) == before == records(whole)


def _a_stack(folder: JobFolder):
    return folder._stages[0][0]


def test_the_time_left_weighs_jobs_by_their_cost(tmp_path: Path, monkeypatch) -> None:
    """Half of the cheap job is done: of 10 x 48 + 1 x 48 seconds, 24 took 24 seconds."""
    now = [100.0]
    monkeypatch.setattr(run.time, "monotonic", lambda: now[0])
    folders = [folder_of(tmp_path / str(seed), small_job(seed=seed)) for seed in range(2)]
    seen: list[Progress] = []
    meter = run._Meter(folders, seen.append, (10.0, 1.0), lambda *_: None)
    meter.step(0, "", 0, 0)
    now[0] += 24.0
    meter.step(1, "select-k1-batch32-0", 24, 24)
    assert seen[-1].epochs == 24
    assert seen[-1].seconds_left == pytest.approx(10 * 48 + 24)


def test_a_job_is_over_when_the_messages_about_it_are_heard(tmp_path: Path) -> None:
    """The last file of a job is seen before the last message, which is then not counted twice."""
    folder = folder_of(tmp_path, small_job((SLOW,)))
    finish(folder)
    of_epochs = folder.job.protocol.model_epochs(folder.job.folds)
    seen: list[Progress] = []
    over: list[tuple[int, int | None]] = []
    meter = run._Meter(
        [folder], seen.append, (), lambda at, each: over.append((at, each.model_epochs))
    )
    meter.tick()
    assert (over, seen[-1].epochs) == ([], of_epochs)
    meter.step(0, _a_stack(folder).name, 12, 12)
    assert meter._by_job() == [of_epochs]
    meter.tick()
    meter.tick()
    assert over == [(0, 12)]


def test_a_finished_job_is_not_touched(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, small_job((SLOW,)))
    finish(folder)
    before = sorted(each.name for each in tmp_path.iterdir())
    assert run_jobs([folder_of(tmp_path, folder.job)], TWO).model_epochs is None
    assert sorted(each.name for each in tmp_path.iterdir()) == before
