"""Runs exported models with onnxruntime, without torch."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.deploy.form import Layout
from ihgnn_cli.deploy.golden import golden_path
from ihgnn_cli.deploy.inputs import FIRST_BLOCK, Arrays, inputs_for
from ihgnn_cli.deploy.metadata import FORMAT, KEY, Described, described, inputs_of
from ihgnn_cli.deploy.raw import checked
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import reading
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    import onnxruntime

SUFFIX = ".onnx"
UNCERTAINTY = "uncertainty"
"""The output that only models with several members have."""
PREDICTION_SET = "prediction_set"
"""The output of models with thresholds of conformal prediction sets."""
OUTPUTS = (
    *("logits", "probabilities", "graph_embedding", "order_margin"),
    *(UNCERTAINTY, PREDICTION_SET),
)
"""Not every file has all of them."""

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"

# Elements of the largest arrays of a batch: 64 MB as floats.
_BATCH_CELLS = 2**24
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
    """[G, hidden], if the model has one."""
    order_margin: NDArray[np.float32] | None = None
    """[G] how certain the order of the nodes is, if the file has this output."""
    uncertainty: NDArray[np.float32] | None = None
    """[G], of models with several members."""
    prediction_set: NDArray[np.uint8] | None = None
    """[G, C] 1 for the classes in the conformal prediction set, of models with thresholds."""


@dataclass(frozen=True, eq=False)
class OnnxClassifier:
    """An exported model in an onnxruntime session."""

    described: Described
    session: "onnxruntime.InferenceSession"

    @property
    def card(self) -> ModelCard:
        """The model's inputs and classes."""
        return self.described.card

    def with_card(self, card: ModelCard) -> "OnnxClassifier":
        """The same file with other metadata."""
        return replace(self, described=replace(self.described, card=card))

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata that the file holds."""
        found: dict[str, Any] = json.loads(self.session.get_modelmeta().custom_metadata_map[KEY])
        return found

    @property
    def runs_on(self) -> str:
        """The provider that the session really uses."""
        provider: str = self.session.get_providers()[0]
        return provider

    @property
    def node_limit(self) -> int | None:
        """How many nodes of a graph the readout uses; `None` for all."""
        return self.described.limits.node_limit

    def probabilities(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """[len(graphs), C] for graphs of an encoded data set."""
        return self.with_uncertainty(dataset, graphs)[0]

    @property
    def members(self) -> int:
        """The number of members, if the file has their spread; otherwise 1."""
        return self.described.members if UNCERTAINTY in self._outputs else 1

    def with_uncertainty(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Probabilities, and their spread between the members if there are several."""
        found = self.answers(dataset, graphs)
        probabilities: NDArray[np.float64] = found.probabilities.astype(np.float64)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        spread = found.uncertainty
        return probabilities, None if spread is None else spread.astype(np.float64)

    @property
    def _outputs(self) -> dict[str, list[int]]:
        """Sizes of the outputs of one graph; files of earlier versions have no uncertainty."""
        return {each.name: each.shape[1:] for each in self.session.get_outputs()}

    def answers(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Answers:
        """All outputs for graphs of an encoded data set, in the given order.

        Raises:
            InputError: a graph is too large (`refuse_too_large`).
        """
        self.refuse_too_large(np.diff(dataset.node_ptr)[graphs])
        shapes = self._outputs
        names = [name for name in OUTPUTS if name in shapes]
        found: dict[str, Any] = {
            name: np.empty((len(graphs), *shapes[name]), output_type(name)) for name in names
        }
        for chosen in self._batches(dataset, graphs):
            inputs = self.inputs(dataset, graphs[chosen])
            for name, values in zip(names, self.session.run(names, inputs), strict=True):
                found[name][chosen] = values[: len(chosen)]
        return Answers(**found)

    def run(self, given: Mapping[str, Any]) -> Answers:
        """All outputs for input arrays that the caller has built, in the layout of the file.

        Raises:
            InputError: the arrays are wrong in a way that the runtime would not notice.
        """
        arrays = checked(self.described, given)
        names = [each.name for each in self.session.get_outputs() if each.name in OUTPUTS]
        return Answers(**dict(zip(names, self.session.run(names, arrays), strict=True)))

    def inputs(self, dataset: GraphDataset, graphs: NDArray[np.int64]) -> Arrays:
        """The input arrays of one batch, in the layout of the file."""
        about = self.described
        return inputs_for(about.layout, about.card, dataset, graphs, size=about.nodes)

    def _batches(
        self, dataset: GraphDataset, graphs: NDArray[np.int64]
    ) -> Iterator[NDArray[np.int64]]:
        """Positions in `graphs`, sorted by size, in batches of bounded memory."""
        sizes = np.diff(dataset.node_ptr)[graphs]
        order = np.argsort(sizes, kind="stable")
        padded = self.described.layout == Layout.PADDED
        if padded:
            cells = self._padded_cells(np.maximum(sizes, self.described.nodes or 0))
        else:
            # The readout pads a graph to less than twice its size, or to the first block.
            edges = np.diff(dataset.edge_ptr)[graphs]
            cells = (2 * sizes + FIRST_BLOCK + edges) * self.described.limits.numbers[0]
        start = 0
        while start < len(order):
            rest = cells[order[start:]]
            # The padded layout pads all graphs to the last and largest of a batch.
            needed = rest * np.arange(1, len(rest) + 1) if padded else np.cumsum(rest)
            most = int(np.searchsorted(needed, _BATCH_CELLS, side="right"))
            count = max(1, most)
            yield order[start : start + count]
            start += count

    def _padded_cells(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Elements of the largest array of one graph that is padded to each of these sizes."""
        limits, padded = self.described.limits, sizes.astype(np.float64)
        columns, pairs, triples = limits.numbers
        rows = (padded + (limits.node_limit or 0)) * columns
        return np.maximum(padded**2 * pairs + padded**3 * triples, rows)

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
        cells = float(self._padded_cells(np.array([padded]))[0])
        needed = batch_size * (padded**2 + 4 * cells)  # one byte per pair in the input
        if needed > _MOST_BYTES:
            one = batch_size == 1
            batch = "A graph" if one else f"A batch of {batch_size:,} graphs"
            advice = [] if one else ["use smaller batches (--batch-size)"]
            if Layout.SPARSE in self.described.limits.layouts:
                advice.append("export the model with --layout sparse")
            elif one:
                advice.append("use the checkpoint, which does not pad, or smaller graphs")
            advised = ", or ".join(advice)
            raise InputError(
                f"{batch} padded to {padded:,} nodes takes {needed / 2**30:,.1f} GiB. "
                f"{advised[0].upper()}{advised[1:]}."
            )


def output_type(name: str) -> type[np.generic]:
    """The type of an output's values."""
    return np.uint8 if name == PREDICTION_SET else np.float32


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
    session = open_session(path, device, providers, threads)
    text = session.get_modelmeta().custom_metadata_map.get(KEY)
    if text is None:
        raise InputError(f"{path} is an ONNX file, but ihgnn did not write it. {_GIVE_ANOTHER}")
    try:
        metadata = json.loads(text)
        version = int(metadata["format"])
        about = described(metadata) if version <= FORMAT else None
        if about is not None:
            _check_shapes(session, about)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    except InputError as error:
        raise _damaged(path, str(error)) from error
    if about is None:
        raise InputError(
            f"{path} has format {version}, and this ihgnn reads formats up to {FORMAT}. Install a "
            "newer ihgnn."
        )
    return OnnxClassifier(about, session)


def check_target(path: Path, *, force: bool = True) -> list[Path]:
    """The files that an export to this path writes: the model, its metadata, its golden vectors.

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


def open_session(
    path: Path,
    device: str = "auto",
    providers: Sequence[str] | None = None,
    threads: int | None = None,
    profile: Path | None = None,
) -> "onnxruntime.InferenceSession":
    """An onnxruntime session; arguments as in `load_onnx`.

    `profile` is the beginning of the path of a profile, which `end_profiling` writes.

    Raises:
        InputError: the file cannot be read, or the device or provider does not start.
    """
    import onnxruntime

    _check_readable(path)
    present = onnxruntime.get_available_providers()
    wanted = _of_device(device) if providers is None else [_with_options(p) for p in providers]
    asked = None if providers is None and device == "auto" else wanted[0][0]
    missing = [name for name, _ in wanted if name not in present]
    if missing and asked is not None:
        raise InputError(f"No provider '{missing[0]}'. Available: {', '.join(present)}.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    if profile is not None:
        options.enable_profiling, options.profile_file_prefix = True, str(profile)
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
            f"onnxruntime cannot start {asked} on this machine. "
            "Use the CPU; 'ihgnn env' shows what is "
            "available."
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


def _check_readable(path: Path) -> None:
    if not path.is_file():
        problem = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {problem}. {_GIVE_ANOTHER}")
    with reading(path):
        path.open("rb").close()


def _check_shapes(session: "onnxruntime.InferenceSession", about: Described) -> None:
    """Check that the network matches its metadata; dynamic axes have a name instead of a size.

    Raises:
        ValueError: it does not.
    """
    card = about.card
    inputs = {each.name: each.shape for each in session.get_inputs()}
    outputs = {each.name: each.shape for each in session.get_outputs()}
    names = inputs_of(card, about.layout).keys()
    if inputs.keys() != names or not set(OUTPUTS[:2]) <= outputs.keys():
        raise ValueError(f"its inputs and outputs are not those of a {about.layout} model")
    read = inputs["attributes"][-1] if card.attributes else 0
    if read != card.attributes or outputs["probabilities"][1] != len(card.class_values):
        raise ValueError("the network does not match the metadata")
    size = inputs["adjacency"][1] if about.layout == Layout.PADDED else None
    if (size if isinstance(size, int) else None) != about.nodes:
        raise ValueError("the padded size does not match the metadata")


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is damaged ({reason}). Export it again.")
