"""Exports a model to an ONNX file, and verifies that both give the same results."""

import io
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor

from ihgnn_cli import __version__
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.golden import golden_of
from ihgnn_cli.deploy.metadata import KEY, Metadata, Tensors, for_callers
from ihgnn_cli.deploy.modules import MODULES, ExportedModel, Members
from ihgnn_cli.deploy.onnx_model import check_target, load_onnx
from ihgnn_cli.deploy.verification import Parity, Reference, verify
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import written_whole
from ihgnn_cli.models.conformal import Conformal
from ihgnn_cli.models.spec import Layout

OPSET, IR_VERSION = 18, 8
"""onnxruntime 1.17 and later can load files of this operator set and format version."""
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
    """`None` if the file was not verified."""
    size: int
    """In bytes."""
    layout: Layout
    padded_nodes: int | None
    """The size that the largest graph of the model's data is padded to; `None` where none is."""
    members: int
    """Models that the file averages."""
    inputs: dict[str, dict[str, Any]]
    parity: Parity | None
    """`None` if the file was not verified."""
    dataset: str
    """Name or path of the model's own data; empty for graphs of a Python program."""
    conformal: Conformal | None = None
    """Thresholds of the prediction sets, if there are any."""
    also_chosen: str = ""
    """What the calibration graphs have chosen, such as "the epoch"."""


def check_exportable(members: Members, layout: Layout) -> None:
    """Check that a model can be exported in a layout.

    Raises:
        InputError: it cannot.
    """
    spec = members.spec
    reason = spec.layouts_note and f" {spec.layouts_note}"
    if not spec.layouts:
        raise InputError(
            f"The model {spec.name} cannot be exported.{reason} Use its checkpoint with 'ihgnn "
            "predict' and 'ihgnn evaluate' directly."
        )
    if layout not in spec.layouts:
        raise InputError(
            f"The model {spec.name} has no {layout} layout.{reason} Use --layout "
            f"{' or '.join(spec.layouts)}."
        )
    labels = len(members.card.edge_label_values)
    if layout == Layout.PADDED and labels > _MOST_EDGE_LABELS:
        raise InputError(
            f"The padded layout has room for {_MOST_EDGE_LABELS} edge labels, and the model reads "
            f"{labels:,}. Use --layout sparse."
        )


def export_onnx(
    reference: Reference,
    path: Path,
    layout: Layout = Layout.PADDED,
    *,
    nodes: int | None = None,
    graphs: GraphDataset | None = None,
) -> Export:
    """Write an ONNX file, and beside it .json files with its metadata and golden graphs.

    Args:
        reference: the model, and its answers as it was trained.
        path: the .onnx file.
        layout: of the inputs.
        nodes: the fixed size of padded graphs, if any.
        graphs: to compare the file's answers with the reference's on; without them, the file is
            only checked to be valid, and the golden file of an earlier export is removed.

    Raises:
        InputError: the path does not end in .onnx, or the model cannot be exported.
        IhgnnError: the answers differ, or the file is too large or cannot be written. No file is
            left behind.
    """
    members = reference.members
    check_exportable(members, layout)
    model, beside, golden = check_target(path)
    if 4 * sum(p.numel() for each in members.modules for p in each.parameters()) >= _MOST_BYTES:
        raise IhgnnError(
            "The model is too large for one ONNX file (2 GB). Use fewer members or a smaller "
            "classifier (--hidden)."
        )
    proto = as_onnx(members, layout, nodes)
    card, settings = members.card, reference.settings
    about = Metadata(
        card=card,
        layout=layout,
        members=len(members.modules),
        model={"name": members.spec.name, **asdict(settings)},
        node_limit=members.spec.node_limit(settings, card.max_nodes),
    ).as_plain(_tensors(proto.graph.input), _tensors(proto.graph.output))
    proto.metadata_props.add(key=KEY, value=json.dumps(about, separators=(",", ":")))
    _check(proto)
    with ExitStack() as stack:
        temporary = stack.enter_context(written_whole(model))
        onnx.save_model(proto, temporary)
        text = json.dumps(for_callers(about), indent=1) + "\n"
        stack.enter_context(written_whole(beside)).write_text(text, encoding="utf-8")
        parity = None
        if graphs is not None:
            exported = load_onnx(temporary, "cpu")
            parity = verify(reference, exported, graphs)
            text = golden_of(reference, exported, graphs, model.name).text()
            stack.enter_context(written_whole(golden)).write_text(text, encoding="utf-8")
        size = temporary.stat().st_size
    if graphs is None:
        golden.unlink(missing_ok=True)
    return Export(
        path=model,
        metadata_path=beside,
        golden_path=None if graphs is None else golden,
        size=size,
        layout=layout,
        padded_nodes=(nodes or card.max_nodes) if layout == Layout.PADDED else None,
        members=len(members.modules),
        inputs=about["inputs"],
        parity=parity,
        dataset=card.dataset,
        conformal=card.conformal,
    )


