"""Exports a model with torch, and cleans up the resulting ONNX network."""

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module

import onnx
import torch
from torch import Tensor, nn

from ihgnn_cli import __version__
from ihgnn_cli.deploy.form import IR_VERSION, OPSET, Form, Layout
from ihgnn_cli.deploy.prediction_set import add_prediction_set
from ihgnn_cli.deploy.traced import PaddedModel, SparseModel
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.training.checkpoint import Checkpoint


def as_onnx(checkpoint: Checkpoint, form: Form) -> onnx.ModelProto:
    """The checkpoint as an ONNX network, without traces of this machine.

    Raises:
        IhgnnError: torch cannot export it.
    """
    model = _module(checkpoint, form)
    if form.layout == Layout.SPARSE:
        labelled = bool(checkpoint.card.edge_label_values)
        given, sizes = _sparse_example(checkpoint.card.attributes, labelled=labelled)
    else:
        given, sizes = _padded_example(checkpoint.card.attributes, form)
    outputs = _tried(model, given, checkpoint.config.model_name)
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
    if checkpoint.card.conformal is not None:
        add_prediction_set(proto, checkpoint.card.conformal.threshold)
    for output in proto.graph.output:
        output.type.tensor_type.shape.dim[0].dim_param = "batch"
    proto.ir_version = IR_VERSION
    proto.producer_name, proto.producer_version = "ihgnn", __version__
    return proto


def _module(checkpoint: Checkpoint, form: Form) -> nn.Module:
    """The model on the inputs of this layout."""
    own = checkpoint.config.spec.export_modules.get(form.layout)
    if own is None:
        return (SparseModel if form.layout == Layout.SPARSE else PaddedModel)(checkpoint)
    module, name = own.split(":")
    made: nn.Module = getattr(import_module(module), name)(
        checkpoint, *([] if form.layout == Layout.SPARSE else [form.nodes])
    )
    return made


def _tried(model: nn.Module, given: dict[str, Tensor], name: str) -> list[str]:
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


_Example = tuple[dict[str, Tensor], dict[str, dict[int, torch.export.Dim]]]


def _padded_example(columns: int, form: Form) -> _Example:
    """Example inputs for the export, and their dynamic sizes."""
    # Two graphs of three nodes: torch treats sizes 0 and 1 as constants.
    graphs, size = 2, form.nodes or 3
    given = {
        "node_labels": torch.zeros(graphs, size, dtype=torch.int64),
        "adjacency": torch.zeros(graphs, size, size, dtype=torch.uint8),
    }
    if columns:
        given["attributes"] = torch.zeros(graphs, size, columns)
    sizes: dict[str, dict[int, torch.export.Dim]] = {name: {} for name in given}
    batch = torch.export.Dim("batch")
    for each in sizes.values():
        each[0] = batch
    if form.nodes is None:
        nodes = torch.export.Dim("nodes")
        for each in sizes.values():
            each[1] = nodes
        sizes["adjacency"][2] = nodes
    return given, sizes


def _sparse_example(columns: int, *, labelled: bool) -> _Example:
    """Example inputs for two graphs: a pair of nodes and a single node."""
    nodes, edges = torch.export.Dim("nodes"), torch.export.Dim("edges")
    given = {
        "node_labels": torch.zeros(3, dtype=torch.int64),
        "edge_index": torch.tensor([[0, 1], [1, 0]]),
        "ptr": torch.tensor([0, 2, 3]),
    }
    sizes = {
        "node_labels": {0: nodes},
        "edge_index": {1: edges},
        "ptr": {0: torch.export.Dim("batch_plus_1")},
    }
    if columns:
        given["attributes"] = torch.zeros(3, columns)
        sizes["attributes"] = {0: nodes}
    if labelled:
        given["edge_labels"] = torch.zeros(2, dtype=torch.int64)
        sizes["edge_labels"] = {0: edges}
    return given, sizes


def _strip(proto: onnx.ModelProto) -> None:
    """Remove the stack traces and paths that torch leaves in comments and metadata."""
    graph = proto.graph
    parts = (graph.node, graph.input, graph.output, graph.value_info, graph.initializer)
    for part in (proto, graph, *(each for kind in parts for each in kind), *proto.functions):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")


def check(proto: onnx.ModelProto) -> None:
    """Check the network: torch can report success for an invalid file or another opset.

    Raises:
        IhgnnError: the network is invalid or has another opset.
    """
    opsets = [(each.domain, each.version) for each in proto.opset_import]
    if opsets != [("", OPSET)]:
        raise IhgnnError(
            f"This torch ({torch.__version__}) does not export to opset {OPSET}. Install a "
            "newer one."
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
