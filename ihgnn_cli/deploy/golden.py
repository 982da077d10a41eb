"""The golden file: a few small graphs with the inputs of an exported model and its right answers.

`docs/export.md` describes the file for callers in any language.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value
from ihgnn_cli.data.jsonl import entries
from ihgnn_cli.deploy.inputs import Arrays
from ihgnn_cli.deploy.onnx_model import PREDICTION_SET, OnnxClassifier, golden_path, load_onnx
from ihgnn_cli.deploy.providers import loadable_providers
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import reading
from ihgnn_cli.inference.vocabulary import encode_dataset, with_model_edges
from ihgnn_cli.models.card import ModelCard

if TYPE_CHECKING:
    from ihgnn_cli.deploy.verification import Reference

_GRAPHS, _TRIED, _MOST_NODES = 8, 64, 64
# Rounding in any runtime is smaller than this gap between the sort keys of two nodes.
_KEYS_APART = 1e-4
_TYPES = ("int64", "uint8", "float32")
_SECONDS, _LEAST_RUNS = 1.0, 3
TOLERANCE = 1e-4
"""Allowed difference of an output, relative to the graph's largest expected value or 1."""

Plain = dict[str, Any]
Outputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Golden:
    """The content of a golden file: one batch of graphs."""

    model: str
    """The name of the exported file."""
    graphs: tuple[Plain, ...]
    """As in JSON lines: labels are values."""
    inputs: Arrays
    """The same graphs as inputs of the file: labels are positions."""
    outputs: Arrays
    """What the model answers as it was trained; without outputs that rounding can change."""
    classes: tuple[Value, ...]
    """The most probable class of each graph."""

    def text(self) -> str:
        """The file's text."""
        return json.dumps(
            {
                "model": self.model,
                "tolerance": TOLERANCE,
                "graphs": list(self.graphs),
                "inputs": {name: _plain(each) for name, each in self.inputs.items()},
                "outputs": {name: _plain(each) for name, each in self.outputs.items()},
                "classes": list(self.classes),
            },
            separators=(",", ":"),
        )


@dataclass(frozen=True)
class GoldenCheck:
    """The answers of one provider to the golden graphs."""

    provider: str
    """The provider that was asked for; empty if onnxruntime chose it."""
    runs_on: str
    """The provider that really ran."""
    graphs: int
    difference: float
    """The largest of any output, relative to the graph's largest value or 1."""
    same_classes: bool
    milliseconds_per_graph: float
    """Median over batches of all golden graphs."""
    tolerance: float = TOLERANCE

    @property
    def passed(self) -> bool:
        """Whether all answers are right, on the provider that was asked for."""
        right = self.difference <= self.tolerance and self.same_classes
        return right and self.provider in ("", self.runs_on)


def golden_of(
    reference: "Reference", exported: OnnxClassifier, dataset: GraphDataset, model: str
) -> Golden:
    """The golden graphs of an exported model: small ones, whose node order no rounding decides."""
    card, sizes = reference.card, np.diff(dataset.node_ptr)
    order = np.argsort(sizes, kind="stable")
    small = int(np.count_nonzero(sizes <= min(exported.nodes or _MOST_NODES, _MOST_NODES)))
    order = order[: max(small, 1)]
    order = order[np.linspace(0, len(order) - 1, min(len(order), _TRIED)).astype(np.int64)]

    def certain(graphs: GraphDataset) -> NDArray[np.bool_]:
        encoded = encode_dataset(card, with_model_edges(card, graphs)).dataset
        found: NDArray[np.bool_] = reference.key_gaps(encoded) > _KEYS_APART
        return found

    order = order[certain(dataset.select(order))]
    order = order[np.linspace(0, len(order) - 1, min(len(order), _GRAPHS - 1)).astype(np.int64)]
    if not len(order):
        return Golden(model, (), {}, {}, ())
    graphs = dataset.select(order)
    if card.inputs.labels and dataset.label_source == LabelSource.LABELS:
        unknown = _with_unknown_label(dataset.select([*order, order[-1]]))
        graphs = unknown if certain(unknown)[-1] else graphs
    encoded = encode_dataset(card, with_model_edges(card, graphs)).dataset
    outputs = reference.outputs(encoded)
    types = {each.name: each.type for each in exported.session.get_outputs()}
    return Golden(
        model=model,
        graphs=tuple(entries(graphs)),
        inputs=exported.inputs(encoded, np.arange(len(encoded))),
        outputs={
            name: each.astype(np.uint8 if "uint8" in types[name] else np.float32)
            for name, each in outputs.items()
            if name in types and not np.isnan(each).any()
        },
        classes=tuple(card.class_values[each] for each in outputs["probabilities"].argmax(1)),
    )


