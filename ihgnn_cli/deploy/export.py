"""Exports a checkpoint to an ONNX file, and verifies that both give the same results."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from ihgnn_cli.deploy.cases import Case
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.metadata import KEY, metadata
from ihgnn_cli.deploy.network import as_onnx, check
from ihgnn_cli.deploy.onnx_model import check_target, load_onnx
from ihgnn_cli.deploy.verification import Parity, compare
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import written_whole
from ihgnn_cli.training.checkpoint import Checkpoint

# The limit of protocol buffers.
_MOST_BYTES = 2**31


@dataclass(frozen=True)
class Export:
    """An exported file."""

    path: Path
    metadata_path: Path
    size: int
    """In bytes."""
    form: Form
    inputs: dict[str, dict[str, Any]]
    padded_nodes: int | None
    """The size that the largest graph of the model's data is padded to; `None` where none is."""
    parity: Parity | None
    """`None` if it was not verified."""
    dataset: str
    """Name or path of the model's own data; empty for graphs of a Python program."""


def check_exportable(checkpoint: Checkpoint) -> None:
    """Check that the model of a checkpoint can be exported.

    Raises:
        InputError: it is not.
    """
    name = checkpoint.config.model_name
    if not checkpoint.config.spec.exportable:
        raise InputError(
            f"The model {name} cannot be exported. Use its checkpoint with 'ihgnn predict' and "
            "'ihgnn evaluate' directly."
        )


def export_onnx(
    checkpoint: Checkpoint, path: Path, form: Form | None = None, cases: Sequence[Case] = ()
) -> Export:
    """Write an ONNX file, and its metadata to a .json file beside it.

    With cases, the file's results are compared with the checkpoint's. Without, the file is only
    checked to be valid.

    Raises:
        InputError: the path does not end in .onnx, or the model cannot be exported.
        IhgnnError: the results differ, or the file is too large or cannot be written. No file is
            left behind.
    """
    form = form or Form()
    check_exportable(checkpoint)
    model, beside = check_target(path)
    if 4 * sum(each.numel() for each in checkpoint.weights.values()) >= _MOST_BYTES:
        raise IhgnnError(
            "The model is too large for one ONNX file (2 GB). Use fewer members or a smaller "
            "classifier (--hidden)."
        )
    settings = checkpoint.config.as_plain()["model"]
    about = metadata(checkpoint.card, settings, checkpoint.members, form)
    proto = as_onnx(checkpoint, form)
    proto.metadata_props.add(key=KEY, value=json.dumps(about, separators=(",", ":")))
    check(proto, form)
    with written_whole(model) as temporary, written_whole(beside) as temporary_json:
        onnx.save_model(proto, temporary)
        temporary_json.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        parity = None
        if cases:
            parity = compare(checkpoint, load_onnx(temporary, "cpu"), cases, small=form.small)
        size = temporary.stat().st_size
    nodes = form.nodes or checkpoint.card.max_nodes
    padded = nodes if form.layout == Layout.PADDED else None
    data = checkpoint.card.dataset
    return Export(model, beside, size, form, about["inputs"], padded, parity, data)
