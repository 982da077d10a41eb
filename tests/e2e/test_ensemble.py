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
    assert "The mean prediction of 4 models" in done.stdout
    assert "nothing was chosen" in done.stdout
    return tmp_path / "run"


def test_evaluate_predict_and_export_an_ensemble(ihgnn, run: Path, tmp_path: Path) -> None:
    done = ihgnn("evaluate", run, "--json", "--predictions", "p.csv", "--plot", "p.svg")
    assert done.returncode == 0, done.stderr
    assert "not the one chosen on validation" not in done.stderr
    told = json.loads(done.stdout)
    assert told["members"] == 4
    assert told["mean_uncertainty"] > 0
    assert told["calibration"]["fitted_on"] == 19
    with (tmp_path / "p.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    mean = sum(float(row["uncertainty"]) for row in rows) / len(rows)
    assert mean == pytest.approx(told["mean_uncertainty"], rel=1e-4)
    shown = ihgnn("evaluate", run).stdout
    assert "Uncertainty" in shown
    assert "Model: mean of 2 snapshots up to epoch 4, none chosen; split holdout; 2 runs" in shown
    assert "with temperature" in shown

    done = ihgnn("export", run, "two.onnx", "--members", "2", "--layout", "sparse")
    assert done.returncode == 0, done.stderr
    assert "opset 18, 2 members" in done.stdout
    part = "2 of 4 members; 2 snapshots up to epoch 4, none chosen; split holdout; 2 runs, seeds"
    assert f"Model: {part} 0, 1" in ihgnn("evaluate", "two.onnx").stdout
    assert f"| Saved | {part} 0, 1 |" in (tmp_path / "two.md").read_text(encoding="utf-8")
    done = ihgnn("predict", "two.onnx", "MUTAG", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 188
    assert all(0 <= line["uncertainty"] <= 0.5 for line in lines)
    assert "±" in ihgnn("predict", run, "MUTAG").stdout
    head = ihgnn("predict", run, "MUTAG", "--csv", "-").stdout.splitlines()[0]
    assert head.endswith(",uncertainty")
    refused = ihgnn("export", run, "many.onnx", "--members", "9")
    assert refused.returncode == 2
    assert "The model has 4 members" in refused.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["train", "--inputs", "colour"], "No node input 'colour'"),
        (["train", "--ensemble", "0"], "--ensemble must be at least 1"),
        (["train", "--snapshots", "5", "--patience", "3"], "--patience must be 0"),
        (["crossval", "--recipe", "robust", "--lr", "0.1,0.01"], "a list of values has no meaning"),
        (["crossval", "--recipe", "robust", "--race"], "so --race has no meaning"),
    ],
)
def test_what_does_not_fit_is_refused(ihgnn, given: list[str], message: str) -> None:
    done = ihgnn(*given)
    assert done.returncode == 2
    assert message in done.stderr
