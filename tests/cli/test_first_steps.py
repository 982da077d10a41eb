"""What a new user gets wrong with data and models, and what the commands say about it."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ihgnn_cli.cli.app import app
from ihgnn_cli.errors import IhgnnError, InputError

RINGS = {"node_labels": ["C", "C", "O"], "edges": [[0, 1], [1, 2], [0, 2]], "class": "ring"}
CHAINS = {"node_labels": ["C", "O", "C", "C"], "edges": [[0, 1], [1, 2], [2, 3]], "class": "chain"}
NUMBERS = {"node_labels": [0, 1], "edges": [[0, 1]]}
SMALL = ("--width", "4", "--hidden", "8", "--layers", "1", "--epochs", "1", "--device", "cpu")

Said = Callable[..., tuple[str, str]]


def write(path: Path, *graphs: dict[str, object]) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in graphs))
    return str(path)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Run a command that succeeds, and give its standard output and standard error."""

    def run(*args: str) -> tuple[str, str]:
        assert not app(list(args), standalone_mode=False)
        return capsys.readouterr()

    return run


def assert_refused(args: list[str], *tokens: str) -> None:
    """The command refuses its input in at most two lines with these tokens."""
    with pytest.raises(InputError) as caught:
        app(args, standalone_mode=False)
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert len(message.splitlines()) <= 2
    assert all(each in message for each in tokens), message


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a model that knows the labels C and O."""
    folder = tmp_path_factory.mktemp("words")
    data = write(folder / "data.jsonl", *[RINGS, CHAINS] * 10)
    out = str(folder / "run")
    app(["train", "--dataset", data, *SMALL, "--out", out, "--quiet"], standalone_mode=False)
    return folder / "run"


# Labels that the model does not know


def test_graphs_whose_labels_are_all_unknown_are_named_one_by_one(
    words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write(tmp_path / "new.jsonl", *[NUMBERS] * 3)
    with pytest.raises(IhgnnError, match="3 graphs of 3 not classified"):
        app(["predict", str(words), str(data)], standalone_mode=False)
    written = "".join(capsys.readouterr())
    for token in ("2 of 2 nodes", "(0, 1)", "C, O", "--allow-unknown"):
        assert token in " ".join(written.split()), written


def test_unknown_labels_are_accepted_on_request_with_a_warning(words, tmp_path, said) -> None:
    data = write(tmp_path / "n.jsonl", {**NUMBERS, "class": "ring"}, {**NUMBERS, "class": "chain"})
    out, err = said("predict", str(words), data, "--allow-unknown", "--json")
    assert [json.loads(line)["unknown_nodes"] for line in out.splitlines()] == [2, 2]
    assert "WARNING" in err
    assert_refused(["evaluate", str(words), data], "4 of 4 nodes")
    out, err = said("evaluate", str(words), data, "--allow-unknown", "--json")
    assert json.loads(out)["unknown_label_nodes"] == 4
    assert "WARNING" in err


@pytest.mark.parametrize(("labels", "warns"), [("SCCCOCCC", True), ("SCCCOCCCCC", False)])
def test_predict_warns_above_a_tenth(words, labels, warns, tmp_path, said) -> None:
    new = write(tmp_path / "new.jsonl", {"node_labels": list(labels), "edges": []})
    _, err = said("predict", str(words), new)
    assert f"1 of {len(labels)} nodes" in err
    assert ("WARNING" in err) is warns


# Files and arguments in the wrong place


def test_predict_does_not_replace_the_model_in_its_folder(words: Path, tmp_path: Path) -> None:
    new, before = write(tmp_path / "new.jsonl", RINGS), (words / "ckpt.pt").read_bytes()
    assert_refused(["predict", str(words), new, "--csv", str(words / "ckpt.pt")], "ckpt.pt")
    assert (words / "ckpt.pt").read_bytes() == before


def test_evaluate_writes_the_ids_as_predict_does(words: Path, tmp_path: Path, said: Said) -> None:
    graphs = [{**RINGS, "id": "cyclo"}, CHAINS, {**RINGS, "id": 7}]
    data = write(tmp_path / "named.jsonl", *graphs)
    said("evaluate", str(words), "--dataset", data, "--predictions", str(tmp_path / "e.csv"))
    said("predict", str(words), data, "--csv", str(tmp_path / "p.csv"))
    ids = []
    for name in ("e.csv", "p.csv"):
        with (tmp_path / name).open(newline="") as stream:
            ids.append([row["id"] for row in csv.DictReader(stream)])
    assert ids == [["cyclo", "", "7"]] * 2


@pytest.mark.parametrize(
    ("args", "tokens"),
    [
        (["check-export", "nope.onnx"], ["nope.onnx", ".onnx"]),
        (["serve", "nope.onnx"], ["nope.onnx", ".onnx"]),
        (["export", "MUTAG"], ["MUTAG", "data set", "ckpt.pt"]),
        (["export", "empty"], ["run folder", "ihgnn runs"]),
        (["predict", "graphs.jsonl", "run"], ["ihgnn predict run graphs.jsonl"]),
        (["predict", "MUTAG", "model.onnx"], ["ihgnn predict model.onnx MUTAG"]),
        (["predict", "-", "run/ckpt.pt"], ["ihgnn predict run/ckpt.pt -"]),
        (["evaluate", "MUTAG", "run"], ["ihgnn evaluate run --dataset MUTAG"]),
        (["evaluate", "graphs.jsonl"], ["graphs.jsonl", "data set", "run folder"]),
        (["export", "model.onnx", "run"], ["checkpoint", "Swap"]),
    ],
)
def test_what_is_in_the_wrong_place_is_recognised(args, tokens, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("run", "empty"):
        Path(folder).mkdir()
    for name in ("graphs.jsonl", "model.onnx", "run/ckpt.pt"):
        Path(name).touch()
    assert_refused(args, *tokens)


def test_fetch_takes_names_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["datasets", "fetch", "../x"], standalone_mode=False) == 2
    assert "'../x'" in capsys.readouterr().err


# Mistakes in files


def test_a_file_with_label_for_class_is_refused_with_the_right_name(tmp_path: Path) -> None:
    data = write(tmp_path / "d.jsonl", *[{**NUMBERS, "label": 1}] * 3)
    assert_refused(["train", "--dataset", data], "d.jsonl, line 1", "'label'", "class")


def test_check_accepts_a_file_without_classes_for_prediction(tmp_path: Path, said: Said) -> None:
    data = write(tmp_path / "d.jsonl", NUMBERS, NUMBERS)
    out, _ = said("datasets", "check", data, "--json")
    assert (json.loads(out)["ok"], json.loads(out)["classes"]) == (True, [])
    assert "ihgnn predict" in said("datasets", "check", data)[0]


def test_check_lists_mistakes_with_their_lines(write_tu, capsys) -> None:
    folder = write_tu(
        A="1, 2\n", graph_indicator="1\n1\n", graph_labels="1\n", node_labels="C\nO\n"
    )
    assert app(["datasets", "check", str(folder)], standalone_mode=False) == 2
    out = capsys.readouterr().out
    for token in ("TINY_node_labels.txt, line 1", "line 2", "'C'"):
        assert token in out


def test_predict_reports_mistakes_with_their_lines(words, tmp_path, capsys) -> None:
    large = {**RINGS, "edge_attributes": [[1e300]] * len(RINGS["edges"])}
    ragged = {**RINGS, "edge_attributes": [[]] * len(RINGS["edges"])}
    new = write(tmp_path / "new.jsonl", *[{"node_labels": ["C"]}] * 12, RINGS, large, ragged, large)
    with pytest.raises(IhgnnError, match="15 graphs of 16") as caught:
        app(["predict", str(words), new, "--json"], standalone_mode=False)
    assert caught.value.exit_code == 1
    out, err = capsys.readouterr()
    answers = [json.loads(line) for line in out.splitlines()]
    assert [each["graph"] for each in answers if "class" in each] == [12]
    assert len([each for each in answers if "error" in each]) == 15
    errors = [line for line in err.splitlines() if line.startswith("Error:")]
    assert len(errors) == 15
    for token in ("line 1:", "line 2:", "line 14:", "line 15:", "line 16:"):
        assert any(token in each for each in errors)


# Molecules


def test_molecules_are_checked_trained_on_evaluated_and_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rdkit", reason="RDKit is not installed (extra chem)")
    monkeypatch.chdir(tmp_path)
    chains = [f"{'C' * length}O,alcohol,{length}" for length in range(1, 11)]
    ethers = [f"{'C' * length}OC,ether,{length}" for length in range(1, 11)]
    Path("m.csv").write_text("\n".join(["smiles,class,id", *chains, *ethers, ""]))
    assert json.loads(said("datasets", "check", "m.csv", "--json")[0])["graphs"] == 20
    said("train", "--dataset", "m.csv", *SMALL, "--out", "run", "--quiet")
    assert json.loads(said("evaluate", "run", "--json")[0])["classes"] == ["alcohol", "ether"]
    out, _ = said("predict", "run", "m.csv", "--json")
    answers = [json.loads(line) for line in out.splitlines()]
    assert [each["id"] for each in answers] == [str(length) for length in range(1, 11)] * 2
    Path("new.csv").write_text("SMILES\nCCO\nC1CC\nnonsense\nCOC\n")
    with pytest.raises(IhgnnError, match="2 graphs of 4"):
        app(["predict", "run", "new.csv", "--json"], standalone_mode=False)
    out, err = capsys.readouterr()
    answers = [json.loads(line) for line in out.splitlines()]
    assert [each["graph"] for each in answers if "class" in each] == [0, 3]
    assert [each["graph"] for each in answers if "error" in each] == [1, 2]
    assert "new.csv, line 3: 'C1CC'" in err
    assert_refused(["predict", "run", "new.csv", "--strict"], "new.csv, line 3", "'C1CC'")
