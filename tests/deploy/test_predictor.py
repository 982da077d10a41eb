"""`load(path).predict(graphs)`: few lines, few packages."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import ALL, SMALL, dataset, untrained

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.jsonl import write_jsonl
from ihgnn_cli.deploy.export import export_onnx
from ihgnn_cli.deploy.predictor import load
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.errors import DataError, InputError
from ihgnn_cli.inference.prediction import Failure, Prediction
from ihgnn_cli.inference.vocabulary import UnknownLabelsWarning
from ihgnn_cli.training.classifier import load_torch

NITROBENZENE = {
    "node_labels": [0, 0, 0, 0, 0, 0, 1, 2, 2],
    "edges": [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 0], [0, 6], [6, 7], [6, 8]],
}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """MUTAG as plain objects."""
    path = tmp_path_factory.mktemp("graphs") / "mutag.jsonl"
    write_jsonl(load_dataset("MUTAG"), path)
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("file", ["exported", "checkpoint", "run"])
def test_every_form_of_a_model_answers_as_the_checkpoint(mutag_model, graphs, file: str) -> None:
    mutag = load_dataset("MUTAG")
    checkpoint = load_torch(mutag_model.checkpoint, torch.device("cpu"))
    expected = checkpoint.probabilities(mutag, np.arange(len(mutag)))
    found = load(getattr(mutag_model, file), "cpu").predict(graphs)
    assert [each.graph for each in found] == list(range(188))
    np.testing.assert_allclose(
        [list(each.probabilities.values()) for each in found], expected, atol=1e-5
    )
    assert {each.class_value for each in found} <= {-1, 1}


def test_it_says_what_it_is(mutag_model) -> None:
    predictor = load(str(mutag_model.exported), providers=["CPUExecutionProvider"])
    assert predictor.runs_on == "CPUExecutionProvider"
    assert predictor.card.class_values == (-1, 1)
    assert str(predictor) == "<Predictor: MUTAG, 1 member, classes -1, 1, CPUExecutionProvider>"


def test_a_stream_is_answered_batch_by_batch(mutag_model) -> None:
    taken = 0

    def endless() -> Iterator[dict[str, object]]:
        nonlocal taken
        while True:
            taken += 1
            yield NITROBENZENE

    answers = load(mutag_model.exported).stream(endless(), batch_size=5)
    assert [next(answers).graph for _ in range(6)] == [0, 1, 2, 3, 4, 5]
    assert taken == 10


def test_no_graphs_have_no_answers(mutag_model) -> None:
    assert load(mutag_model.exported).predict([]) == []


def test_a_bad_graph_is_named_by_its_number(mutag_model) -> None:
    with pytest.raises(DataError, match=r"^graph 1: no edges\. Add"):
        load(mutag_model.exported).predict([NITROBENZENE, {"node_labels": [0]}])


def test_strange_graphs_are_answered_and_marked(mutag_model) -> None:
    long = {"node_labels": [0] * 40, "edges": [[node, node + 1] for node in range(39)]}
    strange = {"node_labels": [99, 0], "edges": [[0, 1]], "id": "strange"}
    first, second = load(mutag_model.exported).predict([long, strange])
    assert isinstance(first, Prediction)
    assert (first.larger_than_m, first.unknown_nodes, first.id) == (True, 0, None)
    assert (second.larger_than_m, second.unknown_nodes, second.id) == (False, 1, "strange")
    on_torch = load(mutag_model.checkpoint, "cpu").predict([long, strange])
    for here, there in zip((first, second), on_torch, strict=True):
        assert here.probabilities == pytest.approx(there.probabilities, abs=1e-5)


def test_a_graph_that_would_fill_the_memory_is_refused_and_the_others_are_not(mutag_model) -> None:
    giant = {"node_labels": [0] * 21_000, "edges": []}  # 21,000² · 5 bytes
    predictor = load(mutag_model.exported)
    first, failed, last = predictor.predict([NITROBENZENE, giant, NITROBENZENE], errors="return")
    assert (first.graph, failed.graph, last.graph) == (0, 1, 2)
    assert isinstance(failed, Failure)
    assert str(failed) == (
        "graph 1: A graph padded to 21,000 nodes takes 2.1 GiB. Export the model with --layout "
        "sparse, or give smaller graphs."
    )
    with pytest.raises(DataError, match="graph 0: A graph padded to 21,000 nodes"):
        predictor.predict([giant])


def test_each_graph_of_a_batch_has_its_own_answer_or_error(mutag_model) -> None:
    predictor = load(mutag_model.exported, threads=1)
    odd = {"node_labels": ["x", "y"], "edges": [[0, 1]], "id": "odd"}
    graphs = [{"node_labels": [0]}, NITROBENZENE, 5, odd, NITROBENZENE]
    expected = predictor.predict([NITROBENZENE])[0].probabilities
    for answers in (
        predictor.predict(graphs, errors="return"),
        list(predictor.stream(graphs, 2, errors="return")),
    ):
        assert [each.graph for each in answers] == [0, 1, 2, 3, 4]
        assert [isinstance(each, Failure) for each in answers] == [True, False, True, True, False]
        assert answers[1].probabilities == pytest.approx(expected)
        assert answers[0].error.startswith("no edges. Add")
        assert "2 of 2 nodes in 1 graph are unknown to the model (x, y)" in answers[3].error
        assert answers[3].id == "odd"
    with pytest.raises(DataError, match=r"^graph 0: The labels of 2 of 2 nodes"):
        predictor.predict([odd])
    with pytest.warns(UnknownLabelsWarning):
        allowed = predictor.predict([odd], errors="return", allow_unknown=True)
    assert [each.unknown_nodes for each in allowed] == [2]
    with pytest.raises(InputError, match="errors must be 'raise' or 'return', not 'ignore'"):
        predictor.predict([], errors="ignore")


def test_mistakes_are_refused(mutag_model, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only exported models use onnxruntime providers"):
        load(mutag_model.checkpoint, providers=["CPUExecutionProvider"])
    with pytest.raises(InputError, match="threads are set per exported model"):
        load(mutag_model.checkpoint, threads=1)
    with pytest.raises(InputError, match="Cannot use 0 threads"):
        load(mutag_model.exported, threads=0)
    with pytest.raises(InputError, match="does not exist"):
        load(tmp_path / "none.onnx")
    with pytest.raises(InputError, match=r"holds no checkpoint \(ckpt\.pt\)\. Give a run folder"):
        load(tmp_path)
    with pytest.raises(InputError, match="batch_size must be at least 1, not 0"):
        load(mutag_model.exported).stream([NITROBENZENE], 0)
    with pytest.raises(InputError, match="No device 'abacus'"):
        load(mutag_model.exported, "abacus")


# Everything that the package depends on but for NumPy and onnxruntime.
NOT_THERE = (
    *("torch", "torch_geometric", "onnx", "onnxscript", "scipy", "sklearn", "optuna"),
    *("matplotlib", "platformdirs", "typer", "rich", "click", "pydantic", "filelock", "pooch"),
)


def test_numpy_and_onnxruntime_are_enough(mutag_model) -> None:
    code = f"""
import sys
sys.modules.update(dict.fromkeys({NOT_THERE!r}))  # importing one of them fails
from ihgnn_cli.deploy.predictor import load
from ihgnn_cli.errors import InputError
(found,) = load({str(mutag_model.exported)!r}).predict([{NITROBENZENE!r}])
assert set(found.probabilities) == {{-1, 1}}
try:
    load({str(mutag_model.checkpoint)!r})
except InputError as error:
    assert "a checkpoint needs torch, which is not installed" in str(error), error
else:
    raise AssertionError("a checkpoint was loaded without torch")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_numbers_beyond_all_measure_are_the_error_of_their_graph(tmp_path: Path) -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data, replace(SMALL, layers=0), Features.ATTRIBUTES)
    path = export_onnx(reference_of(checkpoint), tmp_path / "model.onnx").path
    huge = [
        {"node_attributes": [[number, 0], [0, 0]], "edges": [[0, 1]]}
        for number in (1, 2**1024, 1e39, 1)
    ]
    found = load(path, "cpu").predict(huge, errors="return")
    assert [isinstance(each, Failure) for each in found] == [False, True, True, False]
    assert found[0].probabilities == pytest.approx(found[3].probabilities)
