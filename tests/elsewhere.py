"""For tests of exported models in other languages."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ihgnn_cli.data.json_graph import check_graph
from ihgnn_cli.deploy.onnx_model import load_onnx
from ihgnn_cli.inference.vocabulary import encode_graphs

Entries = list[dict[str, Any]]
EXAMPLES = Path(__file__).parent.parent / "examples"
BUNDLED = EXAMPLES / "web" / "model" / "mutag.onnx"
NODE_MODULES = Path(os.environ.get("IHGNN_NPM", "nowhere")) / "node_modules"
"""Packages of npm, which sessions of nox install."""


def needs_npm(*names: str) -> pytest.MarkDecorator:
    """Skip tests where packages of npm are not installed."""
    missing = [name for name in names if not (NODE_MODULES / name).is_dir()]
    reason = f"{', '.join(missing)} not installed; 'nox -s interop' installs them"
    return pytest.mark.skipif(bool(missing), reason=reason)


def entries_of(path: Path) -> Entries:
    """The graphs in a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_golden(model: Path, cases: Mapping[str, Entries]) -> Path:
    """Write MODEL.golden.json for named batches of graphs."""
    classifier = load_onnx(model, "cpu")
    found = []
    for name, graphs in cases.items():
        checked = [check_graph(each) for each in graphs]
        data = encode_graphs(classifier.card, checked).dataset
        inputs = classifier.inputs(data, np.arange(len(graphs)))
        names = [each.name for each in classifier.session.get_outputs()]
        outputs = dict(zip(names, classifier.session.run(names, inputs), strict=True))
        best = outputs["probabilities"].argmax(axis=1).tolist()
        classes = [classifier.card.class_values[each] for each in best]
        found.append(
            {
                "name": name,
                "description": name,
                "graphs": graphs,
                "inputs": {key: _plain(each) for key, each in inputs.items()},
                "outputs": {
                    **{key: _plain(each) for key, each in outputs.items()},
                    "class": {"values": classes},
                },
            }
        )
    path = model.with_suffix(".golden.json")
    content = {
        "format": 1,
        "model": model.name,
        "model_sha256": hashlib.sha256(model.read_bytes()).hexdigest(),
        "layout": classifier.layout.value,
        "tolerance": 1e-4,
        "cases": found,
    }
    path.write_text(json.dumps(content))
    return path


def _plain(array: NDArray[Any]) -> dict[str, Any]:
    return {"type": array.dtype.name, "shape": list(array.shape), "data": array.flatten().tolist()}
