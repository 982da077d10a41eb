"""Runs exported models with onnxruntime, without torch."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.inputs import Arrays, inputs_for
from ihgnn_cli.deploy.metadata import FORMAT, KEY, Metadata, metadata_from_plain
from ihgnn_cli.deploy.providers import loadable_providers
from ihgnn_cli.deploy.raw import checked
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import reading
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.spec import Layout
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    import onnxruntime

SUFFIX, GOLDEN_SUFFIX = ".onnx", ".golden.json"
UNCERTAINTY = "uncertainty"
"""The output that only models with several members have."""
PREDICTION_SET = "prediction_set"
"""The output of models with a threshold of conformal prediction sets."""

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"

# Numbers in the largest array of a batch: 64 MB as floats.
_BATCH_NUMBERS = 2**24
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
    graph_embedding: NDArray[np.float32] | None = None
    """[G, hidden], of IHGNN."""
    uncertainty: NDArray[np.float32] | None = None
    """[G], of models with several members."""
    prediction_set: NDArray[np.uint8] | None = None
    """[G, C] 1 for the classes in the conformal prediction set, of models with a threshold."""


OUTPUTS = tuple(Answers.__dataclass_fields__)
"""Not every file has all of them."""


@dataclass(frozen=True, eq=False)
class OnnxClassifier:
    """An exported model in an onnxruntime session."""

    metadata: Metadata
    session: "onnxruntime.InferenceSession"

    @property
    def card(self) -> ModelCard:
        """The model's inputs and classes."""
        return self.metadata.card

    @property
    def model_name(self) -> str:
        """The model's name in the registry, whose package need not be installed."""
        return str(self.metadata.model["name"])

    @property
    def layout(self) -> Layout:
        """How a batch of graphs is laid out in the inputs."""
        return self.metadata.layout

    @property
    def runs_on(self) -> str:
        """The provider that the session really uses."""
        provider: str = self.session.get_providers()[0]
        return provider

    @property
    def node_limit(self) -> int | None:
        """How many nodes of a graph the readout uses; `None` for all."""
        return self.metadata.node_limit

    @property
    def members(self) -> int:
        """The number of members, whose probabilities are averaged."""
        return self.metadata.members

    @property
    def nodes(self) -> int | None:
        """The fixed size that graphs are padded to, if any."""
        size = self.inputs_of_file["node_labels"][1][-1]
        return size if self.layout == Layout.PADDED and isinstance(size, int) else None

    @property
    def inputs_of_file(self) -> dict[str, tuple[str, list[int | str]]]:
        """Type and shape of each input; a dynamic size has a name."""
        return {each.name: (each.type, each.shape) for each in self.session.get_inputs()}

    @property
    def plain_metadata(self) -> dict[str, Any]:
        """All the metadata that the file holds."""
        found: dict[str, Any] = json.loads(self.session.get_modelmeta().custom_metadata_map[KEY])
        return found

    def probabilities(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """[len(graphs), C] for graphs of an encoded data set."""
        return self.with_uncertainty(dataset, graphs)[0]

    def with_uncertainty(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Probabilities, and their spread between the members if there are several.

        Raises:
            InputError: a graph is too large, or the answer is not a number.
        """
        found = self.answers(dataset, graphs)
        probabilities: NDArray[np.float64] = found.probabilities.astype(np.float64)
        if not np.isfinite(probabilities).all():
            raise InputError(
                "The model's answer is not a number: the attributes are too large for it. Use "
                "smaller values."
            )
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        spread = found.uncertainty
        return probabilities, None if spread is None else spread.astype(np.float64)

    def answers(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
        """All outputs for graphs of an encoded data set, in the given order.

        Raises:
            InputError: a graph is too large (`refuse_too_large`).
        """
        self.refuse_too_large(np.diff(dataset.node_ptr)[graphs])
        found: dict[str, Any] = {
            each.name: np.empty(
                (len(graphs), *each.shape[1:]), np.uint8 if "uint8" in each.type else np.float32
            )
            for each in self.session.get_outputs()
        }
        for chosen in self._batches(dataset, graphs):
            values = self._run(list(found), self.inputs(dataset, graphs[chosen]))
            for name, value in zip(found, values, strict=True):
                found[name][chosen] = value
        return Answers(**found)

    def run(self, given: Mapping[str, Any]) -> Answers:
        """All outputs for input arrays that the caller has built, in the layout of the file.

        Raises:
            InputError: the arrays are wrong in a way that the runtime would not notice.
        """
        arrays = checked(self.inputs_of_file, given, len(self.card.edge_label_values))
        names = [each.name for each in self.session.get_outputs()]
        return Answers(**dict(zip(names, self._run(names, arrays), strict=True)))

    def inputs(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Arrays:
        """The input arrays of one batch, in the layout of the file."""
        return inputs_for(self.layout, self.card, dataset, graphs, size=self.nodes)

    def _run(self, names: list[str], inputs: Arrays) -> list[NDArray[Any]]:
        try:
            found: list[NDArray[Any]] = self.session.run(names, inputs)
        except Exception as error:  # onnxruntime has its own exceptions
            raise InputError(f"onnxruntime cannot run the model: {_reason(error)}") from error
        return found

    def _batches(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> Iterator[NDArray[np.int64]]:
        """Positions in `graphs`, sorted by size, in batches of bounded memory."""
        sizes = np.diff(dataset.node_ptr)[graphs]
        order = np.argsort(sizes, kind="stable")
        nodes, edges = sizes[order], np.diff(dataset.edge_ptr)[graphs][order]
        degree = dataset.degree.max(initial=1)
        start = 0
        while start < len(order):
            count = np.arange(1, len(order) - start + 1)
            # A batch holds all graphs padded to the last and largest one.
            padded = np.maximum(nodes[start:], self.nodes or 1).astype(np.float64)
            numbers = count * padded * self.metadata.numbers_per_node
            if self.layout == Layout.PADDED:
                numbers = np.maximum(numbers, count * padded**2)
            else:  # the table of neighbours, see `models.traced`
                table = np.minimum(degree, 32) * np.cumsum(nodes[start:])
                table = table + 8 * np.cumsum(edges[start:]) * (degree > 32)
                numbers = np.maximum(numbers, table * self.metadata.width)
            end = start + max(1, int(np.searchsorted(numbers, _BATCH_NUMBERS, side="right")))
            yield order[start:end]
            start = end

    def refuse_too_large(self, sizes: NDArray[np.int64], batch_size: int = 1) -> None:
        """Check that a batch of graphs of these sizes fits; in the sparse layout it always does.

        Raises:
            InputError: a graph is larger than the fixed size of the inputs, or the padded batch
                takes too much memory.
        """
        if self.layout == Layout.SPARSE:
            return
        fixed, largest = self.nodes, int(sizes.max(initial=0))
        if fixed is not None and largest > fixed:
            raise InputError(
                f"A graph has {counted(largest, 'node')}, and the model was exported for up to "
                f"{fixed:,} (--max-nodes). Export it with a larger --max-nodes, without one, or "
                "with --layout sparse."
            )
        padded = largest if fixed is None else fixed
        types = max(1, len(self.card.edge_label_values))
        pairs, rows = 5.0 * types * padded**2, 4.0 * padded * self.metadata.numbers_per_node
        needed = batch_size * max(pairs, rows)
        if needed > _MOST_BYTES:
            batch = "A graph" if batch_size == 1 else f"A batch of {batch_size:,} graphs"
            raise InputError(
                f"{batch} padded to {padded:,} nodes takes {needed / 2**30:,.1f} GiB. Export the "
                "model with --layout sparse, or give smaller graphs."
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
    try:
        text = session.get_modelmeta().custom_metadata_map[KEY]
        plain = json.loads(text)
        known = plain["format"] == FORMAT
        found = OnnxClassifier(metadata_from_plain(plain), session) if known else None
        if found is not None:
            _check_fits(found)
    except Exception as error:  # damaged metadata can raise anything
        raise InputError(
            f"{path} is not a file of 'ihgnn export', or it is damaged. {_GIVE_ANOTHER}"
        ) from error
    if found is None:
        raise InputError(
            f"{path} is of another version of ihgnn. Export the model again with this one."
        )
    return found


def check_target(path: Path, *, force: bool = True) -> list[Path]:
    """The files that an export to this path writes: the model, its metadata, its golden file.

    Raises:
        InputError: the path does not end in .onnx, or a file exists (unless `force`).
    """
    if path.suffix.lower() != SUFFIX:
        raise InputError(f"{path} does not end in {SUFFIX}. Give a name such as model{SUFFIX}.")
    outputs = [path, path.with_suffix(".json"), golden_path(path)]
    existing = [each for each in outputs if each.exists()]
    if existing and not force:
        raise InputError(f"{existing[0]} already exists. Give another name, or use --force.")
    return outputs


def golden_path(model: Path) -> Path:
    """The golden file that belongs to an exported file."""
    return model.with_suffix(GOLDEN_SUFFIX)


def _session(
    path: Path,
    device: str,
    providers: Sequence[str] | None,
    threads: int | None,
) -> "onnxruntime.InferenceSession":
    """An onnxruntime session; arguments and errors as in `load_onnx`."""
    import onnxruntime

    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {problem}. {_GIVE_ANOTHER}")
    with reading(path):
        path.open("rb").close()
    present = onnxruntime.get_available_providers()
    wanted = _of_device(device) if providers is None else [_with_options(p) for p in providers]
    asked = None if providers is None and device == "auto" else wanted[0][0]
    missing = [name for name, _ in wanted if name not in present]
    if missing and asked is not None:
        loading = ", ".join(name for name, loads in loadable_providers().items() if loads)
        raise InputError(f"No provider '{missing[0]}'. Available: {loading}.")
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
        if asked not in (None, CPU):
            raise InputError(
                f"onnxruntime cannot load {path} with {asked}: {_reason(error)}"
            ) from error
        raise InputError(
            f"{path} is not an ONNX file, or it is damaged. {_GIVE_ANOTHER}"
        ) from error
    if asked not in (None, session.get_providers()[0]):
        raise InputError(
            f"onnxruntime cannot start {asked} on this machine. Use the CPU; 'ihgnn env' shows "
            "what is available."
        )
    return session


def _reason(error: Exception) -> str:
    """The first line of onnxruntime's message, without the place in its source."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line.rpartition(") ")[2][:200]


def _of_device(device: str) -> list[tuple[str, dict[str, str]]]:
    """Providers with their options, the preferred one first; the CPU is the fallback."""
    if device == "cpu":
        return [(CPU, {})]
    match = re.fullmatch(r"cuda(?::(\d{1,3}))?", device)
    if match is None and device != "auto":
        raise InputError(f"No device '{device}'. Use auto, cpu, cuda or cuda:N.")
    return [_with_options(CUDA, device_id=(match and match[1]) or "0"), (CPU, {})]


def _with_options(provider: str, **options: str) -> tuple[str, dict[str, str]]:
    """A provider with its options."""
    # TF32 has 10 bits of precision instead of 23, which changes the order of nodes.
    return provider, {**options, **({"use_tf32": "0"} if provider == CUDA else {})}


def _check_fits(found: OnnxClassifier) -> None:
    """Check that the network matches its metadata and answers one graph of one node.

    Raises:
        Exception: of any kind, if it does not.
    """
    card, inputs = found.card, found.inputs_of_file
    outputs = {each.name: each.shape for each in found.session.get_outputs()}
    padded = found.layout == Layout.PADDED
    names = {"node_labels"} | ({"adjacency"} if padded else {"edge_index", "ptr"})
    names |= {"attributes"} if card.attributes else set()
    names |= {"edge_labels"} if card.edge_label_values and not padded else set()
    if inputs.keys() != names or not set(OUTPUTS[:2]) <= outputs.keys() <= set(OUTPUTS):
        raise ValueError("the inputs or outputs are others")
    size = found.nodes or 1
    arrays = {
        "node_labels": np.zeros((1, size) if padded else 1, dtype=np.int64),
        "adjacency": np.zeros((1, size, size), dtype=np.uint8),
        "edge_index": np.zeros((2, 0), dtype=np.int64),
        "ptr": np.array([0, 1]),
        "attributes": np.zeros((1, size, card.attributes)[not padded :], dtype=np.float32),
        "edge_labels": np.zeros(0, dtype=np.int64),
    }
    answers = found.run({name: arrays[name] for name in inputs})
    if answers.probabilities.shape != (1, len(card.class_values)):
        raise ValueError("the number of classes is another")
