"""Exported files run in onnxruntime 1.17, in an environment of its own."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from environments import python_with
from tiny_models import ALL, AUTHORS, SMALL, dataset, untrained

from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.export import export_onnx
from ihgnn_cli.deploy.onnx_model import load_onnx
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.models.settings import IHGNNSettings, Variant
from ihgnn_cli.models.spec import Layout

OLDEST = ("onnxruntime==1.17.*", "numpy<2")
RUN = """
import json, sys
import numpy, onnxruntime
for model, inputs, found in json.loads(sys.argv[1]):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    answers = session.run(None, dict(numpy.load(inputs)))
    numpy.savez(found, *answers)
print(onnxruntime.__version__)
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        sys.version_info >= (3, 13), reason="onnxruntime 1.17 is not made for this Python"
    ),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the oldest onnxruntime."""
    return python_with(tmp_path_factory.mktemp("oldest"), *OLDEST)


def test_files_of_both_layouts_answer_the_same_in_the_oldest_onnxruntime(
    python: Path, tmp_path: Path
) -> None:
    data = dataset(*ALL)
    degrees = dataset(*ALL, labelled=False)
    authors = IHGNNSettings(layers=1, width=8, hidden=8, variant=Variant.NO_ADAPTIVE, **AUTHORS)
    checkpoints = {
        "labels": (data, untrained(data, SMALL)),
        "both": (data, untrained(data, authors, Features.BOTH, members=2)),
        "degrees": (degrees, untrained(degrees, SMALL)),
    }
    jobs, expected = [], []
    for name, (graphs, checkpoint) in checkpoints.items():
        for layout in Layout:
            path = tmp_path / f"{name}-{layout}.onnx"
            classifier = load_onnx(export_onnx(reference_of(checkpoint), path, layout).path)
            inputs = classifier.inputs(graphs, np.arange(len(graphs)))
            np.savez(path.with_suffix(".in.npz"), **inputs)
            files = path, path.with_suffix(".in.npz"), path.with_suffix(".out.npz")
            jobs.append([str(each) for each in files])
            expected.append(classifier.session.run(None, inputs))
    run = [python, "-c", RUN, json.dumps(jobs)]
    done = subprocess.run(run, check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("1.17.")
    for (model, _, found), answers in zip(jobs, expected, strict=True):
        with np.load(found) as theirs:
            for mine, values in zip(answers, theirs.values(), strict=True):
                np.testing.assert_allclose(values, mine, atol=1e-5, err_msg=model)
