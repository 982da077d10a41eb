"""Exported files answer in OpenVINO, whose TopK does not keep the order of equal values."""

from pathlib import Path

import numpy as np
import pytest
from tiny_models import SMALL, torch_logits, untrained

from ihgnn_cli.data.sources import locate, read
from ihgnn_cli.deploy.export import export_onnx
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.inputs import padded_inputs, sparse_inputs
from ihgnn_cli.deploy.onnx_model import load_onnx

_AT_ONCE = 100


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("name", ["MUTAG", "IMDB-BINARY"])
def test_every_graph_is_answered_as_by_the_checkpoint(
    name: str, layout: Layout, real_data: Path, tmp_path: Path
) -> None:
    openvino = pytest.importorskip(
        "openvino", reason="OpenVINO is not installed; nox -s openvino installs it"
    )
    data = read(locate(name, data_root=real_data, offline=True))
    checkpoint = untrained(data, SMALL, max_nodes=int(np.diff(data.node_ptr).max()))
    path = tmp_path / "model.onnx"
    export_onnx(checkpoint, path, Form(layout))
    exact = {"INFERENCE_PRECISION_HINT": "f32"}  # half precision would move sort keys
    model = openvino.compile_model(path, "CPU", exact)
    inputs = sparse_inputs if layout is Layout.SPARSE else padded_inputs
    batches = np.array_split(np.arange(len(data)), -(-len(data) // _AT_ONCE))
    logits, margins = [], []
    for graphs in batches:
        found = model(inputs(checkpoint.card, data, graphs))  # the next batch overwrites it
        logits.append(found["logits"].copy())
        margins.append(found["order_margin"].copy())
    expected = torch_logits(checkpoint, data)[0]
    np.testing.assert_allclose(np.concatenate(logits), expected, rtol=1e-4, atol=1e-4)
    theirs = load_onnx(path, "cpu").answers(data, np.arange(len(data))).order_margin
    np.testing.assert_allclose(np.concatenate(margins), theirs, rtol=1e-3, atol=1e-5)
