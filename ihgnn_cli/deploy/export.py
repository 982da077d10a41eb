"""From a checkpoint to an ONNX file that says the same, and the proof of it."""

import io
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray

from ihgnn_cli import __version__
from ihgnn_cli.data.batches import GraphStore
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.onnx_model import (
    FORMAT,
    LAYOUT,
    METADATA_KEY,
    OUTPUTS,
    PADDING,
    UNKNOWN,
    OnnxClassifier,
    check_target,
    load_onnx,
    padded_inputs,
)
from ihgnn_cli.deploy.padded import PaddedIHGNN
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.files import written_whole
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.metrics import mean_probabilities
from ihgnn_cli.training.stack import predict
from ihgnn_cli.versions import package_versions
from ihgnn_cli.words import counted

# Such a file loads in onnxruntime 1.17 and later; torch's defaults do not.
OPSET, IR_VERSION = 18, 8
# Protocol buffers cannot be larger.
_MOST_BYTES = 2**31

TOLERANCE = 1e-4
"""Of the largest logit (at least 1): how far logits and probabilities may be apart."""
_MIXED = 32


@dataclass(frozen=True, eq=False)
class Sample:
    """Graphs to compare two models on: positions in a data set in the card's words."""

    dataset: GraphDataset
    graphs: NDArray[np.int64]


@dataclass(frozen=True)
class Parity:
    """How far an exported file is from its checkpoint."""

    graphs: int
    logits: float
    """The largest difference, as are `probabilities`, leaving out the swapped."""
    probabilities: float
    scale: float
    """The largest logit."""
    swapped: int
    """Graphs with nodes so close in the sort key that their order is chance, and another one here
    than there; a checkpoint does the same when a graph's nodes are given in another order."""
    swapped_changed: int
    """Of those, how many change class."""


@dataclass(frozen=True)
class Export:
    """A file that was written."""

    path: Path
    metadata_path: Path
    size: int
    """In bytes."""
    inputs: dict[str, dict[str, Any]]
    parity: Parity | None
    """`None` where it was not verified."""


def export_onnx(checkpoint: Checkpoint, path: Path, samples: Sequence[Sample] = ()) -> Export:
    """Write an ONNX file in the padded layout, and its metadata to a .json file beside it.

    With samples, the file has to answer as the checkpoint does; without, it is only checked to be
    valid.

    Raises:
        InputError: the path is not one of a .onnx file.
        IhgnnError: the file would answer otherwise or be too large, or cannot be written; nothing
            is left of it.
    """
    model, beside = check_target(path)
    if 4 * sum(each.numel() for each in checkpoint.weights.values()) >= _MOST_BYTES:
        raise IhgnnError(
            "The model is too large for one ONNX file (2 GB). Use fewer members or a smaller "
            "classifier (--hidden)."
        )
    about = metadata(checkpoint)
    text = json.dumps(about, indent=1)
    proto = _as_onnx(checkpoint)
    proto.metadata_props.add(key=METADATA_KEY, value=json.dumps(about, separators=(",", ":")))
    _check(proto)
    with written_whole(model) as temporary, written_whole(beside) as temporary_json:
        onnx.save_model(proto, temporary)
        temporary_json.write_text(text + "\n", encoding="utf-8")
        parity = compare(checkpoint, load_onnx(temporary, "cpu"), samples) if samples else None
        size = temporary.stat().st_size
    return Export(model, beside, size, about["inputs"], parity)


def metadata(checkpoint: Checkpoint) -> dict[str, Any]:
    """What the file tells of itself, as JSON knows it."""
    card, config = checkpoint.card, checkpoint.config
    inputs: dict[str, dict[str, Any]] = {
        "node_labels": {"type": "int64", "shape": ["batch", "nodes"]},
        "adjacency": {"type": "uint8", "shape": ["batch", "nodes", "nodes"]},
    }
    if card.attributes:
        shape = ["batch", "nodes", card.attributes]
        inputs["attributes"] = {"type": "float32", "shape": shape}
    packages = package_versions()
    made_with = {name: packages[name] for name in ("torch", "onnx", "onnxscript")}
    return {
        "format": FORMAT,
        "layout": LAYOUT,
        "inputs": inputs,
        "outputs": list(OUTPUTS),
        "padding_label": PADDING,
        "unknown_label": UNKNOWN,
        "members": checkpoint.members,
        "model": config.as_plain()["model"],
        "card": _portable(card).as_plain(),
        "versions": {"ihgnn": __version__, **made_with},
    }


