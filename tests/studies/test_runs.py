"""Run folders are found and described by their small files alone."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from finished_crossvals import result
from typer.testing import CliRunner

from ihgnn_cli.cli import console
from ihgnn_cli.cli.app import app
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.crossval.result import RepeatResult
from ihgnn_cli.studies.runs import Kind, Order, State, find_runs
from ihgnn_cli.training.config import RunConfig, configure, write_config
from ihgnn_cli.training.kinds import Recipe

SECTIONS: dict[str, Any] = {
    "data": {"dataset": "MUTAG", "features": "auto"},
    "model": {"name": "gin", "width": 32},
    "training": {"epochs": 5},
}


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def train(folder: Path, day: int, config: RunConfig | None = None, **result: Any) -> Path:
    folder.mkdir(parents=True)
    write_config(config or RunConfig(), folder / "config.toml")
    (folder / "splits.json").touch()
    (folder / "ckpt.pt").touch()
    finished = f"2026-03-{day:02}T10:00:00+00:00"
    best = {"dataset": "MUTAG", "best_epoch": 4, "test": {"accuracy": 0.5}, "finished": finished}
    write(folder / "result.json", {**best, **result})
    return folder


def crossval(folder: Path) -> None:
    protocol = {**SECTIONS, "grid": [{"lr": 0.1}, {"lr": 0.2}], "runs": 3}
    identity = {"protocol": protocol, "folds": 10, "inner_folds": 1}
    write(folder / "crossval.json", {"identity": identity})


def test_every_kind_of_folder_is_described(tmp_path: Path) -> None:
    train(tmp_path / "run", 1)
    train(tmp_path / "final", 2, test=None)
    crossval(tmp_path / "cv")
    done = result(test_mean=0.75, test_std=0.1, finished="2026-03-03T10:00:00+00:00")
    done.write(tmp_path / "cv")
    crossval(tmp_path / "book" / "cells" / "MUTAG" / "gin")
    write(tmp_path / "search" / "tune.json", {"identity": SECTIONS})
    train(tmp_path / "search" / "trial-3", 9)  # belongs to the search
    final = {"test": {"accuracy": 0.8}, "best_epoch": 2}
    found = {"params": {"lr": 0.3}}
    write(
        tmp_path / "search" / "result.json",
        {"best": found, "final": final, "finished": "2026-03-04T10:00:00+00:00"},
    )
    by_name = {each.folder.name: each for each in find_runs(tmp_path)}
    assert list(by_name) == ["gin", "search", "cv", "final", "run"]  # the newest first
    told = {
        name: (each.kind, each.state, each.model, each.accuracy, each.epoch)
        for name, each in by_name.items()
    }
    assert told == {
        "gin": (Kind.REPRODUCE, State.RESUMABLE, "gin", None, None),
        "search": (Kind.TUNE, State.FINISHED, "gin", 0.8, 2),
        "cv": (Kind.CROSSVAL, State.FINISHED, "gin", 0.75, None),
        "final": (Kind.TRAIN, State.FINISHED, "ihgnn", None, 4),
        "run": (Kind.TRAIN, State.FINISHED, "ihgnn", 0.5, 4),
    }
    assert {each.dataset for each in by_name.values()} == {"MUTAG"}
    assert by_name["cv"].accuracy_std == 0.1
    assert by_name["search"].found == {"lr": 0.3}
    best = find_runs(tmp_path, Order.ACCURACY)
    assert [each.folder.name for each in best] == ["search", "cv", "run", "gin", "final"]


def test_settings_that_are_not_the_defaults_are_shown_whatever_other_runs_there_are(
    tmp_path: Path,
) -> None:
    train(tmp_path / "plain", 1)
    for day in (2, 3):
        other = configure(overrides={"lr": 0.5, "split": "0.6/0.2/0.2"})
        train(tmp_path / f"other-{day}", day, other)
    crossval(tmp_path / "cv")
    by_name = {each.folder.name: each for each in find_runs(tmp_path)}
    assert {name: dict(each.differing) for name, each in by_name.items()} == {
        "plain": {},
        "other-2": {"split": "0.6/0.2/0.2", "lr": 0.5},
        "other-3": {"split": "0.6/0.2/0.2", "lr": 0.5},
        "cv": {"epochs": 5, "lr": [0.1, 0.2], "configurations": 2},
    }
    assert by_name["plain"].settings["lr"] == 0.001
    write(tmp_path / "cv" / "crossval.json", json.loads(unknown_model(tmp_path)))
    (found,) = find_runs(tmp_path / "cv")
    assert found.differing == found.settings  # the defaults of another package are not known


def unknown_model(folder: Path) -> str:
    text = (folder / "cv" / "crossval.json").read_text()
    return text.replace('"gin"', '"not-installed"')


def test_a_run_without_a_result_is_resumable(tmp_path: Path) -> None:
    folder = train(tmp_path / "run", 1, configure(overrides={"dataset": "/data/my graphs.jsonl"}))
    (folder / "result.json").unlink()
    (folder / "metrics.jsonl").write_text('{"epoch": 1}\n{"epoch": 2}\n')
    os.utime(folder / "metrics.jsonl", (4e9, 4e9))
    (found,) = find_runs(folder)
    assert (found.state, found.epoch, found.dataset) == (State.RESUMABLE, 2, "my graphs")
    assert found.date.year == 2096


def test_an_unfinished_run_has_the_name_of_its_data_without_the_ending(tmp_path: Path) -> None:
    for name, expected in (
        ("synthetic:homophily=0.3", "synthetic:homophily=0.3"),
        ("/data/NCI1.zip", "NCI1"),
        ("v1.2.csv", "v1.2"),
    ):
        folder = train(tmp_path / expected, 1, configure(overrides={"dataset": name}))
        (folder / "result.json").unlink()
        assert [each.dataset for each in find_runs(folder)] == [expected]


def test_a_file_that_vanishes_does_not_end_the_list(tmp_path: Path) -> None:
    folder = train(tmp_path / "run", 1)
    (folder / "temporary").symlink_to(folder / "gone")  # listed, but has no date
    assert [each.state for each in find_runs(tmp_path)] == [State.FINISHED]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("result.json", "{", "result.json cannot be read"),
        ("result.json", "[]", "result.json holds no object"),
        ("result.json", "{}", "KeyError"),
        ("config.toml", "[", "config.toml cannot be read"),
        ("config.toml", "model = 3", "AttributeError"),
        ("ckpt.pt", None, "ckpt.pt is missing"),
        ("splits.json", None, "splits.json is missing"),
    ],
)
def test_a_damaged_folder_is_listed_beside_the_others(
    tmp_path: Path, name: str, content: str | None, problem: str
) -> None:
    train(tmp_path / "good", 1)
    folder = train(tmp_path / "bad", 2)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    found = {each.folder.name: each for each in find_runs(tmp_path)}
    assert found["good"].state == State.FINISHED
    assert found["bad"].state == State.DAMAGED
    assert problem in found["bad"].problem


def test_other_folders_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "config.toml").touch()  # not a run
    train(tmp_path / ".run-1a2b", 1)  # being made
    assert find_runs(tmp_path) == []
    with pytest.raises(InputError, match="There is no folder"):
        find_runs(tmp_path / "missing")


def test_torch_is_not_needed() -> None:
    code = "import sys, ihgnn_cli.studies.runs\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_races_and_snapshots_are_marked_and_all_scores_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {"balanced_accuracy": 0.4, "roc_auc": 0.7}
    train(tmp_path / "run", 1, test={"accuracy": 0.5, **scores})
    train(tmp_path / "robust", 2, configure(recipe=Recipe.ROBUST))
    race = {**SECTIONS, "grid": [{"lr": 0.1}], "runs": 3, "race": [[2, 3], [None, 1]]}
    identity = {"protocol": race, "folds": 10, "inner_folds": 1}
    write(tmp_path / "race" / "crossval.json", {"identity": identity})
    by_name = {each.folder.name: each for each in find_runs(tmp_path)}
    found = {name: each.procedure for name, each in by_name.items()}
    assert found == {"run": "", "robust": "snapshots", "race": "race"}
    run, robust = by_name["run"], by_name["robust"]
    assert (run.accuracy, run.balanced_accuracy, run.roc_auc) == (0.5, 0.4, 0.7)
    assert (robust.accuracy, robust.balanced_accuracy) == (0.5, None)  # of an older version
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(console.out, "width", 200)
    shown = CliRunner().invoke(app, ["runs", "."]).stdout
    assert "crossval, race" in shown
    assert "train, snapshots" in shown


def test_a_result_over_several_partitions_says_so(tmp_path: Path) -> None:
    for name, seeds in (("one", [0]), ("two", [0, 1])):
        crossval(tmp_path / name)
        repeats = tuple(RepeatResult(seed, 0.5, 0.1) for seed in seeds)
        result(repeats=repeats).write(tmp_path / name)
    found = {each.folder.name: each.differing.get("repeats") for each in find_runs(tmp_path)}
    assert found == {"one": None, "two": 2}
