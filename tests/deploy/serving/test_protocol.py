"""The Open Inference Protocol: raw tensors as JSON and as bytes."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from service_client import talk

from ihgnn_cli.data import load_dataset
from ihgnn_cli.deploy.onnx_model import OnnxClassifier
from ihgnn_cli.deploy.serving.app import Service
from ihgnn_cli.deploy.serving.settings import ServeSettings
from ihgnn_cli.models.spec import Layout

INFER = "/v2/models/mutag/infer"
DATATYPES = {"int64": "INT64", "uint8": "UINT8", "float32": "FP32"}
# C-C-O and a single C.
PADDED = {
    "node_labels": np.array([[0, 0, 1], [0, -1, -1]]),
    "adjacency": np.array(
        [[[0, 1, 0], [1, 0, 1], [0, 1, 0]], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]], np.uint8
    ),
}
SPARSE = {
    "node_labels": np.array([0, 0, 1, 0]),
    "edge_index": np.array([[0, 1, 1, 2], [1, 0, 2, 1]]),
    "ptr": np.array([0, 3, 4]),
}


def small(classifier: OnnxClassifier) -> Mapping[str, Any]:
    return SPARSE if classifier.layout == Layout.SPARSE else PADDED


def as_request(arrays: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    inputs = [
        {
            "name": name,
            "shape": list(each.shape),
            "datatype": DATATYPES[str(each.dtype)],
            "data": each.tolist(),
        }
        for name, each in arrays.items()
    ]
    return {"inputs": inputs, **more}


def as_bytes(arrays: Mapping[str, Any], **more: Any) -> tuple[bytes, dict[str, str]]:
    content = as_request(arrays, **more)
    for entry, each in zip(content["inputs"], arrays.values(), strict=True):
        del entry["data"]
        entry["parameters"] = {"binary_data_size": each.nbytes}
    head = json.dumps(content).encode()
    body = b"".join([head, *(each.tobytes() for each in arrays.values())])
    return body, {"Inference-Header-Content-Length": str(len(head))}


def test_the_server_and_the_model_say_what_they_are(service: Service) -> None:
    async def ask(client):
        paths = ("", "/health/live", "/health/ready", "/models/mutag", "/models/mutag/ready")
        versioned = "/models/mutag/versions/1"
        return [(await client.get(f"/v2{path}")).json() for path in (*paths, versioned)]

    server, live, ready, model, model_ready, versioned = talk(service, ask)
    assert (server["name"], server["extensions"]) == ("ihgnn", ["binary_tensor_data"])
    assert (live, ready) == ({"live": True}, {"ready": True})
    assert model_ready == {"name": "mutag", "ready": True}
    assert model == versioned
    assert [each["name"] for each in model["inputs"]] == list(small(service.classifier))
    assert model["outputs"][1] == {"name": "probabilities", "datatype": "FP32", "shape": [-1, 2]}


def test_answers_are_those_of_the_file(service: Service) -> None:
    arrays = small(service.classifier)
    names = [each.name for each in service.classifier.session.get_outputs()]
    expected = service.classifier.session.run(names, dict(arrays))

    async def ask(client):
        body, headers = as_bytes(arrays, parameters={"binary_data_output": True})
        return (
            await client.post(INFER, json=as_request(arrays, id="7")),
            await client.post(INFER, content=body, headers=headers),
        )

    plain, binary = talk(service, ask)
    content = plain.json()
    assert (content["model_name"], content["id"]) == ("mutag", "7")
    assert [each["name"] for each in content["outputs"]] == names
    for found, values in zip(content["outputs"], expected, strict=True):
        assert found["shape"] == list(values.shape)
        np.testing.assert_allclose(found["data"], values.ravel(), atol=1e-5)
    length = int(binary.headers["inference-header-content-length"])
    listed, rest = json.loads(binary.content[:length])["outputs"], binary.content[length:]
    for found, values in zip(listed, expected, strict=True):
        size = found["parameters"]["binary_data_size"]
        mine, rest = np.frombuffer(rest[:size], "<f4"), rest[size:]
        np.testing.assert_allclose(mine, values.ravel(), atol=1e-5)
    assert rest == b""


def test_requests_of_different_sizes_share_a_batch(classifier: OnnxClassifier) -> None:
    mutag = load_dataset("MUTAG")
    singles = [classifier.inputs(mutag, np.array([graph])) for graph in range(40)]
    service = Service(classifier, "mutag", ServeSettings(batch_size=40, batch_wait=1000))

    async def ask(client):
        wanted = [{"name": "probabilities"}]
        calls = (client.post(INFER, json=as_request(each, outputs=wanted)) for each in singles)
        return await asyncio.gather(*calls)

    found = [each.json()["outputs"][0]["data"] for each in talk(service, ask)]
    np.testing.assert_allclose(found, classifier.probabilities(mutag, np.arange(40)), atol=1e-5)
    assert service.metrics._registry.get_sample_value("ihgnn_batch_graphs_sum") == 40
    assert service.metrics._registry.get_sample_value("ihgnn_batch_graphs_count") == 1


def changed(arrays: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    return as_request({**arrays, name: np.asarray(value, arrays[name].dtype)})


WRONG_SPARSE = {
    "an edge to nowhere": ("edge_index", [[0, 9], [9, 0]]),
    "a negative node": ("edge_index", [[0, -1], [-1, 0]]),
    "an edge in one direction": ("edge_index", [[0], [1]]),
    "an edge twice": ("edge_index", [[0, 1, 0, 1], [1, 0, 1, 0]]),
    "an edge between graphs": ("edge_index", [[2, 3], [3, 2]]),
    "a graph without nodes": ("ptr", [0, 3, 3, 4]),
    "ptr that ends early": ("ptr", [0, 3]),
    "ptr that overflows": ("ptr", [0, -(2**63), 4]),
    "ptr of nothing": ("ptr", [0]),
}
WRONG_PADDED = {
    "a graph without nodes": ("node_labels", [[0, 0, 1], [-1, -1, -1]]),
    "other numbers of graphs": ("node_labels", [[0, 0, 1]]),
    "nothing": ("node_labels", np.zeros((0, 3))),
}


@pytest.mark.parametrize("name", WRONG_SPARSE)
def test_sparse_tensors_that_are_no_graphs_are_refused(sparse: OnnxClassifier, name: str) -> None:
    request = changed(SPARSE, *WRONG_SPARSE[name])
    service = Service(sparse, "mutag", ServeSettings())
    answer = talk(service, lambda client: client.post(INFER, json=request))
    assert (answer.status_code, len(answer.json()["error"]) > 10) == (400, True)


@pytest.mark.parametrize("name", WRONG_PADDED)
def test_padded_tensors_that_are_no_graphs_are_refused(send, name: str) -> None:
    answer = send("POST", INFER, json=changed(PADDED, *WRONG_PADDED[name]))
    assert (answer.status_code, len(answer.json()["error"]) > 10) == (400, True)


HARMLESS = {
    "an edge in one direction": np.triu(PADDED["adjacency"]),
    "self-loops": PADDED["adjacency"] | np.eye(3, dtype=np.uint8),
    "weights": 2 * PADDED["adjacency"],
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_the_exported_graph_ignores_is_ignored_here(send, name: str) -> None:
    expected = send("POST", INFER, json=as_request(PADDED)).json()["outputs"]
    found = send("POST", INFER, json=changed(PADDED, "adjacency", HARMLESS[name]))
    assert found.json()["outputs"] == expected


def with_input(**changes: Any) -> dict[str, Any]:
    """A request whose first tensor is changed; `None` removes a key."""
    request = as_request(PADDED)
    first = {**request["inputs"][0], **changes}
    request["inputs"][0] = {key: each for key, each in first.items() if each is not None}
    return request


MALFORMED = {
    "no object": [],
    "no inputs": {},
    "inputs of a wrong type": {"inputs": 1},
    "an input of a wrong type": {"inputs": [1]},
    "an unknown input": with_input(name="x"),
    "a missing input": {"inputs": as_request(PADDED)["inputs"][:1]},
    "an input twice": {"inputs": as_request(PADDED)["inputs"] * 2},
    "another datatype": with_input(datatype="FP32"),
    "another rank": with_input(shape=[6]),
    "a negative shape": with_input(shape=[-2, -3]),
    "a shape of texts": with_input(shape=["2", "3"]),
    "a huge shape": with_input(shape=[10**30, 3]),
    "too few values": with_input(data=[0, 0]),
    "ragged rows": with_input(data=[[0, 0], [1]]),
    "floats": with_input(data=[0.0] * 6),
    "booleans": with_input(data=[True] * 6),
    "texts": with_input(data=["0"] * 6),
    "numbers beyond 64 bits": with_input(data=[10**30] * 6),
    "no data": with_input(data=None),
    "both data and bytes": with_input(parameters={"binary_data_size": 48}),
    "a wrong id": as_request(PADDED, id=7),
    "an unknown output": as_request(PADDED, outputs=[{"name": "x"}]),
    "a wrong flag": as_request(
        PADDED, outputs=[{"name": "logits", "parameters": {"binary_data": 1}}]
    ),
    "shared memory": with_input(parameters={"shared_memory_region": "x"}),
    "wrong parameters": as_request(PADDED, parameters=[]),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_refused_with_a_reason(send, name: str) -> None:
    answer = send("POST", INFER, json=MALFORMED[name])
    assert (answer.status_code, len(answer.json()["error"]) > 10) == (400, True)


@pytest.mark.parametrize("length", ["-1", "x", "999999", "9" * 5000, ""])
def test_a_wrong_length_of_the_json_part_is_refused(send, length: str) -> None:
    body, _ = as_bytes(PADDED)
    headers = {"Inference-Header-Content-Length": length}
    assert send("POST", INFER, content=body, headers=headers).status_code == 400


@pytest.mark.parametrize("change", [-1, 1])
def test_bytes_that_do_not_fit_the_shape_are_refused(send, change: int) -> None:
    body, headers = as_bytes(PADDED)
    body = body[:change] if change < 0 else body + b"0"
    assert send("POST", INFER, content=body, headers=headers).status_code == 400


def test_limits_hold_for_tensors_too(send) -> None:
    request = as_request(PADDED)
    for few in (ServeSettings(max_graphs=1), ServeSettings(max_nodes=2)):
        assert send("POST", INFER, json=request, settings=few).status_code == 413
    text = {"content": b"x", "headers": {"Content-Type": "text/csv"}}
    assert send("POST", INFER, **text).status_code == 415


@pytest.mark.parametrize(
    "path", ["/v2/models/other/infer", "/v2/models/mutag/versions/2/infer", "/v2/nope"]
)
def test_other_models_and_paths_are_not_found(send, path: str) -> None:
    answer = send("POST", path, json={})
    assert (answer.status_code, "error" in answer.json()) == (404, True)


def test_other_methods_are_not_allowed(send) -> None:
    assert send("GET", "/predict").status_code == 405
    assert send("DELETE", INFER).status_code == 405