def samples_of(card: ModelCard, dataset: GraphDataset) -> list[Sample]:
    """Graphs of a data set in the card's words that show where two models could differ.

    The smallest, the largest, one without edges, some of all sizes, and one larger than m.
    """
    sizes = np.diff(dataset.node_ptr)
    smallest, largest = int(sizes.argmin()), int(sizes.argmax())
    mixed = np.linspace(0, len(dataset) - 1, min(len(dataset), _MIXED)).astype(np.int64)
    bare = np.flatnonzero(np.diff(dataset.edge_ptr) == 0)[:1]
    chosen = np.unique(np.concatenate([[smallest, largest], mixed, bare])).astype(np.int64)
    # Graphs that stand together are one graph, if nobody says where one ends.
    enough = -(-(card.max_nodes + 1) // int(sizes[largest]))
    joined = dataset.select([largest] * enough)
    beyond = replace(joined, node_ptr=joined.node_ptr[[0, -1]], graph_class=joined.graph_class[:1])
    return [Sample(dataset, chosen), Sample(beyond, np.array([0]))]


def compare(checkpoint: Checkpoint, exported: OnnxClassifier, samples: Sequence[Sample]) -> Parity:
    """Compare an exported file with its checkpoint, on the CPU.

    Raises:
        IhgnnError: they are too far apart, or a class changes.
    """
    answers = [exported.answers(each.dataset, each.graphs) for each in samples]
    logits = np.concatenate([each.logits for each in answers])
    p = np.concatenate([each.probabilities for each in answers])
    expected = np.concatenate([_reference(checkpoint, each) for each in samples])
    expected_p = mean_probabilities(expected[None])
    scale = float(np.abs(expected).max())
    allowed = TOLERANCE * max(1.0, scale)
    apart, apart_p = np.abs(logits - expected).max(1), np.abs(p - expected_p).max(1)
    # Where two classes are as good as equal, either may come out first.
    answered = np.take_along_axis(expected_p, p.argmax(1)[:, None], axis=1)[:, 0]
    changed = ~(answered >= expected_p.max(1) - allowed)
    differs = ~((apart <= allowed) & (apart_p <= allowed)) | changed  # NaN differs, too
    swapped = differs.copy()
    swapped[differs] = _order_is_chance(checkpoint, samples, differs)
    wrong = differs & ~swapped
    if wrong.any():
        raise IhgnnError(
            "The exported model does not answer as the checkpoint does: "
            f"{counted(int(wrong.sum()), 'graph')} of {len(wrong)} differ, by up to "
            f"{apart[wrong].max():.2g} in logits up to {scale:.3g}. No file was written. Please "
            "report this with the checkpoint."
        )
    if swapped.all():
        raise IhgnnError(
            "Nothing can be said of the exported model: in all graphs that it was tried on, nodes "
            "tie in the sort key. Use other graphs (--dataset), or --no-verify."
        )
    return Parity(
        graphs=len(differs),
        logits=float(apart[~swapped].max(initial=0)),
        probabilities=float(apart_p[~swapped].max(initial=0)),
        scale=scale,
        swapped=int(swapped.sum()),
        swapped_changed=int((swapped & changed).sum()),
    )


def _reference(checkpoint: Checkpoint, sample: Sample) -> NDArray[np.float64]:
    """[G, C] what the checkpoint's own model says; of several members, the log of the mean."""
    card, device = checkpoint.card, torch.device("cpu")
    layers = checkpoint.config.model.layers
    store = GraphStore(sample.dataset, card.features, card.max_nodes, layers, device)
    logits = predict(checkpoint.model(device), store, sample.graphs).astype(np.float64)
    if len(logits) == 1:
        single: NDArray[np.float64] = logits[0]
        return single
    log_p = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    mean: NDArray[np.float64] = np.logaddexp.reduce(log_p, axis=0) - np.log(len(logits))
    return mean


def _order_is_chance(
    checkpoint: Checkpoint, samples: Sequence[Sample], asked: NDArray[np.bool_]
) -> list[bool]:
    """For each graph that is asked for, of those of all samples one after the other."""
    model = PaddedIHGNN(checkpoint)
    graphs = [(each.dataset, graph) for each in samples for graph in each.graphs]
    found = []
    for number in np.flatnonzero(asked):
        dataset, graph = graphs[number]
        inputs = padded_inputs(checkpoint.card, dataset, np.array([graph]))
        alone = {name: torch.from_numpy(value[0]) for name, value in inputs.items()}
        found.append(model.order_is_chance(**alone))
    return found


def _portable(card: ModelCard) -> ModelCard:
    """The card for a file that travels: a path on this machine says nothing elsewhere."""
    is_path = any(sign in card.dataset for sign in "/\\")
    return replace(card, dataset="") if is_path else card


def _as_onnx(checkpoint: Checkpoint) -> onnx.ModelProto:
    """The model as torch exports it, without what tells of this machine."""
    columns = checkpoint.card.attributes
    # Two graphs of three nodes: torch takes a size of 0 or 1 for a fixed one.
    batch, nodes = torch.export.Dim("batch"), torch.export.Dim("nodes")
    given = {
        "node_labels": torch.zeros(2, 3, dtype=torch.int64),
        "adjacency": torch.zeros(2, 3, 3, dtype=torch.uint8),
    }
    sizes = {"node_labels": {0: batch, 1: nodes}, "adjacency": {0: batch, 1: nodes, 2: nodes}}
    if columns:
        given["attributes"] = torch.zeros(2, 3, columns)
        sizes["attributes"] = {0: batch, 1: nodes}
    with _quiet(), torch.no_grad():
        program = torch.onnx.export(
            PaddedIHGNN(checkpoint),
            kwargs=given,
            dynamo=True,
            opset_version=OPSET,
            input_names=list(given),
            output_names=list(OUTPUTS),
            dynamic_shapes=sizes,
            external_data=False,
            verbose=False,
        )
    if program is None:
        raise IhgnnError("torch exported nothing. Please report this with 'ihgnn env'.")
    proto: onnx.ModelProto = program.model_proto
    _strip(proto)
    proto.ir_version = IR_VERSION
    proto.producer_name, proto.producer_version = "ihgnn", __version__
    return proto


def _strip(proto: onnx.ModelProto) -> None:
    """Remove the stack traces and paths that torch leaves wherever there is room for a comment."""
    graph = proto.graph
    parts = (graph.node, graph.input, graph.output, graph.value_info, graph.initializer)
    for part in (proto, graph, *(each for kind in parts for each in kind), *proto.functions):
        part.ClearField("doc_string")
        part.ClearField("metadata_props")


def _check(proto: onnx.ModelProto) -> None:
    """An export can report success and still have made an invalid file."""
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
    """Keep the exporter's remarks about itself from the user."""
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
