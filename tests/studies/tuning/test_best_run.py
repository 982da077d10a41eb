"""The final run: trained once, resumed, and never mixed with other settings."""

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import locked
from ihgnn_cli.studies.tuning import best_run
from ihgnn_cli.studies.tuning.best_run import earlier_runs, run_folder, train_best
from ihgnn_cli.training import folder as runs
from ihgnn_cli.training import run
from ihgnn_cli.training.config import RunConfig, configure
from ihgnn_cli.training.epoch import Epoch

SMALL = {"epochs": 4, "width": 4, "hidden": 8, "layers": 2, "batch_size": 64, "device": "cpu"}
not_windows = pytest.mark.skipif(os.name == "nt", reason="the system has no such locks")


def config(**changes: object) -> RunConfig:
    return configure(overrides={**SMALL, **changes})


def started(folder: Path) -> run.Prepared:
    return run.start(run.prepare(config()), folder)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Watched(list[int]):
    """The epochs that were trained."""

    def __call__(self, epoch: Epoch, best: Epoch) -> None:
        self.append(epoch.epoch)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses while another process was waited for."""
    found: list[float] = []
    monkeypatch.setattr(best_run.time, "sleep", found.append)
    return found


def test_the_best_settings_are_an_ordinary_run(tmp_path: Path) -> None:
    epochs = Watched()
    result = train_best(config(), run_folder(tmp_path, 7), epochs, command="ihgnn tune")
    assert epochs == [1, 2, 3, 4]
    assert runs.finished(tmp_path / "trial-7") == result
    assert result["provenance"]["command"] == "ihgnn tune"
    ordinary = run.fit(started(tmp_path / "run"), tmp_path / "run")
    assert result["test"]["accuracy"] == ordinary.test.accuracy
    assert result["best_epoch"] == ordinary.best.epoch


def test_a_finished_run_is_returned_without_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "trial-0"
    result = train_best(config(), folder)
    before = content(folder)
    monkeypatch.setattr(run, "prepare", lambda *_, **__: 1 / 0)
    assert train_best(config(), folder) == result
    assert content(folder) == before


def test_an_interrupted_run_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_SAVE_SECONDS", 0.0)
    whole = train_best(config(), tmp_path / "whole")

    def interrupt(epoch: Epoch, best: Epoch) -> None:
        if epoch.epoch == 2:
            raise KeyboardInterrupt

    folder = tmp_path / "trial-0"
    with pytest.raises(KeyboardInterrupt):
        train_best(config(), folder, interrupt)
    epochs = Watched()
    again = train_best(config(), folder, epochs)
    assert epochs == [3, 4]
    for part in ("best_epoch", "validation", "test"):
        assert again[part] == whole[part]


@pytest.mark.parametrize(
    "changes",
    [{"lr": 0.5}, {"batch_size": 32}, {"layers": 1}, {"width": 8}, {"epochs": 5}, {"seed": 1}],
)
@pytest.mark.parametrize("done", [True, False])
def test_a_run_with_other_settings_is_refused_and_not_changed(
    tmp_path: Path, changes: dict[str, object], done: bool
) -> None:
    """For example, of a trial with the same number in another study."""
    folder = tmp_path / "trial-0"
    started(folder)
    if done:
        test = {"test": {"accuracy": 1.0}, "validation": {"accuracy": 1.0}}
        runs.write_result(test, folder)
    before = content(folder)
    with pytest.raises(InputError, match=r"holds a run with other settings .* another --out"):
        train_best(config(**changes), folder)
    assert content(folder) == before


def test_other_features_are_other_settings(tmp_path: Path) -> None:
    asked = config()
    folder = tmp_path / "trial-0"
    started(folder)
    given = replace(asked, data=replace(asked.data, features="both"))
    with pytest.raises(InputError, match="holds a run with other settings"):
        train_best(given, folder)


def test_the_device_and_the_name_of_the_split_may_differ(tmp_path: Path) -> None:
    """On another device, and with the same split by another name."""
    asked = config()
    folder = tmp_path / "trial-0"
    started(folder)
    given = replace(
        asked,
        data=replace(asked.data, split=str(folder / runs.SPLITS)),
        training=replace(asked.training, device="auto"),
    )
    epochs = Watched()
    train_best(given, folder, epochs)
    assert epochs == [1, 2, 3, 4]


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "trial-0"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        train_best(config(), folder)
    assert content(folder) == {"notes.txt": b"mine"}


@not_windows
@pytest.mark.parametrize("finishes", [True, False])
def test_another_process_that_trains_the_run_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finishes: bool
) -> None:
    """Whether it finishes the run, or is killed so that this process resumes it."""
    folder = tmp_path / "trial-0"
    begun = started(folder)
    other = ExitStack()
    other.enter_context(locked(folder))
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            other.close()
            if finishes:
                run.fit(begun, folder, command="the other")

    monkeypatch.setattr(best_run.time, "sleep", pause)
    epochs = Watched()
    result = train_best(config(), folder, epochs, command="mine")
    assert len(pauses) == 2
    assert epochs == ([] if finishes else [1, 2, 3, 4])
    assert result["provenance"]["command"] == ("the other" if finishes else "mine")


def test_another_process_may_create_the_run_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    folder = tmp_path / "trial-0"
    real = run.start

    def start(prepared: run.Prepared, target: Path) -> run.Prepared:
        real(prepared, target)
        return real(prepared, target)  # which is there now

    monkeypatch.setattr(run, "start", start)
    epochs = Watched()
    train_best(config(), folder, epochs)
    assert len(pauses) == 1
    assert epochs == [1, 2, 3, 4]


def test_other_trials_that_were_tested_are_found(tmp_path: Path) -> None:
    """Not a run that was only started, and no other folders."""
    assert earlier_runs(tmp_path, 4) == []
    for name in ("trial-10", "trial-4", "trial-3", "trial-x", "trial-", "other-5"):
        (tmp_path / name).mkdir()
        (tmp_path / name / runs.RESULT).touch()
    (tmp_path / "trial-7").mkdir()
    (tmp_path / runs.RESULT).touch()
    assert earlier_runs(tmp_path, 4) == [3, 10]
    assert earlier_runs(tmp_path, 5) == [3, 4, 10]