def check_golden(model: Path, provider: str = "") -> GoldenCheck:
    """Run the golden graphs of an exported file on a provider of onnxruntime.

    Args:
        model: the .onnx file, with its golden file beside it.
        provider: its name; empty for the one that onnxruntime chooses.

    Raises:
        InputError: a file is missing or damaged, or the provider is not available.
    """
    golden = _read(golden_path(model))
    try:
        exported = load_onnx(model, providers=[provider] if provider else None)
    except InputError:
        if not provider or provider not in loadable_providers():
            raise
        exported = load_onnx(model, "cpu")
    seconds: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(seconds) < _LEAST_RUNS or time.perf_counter() < end:
        start = time.perf_counter()
        answers = exported.run(golden.inputs)
        seconds.append(time.perf_counter() - start)
    found = {name: each for name, each in vars(answers).items() if each is not None}
    if not golden.outputs.keys() <= found.keys():
        raise InputError(f"{golden_path(model)} belongs to another model than {model}.")
    apart = differences(golden.outputs, found, exported.card)
    best = [exported.card.class_values[each] for each in found["probabilities"].argmax(1)]
    return GoldenCheck(
        provider=provider,
        runs_on=exported.runs_on,
        graphs=len(golden.graphs),
        difference=float(np.max([each.max() for each in apart.values()])),
        same_classes=tuple(best) == golden.classes,
        milliseconds_per_graph=1000 * float(np.median(seconds)) / len(golden.graphs),
    )


def differences(
    expected: Outputs, found: Outputs, card: ModelCard
) -> dict[str, NDArray[np.float64]]:
    """[G] the largest difference of each output, relative to the graph's largest value or 1.

    Where NaN is expected, anything may be found. A class counts as in the prediction set or not
    if its probability is at the threshold.
    """
    apart = {}
    for name, values in expected.items():
        if name not in found:
            continue
        rows = values.reshape(len(values), -1).astype(np.float64)
        gap = np.abs(found[name].reshape(rows.shape) - rows)
        gap[np.isnan(rows)] = 0
        if name == PREDICTION_SET and card.conformal is not None:
            gap[card.conformal.distances(expected["probabilities"]) <= TOLERANCE] = 0
        apart[name] = gap.max(axis=1) / np.fmax(1, np.nan_to_num(np.abs(rows)).max(axis=1))
    return apart


def _read(path: Path) -> Golden:
    again = "Export the model again (not with --no-verify)."
    if not path.is_file():
        raise InputError(f"{path} is missing: it has the graphs and answers to check. {again}")
    with reading(path):
        content = path.read_bytes()
    try:
        plain = json.loads(content)
        golden = Golden(
            model=str(plain["model"]),
            graphs=tuple(plain["graphs"]),
            inputs={name: _array(each) for name, each in plain["inputs"].items()},
            outputs={name: _array(each) for name, each in plain["outputs"].items()},
            classes=tuple(plain["classes"]),
        )
    except Exception as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}). {again}") from error
    if not golden.graphs:
        raise InputError(
            f"{path} has no graphs: rounding decides the order of nodes in all small graphs of the "
            "data. Export the model with other graphs (--dataset)."
        )
    return golden


def _with_unknown_label(dataset: GraphDataset) -> GraphDataset:
    """The graphs; the first node of the last one has a label that does not occur."""
    values, labels = dataset.label_values, dataset.node_label.copy()
    labels[dataset.node_ptr[-2]] = len(values)
    numbers = [each for each in values if isinstance(each, int)]
    if len(numbers) == len(values):
        other: Value = max(numbers) + 1
    else:
        other = max(map(str, values), key=len) + "?"
    return replace(dataset, node_label=labels, label_values=(*values, other))


def _plain(values: NDArray[Any]) -> Plain:
    flat = values.ravel()
    # The digits of a 32-bit float, not those of the 64-bit number it becomes.
    data = [float(str(each)) for each in flat] if values.dtype.kind == "f" else flat.tolist()
    return {"type": values.dtype.name, "shape": list(values.shape), "data": data}


def _array(plain: Plain) -> NDArray[Any]:
    if plain["type"] not in _TYPES:
        raise ValueError(f"{plain['type']} is not a type of tensors")
    return np.array(plain["data"], dtype=plain["type"]).reshape(plain["shape"])
