"""An exported model is used like a checkpoint, and needs no torch."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from ihgnn_cli.data import Features, GraphDataset, load_dataset
from ihgnn_cli.data.splits import Split
from ihgnn_cli.deploy import onnx_model as module
from ihgnn_cli.deploy.export import export_onnx
from ihgnn_cli.deploy.metadata import FORMAT, KEY
from ihgnn_cli.deploy.onnx_model import load_onnx
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.evaluation import Part, evaluate
from ihgnn_cli.inference.prediction import Classifier
from ihgnn_cli.models.card import describe
from ihgnn_cli.models.settings import IHGNNSettings
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.training import checkpoint as checkpoints
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.classifier import TorchClassifier
from ihgnn_cli.training.config import RunConfig

CPU = "CPUExecutionProvider"


@pytest.fixture(scope="module")
def mutag() -> GraphDataset:
    return load_dataset("MUTAG")


@pytest.fixture(scope="module")
def checkpoint(mutag: GraphDataset) -> Checkpoint:
    """A model of MUTAG as it starts."""
    config = RunConfig(model=IHGNNSettings(layers=1, width=8, hidden=8))
    split = Split(np.arange(100), np.arange(100, 150), np.arange(150, 188))
    card = describe("MUTAG", mutag, Features.LABELS, split)
    model = checkpoints.build(config, card.inputs, [0])
    return Checkpoint(config, card, model.state_dict(), 1, None)


@pytest.fixture(scope="module")
def padded(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of its export."""
    return export_onnx(
        reference_of(checkpoint), tmp_path_factory.mktemp("padded") / "model.onnx"
    ).path


