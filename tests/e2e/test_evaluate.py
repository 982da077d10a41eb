"""`ihgnn evaluate` as a user meets it."""

import csv
import json
import pickle
import re
from pathlib import Path

import matplotlib as mpl
import pytest
from refusals import assert_refused


@pytest.fixture
def checkpoint(mutag_model) -> Path:
    return mutag_model.checkpoint


def test_the_test_graphs_are_evaluated_as_training_did(ihgnn, checkpoint: Path) -> None:
    told = json.loads(ihgnn("evaluate", checkpoint, "--json").stdout)
    result = json.loads((checkpoint.parent / "result.json").read_text())
    assert told["part"] == "test"
    assert told["graphs_trained_on"] == told["graphs_that_chose_the_epoch"] == 0
    assert told["confusion"] == result["test"].pop("confusion")
    for name, value in result["test"].items():
        assert told[name] == pytest.approx(value, abs=1e-6), name
    assert sum(each["graphs"] for each in told["by_homophily"]) == 19


def test_people_get_tables_and_may_name_the_folder(ihgnn, checkpoint: Path) -> None:
    result = ihgnn("evaluate", checkpoint.parent)
    assert result.returncode == 0
    assert result.stderr == ""
    assert "chosen on validation; split holdout; one run, seed 0" in result.stdout
    for each in ("Balanced accuracy", "ROC-AUC", "Confusion", "Accuracy by graph homophily"):
        assert each in result.stdout


@pytest.mark.parametrize(
    ("part", "graphs", "said"),
    [
        ("train", 150, "150 of these graphs were used to train"),
        ("validation", 19, "19 were used to choose its epoch"),
        (
            "all",
            188,
            "150 of these graphs were used to train the model and 19 were used to choose its epoch",
        ),
    ],
)
def test_graphs_the_model_has_seen_are_said_loudly(ihgnn, checkpoint, part, graphs, said) -> None:
    result = ihgnn("evaluate", checkpoint, "--split", part, "--json")
    assert f"WARNING: {said}" in result.stderr
    assert json.loads(result.stdout)["graphs"] == graphs


def test_a_copy_of_the_training_data_is_recognized(ihgnn, checkpoint: Path, tmp_path) -> None:
    from ihgnn_cli.data import load_dataset
    from ihgnn_cli.data.jsonl import write_jsonl

    part = load_dataset("MUTAG").select(range(40))
    write_jsonl(part, tmp_path / "other.jsonl")
    result = ihgnn("evaluate", checkpoint, "--dataset", "other.jsonl", "--json")
    told = json.loads(result.stdout)
    assert told["graphs"] == 40
    assert told["graphs_trained_on"] > 20
    assert "WARNING" in result.stderr


def test_files_hold_a_figure_and_a_row_a_graph(ihgnn, checkpoint: Path, tmp_path) -> None:
    result = ihgnn("evaluate", checkpoint, "--plot", "a.png", "--predictions", "p.csv")
    assert result.stderr == "Wrote a.png\nWrote p.csv\n"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert len(rows) == 19
    assert all(float(row["p(-1)"]) + float(row["p(1)"]) == pytest.approx(1) for row in rows)


