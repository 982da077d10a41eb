"""`ihgnn check-export` as a user starts it."""

import json
import shutil
from pathlib import Path

import onnxruntime
import pytest
from refusals import assert_refused

from ihgnn_cli.deploy.providers import loadable_providers

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


@pytest.fixture
def model(mutag_model, tmp_path: Path) -> Path:
    """An exported file with its golden vectors, in the folder where commands run."""
    for path in mutag_model.exported.parent.glob("model.*"):
        shutil.copy(path, tmp_path)
    return tmp_path / "model.onnx"


def test_every_case_is_shown_with_its_difference(ihgnn, model: Path) -> None:
    done = ihgnn("check-export", model.name, "--provider", CPU)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("model.onnx: padded, tolerance 1e-04")
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(f" {CPU}")]
    assert len(rows) == 7
    assert all(row[-2:] == ["same", "pass"] for row in rows)
    ran, passed = done.stderr.splitlines()
    assert ran.startswith(f"{CPU} (onnxruntime {onnxruntime.__version__}) ran ")
    assert passed == "1 runtime passed all 7 cases."


def test_a_wrong_answer_is_shown_and_fails(ihgnn, model: Path) -> None:
    golden = model.with_name("model.golden.json")
    plain = json.loads(golden.read_text(encoding="utf-8"))
    plain["cases"][2]["outputs"]["logits"]["data"][0] += 1
    golden.write_text(json.dumps(plain), encoding="utf-8")
    done = ihgnn("check-export", model.name, "--provider", CPU)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"Error: 1 runtime failed the check: {CPU}."
    assert [line.split()[-1] for line in done.stdout.splitlines() if "FAIL" in line] == ["FAIL"]
    told = json.loads(ihgnn("check-export", model.name, "--provider", CPU, "--json").stdout)
    (runtime,) = told["runtimes"]
    assert (runtime["runtime"], runtime["used"], runtime["passed"]) == (CPU, True, False)
    assert [each["passed"] for each in runtime["cases"]] == [True, True, False, *[True] * 4]


@pytest.mark.skipif(
    loadable_providers().get(CUDA) is not False, reason="CUDA starts, or is not installed"
)
def test_a_provider_that_does_not_start_is_a_failure_only_if_it_was_asked_for(
    ihgnn, model: Path
) -> None:
    done = ihgnn("check-export", model.name, "--provider", CUDA)
    assert done.returncode == 1
    assert f"WARNING: {CUDA} did not run." in done.stderr
    assert f"1 runtime failed the check: {CUDA}." in done.stderr
    done = ihgnn("check-export", model.name)
    assert done.returncode == 0, done.stderr
    assert f"{CUDA} did not run." in done.stderr
    assert "WARNING" not in done.stderr


def test_mistakes_are_refused(ihgnn, model: Path, tmp_path: Path) -> None:
    assert_refused(ihgnn("check-export", "none.onnx"), 2, "none.onnx does not exist")
    assert_refused(ihgnn("check-export", model.name, "--provider", "cpu"), 2, "No provider")
    shutil.move(model, tmp_path / "other.onnx")
    assert_refused(ihgnn("check-export", "other.onnx"), 2, "other.golden.json is missing")
    model.write_bytes((tmp_path / "other.onnx").read_bytes() + b"more")
    assert_refused(ihgnn("check-export", model.name), 2, "belongs to another file")
