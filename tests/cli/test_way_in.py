"""One way in: the data set as an argument, names in any case, and what to type next."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from ihgnn_cli.cli import console
from ihgnn_cli.cli.app import app
from ihgnn_cli.cli.runs import runs
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.studies.crossval import study
from ihgnn_cli.studies.crossval.run import Progress, Watch

SMALL = ("--width", "4", "--hidden", "8", "--layers", "1", "--epochs", "1", "--device", "cpu")


def call(*args: str | Path) -> None:
    app([str(each) for each in args], standalone_mode=False)


def refusal(*args: str | Path) -> IhgnnError:
    with pytest.raises(IhgnnError) as caught:
        call(*args)
    return caught.value


def steps(text: str) -> list[list[str]]:
    """The words of the command lines at the end."""
    lines = [line for line in text.splitlines() if re.match(r"(Next)? +ihgnn ", line)]
    assert text.rstrip().endswith(lines[-1])
    return [shlex.split(line.removeprefix("Next"))[1:] for line in lines]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in a folder whose name has a space."""
    made = tmp_path_factory.mktemp("runs") / "my run"
    call("train", "mutag", *SMALL, "--split", "0.6/0.2/0.2", "--out", made, "--quiet")
    return made


@pytest.mark.parametrize("command", ["train", "crossval", "tune"])
def test_the_argument_and_the_option_are_the_same(command: str) -> None:
    assert "nope" in str(refusal(command, "nope"))
    assert "nope" in str(refusal(command, "nope", "-d", "nope"))


def test_names_and_shares_are_recorded_as_they_are_spelled(folder: Path) -> None:
    result = json.loads((folder / "result.json").read_text())
    assert result["config"]["data"]["dataset"] == "MUTAG"
    assert result["split"] == "0.6/0.2/0.2"
    assert (result["validation"]["graphs"], result["test"]["graphs"]) == (38, 38)


def test_each_step_names_the_next_ones_ready_to_be_typed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("train", "--resume", folder)
    told = capsys.readouterr().out
    assert "Trained all 1 epoch in " in told
    evaluate, export, predict = steps(told)
    assert evaluate == ["evaluate", str(folder)]
    assert export == ["export", str(folder)]
    assert predict == ["predict", str(folder), "MUTAG"]
    call(*evaluate)
    assert [each[0] for each in steps(capsys.readouterr().out)] == ["export", "predict"]
    call(*export)
    again, check = steps(capsys.readouterr().out)
    assert check == ["check-export", str(folder / "model.onnx")]
    assert again == ["predict", str(folder / "model.onnx"), "MUTAG"]
    assert (folder / "model.json").is_file()
    call(*predict)
    call("evaluate", folder / "model.onnx")
    assert [each[0] for each in steps(capsys.readouterr().out)] == ["predict"]


def test_json_has_no_next_steps(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call("train", "--resume", folder, "--json")
    json.loads(capsys.readouterr().out)
    call("evaluate", folder, "--json", "--model", "IHGNN")
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("args", [["homophily", "mutag"], ["datasets", "check", "mutag"]])
def test_commands_about_data_lead_to_a_training(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    call(*args)
    assert ["train", "mutag"] in steps(capsys.readouterr().out)


def test_a_path_like_an_option_is_written_as_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    console.next_steps(("evaluate", Path("-x")), ("train", "--final"))
    assert capsys.readouterr().out == (
        "Next        ihgnn evaluate ./-x\n            ihgnn train --final\n"
    )


def test_the_folder_of_a_search_is_that_of_its_best_run(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for trial in (3, 12):
        shutil.copytree(folder, tmp_path / f"trial-{trial}")
    assert "holds no checkpoint" in str(refusal("evaluate", tmp_path))  # which of them?
    (tmp_path / "result.json").write_text(json.dumps({"final": {"folder": "trial-12"}}))
    call("evaluate", tmp_path, "--json")
    assert json.loads(capsys.readouterr().out)["model"] == str(tmp_path / "trial-12" / "ckpt.pt")
    call("predict", tmp_path, "MUTAG", "--csv", "-")
    call("export", tmp_path, "--force", "--no-verify")
    assert "trial-12" in capsys.readouterr().err


def test_a_cross_validation_says_how_to_get_a_model(tmp_path: Path) -> None:
    (tmp_path / "best.toml").touch()
    for args in (["evaluate", tmp_path], ["export", tmp_path], ["predict", tmp_path, "MUTAG"]):
        told = refusal(*args)
        command = f"ihgnn train --final --config {shlex.quote(str(tmp_path / 'best.toml'))}"
        assert str(told).endswith(command)
        assert told.exit_code == 2


def test_a_final_model_says_that_nothing_can_be_measured(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "final"
    call("train", "--final", "--config", folder / "config.toml", "--out", made)
    shown = capsys.readouterr()
    assert "188 training graphs, none for validation or testing; 1 epoch (all" in shown.err
    assert "Trained on all 188 graphs\n1 epoch in " in shown.out
    assert "No accuracy can be measured: no graphs are left to test." in shown.out
    assert not re.search("best|Test accuracy", shown.out)
    call("runs", tmp_path)
    assert "evaluate" not in capsys.readouterr().out
    call("evaluate", made)
    shown = capsys.readouterr()
    assert "188 of these graphs were used to train the model: this is not an estimate" in shown.err
    assert "not the one chosen" not in shown.err
    call("export", made)
    call("predict", made, "MUTAG")
    assert "has no test graphs" in str(refusal("evaluate", made, "--split", "test"))


def test_an_interrupted_cross_validation_says_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def run_jobs(_folders: Any, _where: Any, watch: Watch, **_: Any) -> None:
        watch(Progress(4, 6, 4, 6))
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "run_jobs", run_jobs)
    grid = ("--lr", "0.1", "-b", "64", "-k", "1", "--folds", "3", "--runs", "1", "-e", "1")
    out = ("--workers", "1", "--out", str(tmp_path / "cv"))
    assert app(["crossval", *grid, *out], standalone_mode=False) == 130
    told = capsys.readouterr().err
    assert "4 of 6 trainings finished and kept: the same command continues" in told


@pytest.mark.parametrize("columns", [60, 160])
def test_runs_are_listed_at_any_width(
    folder: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    monkeypatch.setenv("COLUMNS", str(columns))  # a width to keep to
    monkeypatch.setattr(console.out, "width", columns)
    with console.out.capture() as captured:
        runs(Path())
    text = captured.get()
    for word in ("my run", "train", "MUTAG", "ihgnn", "%", "finished"):
        assert word in text
    assert max(map(len, text.splitlines())) <= columns
    assert "ihgnn evaluate 'my run'" in text


def test_runs_are_listed_as_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder, tmp_path / "bad")
    (tmp_path / "bad" / "ckpt.pt").unlink()
    call("runs", tmp_path, "--json", "--sort", "accuracy")
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert (found["kind"], found["state"]) == ("train", "damaged")
    call("runs", tmp_path)
    shown = capsys.readouterr()
    assert f"{tmp_path / 'bad'} is damaged: ckpt.pt is missing." in shown.err
    assert str(refusal("runs", "--sort", "name")) == (
        "--sort must be one of date, accuracy, not 'name'."
    )


def test_without_runs_the_first_step_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    call("runs")
    assert capsys.readouterr().out == "There are no runs in runs.\nNext        ihgnn train\n"
    assert refusal("runs", "missing").exit_code == 2
