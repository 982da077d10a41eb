"""`ihgnn train` as a user meets it: results, folders, mistakes, kills."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from refusals import assert_refused
from started import LATER, PATIENCE, start, wait_for

from ihgnn_cli.cli.app import app

SMALL = ("--width", "4", "--hidden", "8", "--layers", "2", "--device", "cpu")


def weights(path: Path) -> dict[str, torch.Tensor]:
    return torch.load(path, weights_only=True)["weights"]


def assert_same_weights(one: Path, other: Path) -> None:
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_without_options_it_trains_on_mutag_and_says_what_comes_next(ihgnn, tmp_path) -> None:
    result = ihgnn("train", "--epochs", "3")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Test accuracy ")
    assert "One run on 19 test graphs" in result.stdout
    checkpoint = Path("runs") / "MUTAG-1" / "ckpt.pt"
    for command in ("evaluate", "export", "predict"):
        assert f" ihgnn {command} {checkpoint.parent}" in result.stdout
    assert (tmp_path / checkpoint).is_file()
    assert (tmp_path / "runs/MUTAG-1/curves.png").read_bytes().startswith(b"\x89PNG")
    lines = [line for line in result.stderr.splitlines() if " of 3 epochs: " in line]
    assert len(lines) == 3
    assert "\x1b" not in result.stdout + result.stderr


def test_json_is_the_result_alone(ihgnn, tmp_path) -> None:
    result = ihgnn("train", *SMALL, "--epochs", "2", "--out", "run", "--json", "--quiet")
    told = json.loads(result.stdout)
    assert result.stderr == ""
    written = json.loads((tmp_path / "run" / "result.json").read_text())
    assert told == {**written, "folder": "run", "checkpoint": str(Path("run") / "ckpt.pt")}
    assert told["provenance"]["command"].startswith("ihgnn train --width 4")
    assert told["config"]["model"]["width"] == 4


def test_the_command_line_wins_over_the_file_and_the_file_over_the_recipe(ihgnn, tmp_path) -> None:
    (tmp_path / "mine.toml").write_text("[training]\nepochs = 1\nlr = 0.5\n[model]\nwidth = 4\n")
    args = ("--recipe", "authors", "--config", "mine.toml", "--lr", "0.01", "--out", "run")
    assert ihgnn("train", *args).returncode == 0
    config = (tmp_path / "run" / "config.toml").read_text()
    for line in ("lr = 0.01", "epochs = 1", "width = 4", 'sort_order = "descending"'):
        assert f"\n{line}\n" in config


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--lr", "0"], "lr"),
        (["--epochs", "0"], "epochs"),
        (["--dropout", "1"], "dropout"),
        (["--variant", "best"], "no-concat"),
        (["--split", "fold:10"], "10"),
        (["--split", "nowhere.json"], "nowhere.json"),
        (["--device", "tpu"], "tpu"),
        (["--dataset", "MUTAGG"], "MUTAG"),
        (["--config", "nowhere.toml"], "nowhere.toml"),
        (["--resume", "nowhere"], "nowhere"),
        (["--out", ""], "--out"),
        (["--resume", "nowhere", "--lr", "1"], "--lr"),
    ],
)
def test_mistakes_are_refused_and_leave_nothing(ihgnn, tmp_path, args, said) -> None:
    assert_refused(ihgnn("train", *args), 2, said)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_not_replaced_in_silence(ihgnn) -> None:
    assert_refused(ihgnn("train", "--device", "cuda"), 2, "cuda", "cpu")


def test_places_that_cannot_be_written_are_failures(ihgnn, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    assert_refused(ihgnn("train", "--out", "file/run", "-q"), 1, "file")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is of Linux")
def test_a_full_disk_is_a_clear_failure(ihgnn, tmp_path) -> None:
    assert ihgnn("train", *SMALL, "-q", "--epochs", "1", "--out", "run").returncode == 0
    (tmp_path / "run" / "metrics.jsonl").unlink()
    (tmp_path / "run" / "metrics.jsonl").symlink_to("/dev/full")
    result = ihgnn("train", "-q", "--resume", "run", "--epochs", "2")
    assert_refused(result, 1, "No space left on device")


@pytest.mark.skipif(os.name == "nt", reason="limits are of Unix")
def test_a_checkpoint_that_does_not_fit_is_a_clear_failure(command, tmp_path) -> None:
    import resource

    args = [command, "train", "--device", "cpu", "--quiet", "--epochs", "2", "--out", "run"]
    result = subprocess.run(
        args,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        # A file may have a megabyte: everything fits but the weights with Adam's moments.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
    )
    assert_refused(result, 1, "last.pt", "File too large")
    assert not (tmp_path / "run").exists()  # nothing was saved that could be continued


def test_divergence_is_explained(ihgnn) -> None:
    assert_refused(ihgnn("train", *SMALL, "-q", "--lr", "1e30"), 1, "--lr", "1e+30")


def test_a_run_is_never_overwritten(ihgnn, tmp_path) -> None:
    assert ihgnn("train", *SMALL, "-q", "--epochs", "1", "--out", "run").returncode == 0
    before = (tmp_path / "run" / "ckpt.pt").read_bytes()
    assert_refused(ihgnn("train", "--out", "run"), 2, "--resume run")
    assert (tmp_path / "run" / "ckpt.pt").read_bytes() == before
    again = ihgnn("train", "--resume", "run")
    assert "is finished" in again.stderr
    assert again.stdout.startswith("Test accuracy ")


def test_tensorboard_is_written_when_asked_for(ihgnn, tmp_path) -> None:
    pytest.importorskip("tensorboard")
    result = ihgnn("train", *SMALL, "-q", "--epochs", "2", "--out", "run", "--tensorboard")
    assert result.returncode == 0, result.stderr
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert [each.step for each in events.Scalars("loss/validation")] == [1, 2]


LONG = ("train", *SMALL, "--epochs", "300", "--seed", "3", "--quiet")
SAVING = """
from ihgnn_cli.cli import main
from ihgnn_cli.training import run
run._SAVE_SECONDS = 0.0  # save after every epoch: a fast machine might end before the first save
main()
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    app([*LONG, "--out", str(folder)], standalone_mode=False)
    return folder


