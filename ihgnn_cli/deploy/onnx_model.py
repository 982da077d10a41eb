"""Runs exported models with onnxruntime, without torch."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.form import Layout
from ihgnn_cli.deploy.inputs import FIRST_BLOCK, Arrays, padded_inputs, sparse_inputs
from ihgnn_cli.deploy.metadata import FORMAT, KEY, Described, described, inputs_of
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    import onnxruntime

SUFFIX = ".onnx"
OUTPUTS = ("logits", "probabilities", "graph_embedding")

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"

# Elements of the largest arrays of a batch: 64 MB as floats.
_BATCH_CELLS = 2**24
# The adjacency matrix of a padded batch exists as bytes and as floats.
_BYTES_PER_PAIR = 5
_MOST_BYTES = 2 << 30
# More threads only wait for each other, and a hundred thousand fill the memory.
_THREADS_PER_CORE = 4
_GIVE_ANOTHER = "Give a .onnx file written by 'ihgnn export'."


@dataclass(frozen=True, eq=False)
class Answers:
    """Outputs of an exported model for G graphs."""

    logits: NDArray[np.float32]
    """[G, C]"""
    probabilities: NDArray[np.float32]
    """[G, C]"""
    graph_embedding: NDArray[np.float32]
    """[G, hidden]"""


@dataclass(frozen=True, eq=False)
class OnnxClassifier:
    """An exported model in an onnxruntime session."""

    described: Described
    session: "onnxruntime.InferenceSession"

    @property
    def card(self) -> ModelCard:
        """The model's inputs and classes."""
        return self.described.card

    @property
    def runs_on(self) -> str:
        """The provider that the session really uses."""
        provider: str = self.session.get_providers()[0]
        return provider

    @property
    def node_limit(self) -> int | None:
        """m, or `None` for the variant that sums all nodes."""
        return self.described.variant.node_limit(self.card.max_nodes)

    def probabilities(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """[len(graphs), C] for graphs of an encoded data set."""
        found: NDArray[np.float64] = self.answers(dataset, graphs).probabilities.astype(np.float64)
        found /= found.sum(axis=1, keepdims=True)
        return found

    def answers(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
        """All outputs for graphs of an encoded data set, in the given order.

        Raises:
            InputError: a graph is too large (`refuse_too_large`).
        """
        self.refuse_too_large(np.diff(dataset.node_ptr)[graphs])
        shapes = {each.name: each.shape[1] for each in self.session.get_outputs()}
        found = {name: np.empty((len(graphs), shapes[name]), np.float32) for name in OUTPUTS}
        for chosen in self._batches(dataset, graphs):
            inputs = self.inputs(dataset, graphs[chosen])
            for name, values in zip(OUTPUTS, self.session.run(OUTPUTS, inputs), strict=True):
                found[name][chosen] = values
        return Answers(**found)

    def inputs(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Arrays:
        """The input arrays of one batch, in the layout of the file."""
        if self.described.layout == Layout.SPARSE:
            return sparse_inputs(self.card, dataset, graphs)
        return padded_inputs(self.card, dataset, graphs, self.described.nodes)

    def _batches(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> Iterator[NDArray[np.int64]]:
        """Positions in `graphs`, sorted by size, in batches of bounded memory."""
        sizes = np.diff(dataset.node_ptr)[graphs]
        order = np.argsort(sizes, kind="stable")
        columns, padded = self.described.columns, self.described.layout == Layout.PADDED
        if padded:
            sizes = np.maximum(sizes, self.described.nodes or 0)
            cells = np.maximum(sizes * sizes, (sizes + self.card.max_nodes) * columns)
        else:
            # The readout pads a graph to less than twice its size, or to the first block.
            edges = np.diff(dataset.edge_ptr)[graphs]
            cells = (2 * sizes + FIRST_BLOCK + edges) * columns
        start = 0
        while start < len(order):
            rest = cells[order[start:]]
            # The padded layout pads all graphs to the last and largest of a batch.
            needed = rest * np.arange(1, len(rest) + 1) if padded else np.cumsum(rest)
            count = max(1, int(np.searchsorted(needed, _BATCH_CELLS, side="right")))
            yield order[start : start + count]
            start += count

    def refuse_too_large(self, sizes: NDArray[np.int64], batch_size: int = 1) -> None:
        """Check that a batch of graphs of these sizes fits; in the sparse layout it always does.

        Raises:
            InputError: a graph is larger than the fixed size of the inputs, or the padded batch
                takes too much memory.
        """
        if self.described.layout == Layout.SPARSE:
            return
        fixed, largest = self.described.nodes, int(sizes.max(initial=0))
        if fixed is not None and largest > fixed:
            raise InputError(
                f"A graph has {counted(largest, 'node')}, and the model was exported for up to "
                f"{fixed:,} (--max-nodes). Export it with a larger --max-nodes, without one, or "
                "with --layout sparse."
            )
        padded = largest if fixed is None else fixed
        needed = batch_size * padded**2 * _BYTES_PER_PAIR
        if needed > _MOST_BYTES:
            one = batch_size == 1
            batch = "A graph" if one else f"A batch of {batch_size:,} graphs"
            smaller = "" if one else "Use smaller batches (--batch-size), or export"
            raise InputError(
                f"{batch} padded to {padded:,} nodes takes {needed / 2**30:,.1f} GiB. "
                f"{smaller or 'Export'} the model with --layout sparse."
            )


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
        providers: onnxruntime providers to use instead of a device, the preferred one first.
        threads: number of CPU threads; `None` leaves it to onnxruntime.

    Raises:
        InputError: the file was not written by 'ihgnn export', the device or provider does not
            start, or there are too many threads.
    """
    most = _THREADS_PER_CORE * (os.cpu_count() or 1)
    if threads is not None and not 1 <= threads <= most:
        raise InputError(f"Cannot use {threads:,} threads. Use 1 to {most:,} on this machine.")
    session = _session(path, device, providers, threads)
    text = session.get_modelmeta().custom_metadata_map.get(KEY)
    if text is None:
        raise InputError(f"{path} is an ONNX file, but ihgnn did not write it. {_GIVE_ANOTHER}")
    try:
        metadata = json.loads(text)
        version = int(metadata["format"])
        if version <= FORMAT:
            about = described(metadata)
            _check_shapes(session, about)
            return OnnxClassifier(about, session)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    except InputError as error:
        raise _damaged(path, str(error)) from error
    raise InputError(
        f"{path} has format {version}, and this ihgnn reads formats up to {FORMAT}. Install a "
        "newer ihgnn."
    )


def check_target(path: Path, *, force: bool = True) -> list[Path]:
    """The files that an export to this path writes: the model and its metadata.

    Raises:
        InputError: the path does not end in .onnx, or a file exists (unless `force`).
    """
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"{path} does not end in {SUFFIX}. Give a name such as model{SUFFIX}.")
    outputs = [path, path.with_suffix(".json")]
    existing = [each for each in outputs if each.exists()]
    if existing and not force:
        raise InputError(f"{existing[0]} already exists. Give another name, or use --force.")
    return outputs


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
        raise InputError(f"No provider '{missing[0]}'. Available: {', '.join(present)}.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    options.log_severity_level = 4  # `runs_on` shows whether a provider is missing
    onnxruntime.set_default_logger_severity(4)
    try:
        session = onnxruntime.InferenceSession(
            str(path),
            options,
            providers=[each for each in wanted if each[0] not in missing],
            enable_fallback=0,
        )
    except Exception as error:  # onnxruntime has its own exception for each kind of damage
        raise InputError(
            f"{path} is not an ONNX file, or it is damaged. {_GIVE_ANOTHER}"
        ) from error
    if asked not in (None, session.get_providers()[0]):
        raise InputError(
            f"onnxruntime cannot start {asked} on this machine. Use the CPU; 'ihgnn env' shows "
            "what is available."
        )
    return session


def _of_device(device: str) -> list[tuple[str, dict[str, str]]]:
    """Providers with their options, the preferred one first; the CPU is the fallback."""
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


def _check_shapes(session: "onnxruntime.InferenceSession", about: Described) -> None:
    """Check that the network matches its metadata; dynamic axes have a name instead of a size.

    Raises:
        ValueError: it does not.
    """
    card = about.card
    inputs = {each.name: each.shape for each in session.get_inputs()}
    outputs = {each.name: each.shape for each in session.get_outputs()}
    names = inputs_of(card, about.layout).keys()
    if inputs.keys() != names or not set(OUTPUTS) <= outputs.keys():
        raise ValueError(f"its inputs and outputs are not those of a {about.layout} model")
    read = inputs["attributes"][-1] if card.attributes else 0
    if read != card.attributes or outputs["probabilities"][1] != len(card.class_values):
        raise ValueError("the network does not match the metadata")
    size = inputs["node_labels"][-1]
    if (size if isinstance(size, int) else None) != about.nodes:
        raise ValueError("the padded size does not match the metadata")


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is damaged ({reason}). Export it again.")
