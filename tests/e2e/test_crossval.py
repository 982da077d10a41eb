"""`ihgnn crossval` as a user meets it: the table, the folder, mistakes, kills, company."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused
from started import LATER, PATIENCE, let_go, lives, start, start_script, wait_for, workers_of
from typer.testing import CliRunner
from worker_threads import use_threads

from ihgnn_cli.cli.app import app
from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits import draw_folds, write_fold_file
from ihgnn_cli.studies.crossval.records import parsed
from ihgnn_cli.studies.crossval.study import Study

GRID = ("--lr", "0.01,0.001", "--batch-size", "64", "--layers", "1")
TINY = (*GRID, "--folds", "3", "--runs", "2", "--workers", "1", "--device", "cpu")
TINY = (*TINY, "--no-references")  # those have tests of their own
SLOW = (*TINY, "--epochs", "100", "--stack", "3", "--quiet", "--no-references")
"""Two stacks of selection and two of final runs, long enough to be killed on any machine."""
BESIDE_ANOTHER = """
import sys
from ihgnn_cli.cli import main
from ihgnn_cli.api import crossval  # takes longer in one process than in the other
print("ready", flush=True)
sys.stdin.readline()
main()
"""


def numbers(text: str) -> dict:
    """What has to be the same however a job was done."""
    told = json.loads(text)
    return {key: told[key] for key in ("folds", "test_mean", "test_std", "runs", "model_epochs")}


def unit_files(folder: Path) -> dict[str, dict]:
    """The finished trainings without what differs from time to time, by name."""
    found = {}
    for path in sorted(folder.glob("units/[!.]*.jsonl")):
        for line in path.read_text().splitlines():
            record = parsed(line)
            found[record.validated.training.name] = json.loads(line) | {"seconds": 0}
    return found


def test_the_table_tells_folds_runs_and_what_was_chosen_by_what(ihgnn, tmp_path) -> None:
    two = (*TINY, "--workers", "2")
    result = ihgnn("crossval", *two, "--epochs", "2", "--plot", "folds.png")
    assert result.returncode == 0, result.stderr
    assert re.search(r"^Test accuracy \d+\.\d ± \d+\.\d %$", result.stdout, re.MULTILINE)
    assert "over folds, each the mean of 2 runs at their best validation epoch" in result.stdout
    assert "The paper: 89.9 ± 6.0 %" in result.stdout
    assert "12 models, 24 model-epochs, stacks of 3, in " in result.stdout  # one for each worker
    assert "\x1b" not in result.stdout + result.stderr
    assert (tmp_path / "folds.png").read_bytes().startswith(b"\x89PNG")
    last = [line for line in result.stderr.splitlines() if "models finished" in line][-1]
    assert last == "24 of 24 model-epochs: 12 of 12 models finished"
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.startswith("MUTAG-crossval-")
    assert len(unit_files(folder)) == 12
    again = ihgnn("crossval", *TINY, "--epochs", "2", "--json")
    told = json.loads(again.stdout)
    assert told["folder"] == str(folder.relative_to(tmp_path))
    assert told["trained_now"] == 24  # of the command that trained them
    assert told["paper"] == {"variant": "full", "mean": 0.899, "std": 0.06}
    shown = ihgnn("crossval", *TINY, "--epochs", "2")
    assert "24 model-epochs, stacks of 3: all by earlier commands" in shown.stdout
    assert "models finished" not in shown.stderr


@pytest.mark.usefixtures("thread_workers")
def test_there_are_no_more_workers_than_stacks(ihgnn) -> None:
    args = (*TINY, "--workers", "500", "--stack", "6", "--folds", "2", "--epochs", "1")
    result = ihgnn("crossval", *args, "--json")
    assert result.returncode == 0, result.stderr
    assert "2 workers on cpu" in result.stderr  # two folds may need a stack each
    assert json.loads(result.stdout)["workers"] == 2


@pytest.mark.usefixtures("thread_workers")
def test_a_figure_that_cannot_be_written_is_told_before_the_work_or_after_the_table(
    ihgnn, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = (*TINY, "--epochs", "1", "-q", "--out", "job", "--plot")
    (tmp_path / "file").touch()
    assert_refused(ihgnn("crossval", *args, "file/folds.png"), 1, "Cannot write", "folds.png")
    assert not (tmp_path / "job").exists()

    def finish_beside_a_file(*asked: Any, **more: Any) -> Any:
        (tmp_path / "figures").touch()  # where the folder was to be
        return finish(*asked, **more)

    finish = Study.finish
    monkeypatch.setattr(Study, "finish", finish_beside_a_file)
    result = ihgnn("crossval", *args, "figures/folds.png")
    assert result.returncode == 1
    assert "Test accuracy" in result.stdout
    assert result.stderr.startswith("Error: Cannot write figures/folds.png")


@pytest.mark.usefixtures("thread_workers")
def test_every_unit_tells_its_split_and_has_the_same_first_epochs_alone(ihgnn, tmp_path) -> None:
    assert ihgnn("crossval", *TINY, "--epochs", "3", "-q", "--out", "job").returncode == 0
    units = unit_files(tmp_path / "job")
    unit = units["final-fold1-split0-lr" + final_lr(units, 1) + "-batch64-k1-run0"]
    chosen = unit["unit"]["configuration"]
    arguments = ("--lr", str(chosen["lr"]), "--batch-size", "64", "--layers", "1", "--epochs", "3")
    alone = ihgnn(
        *("train", *arguments, "--seed", str(unit["seed"]), "--split", "job/splits.json:1"),
        *("--out", "alone", "--json", "-q"),
    )
    told = json.loads(alone.stdout)
    assert told["provenance"]["split_sha256"] == unit["split_sha256"]
    assert told["best_epoch"] == unit["best"]["epoch"]
    loss = told["validation"]["loss"]
    assert loss == pytest.approx(unit["best"]["validation_loss"], rel=1e-4)
    assert told["test"]["accuracy"] == pytest.approx(unit["test"]["accuracy"])


def final_lr(units: dict[str, dict], fold: int) -> str:
    (lr,) = {
        f"{each['unit']['configuration']['lr']:g}"
        for each in units.values()
        if each["unit"]["stage"] == "final" and each["unit"]["fold"] == fold
    }
    return lr


@pytest.mark.usefixtures("thread_workers")
def test_rules_are_added_later_without_changing_the_headline(ihgnn, tmp_path) -> None:
    args = ("crossval", *TINY, "--epochs", "2", "--out", "job", "--json", "-q")
    first = ihgnn(*args)
    before = unit_files(tmp_path / "job")
    second = ihgnn(*args, "--rules")
    assert second.returncode == 0, second.stderr
    assert numbers(first.stdout) == numbers(second.stdout)
    rules = {rule["key"]: rule for rule in json.loads(second.stdout)["rules"]}
    assert [key for key, rule in rules.items() if not rule["honest"]] == [
        "authors",
        "common-test-epoch",
    ]
    after = unit_files(tmp_path / "job")
    for name, content in before.items():
        if name.startswith("select"):
            assert content.pop("test") is None
            assert len(after[name].pop("test")["hits"]) == 2
        assert after[name] == content
    shown = ihgnn("crossval", *TINY, "--epochs", "2", "--out", "job", "--rules")
    assert shown.stdout.count("TEST") == 2  # in the titles of two rules
    assert "YES" in shown.stdout


@pytest.mark.usefixtures("thread_workers")
def test_split_files_and_inner_folds(ihgnn, tmp_path) -> None:
    args = (*TINY, "--epochs", "1", "-q", "--json")
    first = ihgnn("crossval", *args, "--inner-folds", "2", "--out", "drawn")
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["models"] == 2 * 3 * 2 + 3 * 2
    read = ihgnn("crossval", *args, "--split-file", "drawn/splits.json", "--out", "read")
    assert numbers(first.stdout) == numbers(read.stdout)
    wrong = ihgnn("crossval", "--split-file", "drawn/splits.json", "--folds", "10")
    assert_refused(wrong, 2, "has 3 folds, and --folds asks for 10")
    other = ihgnn("crossval", "--split-file", "drawn/splits.json", "--inner-folds", "5")
    assert_refused(other, 2, "has 2 inner folds, and --inner-folds asks for 5")


@pytest.mark.usefixtures("thread_workers")
def test_the_first_folds_of_a_split_file_are_a_result_that_says_so(ihgnn, tmp_path) -> None:
    write_fold_file(draw_folds(load_dataset("MUTAG").graph_class, 0, 10), tmp_path / "ten.json")
    args = ("crossval", *TINY, "--epochs", "2", "--split-file", "ten.json", "--out", "job")
    first = ihgnn(*args)
    assert first.returncode == 0, first.stderr
    said = "Partial result: the first 3 folds of a split file, which test 57 of 188 graphs"
    assert said in " ".join(first.stderr.split())
    assert said in " ".join(first.stdout.split())
    again = ihgnn(*args, "--rules", "--json", "-q")  # the same job, with its rules
    assert again.returncode == 0, again.stderr
    told = json.loads(again.stdout)
    assert told["partial"].startswith(said)
    assert len(told["folds"]) == 3
    assert {rule["honest"] for rule in told["rules"]} == {True, False}
    whole = ihgnn(*args, "--folds", "10")
    assert_refused(whole, 2, "job holds another crossval job")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--lr", "0.1,x"], "--lr must be a comma-separated list of numbers"),
        (["--lr", "0.1,0.1"], "names 0.1 twice"),
        (["--lr", "-1"], "lr must be"),
        (["--layers", "1.5"], "--layers must be a comma-separated list of whole numbers"),
        (["--batch-size", "0"], "--batch-size must be at least 1"),
        (["--batch-size", ""], "--batch-size must be a comma-separated list"),
        (["--folds", "1"], "at least 2"),
        (["--folds", "0"], "at least 2"),
        (["--inner-folds", "0"], "at least 1"),
        (["--folds", "500"], "188 graphs"),
        (["--runs", "0"], "must be at least 1, not 0"),
        (["--race", "--rules"], "--rules needs all configurations trained to the end"),
        (["--epochs", "0"], "epochs must be at least 1"),
        (["--stack", "none"], "--stack must be auto or a whole number from 1"),
        (["--workers", "0"], "--workers must be auto or a whole number from 1"),
        (["--workers", "100000"], "--workers must be at most 1,024 on one machine, not 100,000"),
        (["--out", ""], "--out needs the name of a folder"),
        (["--split-file", "nowhere.json"], "Cannot read nowhere.json"),
        (["--plot", "folds.gif"], ".png"),
        (["--dataset", "MUTAGG"], "Did you mean MUTAG"),
        (["--device", "tpu"], "Use auto, cpu, cuda or cuda:N"),
    ],
)
def test_mistakes_are_refused_and_leave_nothing(ihgnn, tmp_path, args, said) -> None:
    assert_refused(ihgnn("crossval", *args), 2, said)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("thread_workers")
def test_a_folder_of_something_else_is_left_alone(ihgnn, tmp_path) -> None:
    assert ihgnn("crossval", *TINY, "--epochs", "1", "-q", "--out", "job").returncode == 0
    other = ihgnn("crossval", *TINY, "--epochs", "2", "--out", "job")
    assert_refused(other, 2, "(--epochs was 1, is 2)", "Choose another --out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    assert_refused(ihgnn("crossval", "--out", "mine"), 2, "mine is not empty")
    (tmp_path / "file").touch()
    assert_refused(ihgnn("crossval", "--out", "file"), 2, "file is not a folder")
    assert_refused(ihgnn("crossval", "--out", "file/job"), 1, "Cannot write")


def test_a_folder_that_somebody_has_broken_is_told_and_can_be_mended(ihgnn, tmp_path) -> None:
    args = ("crossval", *TINY, "--epochs", "1", "-q", "--out", "job")
    assert ihgnn(*args).returncode == 0
    (tmp_path / "job" / "result.json").unlink()
    next((tmp_path / "job" / "units").glob("final-*")).unlink()
    (tmp_path / "job" / "partial").write_text("no folder")
    assert_refused(ihgnn(*args), 1, "Cannot write", "partial")
    (tmp_path / "job" / "partial").unlink()
    assert ihgnn(*args).returncode == 0


@pytest.mark.usefixtures("thread_workers")
def test_other_versions_are_warned_about(ihgnn, tmp_path) -> None:
    args = ("crossval", *TINY, "--epochs", "1", "-q", "--out", "job")
    assert ihgnn(*args).returncode == 0
    asked = tmp_path / "job" / "crossval.json"
    content = json.loads(asked.read_text())
    content["packages"]["torch"] = "1.0"
    asked.write_text(json.dumps(content))
    again = ihgnn(*args)
    assert again.returncode == 0
    assert "job was started with torch 1.0, now 2." in again.stderr
    assert "the remaining results may differ slightly" in " ".join(again.stderr.split())


@pytest.mark.usefixtures("thread_workers")
def test_divergence_is_a_result_and_not_a_failure(ihgnn) -> None:
    args = (*TINY, "--folds", "2", "--runs", "1", "--epochs", "2")
    result = ihgnn("crossval", *args, "--lr", "1e30,0.01", "--json", "-q", "--out", "job")
    told = json.loads(result.stdout)
    assert told["diverged"] == 2
    assert {fold["configuration"]["lr"] for fold in told["folds"]} == {0.01}
    alone = ihgnn("crossval", *args, "--lr", "1e30", "-q", "--out", "alone")
    assert_refused(alone, 1, "diverged", "smaller learning rates")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A job that nobody disturbed: what it printed, and its folder."""
    folder = tmp_path_factory.mktemp("undisturbed") / "job"
    with pytest.MonkeyPatch.context() as patch:
        use_threads(patch)
        done = CliRunner().invoke(app, ["crossval", *SLOW, "--json", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    return done.stdout, folder


def begun(command: str, folder: Path, *args: str) -> subprocess.Popen[str]:
    return start([command, "crossval", *SLOW, "--out", str(folder), *args])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("name", ["SIGKILL", *LATER])
@pytest.mark.usefixtures("thread_workers")  # only of the command that goes on
def test_a_killed_job_goes_on_to_the_same_numbers(command, ihgnn, tmp_path, whole, name) -> None:
    folder = tmp_path / "job"
    process = begun(command, folder)

    def stacks() -> list[Path]:
        return list(folder.glob("units/[!.]*.jsonl"))

    wait_for(stacks, process)
    workers = workers_of(process)
    assert workers
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == {"SIGKILL": -9, "SIGTERM": 143, "SIGINT": 130}[name]
    if name != "SIGKILL":
        assert "the same command continues" in said
    deadline = time.monotonic() + PATIENCE
    while any(map(lives, workers)):  # nobody goes on behind the user's back
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not (folder / "result.json").exists()
    kept = {path: path.stat().st_mtime_ns for path in stacks()}
    result = ihgnn("crossval", *SLOW, "--json", "--out", folder)
    assert result.returncode == 0, result.stderr
    told, undisturbed = whole
    assert numbers(result.stdout) == numbers(told)
    assert unit_files(folder) == unit_files(undisturbed)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was done twice
    assert json.loads(result.stdout)["trained_now"] < json.loads(told)["trained_now"]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("delay", [0, pytest.param(0.3, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "code"), [("SIGINT", 130), pytest.param("SIGTERM", 143, marks=pytest.mark.long)]
)
def test_a_signal_while_the_workers_start_is_clean(command, tmp_path, delay, name, code) -> None:
    process = begun(command, tmp_path / "job")
    wait_for(lambda: workers_of(process), process)
    time.sleep(delay)
    os.killpg(process.pid, getattr(signal, name))  # as a terminal does: to all of them
    out, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert out == ""
    assert "Traceback" not in said


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.long)])
def test_a_killed_worker_is_replaced(command, tmp_path, whole, workers) -> None:
    folder = tmp_path / "job"
    process = begun(command, folder, "--workers", workers, "--json")
    wait_for(lambda: list(folder.glob("units/[!.]*.jsonl")), process)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    told, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert "A worker was killed from outside" in said
    assert numbers(told) == numbers(whole[0])


def test_two_commands_on_one_folder_share_the_work(tmp_path, whole) -> None:
    folder = tmp_path / "job"
    arguments = ("crossval", *SLOW, "--out", folder, "--json")
    processes = [start_script(BESIDE_ANOTHER, *arguments) for _ in range(2)]
    let_go(processes)
    told = []
    for process in processes:
        out, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        told.append(json.loads(out))
        assert numbers(out) == numbers(whole[0])
    assert unit_files(folder) == unit_files(whole[1])
    # What one command trained the other did not.
    assert sum(each["trained_now"] for each in told) == told[0]["model_epochs"]


def test_a_terminal_gets_a_live_bar(in_terminal) -> None:
    text = in_terminal("crossval", *TINY, "--epochs", "20")
    assert "model-epochs" in text
    assert "models finished" in text
