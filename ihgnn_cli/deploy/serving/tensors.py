"""Tensors of the Open Inference Protocol: as JSON, and with the binary data extension.

With the extension, the JSON part of a body is followed by the bytes of the tensors, in order; the
header `Inference-Header-Content-Length` has the length of the JSON part.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.json_graph import GraphError, decoded
from ihgnn_cli.deploy.serving.requests import RefusedError

HEADER_LENGTH = "Inference-Header-Content-Length"
_DATATYPES: dict[str, tuple[str, np.dtype[Any]]] = {
    "tensor(float)": ("FP32", np.dtype("<f4")),
    "tensor(int64)": ("INT64", np.dtype("<i8")),
    "tensor(uint8)": ("UINT8", np.dtype("u1")),
}
_UNSUPPORTED = ("shared_memory_region", "classification")

Array = NDArray[Any]


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model."""

    name: str
    datatype: str
    """As the protocol names it."""
    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]
    """-1 for a size that can vary."""

    def as_plain(self) -> dict[str, Any]:
        """The tensor in the model's metadata."""
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


@dataclass(frozen=True, eq=False)
class InferRequest:
    """A request to run the model."""

    id: str | None
    inputs: dict[str, Array]
    outputs: dict[str, bool]
    """The requested outputs, and whether each is wanted as bytes."""


def spec_of(value: Any) -> TensorSpec:
    """An input or output of an onnxruntime session."""
    datatype, dtype = _DATATYPES[value.type]
    shape = tuple(each if isinstance(each, int) else -1 for each in value.shape)
    return TensorSpec(value.name, datatype, dtype, shape)


def read_request(
    body: bytes, header: str | None, inputs: Sequence[TensorSpec], outputs: Sequence[str]
) -> InferRequest:
    """Read the body of a request.

    Args:
        body: all of it.
        header: the value of `Inference-Header-Content-Length`, if there is one.
        inputs: the model's inputs; all are required.
        outputs: names of the model's outputs.

    Raises:
        RefusedError: it is not a request for this model.
    """
    length = len(body)
    if header is not None:
        if not header.isdecimal() or int(header[:20]) > length:
            raise _bad(f"{HEADER_LENGTH} is '{header[:20]}' for a body of {length} bytes.")
        length = int(header)
    content = _object(_json(body[:length]), "The request")
    given = content.get("id")
    if given is not None and not isinstance(given, str):
        raise _bad("id is not a text.")
    found, rest = _inputs(content.get("inputs"), body[length:], inputs)
    if len(rest):
        raise _bad(f"{len(rest)} bytes follow the data of the last tensor.")
    everything = _parameters(content).get("binary_data_output", False)
    return InferRequest(
        given, found, _outputs(content.get("outputs"), outputs, everything=everything is True)
    )


def written_response(
    model: str, version: str, request: InferRequest, outputs: Mapping[str, tuple[str, Array]]
) -> tuple[bytes, int | None]:
    """The body of the response, and the length of its JSON part if binary data follows.

    `outputs` has datatype and values by name.
    """
    listed: list[dict[str, Any]] = []
    blocks: list[bytes] = []
    for name, binary in request.outputs.items():
        datatype, values = outputs[name]
        entry: dict[str, Any] = {"name": name, "datatype": datatype, "shape": list(values.shape)}
        if binary:
            blocks.append(values.tobytes())
            entry["parameters"] = {"binary_data_size": len(blocks[-1])}
        else:
            entry["data"] = values.ravel().tolist()
        listed.append(entry)
    head: dict[str, Any] = {"model_name": model, "model_version": version}
    if request.id is not None:
        head["id"] = request.id
    text = json.dumps({**head, "outputs": listed}, separators=(",", ":"), allow_nan=False).encode()
    return b"".join([text, *blocks]), len(text) if blocks else None


def _inputs(
    listed: Any, rest: bytes, expected: Sequence[TensorSpec]
) -> tuple[dict[str, Array], bytes]:
    specs = {each.name: each for each in expected}
    found: dict[str, Array] = {}
    for each in _list(listed, "inputs"):
        entry = _object(each, "An input")
        name = entry.get("name")
        if not isinstance(name, str) or name not in specs:
            raise _bad(f"No input {_shown(name)}. The model has {', '.join(specs)}.")
        if name in found:
            raise _bad(f"The input {name} is given twice.")
        found[name], rest = _tensor(entry, specs[name], rest)
    missing = [name for name in specs if name not in found]
    if missing:
        raise _bad(f"The input {missing[0]} is missing. The model has {', '.join(specs)}.")
    return found, rest


