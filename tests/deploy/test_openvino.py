"""Exported files answer in OpenVINO, whose TopK does not keep the order of equal values."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tiny_models import ALL, SMALL, Eager, dataset, torch_logits, untrained

from ihgnn_cli.data import Features
from ihgnn_cli.data.access import Access
from ihgnn_cli.data.sources import locate, read
from ihgnn_cli.deploy.export import export_onnx
from ihgnn_cli.deploy.inputs import padded_inputs, sparse_inputs
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.models.spec import Layout

_AT_ONCE = 100
_EXACT = {"INFERENCE_PRECISION_HINT": "f32"}  # half precision would move sort keys


@pytest.fixture
def openvino() -> ModuleType:
    reason = "OpenVINO is not installed; nox -s interop installs it"
    return pytest.importorskip("openvino", reason=reason)


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("name", ["MUTAG", "IMDB-BINARY"])
def test_every_graph_is_answered_as_by_the_checkpoint(
    name: str, layout: Layout, openvino: ModuleType, real_data: Path, tmp_path: Path
) -> None:
    data = read(locate(name, Access(real_data, offline=True)))
    checkpoint = untrained(data, SMALL, max_nodes=int(np.diff(data.node_ptr).max()))
    path = tmp_path / "model.onnx"
    export_onnx(reference_of(checkpoint), path, layout)
    model = openvino.compile_model(path, "CPU", _EXACT)
    inputs = sparse_inputs if layout is Layout.SPARSE else padded_inputs
    batches = np.array_split(np.arange(len(data)), -(-len(data) // _AT_ONCE))
    logits = []
    for graphs in batches:
        found = model(inputs(checkpoint.card, data, graphs))  # the next batch overwrites it
        logits.append(found["logits"].copy())
    expected = torch_logits(checkpoint, data)[0]
    np.testing.assert_allclose(np.concatenate(logits), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("features", Features)
def test_ensembles_are_answered_as_by_torch(
    features: Features, layout: Layout, openvino: ModuleType, tmp_path: Path
) -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data, SMALL, features, members=3)
    export_onnx(reference_of(checkpoint), tmp_path / "model.onnx", layout)
    model = openvino.compile_model(tmp_path / "model.onnx", "CPU", _EXACT)
    inputs = sparse_inputs if layout is Layout.SPARSE else padded_inputs
    graphs = np.arange(len(data))
    found = model(inputs(checkpoint.card, data, graphs))
    expected = Eager(checkpoint, layout).answers(data, graphs)
    for name in ("probabilities", "uncertainty"):
        np.testing.assert_allclose(found[name], getattr(expected, name), atol=1e-5, err_msg=name)
