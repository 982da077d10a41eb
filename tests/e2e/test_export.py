"""`ihgnn export` as a user starts it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from refusals import assert_refused

CASES = ["small to large", "without edges", "larger than m", "nodes permuted"]
TRAIN = ("train", "--epochs", "1", "--width", "8", "--hidden", "8", "--quiet", "--out")


@pytest.fixture
def checkpoint(mutag_model) -> Path:
    return mutag_model.checkpoint


def test_a_sparse_model_is_verified_shown_and_evaluated(
    ihgnn, checkpoint: Path, tmp_path: Path
) -> None:
    done = ihgnn("export", checkpoint.parent, "model.onnx", "--layout", "sparse")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("model.onnx: ")
    for said in (*CASES, "unknown labels", "edge_index"):
        assert said in done.stdout
    files = ["model.onnx", "model.json", "model.golden.json"]
    said = done.stderr.strip().splitlines()
    assert said[-2:] == ["Exporting IHGNN ...", f"Wrote {', '.join(files)}"]
    assert {each.name for each in tmp_path.iterdir()} == set(files)
    about = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert (about["layout"], about["format"]) == ("sparse", 5)
    ours = json.loads(ihgnn("evaluate", checkpoint, "--json").stdout)
    theirs = json.loads(ihgnn("evaluate", "model.onnx", "--json").stdout)
    assert theirs["confusion"] == ours["confusion"]
    assert theirs["log_loss"] == pytest.approx(ours["log_loss"], abs=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-nodes", "0"), "at least 1"),
        (("--layout", "sparse", "--max-nodes", "30"), "which does not pad"),
        (("--max-nodes", "3"), "All graphs of MUTAG have more than 3 nodes"),
        (("--no-verify", "--dataset", "MUTAG"), "Drop one"),
    ],
)
def test_forms_that_cannot_be_are_refused(
    ihgnn, checkpoint: Path, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    assert_refused(ihgnn("export", checkpoint, "model.onnx", *options), 2, said)
    assert not list(tmp_path.iterdir())


def test_data_that_is_wrong_is_told_in_two_lines(ihgnn, checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"node_labels": [0]}\n{\n')
    result = ihgnn("export", checkpoint, "model.onnx", "--dataset", "bad.jsonl")
    assert_refused(result, 2, "bad.jsonl, line 1: no edges", "--no-verify")
    assert [each.name for each in tmp_path.iterdir()] == ["bad.jsonl"]


@pytest.mark.long
@pytest.mark.parametrize("layout", ["padded", "sparse"])
@pytest.mark.parametrize("name", ["IMDB-BINARY", "PROTEINS", "COLLAB", "DD"])
def test_real_data_is_exported_and_verified(
    command: str, tmp_path: Path, real_data: Path, name: str, layout: str
) -> None:
    environment = {**os.environ, "IHGNN_DATA": str(real_data)}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *args],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=600,
        )

    run(*TRAIN, "run", "--dataset", name)
    done = run("export", "run/ckpt.pt", "model.onnx", "--layout", layout, "--json")
    told = json.loads(done.stdout)["parity"]
    cases = {each["case"]: each for each in told["cases"]}
    assert set(CASES) < set(cases)
    degrees = name in {"IMDB-BINARY", "COLLAB"}
    assert ("degree above all seen" in cases) is degrees
    assert ("unknown labels" in cases) is not degrees
    assert ("132 MB" in done.stderr) is (name == "DD" and layout == "padded")
