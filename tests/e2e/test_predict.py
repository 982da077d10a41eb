"""`ihgnn predict` as a user meets it: files, pipes, bad graphs, streams without end."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from refusals import assert_refused
from started import PATIENCE

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.jsonl import write_jsonl

ON_CPU = ("--device", "cpu")
GOOD = '{"node_labels": [0, 0, 1], "edges": [[0, 1], [1, 2]]}'


@pytest.fixture
def mutag(tmp_path: Path) -> Path:
    write_jsonl(load_dataset("MUTAG"), tmp_path / "mutag.jsonl")
    return tmp_path / "mutag.jsonl"


def objects(result: subprocess.CompletedProcess[str]) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_every_way_to_give_graphs_and_models_has_the_same_answers(
    ihgnn, ihgnn_process, mutag_model, mutag: Path
) -> None:
    by_file = ihgnn("predict", mutag_model.exported, mutag, "--json", *ON_CPU)
    assert by_file.returncode == 0
    assert by_file.stderr == f"{mutag_model.exported} on CPUExecutionProvider\n"
    answers = objects(by_file)
    assert [each["graph"] for each in answers] == list(range(188))
    assert all(list(each) == ["graph", "class", "probabilities"] for each in answers)
    assert all(each["class"] in ("-1", "1") for each in answers)

    by_name = ihgnn("predict", mutag_model.exported, "MUTAG", "--json", "--batch-size", "50")
    piped = ("predict", mutag_model.exported, "-", "--json")
    by_pipe = ihgnn_process(*piped, text=mutag.read_text())
    assert (
        ihgnn("export", mutag_model.run / "ckpt.pt", "s.ONNX", "--layout", "sparse").returncode == 0
    )
    by_sparse = ihgnn("predict", "s.ONNX", mutag, "--json")
    on_torch = ihgnn("predict", mutag_model.run, mutag, "--json", *ON_CPU)
    assert on_torch.stderr == f"{mutag_model.run} on cpu\n"
    for other in (by_name, by_pipe, by_sparse, on_torch):
        assert other.returncode == 0
        for one, another in zip(answers, objects(other), strict=True):
            assert another["graph"] == one["graph"]
            assert another["probabilities"] == pytest.approx(one["probabilities"], abs=1e-5)


def test_people_get_a_table(ihgnn, mutag_model) -> None:
    result = ihgnn("predict", mutag_model.exported, "MUTAG")
    lines = result.stdout.splitlines()
    assert lines[0] == "  Graph  Class  p(-1)   p(1)"
    assert len(lines) == 190
    assert lines[-1].startswith("    187  ")


def test_rows_of_csv_go_to_a_file_or_are_printed(ihgnn, mutag_model, tmp_path: Path) -> None:
    result = ihgnn("predict", mutag_model.exported, "MUTAG", "--csv", "p.csv")
    assert (result.returncode, result.stdout) == (0, "")
    assert result.stderr.endswith("Wrote p.csv\n")
    rows = list(csv.DictReader((tmp_path / "p.csv").read_text().splitlines()))
    assert len(rows) == 188
    assert all(float(row["p(-1)"]) + float(row["p(1)"]) == pytest.approx(1) for row in rows)
    printed = ihgnn("predict", mutag_model.exported, "MUTAG", "--csv", "-")
    assert list(csv.DictReader(printed.stdout.splitlines())) == rows
    both = ihgnn("predict", mutag_model.exported, "MUTAG", "--csv", "q.csv", "--json")
    assert [each["class"] for each in objects(both)] == [row["class"] for row in rows]


def test_bad_graphs_are_told_and_the_rest_go_on(ihgnn, mutag_model) -> None:
    text = "\n".join([GOOD, "{", "", '{"node_labels": [0], "id": 7}', GOOD])
    result = ihgnn("predict", mutag_model.exported, "-", "--json", text=text)
    assert result.returncode == 1
    answers = objects(result)
    assert [each["graph"] for each in answers] == [0, 1, 2, 3]
    assert ["class" in each for each in answers] == [True, False, False, True]
    assert answers[2] == {
        "graph": 2,
        "error": 'no edges. Add "edges": [[0, 1], ...], or [] for a graph without.',
        "line": 4,
        "id": 7,
    }
    told = result.stderr.splitlines()[1:]
    assert told[0].startswith("Error: standard input, line 2: not JSON")
    assert told[1].startswith("Error: standard input, line 4: no edges. Add")
    assert told[2] == "Error: 2 graphs of 4 not classified; the reasons are above."


def test_strict_stops_at_the_first_bad_graph(ihgnn, mutag_model, tmp_path) -> None:
    text = "\n".join([GOOD, "{", GOOD])
    strict = ("predict", mutag_model.exported, "-", "--strict")
    result = ihgnn(*strict, "--json", text=text)
    assert result.returncode == 2
    assert [each["graph"] for each in objects(result)] == [0]
    assert "standard input, line 2: not JSON" in result.stderr
    result = ihgnn(*strict, "--csv", "p.csv", text=text)
    assert result.returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_strange_graphs_are_answered_for_and_said(ihgnn, mutag_model) -> None:
    long = json.dumps({"node_labels": [0] * 40, "edges": [], "id": "long"})
    text = f'{long}\n{{"node_labels": ["C"], "edges": []}}\n'
    args = ("predict", mutag_model.exported, "-", "--json")
    refused = ihgnn(*args, text=text)
    assert refused.returncode == 1  # the model knows no label of the second graph
    assert "--allow-unknown" in objects(refused)[1]["error"]
    result = ihgnn(*args, "--allow-unknown", text=text)
    assert result.returncode == 0
    first, second = objects(result)
    assert (first["id"], first["larger_than_m"]) == ("long", True)
    assert second["unknown_nodes"] == 1
    assert "The labels of 1 of 41 nodes in 1 graph are unknown to the model (C)" in result.stderr
    assert "It knows 0, 1, 2, 3, 4 and 2 others" in result.stderr
    assert "1 graph of 2 with more nodes than any graph of the model's data" in result.stderr


def test_no_graphs_are_no_mistake(ihgnn, mutag_model) -> None:
    result = ihgnn("predict", mutag_model.exported, "-", "--json", text="\n")
    assert (result.returncode, result.stdout) == (0, "")
    assert "No graphs in the input." in result.stderr


def test_a_tu_folder_needs_no_classes(ihgnn, mutag_model, write_tu) -> None:
    folder = write_tu(
        A="1, 2\n2, 1\n3, 4\n4, 3\n", graph_indicator="1\n1\n2\n2\n", node_labels="0\n1\n0\n2\n"
    )
    result = ihgnn("predict", mutag_model.exported, folder, "--json")
    assert [each["graph"] for each in objects(result)] == [0, 1]
    assert_refused(ihgnn("homophily", folder), 2, "TINY_graph_labels.txt: the file is missing")


class Conversation:
    """A command that is spoken to line by line."""

    def __init__(self, command: str, folder: Path, *args: str | Path) -> None:
        # A shell starts background jobs with SIGINT ignored, and the tests may be one of them.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            [command, *map(str, args)],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        signal.signal(signal.SIGINT, before)

    def ask(self, graph: str) -> dict:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(graph + "\n")
        self.process.stdin.flush()
        # A command that does not answer is ended, which ends the line as well.
        timer = threading.Timer(PATIENCE, self.process.kill)
        timer.start()
        answer = self.process.stdout.readline()
        timer.cancel()
        assert answer, "no answer"
        return json.loads(answer)


def test_an_answer_does_not_wait_for_the_next_question(command, mutag_model, tmp_path) -> None:
    spoken = Conversation(command, tmp_path, "predict", mutag_model.exported, "-", "--json")
    assert [spoken.ask(GOOD)["graph"] for _ in range(3)] == [0, 1, 2]
    spoken.process.communicate()
    assert spoken.process.returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signals")
def test_an_interrupted_stream_keeps_its_answers_and_no_half_file(
    command, mutag_model, tmp_path: Path
) -> None:
    args = ("predict", mutag_model.exported, "-", "--json", "--csv", "p.csv")
    spoken = Conversation(command, tmp_path, *args)
    assert spoken.ask(GOOD)["graph"] == 0
    spoken.process.send_signal(signal.SIGINT)
    _, told = spoken.process.communicate(timeout=PATIENCE)
    assert spoken.process.returncode == 130
    assert told.splitlines()[1:] == ["Error: Interrupted."]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="no SIGPIPE and no named pipes on Windows")
def test_pipes_may_have_names_and_readers_may_leave(command, mutag_model, mutag, tmp_path) -> None:
    os.mkfifo(tmp_path / "fifo")
    result = subprocess.run(
        f"cat {mutag} {mutag} > fifo & '{command}' predict {mutag_model.exported} fifo --json "
        "--batch-size 1 --device cpu | head -2",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert [json.loads(line)["graph"] for line in result.stdout.splitlines()] == [0, 1]
    assert result.stderr == f"{mutag_model.exported} on CPUExecutionProvider\n"


def test_a_terminal_is_told_what_to_type(command, mutag_model, tmp_path) -> None:
    pty = pytest.importorskip("pty", reason="pseudo-terminals are of Unix")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [command, "predict", mutag_model.exported, "-", "--json"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    )
    os.write(ours, f"{GOOD}\n\x04".encode())  # Ctrl-D
    answered, told = process.communicate(timeout=PATIENCE)
    os.close(ours)
    os.close(theirs)
    assert json.loads(answered)["graph"] == 0
    assert "Type graphs, one JSON object per line" in told


@pytest.mark.skipif(os.name == "nt", reason="only Unix can close it")
def test_a_closed_standard_input_is_refused(command, mutag_model) -> None:
    result = subprocess.run(
        f"'{command}' predict {mutag_model.exported} - <&-",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "Standard input is closed" in result.stderr


# On Linux a process starts with the peak of the one that started it: a small one has to do it.
MEASURE = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
assert process.returncode == 0
print(usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""


def peak_memory(command: str, model: Path, graphs: Path) -> int:
    """In bytes, of a whole prediction."""
    args = [sys.executable, "-c", MEASURE, command, "predict", model, graphs, "--json"]
    return int(subprocess.run(args, capture_output=True, check=True).stdout)


@pytest.mark.skipif(os.name == "nt", reason="Windows does not tell the memory of a process")
def test_memory_does_not_grow_with_the_stream(command, mutag_model, tmp_path: Path) -> None:
    # Held as Python's lists, 20,000 of these would take more than 50 MB.
    for name, count in (("few", 1000), ("many", 20_000)):
        (tmp_path / f"{name}.jsonl").write_text(f"{GOOD}\n" * count)
    few, many = (
        peak_memory(command, mutag_model.exported, tmp_path / f"{name}.jsonl")
        for name in ("few", "many")
    )
    assert many - few < 10 << 20


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows does not tell the memory of a process")
def test_a_stream_of_300_000_graphs_takes_the_memory_of_300(
    command, mutag_model, mutag: Path, tmp_path: Path
) -> None:
    lines = mutag.read_text() * 2
    (tmp_path / "few.jsonl").write_text(lines)
    with (tmp_path / "many.jsonl").open("w") as stream:
        for _ in range(300_000 // 376):
            stream.write(lines)
    few, many = (
        peak_memory(command, mutag_model.exported, tmp_path / f"{name}.jsonl")
        for name in ("few", "many")
    )
    assert many - few < 20 << 20


def test_an_exported_model_predicts_and_is_evaluated_without_torch(
    mutag_model, mutag: Path
) -> None:
    model = str(mutag_model.exported)
    code = f"""
