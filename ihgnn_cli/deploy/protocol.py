"""Requests and responses of the Open Inference Protocol, version 2, for an exported model.

Tensors come as JSON, or with the binary data extension: then the JSON part of a body is followed by
the bytes of the tensors, in order, and the header `Inference-Header-Content-Length` has the length
of the JSON part. Shapes are checked against the limits before anything is allocated for them.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ihgnn_cli.deploy.onnx_model import OUTPUTS, OnnxClassifier
from ihgnn_cli.errors import InputError

HEADER_LENGTH = "Inference-Header-Content-Length"
VERSION = "1"
"""The version of the only model."""
# Graphs, nodes or edges of a request.
_MOST = 1 << 20
_DATATYPES: dict[str, tuple[str, str]] = {
    "tensor(float)": ("FP32", "<f4"),
    "tensor(int64)": ("INT64", "<i8"),
    "tensor(uint8)": ("UINT8", "u1"),
}

Array = NDArray[Any]
Parameters = dict[str, Any]


class InputTensor(BaseModel):
    """An input of a request."""

    name: str
    shape: list[Annotated[int, Field(ge=0, le=_MOST, strict=True)]]
    datatype: str
    parameters: Parameters = {}
    data: list[Any] | None = None


class RequestedOutput(BaseModel):
    """An output that a request asks for."""

    name: str
    parameters: Parameters = {}


class InferRequest(BaseModel):
    """A request to run the model on tensors."""

    model_config = ConfigDict(strict=True)
    id: str | None = None
    inputs: list[InputTensor]
    outputs: list[RequestedOutput] | None = None
    parameters: Parameters = {}


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model."""

    name: str
    datatype: str
    """As the protocol names it."""
    dtype: str
    shape: tuple[int, ...]
    """-1 for a size that can vary."""

    def as_plain(self) -> dict[str, Any]:
        """The tensor in the model's metadata."""
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


@dataclass(frozen=True, eq=False)
class Asked:
    """A checked request."""

    id: str | None
    inputs: dict[str, Array]
    outputs: dict[str, bool]
    """The requested outputs, and whether each is wanted as bytes."""