@pytest.mark.skipif(os.name == "nt", reason="signals are of Unix")
@pytest.mark.parametrize("name", ["SIGKILL", *LATER])
def test_a_killed_run_goes_on_to_the_same_weights(ihgnn, tmp_path, whole, name) -> None:
    folder = tmp_path / "killed"
    process = start([sys.executable, "-c", SAVING, *LONG, "--out", str(folder)], cwd=tmp_path)
    last = folder / "last.pt"

    def has_epochs() -> bool:
        return last.is_file() and torch.load(last, weights_only=True)["progress"]["stack"]["epoch"]

    wait_for(has_epochs, process)  # the test is about continuing, not about starting again
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == {"SIGKILL": -9, "SIGTERM": 143, "SIGINT": 130}[name]
    if name != "SIGKILL":
        assert f"Continue with: ihgnn train --resume {folder}" in said
    assert not (folder / "result.json").exists()
    result = ihgnn("train", "--resume", folder, "--quiet")
    assert result.returncode == 0, result.stderr
    for file in ("last.pt", "ckpt.pt"):
        assert_same_weights(whole / file, folder / file)
    for file in ("metrics.jsonl", "splits.json", "config.toml"):
        assert (whole / file).read_bytes() == (folder / file).read_bytes()
    assert not list(folder.glob(".*.part*"))


def test_a_terminal_gets_a_live_bar(in_terminal) -> None:
    text = in_terminal("train", *SMALL, "--epochs", "60")
    assert "val loss" in text
    assert re.search(r"\d+/60", text)
    assert "1 of 60 epochs: " not in text


def test_a_synthetic_data_set_is_made_again_from_its_name(ihgnn, tmp_path: Path) -> None:
    small = ("--width", "8", "--hidden", "8", "--device", "cpu", "--quiet")
    given = "synthetic:seed=1,graphs=60"
    trained = ihgnn("train", "--dataset", given, "--epochs", "2", *small)
    assert trained.returncode == 0, trained.stderr
    run = tmp_path / "runs" / "synthetic_homophily_0.5_graphs_60_seed_1-1"
    name = "synthetic:homophily=0.5,graphs=60,seed=1"
    assert f'dataset = "{name}"' in (run / "config.toml").read_text()
    resumed = ihgnn("train", "--resume", run, "--epochs", "3", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    evaluated = ihgnn("evaluate", run)
    assert evaluated.returncode == 0, evaluated.stderr
    assert f"on {name} (generated): test graphs" in evaluated.stdout
    predicted = ihgnn("predict", run, "synthetic:graphs=4,homophily=0.1", "--csv", "-")
    assert predicted.returncode == 0, predicted.stderr
    assert len(predicted.stdout.splitlines()) == 5
