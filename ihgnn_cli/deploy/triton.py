"""A model repository for NVIDIA's Triton Inference Server.

    DIR/NAME/config.pbtxt    inputs and outputs
    DIR/NAME/classes.txt     names of the classes, for Triton's classification extension
    DIR/NAME/1/model.onnx

Where the batch is the first axis of every tensor (padded layout), Triton may batch requests of the
same shape. With a fixed size (--max-nodes), all requests have the same shape, and Triton collects
them. A sparse batch has no such axis: each request is a batch of its own.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from ihgnn_cli.deploy.folders import folder_written_whole
from ihgnn_cli.deploy.onnx_model import OUTPUTS, OnnxClassifier

CONFIG = "config.pbtxt"
_TYPES = {
    "tensor(float)": "TYPE_FP32",
    "tensor(int64)": "TYPE_INT64",
    "tensor(uint8)": "TYPE_UINT8",
}
_BATCH_AXIS = "batch"
_LARGEST_BATCH = 64
_LONGEST_WAIT = 2_000  # microseconds


def write_repository(model: Path, classifier: OnnxClassifier, folder: Path, readme: str) -> None:
    """Write the folder of one model.

    Args:
        model: the exported file.
        classifier: the same, loaded.
        folder: DIR/NAME, whose name is the name of the model.
        readme: the model card.

    Raises:
        IhgnnError: it cannot be written.
    """
    with folder_written_whole(folder) as temporary:
        (temporary / "1").mkdir()
        shutil.copyfile(model, temporary / "1" / "model.onnx")
        classes = "".join(f"{each}\n" for each in classifier.card.class_values)
        (temporary / "classes.txt").write_text(classes, encoding="utf-8")
        (temporary / "README.md").write_text(readme, encoding="utf-8")
        config = triton_config(folder.name, classifier)
        (temporary / CONFIG).write_text(config, encoding="utf-8")


def triton_config(name: str, classifier: OnnxClassifier) -> str:
    """The content of config.pbtxt."""
    inputs = classifier.session.get_inputs()
    by_name = {each.name: each for each in classifier.session.get_outputs()}
    outputs = [by_name[each] for each in OUTPUTS if each in by_name]
    batched = all(each.shape[0] == _BATCH_AXIS for each in (*inputs, *outputs))
    fixed = all(isinstance(size, int) for each in inputs for size in each.shape[1:])
    lines = [
        f"name: {json.dumps(name)}",
        'backend: "onnxruntime"',
        f"max_batch_size: {_LARGEST_BATCH if batched else 0}",
        *(_tensor("input", each, batched) for each in inputs),
        *(_tensor("output", each, batched) for each in outputs),
    ]
    if batched and fixed:
        lines.append(f"dynamic_batching {{ max_queue_delay_microseconds: {_LONGEST_WAIT} }}")
    return "\n".join(lines) + "\n"


def _tensor(kind: str, value: Any, batched: bool) -> str:
    sizes = value.shape[1:] if batched else value.shape
    dims = ", ".join(str(size) if isinstance(size, int) else "-1" for size in sizes)
    labels = ' label_filename: "classes.txt"' if value.name in ("logits", "probabilities") else ""
    described = f'name: "{value.name}" data_type: {_TYPES[value.type]} dims: [ {dims} ]'
    return f"{kind} {{ {described}{labels} }}"
