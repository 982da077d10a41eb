"""The golden file: right answers for small graphs, and a check of a runtime with them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_models import ALL

from ihgnn_cli.cli.check_export import check_export as command
from ihgnn_cli.data.json_graph import check_graph
from ihgnn_cli.deploy import golden as module
from ihgnn_cli.deploy.golden import check_golden
from ihgnn_cli.deploy.onnx_model import load_onnx
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.inference.vocabulary import encode_graphs

CPU = "CPUExecutionProvider"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.0)


@pytest.fixture
def copied(exported, tmp_path: Path) -> Path:
    """A copy of an exported file with its golden file."""
    shutil.copytree(exported.done.path.parent, tmp_path / "copy")
    return tmp_path / "copy" / "model.onnx"


def content_of(model: Path) -> dict:
    return json.loads(model.with_suffix(".golden.json").read_text())


def test_inputs_encode_the_graphs_and_outputs_are_the_models(exported) -> None:
    golden = content_of(exported.done.path)
    card = exported.checkpoint.card
    graphs = [check_graph(each) for each in golden["graphs"]]
    assert [each.num_nodes for each in graphs] == [1, 3, 3, 5, 5, 5]
    # The last graph has a label that the model does not know.
    assert golden["graphs"][-1]["node_labels"][0] == "a?"
    encoded = encode_graphs(card, graphs).dataset
    inputs = load_onnx(exported.done.path).inputs(encoded, np.arange(len(graphs)))
    for name, each in golden["inputs"].items():
        assert each["shape"] == list(inputs[name].shape)
        np.testing.assert_array_equal(np.array(each["data"], each["type"]), inputs[name].ravel())
    expected = reference_of(exported.checkpoint).outputs(encoded)
    for name, each in golden["outputs"].items():
        np.testing.assert_allclose(each["data"], expected[name].ravel(), rtol=1e-6, atol=1e-7)
    best = expected["probabilities"].argmax(axis=1)
    assert golden["classes"] == [card.class_values[each] for each in best]
    assert len(ALL) > len(golden["graphs"])


def test_a_right_file_passes_with_its_time_per_graph(exported) -> None:
    found = check_golden(exported.done.path, CPU)
    assert (found.runs_on, found.graphs, found.passed, found.same_classes) == (CPU, 6, True, True)
    assert found.difference < 1e-5
    assert found.milliseconds_per_graph > 0


def test_wrong_answers_fail(copied: Path, capfd: pytest.CaptureFixture[str]) -> None:
    golden = content_of(copied)
    logits = golden["outputs"]["logits"]["data"]
    golden["outputs"]["logits"]["data"] = [each + 0.01 for each in logits]
    copied.with_suffix(".golden.json").write_text(json.dumps(golden))
    assert not check_golden(copied).passed
    with pytest.raises(IhgnnError, match="1 check failed"):
        command(copied, [CPU])
    assert "FAIL" in capfd.readouterr().out


def test_another_provider_than_the_one_asked_for_is_said_loudly(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def none_but_the_cpu(path: Path, device: str = "auto", providers=None, threads=None):
        if providers:
            raise InputError("onnxruntime cannot start it")
        return load_onnx(path, "cpu")

    monkeypatch.setattr(module, "load_onnx", none_but_the_cpu)
    monkeypatch.setattr(module, "loadable_providers", lambda: {"AbacusExecutionProvider": False})
    with pytest.raises(IhgnnError, match="1 check failed: AbacusExecutionProvider"):
        command(copied, ["AbacusExecutionProvider"])
    said = capfd.readouterr().err
    assert f"AbacusExecutionProvider DID NOT RUN: the model ran on {CPU} instead" in said


def test_unknown_providers_and_damaged_files_are_refused(copied: Path) -> None:
    with pytest.raises(InputError, match="No provider 'Abacus'") as caught:
        check_golden(copied, "Abacus")
    assert "Tensorrt" not in str(caught.value)
    golden = copied.with_suffix(".golden.json")
    for content in ("", "[]", '{"model": 1}', golden.read_text()[:-5]):
        golden.write_text(content)
        with pytest.raises(InputError, match="is damaged"):
            check_golden(copied)
    golden.unlink()
    with pytest.raises(InputError, match=r"golden\.json is missing"):
        check_golden(copied)
