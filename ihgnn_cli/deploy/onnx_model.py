"""An exported model that answers for graphs, without torch.

The file takes padded graphs: `node_labels` [batch, nodes], `adjacency` [batch, nodes, nodes] and,
where the model reads them, `attributes` [batch, nodes, columns]. Its metadata holds the card.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, ranges
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import ModelCard, card_from_plain

if TYPE_CHECKING:
    import onnxruntime

PADDING = -1
"""In `node_labels`: here is no node."""
UNKNOWN = -2
"""In `node_labels`: a node with a label that the model does not know."""
METADATA_KEY = "ihgnn"
FORMAT = 1
LAYOUT = "padded"
SUFFIX = ".onnx"
OUTPUTS = ("logits", "probabilities", "graph_embedding")

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"

# Numbers that the largest arrays of a batch may hold: 64 MB as floats.
_BATCH_CELLS = 2**24
_GIVE_ANOTHER = "Give a .onnx file that 'export' wrote."


@dataclass(frozen=True, eq=False)
class Answers:
    """What an exported model says of G graphs."""

    logits: NDArray[np.float32]
    """[G, C]"""
    probabilities: NDArray[np.float32]
    """[G, C]"""
    graph_embedding: NDArray[np.float32]
    """[G, hidden]"""


@dataclass(frozen=True, eq=False)
class OnnxClassifier:
    """An exported model in a session of onnxruntime."""

    card: ModelCard
    session: "onnxruntime.InferenceSession"
    columns: int
    """Numbers that the model keeps of a node."""

    @property
    def runs_on(self) -> str:
        """The provider that the session really has."""
        provider: str = self.session.get_providers()[0]
        return provider

    def probabilities(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """[len(graphs), C] for graphs of a data set in the card's words."""
        found: NDArray[np.float64] = self.answers(dataset, graphs).probabilities.astype(np.float64)
        found /= found.sum(axis=1, keepdims=True)
        return found

    def answers(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
        """Everything that the model says, graph by graph in the order asked for."""
        shapes = {each.name: each.shape[1] for each in self.session.get_outputs()}
        found = {name: np.empty((len(graphs), shapes[name]), np.float32) for name in OUTPUTS}
        for chosen in self._batches(np.diff(dataset.node_ptr)[graphs]):
            inputs = self.inputs(dataset, graphs[chosen])
            for name, values in zip(OUTPUTS, self.session.run(OUTPUTS, inputs), strict=True):
                found[name][chosen] = values
        return Answers(**found)

    def inputs(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """The arrays of one batch, in the layout of the file."""
        return padded_inputs(self.card, dataset, graphs)

    def _batches(self, sizes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        """Places in `sizes`, similar ones together, in batches of bounded memory."""
        order = np.argsort(sizes, kind="stable")
        cells = np.maximum(sizes * sizes, (sizes + self.card.max_nodes) * self.columns)[order]
        start = 0
        while start < len(order):
            # Everything is padded to the last and largest graph of a batch.
            needed = cells[start:] * np.arange(1, len(order) - start + 1)
            count = max(1, int(np.searchsorted(needed, _BATCH_CELLS, side="right")))
            yield order[start : start + count]
            start += count


def load_onnx(
    path: Path,
    device: str = "auto",
    providers: Sequence[str] | None = None,
    threads: int | None = None,
) -> OnnxClassifier:
    """The classifier of an exported file.

    Args:
        path: the .onnx file.
        device: auto (a GPU where onnxruntime can use one), cpu, cuda or cuda:N.
        providers: those of onnxruntime by name instead of a device, the best first.
        threads: that the CPU works with; `None` leaves it to onnxruntime.

    Raises:
        InputError: the file is no model that 'export' wrote, or the device or provider does not
            start.
    """
    session = _session(path, device, providers, threads)
    text = session.get_modelmeta().custom_metadata_map.get(METADATA_KEY)
    if text is None:
        raise InputError(f"{path} is an ONNX file, but not one of ihgnn. {_GIVE_ANOTHER}")
    try:
        metadata = json.loads(text)
        version = int(metadata["format"])
        if version <= FORMAT:
            card = card_from_plain(metadata["card"])
            _check_shapes(session, card)
            return OnnxClassifier(card, session, _columns(metadata["model"]))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    except InputError as error:
        raise _damaged(path, str(error)) from error
    raise InputError(
        f"{path} is a model of format {version}, and this ihgnn reads up to {FORMAT}. Install a "
        "newer ihgnn."
    )


def check_target(path: Path) -> list[Path]:
    """The files that an export to this path writes: the model, and its metadata beside it.

    Raises:
        InputError: the path is not one of a .onnx file.
    """
    if path.suffix != SUFFIX:
        raise InputError(f"{path} does not end in {SUFFIX}. Give a name such as model{SUFFIX}.")
    return [path, path.with_suffix(".json")]


def padded_inputs(
    card: ModelCard, dataset: GraphDataset, graphs: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """The arrays that the file takes for these graphs of a data set in the card's words."""
    nodes, ptr = ranges(dataset.node_ptr, graphs)
    edges, edge_ptr = ranges(dataset.edge_ptr, graphs)
    sizes = np.diff(ptr)
    shape = len(graphs), int(sizes.max(initial=1))
    graph = np.repeat(np.arange(len(graphs)), sizes)
    place = np.arange(len(nodes)) - np.repeat(ptr[:-1], sizes)
    label = dataset.node_label[nodes].astype(np.int64)
    known = (label >= 0) & (label < card.inputs.labels)

    node_labels = np.full(shape, PADDING, dtype=np.int64)
    node_labels[graph, place] = np.where(known, label, UNKNOWN)
    adjacency = np.zeros((*shape, shape[1]), dtype=np.uint8)
    source = np.repeat(place, dataset.degree[nodes])
    edge_graph = np.repeat(np.arange(len(graphs)), np.diff(edge_ptr))
    target = dataset.neighbors[edges] - dataset.node_ptr[graphs][edge_graph]
    adjacency[edge_graph, source, target] = 1
    inputs: dict[str, NDArray[Any]] = {"node_labels": node_labels, "adjacency": adjacency}
    if card.attributes:
        if dataset.node_attributes is None:
            raise ValueError("the data set has no node attributes")
        inputs["attributes"] = np.zeros((*shape, card.attributes), dtype=np.float32)
        inputs["attributes"][graph, place] = dataset.node_attributes[nodes]
    return inputs


def _session(
    path: Path, device: str, providers: Sequence[str] | None, threads: int | None
) -> "onnxruntime.InferenceSession":
    import onnxruntime

    _check_readable(path)
    present = onnxruntime.get_available_providers()
    wanted = _of_device(device) if providers is None else [(each, {}) for each in providers]
    asked = None if providers is None and device == "auto" else wanted[0][0]
    missing = [name for name, _ in wanted if name not in present]
    if missing and asked is not None:
        raise InputError(f"No provider '{missing[0]}'. There are {', '.join(present)}.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.log_severity_level = 4  # a provider that is missing is told by `runs_on`
    onnxruntime.set_default_logger_severity(4)
    try:
        session = onnxruntime.InferenceSession(
            str(path),
            options,
            providers=[each for each in wanted if each[0] not in missing],
            enable_fallback=0,
        )
    except Exception as error:  # onnxruntime raises a type of its own for each kind of damage
        raise InputError(f"{path} is no ONNX file, or it is damaged. {_GIVE_ANOTHER}") from error
    if asked not in (None, session.get_providers()[0]):
        raise InputError(
            f"onnxruntime cannot start {asked} on this machine. Use the CPU; 'ihgnn env' shows "
            "what is there."
        )
    return session


def _of_device(device: str) -> list[tuple[str, dict[str, str]]]:
    """Providers with their options, the best first; the CPU does what another one cannot."""
    if device == "cpu":
        return [(CPU, {})]
    match = re.fullmatch(r"cuda(?::(\d{1,3}))?", device)
    if match is None and device != "auto":
        raise InputError(f"No device '{device}'. Use auto, cpu, cuda or cuda:N.")
    return [(CUDA, {"device_id": (match and match[1]) or "0"}), (CPU, {})]


def _check_readable(path: Path) -> None:
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {problem}. {_GIVE_ANOTHER}")
    try:
        path.open("rb").close()
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def _columns(settings: Mapping[str, Any]) -> int:
    """Numbers that a model of these settings keeps of a node: all its layers."""
    return int(settings["width"]) * (int(settings["layers"]) + 1)


def _check_shapes(session: "onnxruntime.InferenceSession", card: ModelCard) -> None:
    """Make sure that the network is the card's; axes of any size have a name in place of a number.

    Raises:
        ValueError: it is not.
    """
    inputs = {each.name: each.shape for each in session.get_inputs()}
    outputs = {each.name: each.shape for each in session.get_outputs()}
    names = {"node_labels", "adjacency"} | ({"attributes"} if card.attributes else set())
    if inputs.keys() != names or not set(OUTPUTS) <= outputs.keys():
        raise ValueError("its inputs and outputs are not those of a padded model")
    read = inputs["attributes"][2] if card.attributes else 0
    if read != card.attributes or outputs["probabilities"][1] != len(card.class_values):
        raise ValueError("network and card do not belong together")


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is damaged ({reason}). Export it again.")
