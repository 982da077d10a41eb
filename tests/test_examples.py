"""The examples run as they stand."""

import subprocess
import sys
from pathlib import Path

from ihgnn_cli.data import load_dataset
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
