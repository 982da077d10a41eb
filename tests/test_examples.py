"""The examples run as they stand."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from environments import python_with

import ihgnn_cli
from ihgnn_cli.data import load_dataset
from ihgnn_cli.deploy.predictor import load
from ihgnn_cli.homophily.measures import graph_homophily

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_json_lines_example_is_read_with_its_words() -> None:
    dataset = load_dataset(str(EXAMPLES / "molecules.jsonl"))
    assert dataset.label_values == ("C", "O")
    assert dataset.class_values == ("alcohol", "ether")
    # Ethanol C-C-O: alpha 1, 1/2, 0. Dimethyl ether C-O-C: nobody has an equal neighbour.
    assert graph_homophily(dataset)[[0, 3]].tolist() == [0.5, 0]


def output_of(script: str, *args: str) -> str:
    command = [sys.executable, EXAMPLES / "python" / script, *args]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_look_at_data_script_runs() -> None:
    told = output_of("look_at_data.py")
    assert "beta 0.647 ± 0.145" in told
    assert "the same after the round trip: True" in told


def test_the_train_and_evaluate_script_runs() -> None:
    told = output_of("train_and_evaluate.py", "MUTAG", "3")
    assert "of 19 test graphs" in told
    assert "mostly heterophilic" in told


def probabilities(told: str) -> list[float]:
    found = re.fullmatch(r"class -1: (\S+)\nclass 1: (\S+)\n", told)
    assert found, told
    return [float(each) for each in found.groups()]


def test_the_predict_script_needs_onnxruntime_and_numpy_only(mutag_model) -> None:
    script = EXAMPLES / "python" / "predict.py"
    code = f"""
import runpy, sys
sys.modules.update(dict.fromkeys(["torch", "onnx", "scipy", "ihgnn_cli"]))  # not to be imported
sys.argv = ["predict.py", {str(mutag_model.exported)!r}]
runpy.run_path({str(script)!r}, run_name="__main__")
"""
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert sum(probabilities(told)) == pytest.approx(1, abs=2e-4)

    (expected,) = load(mutag_model.checkpoint, "cpu").predict([graph_of(script)])
    assert probabilities(told) == pytest.approx(list(expected.probabilities.values()), abs=1e-4)


def graph_of(script: Path) -> dict[str, object]:
    """The graph that a script is about."""
    found = runpy.run_path(str(script))
    return {"node_labels": found["LABELS"], "edges": found["EDGES"]}


@pytest.mark.long
def test_an_environment_of_onnxruntime_and_numpy_predicts(mutag_model, tmp_path: Path) -> None:
    """The script by itself, and the package without what else it depends on."""
    python = python_with(tmp_path / "env", "numpy", "onnxruntime")
    script = EXAMPLES / "python" / "predict.py"
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        [python, script, mutag_model.exported], capture_output=True, text=True, env=bare, check=True
    ).stdout
    assert sum(probabilities(told)) == pytest.approx(1, abs=2e-4)

    package = str(Path(ihgnn_cli.__file__).parent.parent)
    code = f"""
import sys
try:
    import torch
except ImportError:
    pass
else:
    raise AssertionError("torch is here")
sys.path.append({package!r})
from ihgnn_cli.deploy.predictor import load
(found,) = load({str(mutag_model.exported)!r}).predict([{graph_of(script)!r}])
for value, p in found.probabilities.items():
    print(f"class {{value}}: {{p:.4f}}")
"""
    again = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, env=bare, check=True
    ).stdout
    assert probabilities(again) == pytest.approx(probabilities(told), abs=2e-4)
