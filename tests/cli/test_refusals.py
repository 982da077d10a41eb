"""What commands refuse: the exit code, and the words that a user needs, in at most two lines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ihgnn_cli.cli import app as module

# A command line, and words of its message. Refused with exit code 2, before torch is imported.
BEFORE_TORCH: list[tuple[str, ...]] = [
    ("train --epochs 0", "--epochs", "at least 1", "0"),
    ("train --epochs many", "--epochs", "many", "train --help"),
    ("train --epochs 1.5", "--epochs", "1.5"),
    ("train --lr fast", "--lr", "fast"),
    ("train --lr 0", "--lr", "above 0", "0"),
    ("train --batch-size 0", "--batch-size", "at least 1", "0"),
    ("train --weight-decay -1", "--weight-decay", "-1"),
    ("train --label-smoothing 2", "--label-smoothing", "below 1", "2"),
    ("train --layers -1", "--layers", "at least 0", "-1"),
    ("train --hidden -12345678", "--hidden", "-12345678"),
    ("train --seed -1", "--seed", "-1"),
    ("train --ensemble 0", "--ensemble", "at least 1"),
    ("train --ensemble 1001", "--ensemble", "1,000", "1,001"),
    ("train --snapshots 5 --patience 3", "--patience", "0"),
    ("train --inputs colour", "colour"),
    ("train --sort-key aggregated", "--sort-key"),
    ("train --dataset nope.jsonl", "nope.jsonl"),
    ("train --dataset MUTAGG", "MUTAGG", "MUTAG"),
    ("train MUTAG --dataset PROTEINS", "MUTAG", "--dataset PROTEINS"),
    ("train --split nope.json", "nope.json"),
    ("train --split fold:10", "fold 10"),
    ("train --split 0.8/0.3/0.1", "0.8/0.3/0.1"),
    ("train --device abacus", "abacus", "cuda:N"),
    ("train --out full", "full", "--out"),
    ("train --out full/file", "full/file", "not a folder", "--out"),
    ("train --resume full", "full", "holds no run"),
    ("train --resume full --lr 1", "--lr", "resumed"),
    ("train --final", "--epochs", "--config"),
    ("train --final --patience 3 -e 2", "--patience"),
    ("train --final --split fold:1 -e 2", "--split"),
    ("train --config nope.toml", "nope.toml", "No such file"),
    ("train --config batch.toml", "batch.toml", "batch_size", "0"),
    ("train --config full/file --recipe robust --set a", "--set", "NAME=VALUE", "'a'"),
    ("train --config /dev/zero", "/dev/zero", "larger than"),
    ("train --config large.toml", "large.toml", "larger than"),
    ("train --resume endless", "endless/config.toml", "larger than"),
    ("train --set width=0", "--set", "width", "0"),
    ("train --model gim", "gim", "gin"),
    ("train --model gin --set nope=1", "nope"),
    ("train --model gin --set learn_eps=2", "learn_eps", "true or false", "2"),
    ("train --model gin --variant full", "--variant", "ihgnn", "gin"),
    ("train --model gin --recipe authors", "gin", "authors"),
    ("train --model gin --hidden 7", "--hidden", "7", "gin"),
    ("train --model pgcn --set hidden=7", "hidden", "7", "pgcn"),
    ("train --model ppgn --hidden 7", "--hidden", "7", "ppgn"),
    ("train --model gnnml --set design=proteins --hidden 7", "hidden", "7", "gnnml"),
    ("train --model graphormer --set heads=3", "heads"),
    ("train --model gin --edge-labels", "--edge-labels", "gin"),
    ("train --edge-bins 65", "--edge-bins", "65"),
    ("train --edge-bins 0", "--edge-bins", "0"),
    ("train --edge-bins 4", "MUTAG", "edge attributes"),
    ("train --edge-bins 2 --variant no-separation", "--edge-bins"),
    ("tune --lr 0.1-0.2", "lr", "0.1-0.2"),
    ("tune --batch-size 0", "--batch-size", "0"),
    ("tune --dataset nope.jsonl", "nope.jsonl"),
    ("tune --out full", "full"),
    ("tune --model gin --set learn_eps", "--set", "learn_eps"),
    ("crossval --layers x", "layers", "x"),
    ("crossval --batch-size 32,0", "--batch-size", "0"),
    ("crossval --folds 1", "folds", "1"),
    ("crossval --folds 1000", "folds", "1000"),
    ("crossval --runs 0", "--runs", "0"),
    ("crossval --repeats 0", "--repeats", "0"),
    ("crossval --split-file nope.json", "nope.json"),
    ("crossval --race --rules", "--rules"),
    ("crossval --out full", "full"),
    ("crossval --conformal 1", "--conformal"),
    ("crossval --model gin --set width=8,8", "width", "8"),
    ("crossval --epochs 0", "--epochs", "0"),
    ("signal --permutations -1", "--permutations", "-1"),
    ("signal --folds 1", "--folds", "1"),
    ("signal nope.jsonl", "nope.jsonl"),
    ("reproduce table1 --models nope", "nope"),
    ("reproduce table1 --models gim", "gim", "gin"),
    ("reproduce table2 --models gin:no-concat", "ihgnn:no-"),
    ("reproduce table1 --models ihgnn -d MUTAG,MUTAGG", "MUTAGG"),
    ("reproduce table1 --models ihgnn -d synthetic:graphs=x", "graphs"),
    ("reproduce table1 --models ihgnn -d MUTAG --device tpu", "tpu", "cuda"),
    ("reproduce table1 -d ,", "--datasets"),
    ("reproduce figure1 --models gin", "figure1"),
    ("reproduce homophily-sweep -d MUTAG", "data sets"),
    ("reproduce table1 --datasets nope.jsonl", "nope.jsonl"),
    ("reproduce table1 --seed -1", "seed", "-1"),
    ("evaluate nope", "nope"),
    ("evaluate full", "full"),
    ("evaluate full/file --dataset nope.jsonl", "nope.jsonl"),
    ("export nope model.onnx", "nope"),
    ("export full/file model.txt", "model.txt"),
    ("check-export nope.onnx", "nope.onnx"),
    ("predict nope MUTAG", "nope"),
    ("predict full/file nope.jsonl", "nope.jsonl"),
    ("serve nope.onnx", "nope.onnx"),
    ("serve full/file --port 70000", "--port", "70000"),
    ("models nope", "nope"),
]
# The same with exit code 1, because a folder or the memory is missing.
FAILURES: list[tuple[str, ...]] = [
    ("crossval --out full/file/inside", "full/file"),
    ("tune --out full/file/inside", "full/file"),
]
IN_A_PROCESS = """
import contextlib, io, json, sys

