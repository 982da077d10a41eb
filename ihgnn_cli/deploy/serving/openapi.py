"""The OpenAPI description of the service, for a loaded model."""

from typing import Any

from ihgnn_cli import __version__
from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.serving.graphs import LINES
from ihgnn_cli.deploy.serving.requests import JSON
from ihgnn_cli.deploy.serving.settings import ServeSettings
from ihgnn_cli.deploy.serving.tensors import HEADER_LENGTH, TensorSpec
from ihgnn_cli.models.card import ModelCard

Plain = dict[str, Any]
OCTETS = "application/octet-stream"
_REFUSALS = {
    "400": "The request is malformed.",
    "408": "The request did not arrive in time.",
    "413": "The request is too large.",
    "415": "The content type is not supported.",
    "422": "No graph of the request could be answered.",
    "500": "The model failed.",
    "503": "The service is busy. Try again after Retry-After.",
}
_TEXT: Plain = {"type": "string"}
_VALUE: Plain = {"type": ["integer", "string"]}
_ERROR: Plain = {"type": "object", "required": ["error"], "properties": {"error": _TEXT}}


def description(
    name: str,
    card: ModelCard,
    settings: ServeSettings,
    inputs: list[TensorSpec],
    outputs: list[TensorSpec],
) -> Plain:
    """The whole document."""
    model = [_path("name", name)]
    version = [*model, _path("version", "1")]
    metadata, ready = _got("Names and shapes of the tensors"), _got("Whether the model is ready")
    infer = _infer(inputs, [each.name for each in outputs])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"{name}: graph classification",
            "version": __version__,
            "description": f"A model trained on {card.dataset_name}. POST /predict takes "
            "graphs as JSON; /v2 is the Open Inference Protocol with raw tensors.",
        },
        "paths": {
            "/predict": {"post": _predict(card, settings)},
            "/v2": {"get": _got("Name, version and extensions of the server")},
            "/v2/health/live": {"get": _got("Whether the server runs")},
            "/v2/health/ready": {"get": _got("Whether the server accepts requests")},
            "/v2/models/{name}": {"get": metadata, "parameters": model},
            "/v2/models/{name}/ready": {"get": ready, "parameters": model},
            "/v2/models/{name}/infer": {"post": infer, "parameters": model},
            "/v2/models/{name}/versions/{version}": {"get": metadata, "parameters": version},
            "/v2/models/{name}/versions/{version}/ready": {"get": ready, "parameters": version},
            "/v2/models/{name}/versions/{version}/infer": {"post": infer, "parameters": version},
            "/model.json": {"get": _always("Metadata of the model", JSON, {"type": "object"})},
            "/examples.jsonl": {"get": _always("Graphs to try, if there are any", LINES[0], _TEXT)},
            "/metrics": {"get": _always("Counters for Prometheus", "text/plain", _TEXT)},
        },
        "components": {"schemas": {"Graph": graph_schema(card), "Answer": _answer(card)}},
    }


def graph_schema(card: ModelCard) -> Plain:
    """A graph in the form of JSON lines that this model reads."""
    required = ["edges"]
    properties: Plain = {
        "node_labels": {"type": "array", "items": _VALUE, "description": "One per node."},
        "edges": {
            "type": "array",
            "items": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "minItems": 2,
                "maxItems": 2,
            },
            "description": "Pairs of nodes, counted from 0; each edge once.",
        },
        "edge_labels": {"type": "array", "items": _VALUE, "description": "One per edge."},
        "edge_attributes": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "number"}},
            "description": "A list of numbers per edge.",
        },
        "num_nodes": {"type": "integer", "minimum": 1},
        "node_attributes": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "number"}},
            "description": "A list of numbers per node.",
        },
        "id": {"description": "The answer repeats it."},
    }
    if card.features != Features.ATTRIBUTES and card.label_source == LabelSource.LABELS:
        required.insert(0, "node_labels")
    if card.given_attributes:
        required.append("node_attributes")
    if card.needs_edge_labels:
        required.append("edge_labels")
    if card.edge_bins is not None:
        required.append("edge_attributes")
    return {
        "type": "object",
        "required": required,
        "properties": properties,
        "examples": [example(card)],
    }


def example(card: ModelCard) -> Plain:
    """A graph of three nodes that the model can read."""
    graph: Plain = {}
    if card.features != Features.ATTRIBUTES and card.label_source == LabelSource.LABELS:
        graph["node_labels"] = [card.label_values[0]] * 2 + [card.label_values[-1]]
    else:
        graph["num_nodes"] = 3
    graph["edges"] = [[0, 1], [1, 2]]
    if card.given_attributes:
        graph["node_attributes"] = [[0.0] * card.given_attributes] * 3
    label = card.edge_label_values[0] if card.edge_label_values else ""
    if card.edge_bins is not None:
        label, attribute = card.edge_bins.split(label)
        graph["edge_attributes"] = [[attribute]] * 2
    if card.needs_edge_labels:
        graph["edge_labels"] = [label] * 2
    return graph