@pytest.fixture(scope="module")
def sparse(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of its export in the other layout."""
    path = tmp_path_factory.mktemp("sparse") / "model.onnx"
    return export_onnx(reference_of(checkpoint), path, Layout.SPARSE).path


@pytest.fixture
def model(padded: Path) -> Path:
    """Where the layout makes no difference."""
    return padded


@pytest.fixture(params=["padded", "sparse"])
def either(request: pytest.FixtureRequest) -> Path:
    """A file of either layout."""
    found: Path = request.getfixturevalue(request.param)
    return found


def test_probabilities_are_the_checkpoints_in_the_order_asked_for(
    checkpoint: Checkpoint, either: Path, mutag: GraphDataset
) -> None:
    graphs = np.random.default_rng(0).permutation(len(mutag))[:50]
    classifier: Classifier = load_onnx(either)
    found = classifier.probabilities(mutag, graphs)
    expected = TorchClassifier(checkpoint, torch.device("cpu")).probabilities(mutag, graphs)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert classifier.probabilities(mutag, graphs[:0]).shape == (0, 2)


def test_batches_are_bounded_and_change_nothing(
    either: Path, mutag: GraphDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = load_onnx(either)
    graphs = np.arange(len(mutag))
    whole = classifier.probabilities(mutag, graphs)
    sizes = np.diff(mutag.node_ptr)
    for cells in (1, 80_000):
        monkeypatch.setattr(module, "_BATCH_NUMBERS", cells)
        batches = list(classifier._batches(mutag, graphs))
        assert sorted(np.concatenate(batches)) == graphs.tolist()
        assert (len(batches) == len(mutag)) is (cells == 1)
        for batch in batches:
            rows = len(batch) * sizes[batch].max() * classifier.metadata.numbers_per_node
            assert len(batch) == 1 or rows <= cells
        np.testing.assert_allclose(classifier.probabilities(mutag, graphs), whole, atol=1e-6)


def test_it_is_evaluated_like_a_checkpoint(
    checkpoint: Checkpoint, either: Path, mutag: GraphDataset
) -> None:
    found = evaluate(load_onnx(either), mutag)
    expected = evaluate(TorchClassifier(checkpoint, torch.device("cpu")), mutag)
    assert found.part is Part.TEST
    assert found.metrics.confusion == expected.metrics.confusion
    assert found.metrics.log_loss == pytest.approx(expected.metrics.log_loss, abs=1e-6)


def test_a_model_that_sums_its_nodes_has_no_limit(model: Path, tmp_path: Path) -> None:
    assert load_onnx(model).node_limit == 28
    summing = change(lambda text: text.replace('"node_limit":28', '"node_limit":null'))
    (tmp_path / "summing.onnx").write_bytes(summing(model.read_bytes()))
    assert load_onnx(tmp_path / "summing.onnx").node_limit is None


def test_the_provider_is_the_one_that_runs(model: Path) -> None:
    assert load_onnx(model, "cpu").runs_on == CPU
    assert load_onnx(model, providers=[CPU]).runs_on == CPU
    found = load_onnx(model)
    assert found.runs_on == found.session.get_providers()[0]
    with pytest.raises(InputError, match="No provider 'Abacus'"):
        load_onnx(model, providers=["Abacus"])
    with pytest.raises(InputError, match="No device 'gpu'"):
        load_onnx(model, "gpu")


@pytest.mark.skipif(
    "CUDAExecutionProvider" not in onnxruntime.get_available_providers()
    or torch.cuda.is_available(),
    reason="there is a GPU here, or an onnxruntime that knows of none",
)
def test_a_provider_that_does_not_start_is_refused_only_if_asked_for(
    model: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for device in ("cuda", "cuda:1"):
        with pytest.raises(InputError, match="cannot start CUDAExecutionProvider"):
            load_onnx(model, device)
    with pytest.raises(InputError, match="cannot start CUDAExecutionProvider"):
        load_onnx(model, providers=["CUDAExecutionProvider", CPU])
    assert load_onnx(model).runs_on == CPU
    assert capfd.readouterr() == ("", "")


def test_predicting_needs_no_torch(either: Path) -> None:
    code = f"""
import sys
from pathlib import Path
import numpy as np
from ihgnn_cli.data import load_dataset
from ihgnn_cli.deploy.onnx_model import load_onnx
found = load_onnx(Path({str(either)!r})).probabilities(load_dataset("MUTAG"), np.arange(9))
assert found.shape == (9, 2)
loaded = {{"torch", "torch_geometric", "onnx", "sklearn"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def change(text: Callable[[str], str | None]) -> Callable[[bytes], bytes]:
    """A file with other metadata."""

    def changed(content: bytes) -> bytes:
        proto = onnx.load_from_string(content)
        new = text(proto.metadata_props[0].value)
        del proto.metadata_props[:]
        if new is not None:
            proto.metadata_props.add(key=KEY, value=new)
        return bytes(proto.SerializeToString())

    return changed


def renamed_input(content: bytes) -> bytes:
    proto = onnx.load_from_string(content)
    proto.graph.input[0].name = "labels"
    for node in proto.graph.node:
        for position, name in enumerate(node.input):
            if name == "node_labels":
                node.input[position] = "labels"
    return bytes(proto.SerializeToString())


NOT_OURS = "is not a file of 'ihgnn export', or it is damaged"


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda _: b"", "not an ONNX file"),
        (lambda _: b"hello\n" * 100, "not an ONNX file"),
        (lambda content: content[: len(content) // 2], "not an ONNX file"),
        (change(lambda _: None), NOT_OURS),
        (change(lambda _: "{"), NOT_OURS),
        (change(lambda _: "[" * 100_000), NOT_OURS),
        (change(lambda text: text.replace(f'"format":{FORMAT}', '"format":4')), "another version"),
        (change(lambda text: text.replace('"max_nodes"', '"nodes"')), NOT_OURS),
        (change(lambda text: text.replace('"node_limit"', '"limit"')), NOT_OURS),
        (change(lambda text: text.replace('"width":8', '"width":1e999')), NOT_OURS),
        (change(lambda text: text.replace('"attributes":0', '"attributes":1')), NOT_OURS),
        (change(lambda text: text.replace('"train":[0,', '"train":[150,')), NOT_OURS),
        (change(lambda text: text.replace('"class_values":[', '"class_values":[7,')), NOT_OURS),
        (change(lambda text: text.replace('"layout":"padded"', '"layout":"sparse"')), NOT_OURS),
        (renamed_input, NOT_OURS),
    ],
)
def test_broken_files_are_refused_in_a_sentence(
    model: Path,
    tmp_path: Path,
    damage: Callable[[bytes], bytes],
    told: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(damage(model.read_bytes()))
    refused(broken, told)
    assert capfd.readouterr() == ("", "")


def refused(path: Path, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        load_onnx(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_random_damage_is_refused_in_a_sentence_or_does_no_harm(
    model: Path, tmp_path: Path, mutag: GraphDataset
) -> None:
    content, drawn = model.read_bytes(), np.random.default_rng(0)
    metadata = content.index(b'{"format"')
    refusals = []
    for number in range(400):
        damaged = bytearray(content)
        # Half of them in the metadata, where damage is read by this package.
        first = metadata if number % 2 else 0
        for place in drawn.integers(first, len(content), drawn.integers(1, 4)):
            damaged[place] = drawn.integers(256)
        broken = tmp_path / "broken.onnx"
        broken.write_bytes(damaged)
        try:
            load_onnx(broken, "cpu").probabilities(mutag, np.arange(3))
        except InputError as error:
            refusals.append(str(error))
    assert len(refusals) > 20
    assert not [each for each in refusals if "\n" in each]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        load_onnx(tmp_path / "none.onnx")
    with pytest.raises(InputError, match="is a folder"):
        load_onnx(tmp_path)


def test_a_file_that_may_not_be_read_is_refused(
    model: Path, tmp_path: Path, permissions: None
) -> None:
    closed = tmp_path / "closed.onnx"
    closed.write_bytes(model.read_bytes())
    closed.chmod(0)
    with pytest.raises(InputError, match="Cannot read"):
        load_onnx(closed)