import sys
class Missing:  # None in sys.modules would fail in scipy, which looks for torch there
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("torch", "torch_geometric", "onnx"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
from ihgnn_cli.cli.app import app
for graphs in ({str(mutag)!r}, "MUTAG"):
    app(["predict", {model!r}, graphs, "--json"], standalone_mode=False)
print("evaluated:", flush=True)
app(["evaluate", {model!r}, "--json"], standalone_mode=False)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    predicted, evaluated = result.stdout.split(b"evaluated:")
    assert len(predicted.splitlines()) == 2 * 188
    assert json.loads(evaluated)["graphs"] == 19


def test_mistakes_are_refused(ihgnn, mutag_model, mutag: Path, tmp_path: Path) -> None:
    exported = mutag_model.exported
    assert_refused(ihgnn("predict", "none.onnx", mutag), 2, "none.onnx does not exist")
    assert_refused(ihgnn("predict", exported, "./none.jsonl"), 2, "No file or folder")
    (tmp_path / "graphs.txt").write_text(GOOD)
    result = ihgnn("predict", exported, "graphs.txt")
    assert result.returncode == 2
    assert "neither a folder, a .zip, a .jsonl nor a .csv file" in result.stderr
    assert_refused(ihgnn("predict", exported, mutag, "--device", "tpu"), 2, "No device 'tpu'")
    assert_refused(
        ihgnn("predict", exported, mutag, "--provider", "Abacus"), 2, "No provider 'Abacus'"
    )
    assert_refused(
        ihgnn("predict", mutag_model.checkpoint, mutag, "--provider", "CPUExecutionProvider"),
        *(2, "only exported models use onnxruntime providers"),
    )
    both = ("--device", "cpu", "--provider", "CPUExecutionProvider")
    assert_refused(ihgnn("predict", exported, mutag, *both), 2, "Give one of them")
    assert_refused(ihgnn("predict", exported, mutag, "--csv", mutag), 2, "belongs to the data set")
    assert_refused(ihgnn("predict", exported, mutag, "--csv", exported), 2, "belongs to the model")
    assert_refused(ihgnn("predict", exported, mutag, "--csv", "-", "--json"), 2, "both write to")
    assert_refused(ihgnn("predict", exported, mutag, "--batch-size", "0"), 2, "--batch-size")