class Tensors:
    """The tensors of one model in requests and responses.

    Args:
        classifier: the model.
        max_graphs: graphs per request.
        max_nodes: nodes per graph.
    """

    def __init__(self, classifier: OnnxClassifier, max_graphs: int, max_nodes: int) -> None:
        self._classifier = classifier
        self._max_graphs, self._max_nodes = max_graphs, max_nodes
        session = classifier.session
        self.inputs = {each.name: _spec_of(each) for each in session.get_inputs()}
        given = {each.name: each for each in session.get_outputs()}
        self.outputs = {name: _spec_of(given[name]) for name in OUTPUTS if name in given}

    def read(self, body: bytes, header: str | None) -> Asked:
        """The request in a body; `header` is that of the binary extension.

        Raises:
            InputError: it is not a request for this model, or it is larger than the limits.
        """
        length = len(body)
        if header is not None:
            if not header.isdecimal() or int(header[:20]) > length:
                raise InputError(f"{HEADER_LENGTH} is not a length within {length} bytes.")
            length = int(header)
        try:
            asked = InferRequest.model_validate_json(body[:length])
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise InputError(f"{place}: {first['msg']}".removeprefix(": ")) from None
        names = [each.name for each in asked.inputs]
        if sorted(names) != sorted(self.inputs):
            raise InputError(
                f"The inputs are {', '.join(names) or 'missing'}. This model takes "
                f"{', '.join(self.inputs)}, each once."
            )
        self._check_shapes({each.name: each.shape for each in asked.inputs})
        rest, arrays = memoryview(body)[length:], {}
        for each in asked.inputs:
            arrays[each.name], rest = _array(each, self.inputs[each.name], rest)
        if len(rest):
            raise InputError(f"{len(rest)} bytes follow the data of the last tensor.")
        if "ptr" in arrays and np.diff(arrays["ptr"]).max() > self._max_nodes:
            raise InputError(f"Send graphs of at most {self._max_nodes:,} nodes.")
        return Asked(asked.id, arrays, self._outputs(asked))

    def run(self, asked: Asked) -> dict[str, Array]:
        """All outputs of the model.

        Raises:
            InputError: the arrays are not graphs, or the answer is not a number.
        """
        found = self._classifier.run(asked.inputs)
        arrays = {name: getattr(found, name) for name in self.outputs}
        if not all(np.isfinite(each).all() for each in arrays.values()):
            raise InputError("The model's answer is not a number: the attributes are too large.")
        return arrays

    def response(
        self, model: str, asked: Asked, found: Mapping[str, Array]
    ) -> tuple[bytes, int | None]:
        """The body of the response, and the length of its JSON part if bytes follow it."""
        listed, blocks = [], []
        for name, binary in asked.outputs.items():
            spec = self.outputs[name]
            values = found[name].astype(spec.dtype)
            entry: dict[str, Any] = {
                "name": name,
                "datatype": spec.datatype,
                "shape": list(values.shape),
            }
            if binary:
                blocks.append(values.tobytes())
                entry["parameters"] = {"binary_data_size": len(blocks[-1])}
            else:
                entry["data"] = values.ravel().tolist()
            listed.append(entry)
        head: dict[str, Any] = {"model_name": model, "model_version": VERSION}
        if asked.id is not None:
            head["id"] = asked.id
        text = json.dumps({**head, "outputs": listed}, separators=(",", ":")).encode()
        return b"".join([text, *blocks]), len(text) if blocks else None

    def _check_shapes(self, shapes: Mapping[str, list[int]]) -> None:
        """Check ranks, graphs, nodes and edges, which are the sizes of what the model allocates."""
        for name, shape in shapes.items():
            expected = self.inputs[name].shape
            fits = len(shape) == len(expected) and all(
                size in (-1, given) for given, size in zip(shape, expected, strict=True)
            )
            if not fits:
                wanted = ", ".join("N" if size < 0 else str(size) for size in expected)
                raise InputError(f"{name} has the shape {shape}, not [{wanted}].")
        labels = shapes["node_labels"]
        padded = "adjacency" in shapes
        graphs = labels[0] if padded else shapes["ptr"][0] - 1
        largest = labels[1] if padded else 0
        if graphs < 1:
            raise InputError("There are no graphs. Send 1 or more.")
        if graphs > self._max_graphs or largest > self._max_nodes:
            raise InputError(
                f"Send at most {self._max_graphs:,} graphs of at most {self._max_nodes:,} nodes."
            )
        if padded:
            self._classifier.refuse_too_large(np.array([largest]), graphs)

    def _outputs(self, asked: InferRequest) -> dict[str, bool]:
        """The wanted outputs, and whether each is wanted as bytes."""
        everything = asked.parameters.get("binary_data_output", False) is True
        if asked.outputs is None:
            return dict.fromkeys(self.outputs, everything)
        found = {}
        for each in asked.outputs:
            if each.name not in self.outputs:
                raise InputError(
                    f"No output {each.name[:40]}. There are {', '.join(self.outputs)}."
                )
            found[each.name] = each.parameters.get("binary_data", everything) is True
        return found


def _spec_of(value: Any) -> TensorSpec:
    """An input or output of an onnxruntime session."""
    datatype, dtype = _DATATYPES[value.type]
    shape = tuple(each if isinstance(each, int) else -1 for each in value.shape)
    return TensorSpec(value.name, datatype, dtype, shape)


def _array(given: InputTensor, spec: TensorSpec, rest: memoryview) -> tuple[Array, memoryview]:
    """The values of an input, and the bytes that follow it."""
    if given.datatype != spec.datatype:
        raise InputError(f"{spec.name} is {given.datatype[:20]}, not {spec.datatype}.")
    for unsupported in ("shared_memory_region", "classification"):
        if unsupported in given.parameters:
            raise InputError(f"The parameter {unsupported} is not supported.")
    count = math.prod(given.shape)
    size = given.parameters.get("binary_data_size")
    if size is None:
        values = _from_json(given.data, spec, count)
        return values.reshape(given.shape), rest
    wanted = count * np.dtype(spec.dtype).itemsize
    if type(size) is not int or given.data is not None or size != wanted or size > len(rest):
        raise InputError(f"{spec.name}: {len(rest)} bytes follow for the shape {given.shape}.")
    return np.frombuffer(rest[:size], spec.dtype).reshape(given.shape), rest[size:]


def _from_json(data: list[Any] | None, spec: TensorSpec, count: int) -> Array:
    """Values as nested lists, or as one list in row-major order."""
    try:
        return _converted(np.array(data), spec.dtype, count)
    except (ValueError, TypeError, OverflowError):
        kind = spec.datatype
        raise InputError(f"{spec.name} has no list of {count} values of {kind}.") from None


def _converted(values: Array, dtype: str, count: int) -> Array:
    allowed = "iuf" if dtype == "<f4" else "iu"
    if values.size != count or (count and values.dtype.kind not in allowed):
        raise ValueError(dtype)
    with np.errstate(over="ignore"):
        found: Array = values.astype(dtype)
    if not np.isfinite(found).all() or (dtype != "<f4" and (found != values).any()):
        raise ValueError(dtype)
    return found
