"""Prediction sets from a trained model to an exported file, as a user makes them."""

import json
from pathlib import Path

import pytest

TINY = ["--epochs", "3", "--width", "4", "--hidden", "8", "--layers", "1", "--device", "cpu"]


@pytest.fixture
def run(ihgnn, tmp_path: Path) -> Path:
    done = ihgnn("train", *TINY, "--split", "0.6/0.2/0.2", "--out", "run", "--quiet")
    assert done.returncode == 0, done.stderr
    return tmp_path / "run"


def test_evaluate_export_and_predict_use_the_same_threshold(ihgnn, run: Path) -> None:
    done = ihgnn("evaluate", run, "--conformal", "0.1", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["conformal"]
    assert (told["threshold"]["graphs"], told["overall"]["graphs"]) == (38, 38)
    assert sum(each["sets"]["graphs"] for each in told["bins"]) == 38
    shown = ihgnn("evaluate", run, "--conformal", "0.1").stdout
    assert "Coverage of prediction sets at 0.1" in shown
    assert "The same graphs chose the epoch" in shown

    done = ihgnn("export", run, "sets.onnx", "--conformal", "0.1", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["conformal"] == told["threshold"]
    # The file carries its thresholds, also for other data.
    again = json.loads(ihgnn("evaluate", "sets.onnx", "--json").stdout)["conformal"]
    assert again["overall"] == told["overall"]

    least = told["threshold"]["threshold"]
    for given in (["sets.onnx", "MUTAG"], [run, "MUTAG", "--conformal", "0.1"]):
        lines = ihgnn("predict", *given, "--json").stdout.splitlines()
        for line in map(json.loads, lines):
            likely = line["probabilities"]
            assert line["prediction_set"][0] == line["class"]
            assert set(line["prediction_set"]) == {
                each for each in likely if likely[each] >= least or each == line["class"]
            }
    assert " Set" in ihgnn("predict", "sets.onnx", "MUTAG").stdout.splitlines()[0]
    head = ihgnn("predict", "sets.onnx", "MUTAG", "--csv", "-").stdout.splitlines()[0]
    assert head.endswith(",prediction_set")


def test_mistakes_are_refused_and_few_graphs_are_reported(ihgnn, run: Path) -> None:
    for given, said in (
        ("0", "--conformal must be above 0 and below 1, not 0"),
        ("1.5", "--conformal must be above 0 and below 1, not 1.5"),
        ("ten percent", "'ten percent' is not a number"),
    ):
        refused = ihgnn("evaluate", run, "--conformal", given)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    few = ihgnn("evaluate", run, "--conformal", "0.01")
    assert few.returncode == 0
    assert "at least 99 validation graphs, and there are 38" in few.stderr
    assert "A set holds all classes" in few.stdout
    seen = ihgnn("evaluate", run, "--conformal", "0.1", "--split", "train")
    assert seen.returncode == 2
    assert "on graphs that the model has not seen" in seen.stderr
    assert ihgnn("train", *TINY, "--final", "--out", "final", "-q").returncode == 0
    for command in (["evaluate", "final"], ["export", "final"], ["predict", "final", "MUTAG"]):
        refused = ihgnn(*command, "--conformal", "0.1")
        assert refused.returncode == 2
        assert "trained on all graphs" in refused.stderr