def as_onnx(members: Members, layout: Layout, nodes: int | None = None) -> onnx.ModelProto:
    """The model as an ONNX network, without traces of this machine.

    Raises:
        InputError: the model's `forward` does not run on traced graphs.
        IhgnnError: torch cannot export it.
    """
    model = MODULES[layout](members)
    given, sizes = _example(members, layout, nodes)
    outputs = _tried(model, given, members.spec.name)
    try:
        with _quiet(), torch.no_grad():
            program = torch.onnx.export(
                model,
                kwargs=given,
                dynamo=True,
                opset_version=OPSET,
                input_names=list(given),
                output_names=outputs,
                dynamic_shapes=sizes,
                external_data=False,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        raise IhgnnError(
            f"This torch ({torch.__version__}) cannot export the model. Please report this with "
            "'ihgnn env'."
        ) from error
    if program is None:
        raise IhgnnError("torch exported nothing. Please report this with 'ihgnn env'.")
    proto: onnx.ModelProto = program.model_proto
    _strip(proto)
    for output in proto.graph.output:
        output.type.tensor_type.shape.dim[0].dim_param = "batch"
    proto.ir_version = IR_VERSION
    proto.producer_name, proto.producer_version = "ihgnn", __version__
    if any(node.op_type == "Einsum" for node in proto.graph.node):
        raise InputError(
            f"The model {members.spec.name} cannot be exported: it uses torch.einsum, which ends "
            "onnxruntime's process on a graph without nodes. Use products of matrices in it."
        )
    return proto


def _tried(model: ExportedModel, given: dict[str, Tensor], name: str) -> list[str]:
    """The names of the model's outputs.

    Raises:
        InputError: it does not run on the example.
    """
    try:
        with _quiet(), torch.no_grad():
            return list(model(**given))
    except IhgnnError:
        raise
    except Exception as error:  # another package's model can raise anything
        raise InputError(
            f"The model {name} cannot be exported: its forward does not run on traced graphs "
            f"({type(error).__name__}: {error}). docs/models.md lists what they have."
        ) from error


def _example(
    members: Members, layout: Layout, fixed: int | None
) -> tuple[dict[str, Tensor], dict[str, dict[int, Any]]]:
    """Example inputs of two graphs, and their dynamic sizes.

    torch treats sizes 0 and 1 as constants.
    """
    columns, labelled = members.card.attributes, bool(members.card.edge_label_values)
    nodes = torch.export.Dim("nodes")
    if layout == Layout.SPARSE:
        edges = torch.export.Dim("edges")
        given = {
            "node_labels": torch.zeros(3, dtype=torch.int64),
            "edge_index": torch.tensor([[0, 1], [1, 0]]),
            "ptr": torch.tensor([0, 2, 3]),
        }
        sizes: dict[str, dict[int, Any]] = {
            "node_labels": {0: nodes},
            "edge_index": {1: edges},
            "ptr": {0: torch.export.Dim("batch_plus_1")},
        }
        if columns:
            given["attributes"], sizes["attributes"] = torch.zeros(3, columns), {0: nodes}
        if labelled:
            given["edge_labels"] = torch.zeros(2, dtype=torch.int64)
            sizes["edge_labels"] = {0: edges}
        return given, sizes
    size = fixed or 3
    given = {
        "node_labels": torch.zeros(2, size, dtype=torch.int64),
        "adjacency": torch.zeros(2, size, size, dtype=torch.uint8),
    }
    if columns:
        given["attributes"] = torch.zeros(2, size, columns)
    batch = torch.export.Dim("batch")
    sizes = {name: {0: batch} if fixed else {0: batch, 1: nodes} for name in given}
    if not fixed:
        sizes["adjacency"][2] = nodes
    return given, sizes


def _tensors(values: Any) -> Tensors:
    """Type and shape of an ONNX graph's inputs or outputs, by name."""
    return {
        each.name: (
            onnx.helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type).name,
            [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim],
        )
        for each in values
    }


def _strip(proto: onnx.ModelProto) -> None:
    """Remove the stack traces and paths that torch leaves in comments and metadata."""
    graph = proto.graph
    parts = (graph.node, graph.input, graph.output, graph.value_info, graph.initializer)
    for part in (proto, graph, *(each for kind in parts for each in kind), *proto.functions):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")


def _check(proto: onnx.ModelProto) -> None:
    """Check the network: torch can report success for an invalid file or another opset.

    Raises:
        IhgnnError: the network is invalid or has another opset.
    """
    if [(each.domain, each.version) for each in proto.opset_import] != [("", OPSET)]:
        raise IhgnnError(
            f"This torch ({torch.__version__}) does not export to opset {OPSET}. Install a newer "
            "one."
        )
    try:
        onnx.checker.check_model(proto, full_check=True)
        onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise IhgnnError(
            f"torch exported a model that is not valid ONNX ({error}). Please report this with "
            "'ihgnn env'."
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the exporter's messages."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
