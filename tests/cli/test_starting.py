"""Lists and refusals need no torch, and name the option and the value as they were typed."""

import subprocess
import sys
from pathlib import Path

import pytest

from ihgnn_cli.cli import app as module
from ihgnn_cli.cli.app import app

REFUSALS = [
    "train --epochs 0",
    "train --epochs many",
    "train --dataset nope.jsonl",
    "train --dataset MUTAGG",
    "train --split nope.json",
    "train --split fold:10",
    "train --device abacus",
    "train --out full",
    "train --resume full",
    "train --model gin --set nope=1",
    "train --model graphormer --set heads=3",
    "tune --lr 0.1-0.2",
    "tune --batch-size 0",
    "tune --dataset nope.jsonl",
    "crossval --layers x",
    "crossval --batch-size 0",
    "crossval --folds 1",
    "crossval --folds 1000",
    "crossval --runs 0",
    "crossval --split-file nope.json",
    "crossval --split-file full/file --repeats 2",
    "crossval --repeats 0",
    "crossval --race --rules",
    "crossval --out full",
    "crossval --out full/file",
    "tune --storage mysql://somewhere",
    "tune --storage journal:",
    "tune --out full",
    "signal --permutations -1",
    "signal --folds 1",
    "signal nope.jsonl",
    "reproduce table1 --models nope",
    "reproduce table1 --datasets nope.jsonl",
    "reproduce table1 --seed -1",
    "reproduce table1 --splits full --repeats 2",
    "reproduce table1 --repeats 0",
    "crossval --conformal 1",
    "evaluate nope",
    "evaluate full/file --conformal 0",
    "export full/file --conformal 2",
    "predict full/file MUTAG --conformal nan",
    "evaluate full",
    "evaluate full/file --dataset nope.jsonl",
    "export nope model.onnx",
    "export full/file model.onnx",
    "export full/file model.txt",
    "check-export nope.onnx",
    "predict nope MUTAG",
    "predict full/file nope.jsonl",
    "serve nope.onnx",
    "serve full/file",
    "serve full/file --batch-size 0",
    "serve full/file --port 70000",
    "models nope",
]
WITHOUT_TORCH = """
import sys

class Forbid:
    def find_spec(self, name, path=None, target=None):
        assert name != "torch", "torch is imported"

sys.meta_path.insert(0, Forbid())
from ihgnn_cli.cli.app import _run

for line in sys.stdin.read().splitlines():
    sys.argv = ["ihgnn", *line.split()]
    print("code", _run(), line, flush=True)
"""


def without_torch(lines: list[str], folder: Path) -> list[str]:
    """The exit code of each command, in one new process that cannot import torch."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH],
        input="\n".join(lines),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "torch is imported" not in done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("code ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with something that is neither data nor a model."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    return tmp_path


UNWRITABLE = ["crossval --out full/file/inside", "tune --out full/file/inside"]


def test_a_folder_that_cannot_be_made_is_refused_before_torch_is_imported(folder: Path) -> None:
    assert without_torch(UNWRITABLE, folder) == [f"code 1 {line}" for line in UNWRITABLE]


def test_wrong_values_are_refused_before_torch_is_imported(folder: Path) -> None:
    assert without_torch(REFUSALS, folder) == [f"code 2 {line}" for line in REFUSALS]


def test_models_documentation_and_data_are_shown_without_torch(folder: Path) -> None:
    lines = ["models", "models gin", "models --json", "datasets"]
    lines += ["homophily MUTAG"]
    assert without_torch(lines, folder) == [f"code 0 {line}" for line in lines]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train --epochs many", "'--epochs' / '-e': 'many' is not a whole number."),
        ("train --epochs 1.5", "'--epochs' / '-e': '1.5' is not a whole number."),
        ("train --lr fast", "'--lr': 'fast' is not a number."),
        ("crossval --runs 0", "'--runs': it must be at least 1, not 0."),
        ("tune --port 99999", "'--port': it must be at most 65535, not 99999."),
        ("train --batch-size 0", "Error: --batch-size must be at least 1, not 0."),
        ("crossval --batch-size 32,0", "Error: --batch-size must be at least 1, not 0."),
        ("tune --batch-size 0", "Error: --batch-size must be at least 1, not 0."),
        ("train --label-smoothing 2", "Error: --label-smoothing must be at least 0 and below 1"),
        ("train --set width=0", "Error: --set: width must be at least 1, not 0."),
        ("train --config batch.toml", "Error: batch.toml: batch_size must be at least 1, not 0."),
    ],
)
def test_messages_name_the_option_as_it_is_typed_and_the_value_given(
    line: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "batch.toml").write_text("[training]\nbatch_size = 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ihgnn", *line.split()])
    assert module._run() == 2
    assert said in capsys.readouterr().err


def test_a_training_says_at_once_what_it_read_and_then_a_line_per_tenth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["--width", "4", "--hidden", "4", "--layers", "1", "--device", "cpu"]
    app(["train", *small, "--epochs", "30", "-b", "256"], standalone_mode=False)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == (
        "Read MUTAG: 188 graphs, 3,371 nodes, 7 node labels, 2 classes. Starting PyTorch ..."
    )
    epochs = [line.split(":")[0] for line in lines if " epochs: " in line]
    assert epochs == ["1 of 30 epochs", *(f"{each} of 30 epochs" for each in range(3, 31, 3))]
