"""Exports a checkpoint to an ONNX file, and verifies that both give the same results."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

from ihgnn_cli.deploy.cases import Case
from ihgnn_cli.deploy.form import Form, Layout
from ihgnn_cli.deploy.golden_vectors import golden_vectors
from ihgnn_cli.deploy.metadata import KEY, Limits, for_callers, metadata
from ihgnn_cli.deploy.network import as_onnx, check
from ihgnn_cli.deploy.onnx_model import check_target, load_onnx
from ihgnn_cli.deploy.verification import Parity, compare
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import sha256_of, written_whole
from ihgnn_cli.models.conformal import Conformal
from ihgnn_cli.training.checkpoint import Checkpoint

# The limit of protocol buffers.
_MOST_BYTES = 2**31
# In a matrix of 8-bit numbers, where 0 is no edge.
_MOST_EDGE_LABELS = 255


@dataclass(frozen=True)
class Export:
    """An exported file."""

    path: Path
    metadata_path: Path
    golden_path: Path | None
    """`None` if there are no golden vectors."""
    size: int
    """In bytes."""
    form: Form
    members: int
    """Models that the file averages."""
    inputs: dict[str, dict[str, Any]]
    padded_nodes: int | None
    """The size that the largest graph of the model's data is padded to; `None` where none is."""
    layouts: tuple[str, ...]
    """The layouts in which the model can be exported."""
    parity: Parity | None
    """`None` if it was not verified."""
    dataset: str
    """Name or path of the model's own data; empty for graphs of a Python program."""
    conformal: Conformal | None = None
    """Thresholds of the prediction sets, if there are any."""
    also_chosen: str = ""
    """What the calibration graphs have chosen, such as "the epoch"."""


def check_exportable(checkpoint: Checkpoint, form: Form) -> None:
    """Check that the model of a checkpoint can be exported in a form.

    Raises:
        InputError: it cannot.
    """
    spec = checkpoint.config.spec
    reason = spec.layouts_note and f" {spec.layouts_note}"
    if not spec.layouts:
        raise InputError(
            f"The model {spec.name} cannot be exported.{reason} Use its checkpoint with 'ihgnn "
            "predict' and 'ihgnn evaluate' directly."
        )
    if form.layout not in spec.layouts:
        raise InputError(
            f"The model {spec.name} has no {form.layout} layout.{reason} Use --layout "
            f"{' or '.join(spec.layouts)}."
        )
    labels = len(checkpoint.card.edge_label_values)
    if form.layout == Layout.PADDED and labels > _MOST_EDGE_LABELS:
        raise InputError(
            f"The padded layout has room for {_MOST_EDGE_LABELS} edge labels, and the model reads "
            f"{labels:,}. Use --layout sparse."
        )


def _limits(checkpoint: Checkpoint, proto: onnx.ModelProto) -> Limits:
    spec, settings = checkpoint.config.spec, checkpoint.config.model
    widths = {each.name: each.type.tensor_type.shape.dim[-1] for each in proto.graph.output}
    embedding = widths.get("graph_embedding")
    node, pair, triple = spec.padded_numbers(settings)
    types = max(1, len(checkpoint.card.edge_label_values))
    return Limits(
        node_limit=spec.node_limit(settings, checkpoint.card.max_nodes),
        numbers=(node * types * checkpoint.members, pair * types, triple),
        embedding=None if embedding is None else embedding.dim_value,
        order_margin="order_margin" in widths,
        layouts=spec.layouts,
    )


def export_onnx(
    checkpoint: Checkpoint,
    path: Path,
    form: Form | None = None,
    cases: Sequence[Case] = (),
    golden: Sequence[Case] = (),
) -> Export:
    """Write an ONNX file, and beside it .json files with its metadata and golden vectors.

    Args:
        checkpoint: the model.
        path: the .onnx file.
        form: options of the export.
        cases: graphs on which the file's results are compared with the checkpoint's; without them,
            the file is only checked to be valid.
        golden: graphs to choose golden vectors from; without them, golden vectors of an earlier
            file are removed.

    Raises:
        InputError: the path does not end in .onnx, or the model cannot be exported.
        IhgnnError: the results differ, or the file is too large or cannot be written. No file is
            left behind.
    """
    form = form or Form()
    check_exportable(checkpoint, form)
    model, beside, vectors = check_target(path)
    if 4 * sum(each.numel() for each in checkpoint.weights.values()) >= _MOST_BYTES:
        raise IhgnnError(
            "The model is too large for one ONNX file (2 GB). Use fewer members or a smaller "
            "classifier (--hidden)."
        )
    settings = checkpoint.config.as_plain()["model"]
    proto = as_onnx(checkpoint, form)
    about = metadata(
        checkpoint.card, settings, checkpoint.members, form, _limits(checkpoint, proto)
    )
    proto.metadata_props.add(key=KEY, value=json.dumps(about, separators=(",", ":")))
    check(proto)
    with ExitStack() as stack:
        temporary = stack.enter_context(written_whole(model))
        onnx.save_model(proto, temporary)
        told = json.dumps(for_callers(about), indent=1) + "\n"
        stack.enter_context(written_whole(beside)).write_text(told, encoding="utf-8")
        parity = None
        if cases:
            parity = compare(checkpoint, load_onnx(temporary, "cpu"), cases)
        if golden:
            names, sha256 = about["outputs"].keys(), sha256_of(temporary)
            made = golden_vectors(checkpoint, golden, form, names, model=model.name, sha256=sha256)
            stack.enter_context(written_whole(vectors)).write_text(made.text(), encoding="utf-8")
        size = temporary.stat().st_size
    if not golden:
        vectors.unlink(missing_ok=True)
    nodes = form.nodes or checkpoint.card.max_nodes
    padded = nodes if form.layout == Layout.PADDED else None
    return Export(
        path=model,
        metadata_path=beside,
        golden_path=vectors if golden else None,
        size=size,
        form=form,
        members=checkpoint.members,
        inputs=about["inputs"],
        padded_nodes=padded,
        layouts=checkpoint.config.spec.layouts,
        parity=parity,
        dataset=checkpoint.card.dataset,
        conformal=checkpoint.card.conformal,
    )