def _tensor(entry: dict[str, Any], spec: TensorSpec, rest: bytes) -> tuple[Array, bytes]:
    if entry.get("datatype") != spec.datatype:
        raise _bad(f"{spec.name} is {_shown(entry.get('datatype'))}, not {spec.datatype}.")
    shape = _shape(entry.get("shape"), spec)
    parameters = _parameters(entry)
    size = parameters.get("binary_data_size")
    if size is None:
        return _from_json(entry.get("data"), spec, shape), rest
    if isinstance(size, bool) or not isinstance(size, int) or "data" in entry:
        raise _bad(f"{spec.name}: give data, or the number binary_data_size.")
    if size != math.prod(shape) * spec.dtype.itemsize or size > len(rest):
        raise _bad(
            f"{spec.name}: {_shown(size)} bytes of data, {len(rest)} of them in the body, for the "
            f"shape {list(shape)}."
        )
    values = np.frombuffer(rest[:size], spec.dtype).reshape(shape)
    return _finite(values, spec), rest[size:]


def _shape(given: Any, spec: TensorSpec) -> tuple[int, ...]:
    words = f"[{', '.join('N' if each < 0 else str(each) for each in spec.shape)}]"
    whole = isinstance(given, list) and all(type(each) is int and each >= 0 for each in given)
    if (
        not whole
        or len(given) != len(spec.shape)
        or any(size not in (-1, each) for each, size in zip(given, spec.shape, strict=True))
    ):
        raise _bad(f"{spec.name} has the shape {_shown(given)}, not {words}.")
    return tuple(given)


def _from_json(data: Any, spec: TensorSpec, shape: tuple[int, ...]) -> Array:
    """Values as nested lists, or as one list in row-major order."""
    if not isinstance(data, list):
        raise _bad(f"{spec.name} has no list of data.")
    flat = _flat(data, spec.name)
    kinds = set(map(type, flat))
    allowed = {int, float} if spec.dtype.kind == "f" else {int}
    if not kinds <= allowed:
        raise _bad(f"{spec.name} holds values that are not {spec.datatype}.")
    if len(flat) != math.prod(shape):
        raise _bad(f"{spec.name} has {len(flat)} values for the shape {list(shape)}.")
    try:
        with np.errstate(over="ignore"):
            return _finite(np.array(flat, spec.dtype).reshape(shape), spec)
    except (OverflowError, ValueError):
        raise _bad(f"{spec.name} holds numbers too large for {spec.datatype}.") from None


def _flat(data: list[Any], name: str) -> list[Any]:
    while data and isinstance(data[0], list):
        if not all(isinstance(each, list) and len(each) == len(data[0]) for each in data):
            raise _bad(f"{name} has rows of different lengths.")
        data = [each for row in data for each in row]
    return data


def _finite(values: Array, spec: TensorSpec) -> Array:
    if spec.dtype.kind == "f" and not np.isfinite(values).all():
        raise _bad(f"{spec.name} holds numbers that are not finite.")
    return values


def _outputs(listed: Any, names: Sequence[str], *, everything: bool) -> dict[str, bool]:
    if listed is None:
        return dict.fromkeys(names, everything)
    found: dict[str, bool] = {}
    for each in _list(listed, "outputs"):
        entry = _object(each, "An output")
        name = entry.get("name")
        if not isinstance(name, str) or name not in names:
            raise _bad(f"No output {_shown(name)}. The model has {', '.join(names)}.")
        binary = _parameters(entry).get("binary_data", everything)
        if not isinstance(binary, bool):
            raise _bad(f"binary_data of {name} is not true or false.")
        found[name] = binary
    return found


def _parameters(entry: dict[str, Any]) -> dict[str, Any]:
    parameters = _object(entry.get("parameters", {}), "parameters")
    for name in _UNSUPPORTED:
        if name in parameters:
            raise _bad(f"The parameter {name} is not supported.")
    return parameters


def _json(body: bytes) -> Any:
    try:
        return decoded(body)
    except GraphError as error:
        raise _bad(f"The body is {error.message}") from None


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _bad(f"{what} is not a JSON object.")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _bad(f"{what} is not a list.")
    return value


def _shown(value: Any) -> str:
    """A value for a message, shortened."""
    try:
        text = json.dumps(value)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= 40 else f"{text[:40]} ..."


def _bad(reason: str) -> RefusedError:
    return RefusedError(400, reason)
