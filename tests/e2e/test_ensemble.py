"""An ensemble from training to an exported file, as a user makes it."""

import csv
import json
from pathlib import Path

import pytest

TINY = ["--epochs", "4", "--width", "4", "--hidden", "8", "--layers", "1", "--device", "cpu"]


@pytest.fixture
def run(ihgnn, tmp_path: Path) -> Path:
    done = ihgnn(
        *["train", "--recipe", "robust", "--ensemble", "2", "--snapshots", "2", *TINY],
        *["--out", "run", "--quiet"],
    )
    assert done.returncode == 0, done.stderr
    assert "4 models" in done.stdout
    return tmp_path / "run"


def test_evaluate_predict_and_export_an_ensemble(ihgnn, run: Path, tmp_path: Path) -> None:
    done = ihgnn("evaluate", run, "--json", "--predictions", "p.csv", "--plot", "p.svg")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["members"] == 4
    assert told["mean_uncertainty"] > 0
    with (tmp_path / "p.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    mean = sum(float(row["uncertainty"]) for row in rows) / len(rows)
    assert mean == pytest.approx(told["mean_uncertainty"], rel=1e-4)
    done = ihgnn("export", run, "two.onnx", "--layout", "sparse")
    assert done.returncode == 0, done.stderr
    exported = json.loads(ihgnn("evaluate", "two.onnx", "--json").stdout)
    assert exported["members"] == 4
    assert exported["accuracy"] == told["accuracy"]
    done = ihgnn("predict", "two.onnx", "MUTAG", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 188
    assert all(0 <= line["uncertainty"] <= 0.5 for line in lines)
    assert "±" in ihgnn("predict", run, "MUTAG").stdout
    head = ihgnn("predict", run, "MUTAG", "--csv", "-").stdout.splitlines()[0]
    assert head.endswith(",uncertainty")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["train", "--inputs", "colour"], "'colour'"),
        (["train", "--ensemble", "0"], "--ensemble"),
        (["train", "--snapshots", "5", "--patience", "3"], "--patience"),
        (["crossval", "--recipe", "robust", "--lr", "0.1,0.01"], "list"),
        (["crossval", "--recipe", "robust", "--race"], "--race"),
    ],
)
def test_what_does_not_fit_is_refused(ihgnn, given: list[str], message: str) -> None:
    done = ihgnn(*given)
    assert done.returncode == 2
    assert message in done.stderr
