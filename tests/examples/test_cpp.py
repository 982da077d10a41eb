"""Exported models in C++ with OpenVINO, whose Python package has the headers and libraries."""

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from elsewhere import EXAMPLES, write_golden

from ihgnn_cli import export

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("openvino") is None,
        reason="OpenVINO is not installed; 'nox -s interop' installs it",
    ),
    pytest.mark.skipif(
        not (shutil.which("cmake") and shutil.which("c++")),
        reason="CMake and a C++ compiler are not installed",
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, built as its README says."""
    from openvino.utils import get_cmake_path

    build = tmp_path_factory.mktemp("build")
    configure = ["cmake", "-S", EXAMPLES / "cpp", "-B", build]
    strict = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-Werror"]
    subprocess.run([*configure, *strict, f"-DOpenVINO_DIR={get_cmake_path()}"], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    return build / "golden"


def run(program: Path, *args: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *args], capture_output=True, text=True, check=False)


def test_golden_vectors_are_the_same(program: Path, exported) -> None:
    done = run(program, exported.golden)
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.count(": same (") == len(json.loads(exported.golden.read_text())["cases"])


def test_a_fixed_batch_is_filled_with_padding(program: Path, mutag_model, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    export(mutag_model.checkpoint, model, max_nodes=28, batch=3, verify=False)
    path = write_golden(model, {"two": [{"node_labels": [0, 1], "edges": [[0, 1]]}] * 2})
    assert json.loads(path.read_text())["cases"][0]["inputs"]["node_labels"]["shape"] == [3, 28]
    done = run(program, path)
    assert done.returncode == 0, done.stderr + done.stdout


def test_a_different_answer_or_input_is_noticed(program: Path, exported) -> None:
    golden = json.loads(exported.golden.read_text())
    golden["cases"][0]["outputs"]["probabilities"]["data"][1] += 2e-4
    golden["cases"][1]["graphs"][0]["node_labels"][0] = 2
    changed = exported.model.with_name("changed.golden.json")
    changed.write_text(json.dumps(golden))
    done = run(program, changed)
    assert done.returncode == 1
    told = done.stdout.splitlines()
    assert "DIFFERENT: probabilities (" in told[0]
    assert "DIFFERENT: node_labels" in told[1]
    assert ": same (" in told[2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"edges": [[0, 3]]}, "an edge leaves the graph: nodes are counted from 0 to 2"),
        ({"node_labels": [], "num_nodes": 3}, "the model reads labels: give one for each node"),
    ],
)
def test_a_bad_graph_is_refused_with_a_reason(program: Path, exported, change, said) -> None:
    golden = json.loads(exported.golden.read_text())
    golden["cases"][1]["graphs"][0].update(change)
    changed = exported.model.with_name("changed.golden.json")
    changed.write_text(json.dumps(golden))
    done = run(program, changed)
    assert done.returncode == 2
    assert said in done.stderr


def test_text_that_is_not_json_is_refused(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.golden.json"
    path.write_text('{"format": 1')
    done = run(program, path)
    assert (done.returncode, done.stderr) == (2, "not JSON at character 12\n")
    assert run(program, tmp_path / "none").returncode == 2
