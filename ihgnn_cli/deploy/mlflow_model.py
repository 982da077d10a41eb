"""An MLflow model of an exported file: `mlflow.pyfunc.load_model(folder).predict(inputs)`."""

import logging
import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ihgnn_cli.deploy.folders import folder_written_whole
from ihgnn_cli.deploy.onnx_model import OUTPUTS, OnnxClassifier
from ihgnn_cli.errors import InputError

MARKER = "MLmodel"
_DTYPES = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(uint8)": "uint8"}
_REQUIREMENTS = ["numpy", "onnx>=1.17", "onnxruntime>=1.17"]


def refuse_without_mlflow() -> None:
    """Check that MLflow is installed.

    Raises:
        InputError: it is not.
    """
    if find_spec("mlflow") is None or find_spec("pandas") is None:
        raise InputError("MLflow is not installed: pip install 'ihgnn-cli[mlflow]'")


def write_mlflow(model: Path, classifier: OnnxClassifier, folder: Path, readme: str) -> None:
    """Write the folder of an MLflow model with its signature.

    Args:
        model: the exported file.
        classifier: the same, loaded.
        folder: the folder to write.
        readme: the model card.

    Raises:
        IhgnnError: it cannot be written.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # an export sends nothing
    with warnings.catch_warnings():  # about type hints inside MLflow
        warnings.simplefilter("ignore")
        _write(model, classifier, folder, readme)


def _write(model: Path, classifier: OnnxClassifier, folder: Path, readme: str) -> None:
    import mlflow.onnx
    import onnx
    from mlflow.models import ModelSignature
    from mlflow.types import Schema, TensorSpec

    def schema(values: list[Any]) -> Any:
        return Schema([TensorSpec(np.dtype(_DTYPES[v.type]), _sizes(v), v.name) for v in values])

    session = classifier.session
    outputs = [each for each in session.get_outputs() if each.name in OUTPUTS]
    signature = ModelSignature(inputs=schema(session.get_inputs()), outputs=schema(outputs))
    card = classifier.card
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    with folder_written_whole(folder) as temporary:
        mlflow.onnx.save_model(
            onnx.load(model),
            temporary / "model",
            signature=signature,
            save_as_external_data=False,
            pip_requirements=_REQUIREMENTS,
            metadata={
                "class_values": list(card.class_values),
                "label_values": list(card.label_values),
            },
        )
        for each in (temporary / "model").iterdir():
            each.replace(temporary / each.name)
        (temporary / "model").rmdir()
        (temporary / "README.md").write_text(readme, encoding="utf-8")


def _sizes(value: Any) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else -1 for size in value.shape)
