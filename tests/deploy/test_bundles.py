"""What is written beside an exported file: its model card, and folders for Triton and MLflow."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.deploy import mlflow_model
from ihgnn_cli.deploy.bundles import planned_bundles, write_bundles
from ihgnn_cli.deploy.folders import folder_written_whole, refuse_taken
from ihgnn_cli.deploy.onnx_model import OnnxClassifier, load_onnx
from ihgnn_cli.deploy.readme import model_readme, result_of
from ihgnn_cli.deploy.triton import triton_config
from ihgnn_cli.errors import IhgnnError, InputError

OUTPUTS = {"logits": ["batch", 2], "probabilities": ["batch", 2], "graph_embedding": ["batch", 8]}


def session(**inputs: tuple[str, list[Any]]) -> Any:
    """What the configuration is made from: names, types and shapes."""
    given = [SimpleNamespace(name=n, type=f"tensor({t})", shape=s) for n, (t, s) in inputs.items()]
    found = [SimpleNamespace(name=n, type="tensor(float)", shape=s) for n, s in OUTPUTS.items()]
    names = SimpleNamespace(get_inputs=lambda: given, get_outputs=lambda: found)
    return SimpleNamespace(session=names)


def padded(nodes: int | str) -> Any:
    return session(
        node_labels=("int64", ["batch", nodes]), adjacency=("uint8", ["batch", nodes, nodes])
    )


SPARSE = session(
    node_labels=("int64", ["nodes"]),
    edge_index=("int64", [2, "edges"]),
    ptr=("int64", ["batch_plus_1"]),
)


def parsed(text: str) -> Any:
    """The configuration as Triton reads it."""
    reason = "tritonclient[grpc] is not installed; nox -s serve installs it"
    config = pytest.importorskip("tritonclient.grpc.model_config_pb2", reason=reason)
    from google.protobuf import text_format

    return text_format.Parse(text, config.ModelConfig())


def test_requests_of_one_fixed_size_are_collected_by_triton() -> None:
    text = triton_config("m", padded(28))
    assert "max_batch_size: 64" in text
    assert 'name: "adjacency" data_type: TYPE_UINT8 dims: [ 28, 28 ]' in text
    assert "dynamic_batching" in text


def test_requests_of_any_size_are_not_collected() -> None:
    text = triton_config("m", padded("nodes"))
    assert 'name: "node_labels" data_type: TYPE_INT64 dims: [ -1 ]' in text
    assert "dynamic_batching" not in text


def test_a_sparse_batch_has_no_batch_axis() -> None:
    text = triton_config("m", SPARSE)
    assert "max_batch_size: 0" in text
    assert 'name: "edge_index" data_type: TYPE_INT64 dims: [ 2, -1 ]' in text
    assert 'name: "logits" data_type: TYPE_FP32 dims: [ -1, 2 ]' in text


@pytest.mark.parametrize("model", [padded(28), padded("nodes"), SPARSE])
def test_triton_reads_the_configuration(model: Any) -> None:
    config = parsed(triton_config('a "name"', model))
    assert (config.name, config.backend) == ('a "name"', "onnxruntime")
    inputs = model.session.get_inputs()
    assert [each.name for each in config.input] == [each.name for each in inputs]
    batch = 1 if config.max_batch_size else 0
    for found, given in zip(config.input, inputs, strict=True):
        expected = [size if isinstance(size, int) else -1 for size in given.shape[batch:]]
        assert list(found.dims) == expected
    assert config.HasField("dynamic_batching") is (model.session.get_inputs()[0].shape[-1] == 28)


@pytest.fixture
def classifier(mutag_model) -> OnnxClassifier:
    return load_onnx(mutag_model.exported, "cpu")


def test_an_export_comes_with_a_card_that_has_the_numbers_of_its_run(mutag_model) -> None:
    text = mutag_model.exported.with_suffix(".md").read_text(encoding="utf-8")
    result = json.loads((mutag_model.run / "result.json").read_text())["test"]
    assert text.startswith("---\nlibrary_name: ihgnn\n")
    assert f"value: {result['accuracy']:.4f}" in text.split("---")[1]
    low, high = (f"{100 * result[key]:.1f} %" for key in ("accuracy_low", "accuracy_high"))
    assert f"{100 * result['accuracy']:.1f} %, 95 % interval {low} to {high}" in text
    for words in ("150 train, 19 validation, 19 test", "28 nodes", "ihgnn serve model.onnx"):
        assert words in text


def test_a_card_without_a_run_has_no_numbers(
    mutag_model, classifier: OnnxClassifier, tmp_path: Path
) -> None:
    elsewhere = shutil.copy(mutag_model.checkpoint, tmp_path / "ckpt.pt")
    assert result_of(elsewhere, classifier.card) is None
    text = model_readme("m", classifier, None)
    assert "Not known" in text
    assert "model-index" not in text
    assert "95 %" not in text


def test_the_result_of_another_epoch_or_other_data_is_not_used(
    mutag_model, classifier: OnnxClassifier, tmp_path: Path
) -> None:
    result = json.loads((mutag_model.run / "result.json").read_text())
    for changed in (
        {"best_epoch": result["best_epoch"] + 1},
        {"provenance": {"data_sha256": "0"}},
        {"test": "damaged"},
    ):
        (tmp_path / "result.json").write_text(json.dumps({**result, **changed}))
        assert result_of(tmp_path / "ckpt.pt", classifier.card) is None


def test_a_model_of_all_graphs_has_no_accuracy(classifier: OnnxClassifier) -> None:
    result = {"split": "all", "chosen_by": "", "best_epoch": 1}
    text = model_readme("m", classifier, result)
    assert "trained on all graphs" in text
    assert "model-index" not in text


def test_a_triton_repository_holds_the_model(mutag_model, tmp_path: Path) -> None:
    model = mutag_model.exported
    bundles = planned_bundles(tmp_path / "mutag.onnx", tmp_path / "models", None, force=False)
    write_bundles(bundles, model, mutag_model.checkpoint)
    folder = tmp_path / "models" / "mutag"
    assert sorted(each.name for each in folder.iterdir()) == [
        "1",
        "README.md",
        "classes.txt",
        "config.pbtxt",
    ]
    assert (folder / "1" / "model.onnx").read_bytes() == model.read_bytes()
    assert (folder / "classes.txt").read_text() == "-1\n1\n"
    assert (folder / "config.pbtxt").read_text().startswith('name: "mutag"\n')
    with pytest.raises(InputError, match="already exists"):
        planned_bundles(tmp_path / "mutag.onnx", tmp_path / "models", None, force=False)
    again = planned_bundles(tmp_path / "mutag.onnx", tmp_path / "models", None, force=True)
    write_bundles(again, model, mutag_model.checkpoint)


@pytest.mark.filterwarnings("ignore::UserWarning:mlflow.*", "ignore::FutureWarning:mlflow.*")
def test_mlflow_answers_as_the_file(
    mutag_model, classifier: OnnxClassifier, tmp_path: Path
) -> None:
    pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")
    pytest.importorskip("pandas", reason="the extra 'mlflow' is not installed")
    bundles = planned_bundles(tmp_path / "mutag.onnx", None, tmp_path / "mlflow", force=False)
    write_bundles(bundles, mutag_model.exported, mutag_model.checkpoint)
    import mlflow.pyfunc

    model = mlflow.pyfunc.load_model(str(tmp_path / "mlflow"))
    mutag = load_dataset("MUTAG")
    found = model.predict(classifier.inputs(mutag, np.arange(10)))
    expected = classifier.probabilities(mutag, np.arange(10))
    np.testing.assert_allclose(found["probabilities"], expected, atol=1e-6)
    assert [each.name for each in model.metadata.signature.inputs] == ["node_labels", "adjacency"]
    assert model.metadata.metadata["class_values"] == [-1, 1]
    with pytest.raises(mlflow.exceptions.MlflowException, match="adjacency"):
        model.predict({"node_labels": np.zeros((1, 2), np.int64)})


def test_without_mlflow_the_message_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow_model, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"pip install 'ihgnn-cli\[mlflow\]'"):
        planned_bundles(tmp_path / "m.onnx", None, tmp_path / "mlflow", force=False)


def test_files_of_the_user_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(InputError, match=r"README\.md already exists"):
        planned_bundles(tmp_path / "README.onnx", None, None, force=False)
    (tmp_path / "models" / "m").mkdir(parents=True)
    (tmp_path / "models" / "m" / "notes.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(InputError, match="holds other files"):
            planned_bundles(tmp_path / "m.onnx", tmp_path / "models", None, force=force)
        with pytest.raises(InputError, match="holds other files"):
            refuse_taken(tmp_path, "MLmodel", force=force)
    (tmp_path / "empty").mkdir()
    refuse_taken(tmp_path / "empty", "MLmodel", force=False)


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "folder"

    def write(text: str, error: Exception | None = None) -> None:
        with folder_written_whole(target) as temporary:
            (temporary / "file").write_text(text)
            if error is not None:
                raise error

    write("old")
    with pytest.raises(ValueError, match="stop"):
        write("new", ValueError("stop"))
    with pytest.raises(IhgnnError, match="Cannot write"):
        write("new", OSError(28, "No space left on device"))
    assert (target / "file").read_text() == "old"
    write("new")
    assert (target / "file").read_text() == "new"
    assert [each.name for each in target.parent.iterdir()] == ["folder"]
