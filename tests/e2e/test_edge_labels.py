"""Edge labels from training to prediction: the settings travel with the model."""

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import assert_refused

from ihgnn_cli.cli.app import app
from ihgnn_cli.deploy.predictor import load
from ihgnn_cli.errors import InputError

BONDS = ("--edge-labels", "--background-edge-label", "none")
FAST = ("-k", "1", "--width", "8", "--hidden", "8", "--device", "cpu", "-q")
LEARN = ("--epochs", "30", "--lr", "0.01")


def bond(kind: str, **more: Any) -> dict[str, Any]:
    """A path of three nodes with two bonds of a kind; its ends have no bond."""
    edges = [[0, 1], [1, 2], [0, 2]]
    return {"node_labels": [0] * 3, "edges": edges, "edge_labels": [kind, kind, "none"], **more}


def write(file: Path, *graphs: dict[str, Any]) -> None:
    file.write_text("".join(json.dumps(each) + "\n" for each in graphs), encoding="utf-8")


@pytest.fixture(scope="module")
def bonds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graphs whose class is the label of their bonds, which nothing else tells."""
    kinds = {"single": 0, "double": 1}
    file = tmp_path_factory.mktemp("bonds") / "bonds.jsonl"
    write(file, *[bond(kind, **{"class": number}) for kind, number in kinds.items()] * 20)
    return file


@pytest.fixture(scope="module")
def run(bonds: Path) -> Path:
    """A model that reads the labels of the bonds."""
    folder = bonds.parent / "run"
    args = ["train", str(bonds), *FAST, *LEARN, *BONDS, "--out", str(folder)]
    app(args, standalone_mode=False)
    return folder


def predicted(ihgnn, model: str | Path) -> list[dict[str, Any]]:
    """The answers of a model to the graphs in new.jsonl."""
    shown = ihgnn("predict", model, "new.jsonl", "--json")
    return [json.loads(line) for line in shown.stdout.splitlines()]


def test_a_model_learns_edge_labels_and_takes_its_settings_along(
    ihgnn, bonds: Path, run: Path, tmp_path: Path
) -> None:
    args = ("train", bonds, *FAST, *LEARN, "--json")
    without = json.loads(ihgnn(*args, "--out", "plain").stdout)
    assert without["test"]["accuracy"] == 0.5
    learned = json.loads((run / "result.json").read_text(encoding="utf-8"))
    assert learned["test"]["accuracy"] == 1
    told = json.loads(ihgnn("evaluate", run, "--split", "all", "--json").stdout)
    assert told["accuracy"] == 1
    assert told["graphs_trained_on"] == 32
    # Without background edges, a molecule is the same; text matches numbers.
    bare = {**bond("double"), "edges": [[0, 1], [1, 2]], "edge_labels": ["double"] * 2}
    write(tmp_path / "new.jsonl", bond("double"), bare, bond("single"))
    answers = predicted(ihgnn, run)
    assert [each["class"] for each in answers] == ["1", "1", "0"]
    assert answers[0]["probabilities"] == answers[1]["probabilities"]
    assert answers[0]["probabilities"]["1"] > 0.9
    again = ihgnn("train", "--config", run / "config.toml", "--out", "again", "--json", "-q")
    assert json.loads(again.stdout)["best_epoch"] == learned["best_epoch"]


@pytest.mark.parametrize("layout", ["padded", "sparse"])
def test_exported_models_read_edge_labels(ihgnn, run: Path, tmp_path: Path, layout: str) -> None:
    done = ihgnn("export", run, "model.onnx", "--layout", layout, "--json")
    assert done.returncode == 0, done.stderr
    write(tmp_path / "new.jsonl", bond("double"), bond("single"), bond("triple"))
    answers = [predicted(ihgnn, model) for model in (run, "model.onnx")]
    for ours, theirs in zip(*answers, strict=True):
        assert ours.get("error") == theirs.get("error")
        for value, share in ours.get("probabilities", {}).items():
            assert theirs["probabilities"][value] == pytest.approx(share, abs=1e-5)
    told = json.loads((tmp_path / "model.json").read_text())
    assert told["card"]["edge_label_values"] == ["double", "single"]
    model = load(tmp_path / "model.onnx")
    arrays = {"node_labels": [0, 0], "edge_index": [[0, 1], [1, 0]], "ptr": [0, 2]}
    wrong: dict[str, Any] = {**arrays, "edge_labels": [0, 2]}
    token = "edge_labels .*positions 0 to 1"
    if layout == "padded":
        wrong = {"node_labels": [[0, 0]], "adjacency": [[[0, 3], [3, 0]]]}
        token = "adjacency .*up to 2"
    with pytest.raises(InputError, match=token):
        model.run(wrong)
    wrong = {**arrays, "edge_labels": [0, 1]}
    if layout == "padded":
        wrong = {"node_labels": [[0, 0]], "adjacency": [[[0, 1], [2, 0]]]}
        model.run({**wrong, "adjacency": [[[0, 1], [0, 0]]]})  # one direction is enough
    with pytest.raises(InputError, match="directions"):
        model.run(wrong)


def test_graphs_without_known_edge_labels_are_refused(ihgnn, run: Path, tmp_path: Path) -> None:
    unlabelled = {"node_labels": [0, 0], "edges": [[0, 1]]}
    twice = {
        **bond("single"),
        "edges": [[0, 1], [1, 0], [0, 2]],
        "edge_labels": ["single", "double", "none"],
    }
    write(tmp_path / "new.jsonl", unlabelled, bond("triple"), twice, bond("single"))
    errors = [each.get("error", "") for each in predicted(ihgnn, run)]
    for error, token in zip(errors, ("edge_labels", "triple", "1 and 0", ""), strict=True):
        assert bool(error) is bool(token)
        assert token in error
    assert_refused(ihgnn("evaluate", run, "MUTAG"), 2, "0, 1, 2, 3")
    assert_refused(ihgnn("evaluate", run, "synthetic:graphs=8"), 2, "edge labels")


@pytest.mark.usefixtures("thread_workers")
def test_crossval_and_tune_take_edge_labels(ihgnn, bonds: Path) -> None:
    one = ("-b", "32", "-k", "1", "--lr", "0.01,0.02", "--epochs", "20")
    args = (bonds, *BONDS, *one, "--workers", "1", "--device", "cpu", "-q", "--json")
    folds = ("--folds", "2", "--runs", "1", "--out", "job")
    found = json.loads(ihgnn("crossval", *args, *folds).stdout)
    assert found["test_mean"] == 1
    assert found["references"]["methods"][-1]["accuracy"] == 1
    tuned = json.loads(ihgnn("tune", *args, "--trials", "1", "--out", "study").stdout)
    assert tuned["best"]["validation_accuracy"] == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("MUTAG", "--edge-labels", "--model", "gin"), "gin"),
        (("MUTAG", "--edge-labels", "--variant", "no-separation"), "edge labels"),
        (("MUTAG", "--background-edge-label", "9"), "0 ("),
        (("synthetic:graphs=20", "--edge-labels"), "--edge-labels"),
    ],
)
def test_wrong_requests_are_refused(ihgnn, args, said) -> None:
    assert_refused(ihgnn("train", *args), 2, said)
    assert_refused(ihgnn("crossval", *args), 2, said)