class Forbid:
    def find_spec(self, name, path=None, target=None):
        assert name != "torch", "torch is imported"

sys.meta_path.insert(0, Forbid())
from ihgnn_cli.cli.app import _run

for line in json.load(sys.stdin):
    sys.argv = ["ihgnn", *line.split()]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _run()
    print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


def without_torch(lines: list[str], folder: Path) -> list[tuple[int, str, str]]:
    """Code, output and messages of each command, in one new process that cannot import torch."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS],
        input=json.dumps(lines),
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files that are neither data nor a model, and with large configurations."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "batch.toml").write_text("[training]\nbatch_size = 0\n")
    with (tmp_path / "large.toml").open("wb") as stream:
        stream.truncate(10_000_000_000)  # takes no space
    (tmp_path / "endless").mkdir()
    (tmp_path / "endless" / "splits.json").touch()
    os.link(tmp_path / "large.toml", tmp_path / "endless" / "config.toml")
    return tmp_path


def files(folder: Path) -> list[str]:
    return sorted(str(each) for each in folder.rglob("*"))


@pytest.mark.parametrize(("table", "code"), [(BEFORE_TORCH, 2), (FAILURES, 1)])
def test_a_mistake_is_refused_before_torch_is_imported(
    table: list[tuple[str, ...]], code: int, folder: Path
) -> None:
    before = files(folder)
    wrong = []
    found = without_torch([line for line, *_ in table], folder)
    for (line, *words), (given, out, err) in zip(table, found, strict=True):
        message = err[err.find("Error: ") :]
        right = given == code and not out and all(each in message for each in words)
        if not (right and err.count("Error: ") == 1 and len(message.splitlines()) <= 2):
            wrong.append((line, given, out, err))
    assert not wrong
    assert files(folder) == before


def test_lists_are_shown_without_torch(folder: Path) -> None:
    lines = ["models", "models gin", "models --json", "datasets", "homophily MUTAG"]
    assert [code for code, _, _ in without_torch(lines, folder)] == [0] * len(lines)


@pytest.mark.parametrize("command", ["train", "crossval", "tune"])
@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("--model gin --set width=2000000 --device cpu", 1, ["GIN", "memory", "MUTAG"]),
        ("--batch-size 0", 2, ["--batch-size must be at least 1, not 0."]),
        ("--layers -1", 2, ["--layers must be at least 0, not -1."]),
        ("--seed -1", 2, ["--seed must be from 0 to 2^63 - 1, not -1."]),
        ("--config nope.toml", 2, ["Cannot read nope.toml: No such file or directory."]),
        ("--edge-bins 2 --model gin", 2, ["--edge-bins", "gin"]),
        ("--model gin --set learn_eps=maybe", 2, ["learn_eps", "true or false", "maybe"]),
        ("--dataset ../x", 2, ["../x"]),
    ],
)
def test_commands_that_train_refuse_alike(
    *,
    command: str,
    line: str,
    code: int,
    words: list[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["ihgnn", command, *line.split()])
    before = files(folder)
    assert module._run() == code
    told = capsys.readouterr().err
    assert not [each for each in words if each not in told]
    assert files(folder) == before