def _answer(card: ModelCard) -> Plain:
    classes = [str(each) for each in card.class_values]
    return {
        "type": "object",
        "required": ["graph"],
        "properties": {
            "graph": {"type": "integer", "description": "Position in the request, from 0."},
            "class": {"type": "string", "enum": classes},
            "probabilities": {
                "type": "object",
                "properties": {each: {"type": "number"} for each in classes},
            },
            "id": {"description": "The graph's own id, if it has one."},
            "unknown_nodes": {"type": "integer", "description": "If there are any."},
            "larger_than_m": {"type": "boolean", "description": "If it is."},
            "uncertainty": {"type": "number", "description": "Of ensembles."},
            "prediction_set": {
                "type": "array",
                "items": {"type": "string", "enum": classes},
                "description": "Of a model exported with --conformal, the most probable first.",
            },
            "error": {"type": "string", "description": "Why there is no answer."},
        },
    }


def _predict(card: ModelCard, settings: ServeSettings) -> Plain:
    graph, answer = {"$ref": "#/components/schemas/Graph"}, {"$ref": "#/components/schemas/Answer"}
    graphs = {"type": "array", "items": graph, "maxItems": settings.max_graphs}
    answers = {"anyOf": [answer, {"type": "array", "items": answer}]}
    body = _content(
        "A graph, a list of graphs, or one graph per line.",
        {JSON: {"anyOf": [graph, graphs]}, LINES[0]: _TEXT},
    )
    body["content"][JSON]["example"] = example(card)
    refused = _refusals()
    errors = {"type": "array", "items": answer}
    refused["422"] = _content(
        _REFUSALS["422"], {JSON: {"anyOf": [_ERROR, errors]}, LINES[0]: _TEXT}
    )
    return {
        "summary": "Classify graphs",
        "description": "The answer has the form of the request. In a list, a graph that cannot be "
        "answered has an error in its place.",
        "parameters": [
            {
                "name": "allow_unknown",
                "in": "query",
                "description": "Answer even if the model knows hardly any label of a graph.",
                "schema": {"type": "boolean", "default": False},
            }
        ],
        "requestBody": {**body, "required": True},
        "responses": {
            "200": _content("The classes", {JSON: answers, LINES[0]: _TEXT}),
            **refused,
        },
    }


def _infer(inputs: list[TensorSpec], outputs: list[str]) -> Plain:
    tensor: Plain = {
        "type": "object",
        "required": ["name", "shape", "datatype"],
        "properties": {
            "name": {"type": "string", "enum": [each.name for each in inputs]},
            "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
            "datatype": {"type": "string", "enum": sorted({each.datatype for each in inputs})},
            "data": {"type": "array"},
            "parameters": {"type": "object"},
        },
    }
    wanted: Plain = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "enum": outputs},
            "parameters": {"type": "object"},
        },
    }
    request: Plain = {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": _TEXT,
            "inputs": {"type": "array", "items": tensor},
            "outputs": {"type": "array", "items": wanted},
            "parameters": {"type": "object"},
        },
    }
    response: Plain = {
        "type": "object",
        "required": ["model_name", "model_version", "outputs"],
        "properties": {
            "model_name": _TEXT,
            "model_version": _TEXT,
            "id": _TEXT,
            "outputs": {"type": "array", "items": {"type": "object"}},
        },
    }
    header = {
        "name": HEADER_LENGTH,
        "in": "header",
        "description": "Length of the JSON part, if binary data follows it.",
        "schema": {"type": "integer", "minimum": 0},
    }
    body = _content("Tensors", {JSON: request, OCTETS: {"type": "string", "format": "binary"}})
    answer = _content("Tensors", {JSON: response, OCTETS: {"type": "string", "format": "binary"}})
    return {
        "summary": "Run the model on raw tensors",
        "parameters": [header],
        "requestBody": {**body, "required": True},
        "responses": {"200": answer, "404": _content("No such model.", {JSON: _ERROR}),
                      **_refusals()},
    }  # fmt: skip


def _always(summary: str, kind: str, schema: Plain) -> Plain:
    return {"summary": summary, "responses": {"200": _content(summary, {kind: schema})}}


def _got(summary: str) -> Plain:
    return {
        "summary": summary,
        "responses": {
            "200": _content(summary, {JSON: {"type": "object"}}),
            "404": _content("No such model.", {JSON: _ERROR}),
            "503": _content("The service is stopping.", {JSON: {"type": "object"}}),
        },
    }


def _refusals() -> Plain:
    return {status: _content(text, {JSON: _ERROR}) for status, text in _REFUSALS.items()}


def _content(text: str, schemas: dict[str, Plain]) -> Plain:
    return {
        "description": text,
        "content": {kind: {"schema": schema} for kind, schema in schemas.items()},
    }


def _path(name: str, value: str) -> Plain:
    schema = {"type": "string", "enum": [value]}
    return {"name": name, "in": "path", "required": True, "schema": schema}
