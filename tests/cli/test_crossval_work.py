"""`ihgnn crossval` with next to nothing to train, in this process: what it keeps and says."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from ihgnn_cli.api import crossval as api
from ihgnn_cli.cli.app import app
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.local import work
from ihgnn_cli.jobs.queue import Callback, Queue

DATA = "synthetic:graphs=12,nodes=12,degree=2"
ARGS = ("--folds", "2", "--runs", "1", "--lr", "0.01", "--batch-size", "8", "--epochs", "9")


@pytest.fixture(autouse=True)
def in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def here(queue: Queue, callback: Callback) -> None:
        work(queue, "cpu", callback)

    def executor(_device: str, _workers: int | None) -> Executor:
        return Executor(1, torch.device("cpu"), 2**34, here)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(api, "local_executor", executor)


def crossval(*args: str) -> tuple[dict[str, Any], str]:
    """The result, and what is said on standard error."""
    done = CliRunner().invoke(
        app, ["crossval", DATA, *ARGS, "--no-references", "--out", "job", "--json", *args]
    )
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), " ".join(done.stderr.split())


def test_fewer_repeats_than_a_finished_job_has_keep_all_of_them_and_say_so() -> None:
    both, _ = crossval("--layers", "1", "--repeats", "2")
    before = Path("job/result.json").read_bytes()
    again, said = crossval("--layers", "1")
    assert (
        "job has 2 finished partitions and keeps them. To compute 1 repeat, choose another --out."
    ) in said
    assert again == both
    assert len(again["folds"]) == 4
    assert Path("job/result.json").read_bytes() == before


def test_every_output_of_a_race_says_that_it_is_another_procedure_than_the_papers() -> None:
    race = ("--layers", "1,2", "--race")
    result, said = crossval(*race)
    words = (
        "for 9 epochs, keeping the best third by validation, rounded up, each time. This is a "
        "different selection procedure from the paper's, which trains every configuration for 350 "
        "epochs."
    )
    assert words in result["race"]
    assert words in said
    assert result["chosen_by"].endswith(", in a race")
    args = ["crossval", DATA, *ARGS, *race, "--no-references", "--out", "job", "--plot", "f.svg"]
    shown = CliRunner().invoke(app, args).stdout
    assert words in " ".join(shown.split())
    assert "chosen in a race" in Path("f.svg").read_text(encoding="utf-8")
    assert ", in a race." in Path("job/best.toml").read_text(encoding="utf-8")
    (found,) = json.loads(CliRunner().invoke(app, ["runs", "job", "--json"]).stdout)["runs"]
    assert found["procedure"] == "race"
    assert found["roc_auc"] == result["roc_auc"]
    assert found["balanced_accuracy"] == result["balanced_accuracy"]


def test_without_references_the_screen_has_balanced_accuracy_and_roc_auc() -> None:
    result, _ = crossval("--layers", "1")
    args = ["crossval", DATA, *ARGS, "--layers", "1", "--no-references", "--out", "job"]
    shown = CliRunner().invoke(app, args).stdout
    balanced, auc = result["balanced_accuracy"], result["roc_auc"]
    assert f"ROC-AUC {auc:.3f}, balanced accuracy {balanced:.1%}" in shown


def test_a_finished_job_in_a_folder_that_cannot_be_written_is_shown(permissions: None) -> None:
    result, _ = crossval("--layers", "1")
    closed = [each for each in (Path("job"), *Path("job").rglob("*")) if each.is_dir()]
    for each in closed:
        each.chmod(0o500)
    try:
        again, _ = crossval("--layers", "1")
    finally:
        for each in closed:
            each.chmod(0o700)
    assert again == result
