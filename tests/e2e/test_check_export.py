"""`ihgnn check-export` as a user starts it."""

import json
import shutil
from pathlib import Path

import pytest
from refusals import assert_refused

from ihgnn_cli.deploy.providers import loadable_providers

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


@pytest.fixture
def model(mutag_model, tmp_path: Path) -> Path:
    """An exported file with its golden file, in the folder where commands run."""
    for path in mutag_model.exported.parent.glob("model.*"):
        shutil.copy(path, tmp_path)
    return tmp_path / "model.onnx"


def test_a_right_file_passes_and_a_wrong_answer_fails(ihgnn, model: Path) -> None:
    done = ihgnn("check-export", model.name, "--provider", CPU)
    assert done.returncode == 0, done.stderr
    (row,) = (line.split() for line in done.stdout.splitlines() if CPU in line)
    assert (row[2], row[-1]) == ("same", "pass")
    golden = model.with_name("model.golden.json")
    plain = json.loads(golden.read_text(encoding="utf-8"))
    plain["outputs"]["logits"]["data"][2] += 1
    golden.write_text(json.dumps(plain), encoding="utf-8")
    done = ihgnn("check-export", model.name, "--provider", CPU, "--json")
    assert done.returncode == 1
    assert f"1 check failed: {CPU}" in done.stderr
    (check,) = json.loads(done.stdout)["checks"]
    assert (check["runs_on"], check["passed"], check["graphs"]) == (CPU, False, 8)


@pytest.mark.skipif(
    loadable_providers().get(CUDA) is not False, reason="CUDA starts, or is not installed"
)
def test_a_provider_that_does_not_start_is_said_loudly(ihgnn, model: Path) -> None:
    done = ihgnn("check-export", model.name, "--provider", CUDA)
    assert done.returncode == 1
    assert f"{CUDA} DID NOT RUN: the model ran on {CPU} instead" in done.stderr
    assert "Tensorrt" not in ihgnn("check-export", model.name).stdout


def test_what_cannot_be_checked_is_refused(ihgnn, model: Path) -> None:
    done = ihgnn("check-export", model.name, "--provider", "Abacus")
    assert_refused(done, 2, "No provider 'Abacus'")
    model.with_name("model.golden.json").unlink()
    assert_refused(ihgnn("check-export", model.name), 2, "model.golden.json is missing")
