"""`--edge-bins` from training to prediction: the boundaries travel with the model."""

import json
from pathlib import Path
from typing import Any

import pytest

from ihgnn_cli.cli.app import app
from ihgnn_cli.errors import IhgnnError

FAST = ("-k", "1", "--width", "8", "--hidden", "8", "--device", "cpu", "-q", "--json")
LEARN = ("--epochs", "30", "--lr", "0.01")


def pair(distance: float, **more: Any) -> dict[str, Any]:
    """Three nodes; one of the two edges has this distance, and the other one 1."""
    edges = {"edges": [[0, 1], [1, 2]], "edge_attributes": [[distance], [1.0]]}
    return {"node_labels": [0] * 3, **edges, "edge_labels": ["a", "b"], **more}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands are started, with graphs whose class only distances tell."""
    monkeypatch.chdir(tmp_path)
    near = [pair(0.5 + 0.01 * number, **{"class": 0}) for number in range(20)]
    far = [pair(1.5 + 0.01 * number, **{"class": 1}) for number in range(20)]
    write(tmp_path / "pairs.jsonl", *near, *far)
    return tmp_path


def write(file: Path, *graphs: dict[str, Any]) -> None:
    file.write_text("".join(json.dumps(each) + "\n" for each in graphs), encoding="utf-8")


def refused(*args: str) -> str:
    """What a command says; it is one or two lines, and the exit code is 2."""
    with pytest.raises(IhgnnError) as caught:
        app([*args], standalone_mode=False)
    assert caught.value.exit_code == 2
    assert str(caught.value).count("\n") <= 1
    return str(caught.value)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]):
    """The JSON that a command prints, one value per line or a single one."""

    def run(*args: str) -> Any:
        capsys.readouterr()
        app([*args], standalone_mode=False)
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize("layout", ["padded", "sparse"])
@pytest.mark.parametrize("more", [(), ("--edge-labels",)])
def test_a_model_learns_distances_and_takes_its_boundaries_along(
    told, folder: Path, capsys, layout: str, more: tuple[str, ...]
) -> None:
    args = ("train", "pairs.jsonl", *FAST, *LEARN, *more)
    if not more:
        assert told(*args, "--out", "plain")["test"]["accuracy"] == 0.5
    assert told(*args, "--edge-bins", "3", "--out", "run")["test"]["accuracy"] == 1
    assert "edge_bins = 3" in (folder / "run" / "config.toml").read_text()
    found = told("evaluate", "run", "--split", "all", "--json")
    assert (found["accuracy"], found["graphs_trained_on"]) == (1, 32)
    told("export", "run", "model.onnx", "--layout", layout, "--json")
    card = json.loads((folder / "model.json").read_text())["card"]
    # Half of all edges have the distance 1, so that two of three bins are one.
    assert card["edge_bins"] == {"boundaries": [1.0], "labels": bool(more)}
    # Distances outside the range that was seen are in the first and last bin.
    without = {key: each for key, each in pair(2).items() if key != "edge_attributes"}
    write(folder / "new.jsonl", pair(0.01), pair(99), without)
    answers = []
    for model in ("run", "model.onnx"):
        capsys.readouterr()
        with pytest.raises(IhgnnError, match="1 graph of 3 not classified"):
            app(["predict", model, "new.jsonl", "--json"], standalone_mode=False)
        answers.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    for ours, theirs in zip(*answers, strict=True):
        assert ours.get("class") == theirs.get("class")
        for value, share in ours.get("probabilities", {}).items():
            assert theirs["probabilities"][value] == pytest.approx(share, abs=1e-5)
    assert [each.get("class") for each in answers[0][:2]] == ["0", "1"]
    assert answers[0][2]["error"] == (
        "the model reads one edge attribute, and there is none. Give each edge one number."
    )


@pytest.mark.usefixtures("thread_workers")
def test_crossval_signal_and_tune_take_edge_bins(told) -> None:
    args = ("pairs.jsonl", "--edge-bins", "3")
    one = ("-b", "32", "-k", "1", "--lr", "0.01,0.02", "--epochs", "20", "--workers", "1")
    ends = ("--device", "cpu", "-q", "--json")
    folds = ("--folds", "2", "--runs", "1", "--out", "job")
    assert told("crossval", *args, *one, *folds, *ends)["test_mean"] == 1
    assert "edge_bins" in refused(
        "crossval", "pairs.jsonl", "--edge-bins", "4", *one, *folds, *ends
    )
    assert told("tune", *args, *one, "--trials", "1", "--out", "study", *ends)
    found = told("signal", *args, "--permutations", "0", "--folds", "2", "-q", "--json")
    assert (found["edge_bins"], found["edge_labels"]) == (2, False)


def test_signal_refuses_before_it_reads_and_says_how_many_bins_there_are(capsys) -> None:
    for count in ("0", "1"):
        assert refused("signal", "pairs.jsonl", "--edge-bins", count) == (
            f"--edge-bins must be from 2 to 64, not {count}."
        )
    args = ["signal", "pairs.jsonl", "--edge-bins", "64", "--permutations", "0", "--folds", "2"]
    app(args, standalone_mode=False)
    shown = capsys.readouterr()
    assert (
        "into 33 bins (64 requested; equal quantiles were merged) at 0.51, 0.52, 0.53, ..., "
        in shown.err
    )
    assert "with 33 edge bins" in shown.out
