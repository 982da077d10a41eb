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


def refused(*args: str) -> str:
    """Run a command with invalid input, and give the message."""
    with pytest.raises(InputError) as caught:
        app(list(args), standalone_mode=False)
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) <= 2
    return str(caught.value)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a model that knows the labels C and O."""
    folder = tmp_path_factory.mktemp("words")
    data = write(folder / "data.jsonl", *[RINGS, CHAINS] * 10)
    out = str(folder / "run")
    app(["train", "--dataset", data, *SMALL, "--out", out, "--quiet"], standalone_mode=False)
    return folder / "run"


# Labels that the model does not know


@pytest.mark.parametrize("ending", [[], ["--json"], ["--csv", "-"], ["--csv", "answers.csv"]])
def test_predict_refuses_a_file_whose_labels_are_all_unknown(
    words: Path,
    ending: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "new.jsonl", *[NUMBERS] * 300)
    message = refused("predict", str(words), "new.jsonl", *ending)
    assert "512 of 512 nodes in 256 graphs are unknown to the model (0, 1)" in message
    assert "It knows C, O.\nLabels are values, not positions" in message
    assert "--allow-unknown" in message
    printed = capsys.readouterr().out
    assert printed in ("", "graph,id,class,p(chain),p(ring),unknown_nodes,larger_than_m\n")
    assert [each.name for each in tmp_path.iterdir()] == ["new.jsonl"]


def test_predict_does_not_replace_the_model_in_its_folder(words: Path, tmp_path: Path) -> None:
    new, before = write(tmp_path / "new.jsonl", RINGS), (words / "ckpt.pt").read_bytes()
    message = refused("predict", str(words), new, "--csv", str(words / "ckpt.pt"))
    assert message.endswith("ckpt.pt belongs to the model. Write to another file.")
    assert (words / "ckpt.pt").read_bytes() == before


def test_predict_answers_for_unknown_labels_on_request_with_a_warning(
    words: Path, tmp_path: Path, said: Said
) -> None:
    new = write(tmp_path / "new.jsonl", NUMBERS)
    out, err = said("predict", str(words), new, "--allow-unknown", "--json")
    assert json.loads(out)["unknown_nodes"] == 2
    assert "WARNING: The labels of 2 of 2 nodes in 1 graph are unknown to the model (0, 1)" in err


@pytest.mark.parametrize(
    ("labels", "start"),
    [
        ("SCCCOCCC", "WARNING: The labels of 1 of 8 nodes in 1 graph"),
        ("SCCCOCCCCC", "The labels of 1 of 10 nodes in 1 graph"),
    ],
)
def test_predict_warns_above_a_tenth(
    words: Path, labels: str, start: str, tmp_path: Path, said: Said
) -> None:
    new = write(tmp_path / "new.jsonl", {"node_labels": list(labels), "edges": []})
    _, err = said("predict", str(words), new)
    assert err.splitlines()[1].startswith(start)


def test_predict_counts_over_a_whole_data_set_before_the_first_answer(
    words: Path, write_tu, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_tu(A="1, 2\n", graph_indicator="1\n1\n2\n", node_labels="0\n1\n0\n")
    message = refused("predict", str(words), str(folder), "--batch-size", "1")
    assert "3 of 3 nodes in 2 graphs" in message
    assert capsys.readouterr().out == ""


def test_evaluate_refuses_and_warns_likewise(words: Path, tmp_path: Path, said: Said) -> None:
    data = write(tmp_path / "n.jsonl", {**NUMBERS, "class": "ring"}, {**NUMBERS, "class": "chain"})
    assert "4 of 4 nodes in 2 graphs" in refused("evaluate", str(words), "--dataset", data)
    assert refused("evaluate", str(words), data, "--dataset", "MUTAG") == (
        f"Two data sets are given, {data} and --dataset MUTAG. Give one of them."
    )
    out, err = said("evaluate", str(words), data, "--allow-unknown", "--json")
    assert json.loads(out)["unknown_label_nodes"] == 4
    assert "WARNING: The labels of 4 of 4 nodes" in err


# The graphs' own names


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


# Arguments in the wrong place


def test_what_is_not_a_model_is_refused_with_what_the_command_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in ("check-export", "serve", "bench-export"):
        message = refused(command, "nope.onnx")
        assert message == "nope.onnx does not exist. Give an exported .onnx file."
    message = refused("export", "MUTAG")
    assert message == "MUTAG is a data set, not a model. Give a run folder or its ckpt.pt."
    Path("empty").mkdir()
    assert "Give a run folder or its checkpoint; 'ihgnn runs'" in refused("export", "empty")


@pytest.mark.parametrize("model", ["runs/a", "runs/a/ckpt.pt", "model.onnx"])
@pytest.mark.parametrize("graphs", ["graphs.jsonl", "MUTAG", "-"])
def test_swapped_arguments_are_recognised(
    model: str, graphs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("runs/a").mkdir(parents=True)
    for name in ("graphs.jsonl", "model.onnx", "runs/a/ckpt.pt"):
        Path(name).touch()
    message = refused("predict", graphs, model)
    assert message == f"The arguments are in the wrong order. Use: ihgnn predict {model} {graphs}"
    if graphs != "-":
        for given in ([graphs, "--dataset", model], [graphs, model]):
            message = refused("evaluate", *given)
            assert message.endswith(f"Use: ihgnn evaluate {model} --dataset {graphs}")
        message = refused("evaluate", graphs)
        assert message.startswith(f"{graphs} is a data set, not a model. Give a run folder")
    if model != "model.onnx":
        message = refused("export", "model.onnx", model)
        assert "the checkpoint comes first, then the .onnx file to write. Swap the two." in message


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("PROTEINS", "fetch PROTEINS"),
        ("nci1", "fetch NCI1"),
        ("MUTAG", "check MUTAG"),
        ("my data", "check 'my data'"),
    ],
)
def test_a_data_set_in_place_of_a_command_is_recognised(
    given: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my data").touch()
    message = refused("datasets", given)
    assert message == f"'{given}' is not a command. Use: ihgnn datasets {meant}"


def test_fetch_speaks_of_names_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["datasets", "fetch", "../x"], standalone_mode=False) == 2
    assert capsys.readouterr().err == (
        "Error: '../x' is not the name of a data set. Give a name that 'ihgnn datasets --all' "
        "lists.\n"
    )


# Files


def test_a_file_with_label_for_class_is_refused_for_training_with_the_right_name(
    tmp_path: Path,
) -> None:
    data = write(tmp_path / "d.jsonl", *[{**NUMBERS, "label": 1}] * 3)
    message = refused("train", "--dataset", data)
    assert message == "d.jsonl, line 1 (likewise 2, 3): no class. Rename 'label' to class."


def test_check_accepts_a_file_without_classes_for_prediction(tmp_path: Path, said: Said) -> None:
    data = write(tmp_path / "d.jsonl", NUMBERS, NUMBERS)
    out, _ = said("datasets", "check", data)
    assert out.splitlines() == [
        f"{data} has no classes; it is valid for 'ihgnn predict': 2 graphs, 4 nodes, 2 edges, "
        "2 node labels, 0 classes.",
        "- Training needs classes. Add one for each graph.",
    ]
    out, _ = said("datasets", "check", data, "--json")
    assert (json.loads(out)["ok"], json.loads(out)["classes"]) == (True, [])
    out, _ = said("datasets", "check", write(tmp_path / "l.jsonl", {**NUMBERS, "label": 1}))
    assert "Training needs classes. Rename 'label' to class." in out


def test_check_lists_a_mistake_once_with_its_lines(
    write_tu, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_tu(
        A="1, 2\n", graph_indicator="1\n1\n", graph_labels="1\n", node_labels="C\nO\n"
    )
    assert app(["datasets", "check", str(folder)], standalone_mode=False) == 2
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "TINY_node_labels.txt, line 1 (likewise 2): 'C' is not a whole number of at most 18 "
        "digits.",
        "    TU labels are integers; JSON lines take words (docs/data.md).",
    ]
    assert "2 problems" in err


def test_predict_reports_a_mistake_once_with_a_count(
    words: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    large = {**RINGS, "edge_attributes": [[1e300]] * len(RINGS["edges"])}
    ragged = {**RINGS, "edge_attributes": [[]] * len(RINGS["edges"])}
    new = write(tmp_path / "new.jsonl", *[{"node_labels": ["C"]}] * 12, RINGS, large, ragged, large)
    with pytest.raises(
        IhgnnError, match=r"^15 graphs of 16 not classified; the reasons are above\.$"
    ) as caught:
        app(["predict", str(words), new, "--json"], standalone_mode=False)
    assert caught.value.exit_code == 1
    out, err = capsys.readouterr()
    answers = [json.loads(line) for line in out.splitlines()]
    assert [each["graph"] for each in answers if "class" in each] == [12]
    assert len([each for each in answers if "error" in each]) == 15
    assert [line for line in err.splitlines() if line.startswith("Error:")] == [
        'Error: new.jsonl, line 1: no edges. Add "edges": [[0, 1], ...], or [] for a graph '
        "without.",
        "Error: new.jsonl, line 14: edge_attributes [1e+300]. Use numbers up to 3.4e38, the "
        "largest 32-bit float.",
        "Error: new.jsonl, line 15: edge_attributes []. Use equally long lists of finite numbers.",
        "Error: new.jsonl, line 1 (likewise 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more): no edges.",
        "Error: new.jsonl, line 14 (likewise 16): edge_attributes [1e+300].",
    ]


# Molecules


def test_molecules_are_checked_measured_trained_on_evaluated_and_predicted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rdkit", reason="RDKit is not installed (extra chem)")
    monkeypatch.chdir(tmp_path)
    chains = [f"{'C' * length}O,alcohol,{length}" for length in range(1, 11)]
    ethers = [f"{'C' * length}OC,ether,{length}" for length in range(1, 11)]
    Path("m.csv").write_text("\n".join(["smiles,class,id", *chains, *ethers, ""]))
    assert "m.csv is valid: 20 graphs" in said("datasets", "check", "m.csv")[0]
    assert json.loads(said("homophily", "m.csv", "--json")[0])
    said("train", "--dataset", "m.csv", *SMALL, "--out", "run", "--quiet")
    assert json.loads(said("evaluate", "run", "--json")[0])["classes"] == ["alcohol", "ether"]
    out, _ = said("predict", "run", "m.csv", "--json")
    answers = [json.loads(line) for line in out.splitlines()]
    assert [each["id"] for each in answers] == [str(length) for length in range(1, 11)] * 2
    Path("new.csv").write_text("SMILES\nCCO\nC1CC\nnonsense\nCOC\n")
    with pytest.raises(IhgnnError, match="2 graphs of 4 not classified"):
        app(["predict", "run", "new.csv", "--json"], standalone_mode=False)
    out, err = capsys.readouterr()
    answers = [json.loads(line) for line in out.splitlines()]
    assert [each["graph"] for each in answers if "class" in each] == [0, 3]
    assert [each["graph"] for each in answers if "error" in each] == [1, 2]
    assert "Error: new.csv, line 3: 'C1CC' is not valid SMILES. Correct it" in err
    assert "new.csv, line 3: 'C1CC' is not valid" in refused(
        "predict", "run", "new.csv", "--strict"
    )
