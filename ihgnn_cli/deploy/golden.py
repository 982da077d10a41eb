"""Golden vectors: a file with inputs of an exported model and the outputs to expect.

`docs/export.md` describes the file for callers in any language. This module needs no torch.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import Value
from ihgnn_cli.deploy.inputs import Arrays
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import sha256_of

FORMAT = 1
SUFFIX = ".golden.json"
_TYPES = {"int64": np.int64, "uint8": np.uint8, "float32": np.float32}
# Enough for every 32-bit float to be read back unchanged.
_DIGITS = 9

Plain = dict[str, Any]


@dataclass(frozen=True, eq=False)
class GoldenCase:
    """A batch of graphs, and what the model answers."""

    name: str
    description: str
    graphs: tuple[Plain, ...]
    """As in JSON lines: labels are values."""
    inputs: Arrays
    """The same graphs as inputs of the file: labels are positions."""
    outputs: dict[str, NDArray[Any]]
    classes: tuple[Value, ...]
    """The most probable class of each graph."""

    def as_plain(self) -> Plain:
        """The case as JSON values."""
        outputs: Plain = {name: _plain(values) for name, values in self.outputs.items()}
        return {
            "name": self.name,
            "description": self.description,
            "graphs": list(self.graphs),
            "inputs": {name: _plain(values) for name, values in self.inputs.items()},
            "outputs": {**outputs, "class": {"values": list(self.classes)}},
        }


@dataclass(frozen=True, eq=False)
class Golden:
    """The content of a file of golden vectors."""

    model: str
    """The name of the exported file."""
    model_sha256: str
    layout: str
    tolerance: float
    """Allowed difference of an output, relative to the largest value of the graph or 1."""
    cases: tuple[GoldenCase, ...]
    left_out: tuple[Plain, ...] = ()
    """`name` and `reason` of cases that the file does not have."""

    def text(self) -> str:
        """The file's text, with one case per line."""
        head = {
            "format": FORMAT,
            "model": self.model,
            "model_sha256": self.model_sha256,
            "layout": self.layout,
            "tolerance": self.tolerance,
            "left_out": list(self.left_out),
        }
        lines = (json.dumps(each.as_plain(), separators=(",", ":")) for each in self.cases)
        return f'{json.dumps(head)[:-1]}, "cases": [\n' + ",\n".join(lines) + "\n]}\n"


def golden_path(model: Path) -> Path:
    """The file of golden vectors that belongs to an exported file."""
    return model.with_suffix(SUFFIX)


def read_golden(model: Path) -> Golden:
    """The golden vectors of an exported file.

    Raises:
        InputError: a file is missing, the golden vectors belong to another model, or they are
            damaged or of a later format.
    """
    path = golden_path(model)
    again = "Export the model again (not with --no-verify)."
    if not path.is_file():
        raise InputError(f"{path} is missing: it has the graphs and answers to check. {again}")
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        version = int(plain["format"])
        golden = _golden(plain) if version <= FORMAT else None
    except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise InputError(f"{path} is damaged ({problem}). {again}") from error
    if golden is None:
        raise InputError(
            f"{path} has format {version}, and this ihgnn reads formats up to {FORMAT}. Install a "
            "newer ihgnn."
        )
    if golden.model_sha256 != sha256_of(model):
        raise InputError(
            f"{path} belongs to another file than {model} (their SHA-256 differ). {again}"
        )
    return golden


def _golden(plain: Plain) -> Golden:
    return Golden(
        model=plain["model"],
        model_sha256=plain["model_sha256"],
        layout=plain["layout"],
        tolerance=float(plain["tolerance"]),
        cases=tuple(_case(each) for each in plain["cases"]),
        left_out=tuple(plain.get("left_out", ())),
    )


def _case(plain: Plain) -> GoldenCase:
    outputs = dict(plain["outputs"])
    classes = outputs.pop("class")["values"]
    return GoldenCase(
        name=plain["name"],
        description=plain["description"],
        graphs=tuple(plain["graphs"]),
        inputs={name: _array(each) for name, each in plain["inputs"].items()},
        outputs={name: _array(each) for name, each in outputs.items()},
        classes=tuple(classes),
    )


def _plain(values: NDArray[Any]) -> Plain:
    flat = values.ravel().tolist()
    if values.dtype.kind == "f":
        flat = [short(each) for each in flat]
    return {"type": values.dtype.name, "shape": list(values.shape), "data": flat}


def _array(plain: Plain) -> NDArray[Any]:
    return np.array(plain["data"], dtype=_TYPES[plain["type"]]).reshape(plain["shape"])


def short(value: float) -> float:
    """A 32-bit float in as few digits as determine it."""
    return float(f"{value:.{_DIGITS}g}")