def test_a_figure_of_training_graphs_says_so(
    ihgnn, checkpoint: Path, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    for part, said in (
        ("train", "MUTAG, train graphs (150 of 150 used in training)"),
        ("test", ""),
    ):
        assert ihgnn("evaluate", checkpoint, "--split", part, "--plot", "a.svg").returncode == 0
        figure = (tmp_path / "a.svg").read_text()
        assert said in figure
        assert ("used in training" in figure) == bool(said)


def test_the_weights_of_the_layers_and_the_nodes_that_mattered(ihgnn, checkpoint: Path) -> None:
    result = ihgnn("evaluate", checkpoint, "--graph", "3")
    assert "Learned weight of each layer" in result.stdout
    assert re.search(r"Graph 3 \((train|validation|test)\): predicted", result.stdout)
    told = json.loads(ihgnn("evaluate", checkpoint, "--graph", "3", "--json").stdout)
    assert len(told["theta"]) == 4
    positions = told["explained"]["positions"]
    assert sorted(each["position"] for each in positions) == list(range(len(positions)))


def test_an_exported_model_is_evaluated_as_its_checkpoint(
    ihgnn, checkpoint: Path, tmp_path
) -> None:
    exported = json.loads(ihgnn("export", checkpoint, "model.onnx", "--json").stdout)
    assert exported["size"] == (tmp_path / "model.onnx").stat().st_size
    ours = json.loads(ihgnn("evaluate", checkpoint, "--json").stdout)
    theirs = json.loads(ihgnn("evaluate", "model.onnx", "--json").stdout)
    assert theirs.pop("model") == "model.onnx"
    assert theirs.pop("runs_on").endswith("ExecutionProvider")
    for name, value in theirs.items():
        if isinstance(value, float):
            assert ours[name] == pytest.approx(value, abs=1e-5), name
        elif name not in {"by_homophily", "homophilic", "heterophilic", "reliability"}:
            assert ours[name] == value, name
    result = ihgnn("evaluate", "model.onnx", "--split", "train")
    assert "WARNING: 150 of these graphs were used to train" in result.stderr
    assert_refused(ihgnn("evaluate", "model.onnx", "--explain"), 2, "Give its checkpoint")
    assert_refused(ihgnn("export", checkpoint, "model.onnx"), 2, "--force")


def test_a_model_that_validation_did_not_choose_is_said_loudly(ihgnn, checkpoint: Path) -> None:
    result = ihgnn("evaluate", checkpoint.parent / "last.pt", "--json")
    assert "WARNING: this is the model of the last epoch (5)" in result.stderr
    told = json.loads(result.stdout)["snapshot"]
    expected = {"epoch": 5, "chosen": False, "seeds": [0], "split": "holdout", "snapshots": 0}
    assert told == expected


def test_an_exported_model_of_ones_own_file_asks_for_it(ihgnn, command, tmp_path) -> None:
    from ihgnn_cli.data import load_dataset
    from ihgnn_cli.data.jsonl import write_jsonl

    write_jsonl(load_dataset("MUTAG").select(range(12)), tmp_path / "mine.jsonl")
    args = ("--width", "4", "--hidden", "8", "--epochs", "1", "--quiet", "--out", "run")
    assert ihgnn("train", "--dataset", "mine.jsonl", *args).returncode == 0
    assert ihgnn("export", "run/ckpt.pt", "mine.onnx").returncode == 0
    assert_refused(ihgnn("evaluate", "mine.onnx"), 2, "mine", "Give it with --dataset")
    assert ihgnn("evaluate", "mine.onnx", "--dataset", "mine.jsonl").returncode == 0


def test_the_files_of_a_run_are_not_overwritten(ihgnn, checkpoint: Path) -> None:
    config = checkpoint.parent / "config.toml"
    before = config.read_bytes()
    assert_refused(ihgnn("evaluate", checkpoint, "--predictions", config), 2, "belongs to")
    assert config.read_bytes() == before


def test_mistakes_are_refused(ihgnn, checkpoint: Path, tmp_path) -> None:
    assert_refused(ihgnn("evaluate", "nowhere.pt"), 2, "nowhere.pt does not exist")
    assert_refused(ihgnn("evaluate", tmp_path), 2, "holds no checkpoint")
    if Path("/dev/zero").exists():  # not on Windows
        assert_refused(ihgnn("evaluate", "/dev/zero"), 2, "is not a file")
    assert_refused(ihgnn("evaluate", checkpoint.parent / "config.toml"), 2, "not an ihgnn")
    assert_refused(ihgnn("evaluate", checkpoint, "--graph", "999"), 2, "0 to 187")
    assert_refused(ihgnn("evaluate", checkpoint, "--plot", "a.gif"), 2, ".png")
    assert_refused(ihgnn("evaluate", checkpoint, "--predictions", checkpoint), 2, "belongs to")


class Hostile:
    def __reduce__(self):
        return (open, ("owned", "w"))


def test_a_hostile_file_runs_nothing(ihgnn, tmp_path) -> None:
    (tmp_path / "evil.pt").write_bytes(pickle.dumps(Hostile()))
    assert_refused(ihgnn("evaluate", "evil.pt"), 2, "No code in it was run")
    assert not (tmp_path / "owned").exists()


def test_data_of_other_classes_is_refused(ihgnn, checkpoint, tmp_path) -> None:
    graph = {"node_labels": [0, 1], "edges": [[0, 1]], "class": "toxic"}
    (tmp_path / "x.jsonl").write_text(json.dumps(graph) + "\n")
    assert_refused(ihgnn("evaluate", checkpoint, "--dataset", "x.jsonl"), 2, "toxic", "-1, 1")
