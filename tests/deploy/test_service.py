"""The service in this process: answers, refusals, limits, batches, tensors, the page."""

import asyncio
import json
import re
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from service_client import talk

from ihgnn_cli import export, load
from ihgnn_cli.data import load_dataset
from ihgnn_cli.deploy.predictor import Predictor
from ihgnn_cli.deploy.server import is_loopback, listen, url_of, without_delay
from ihgnn_cli.deploy.service import Batcher, Limits, Service
from ihgnn_cli.errors import InputError

PATH = {"node_labels": [0, 0, 1], "edges": [[0, 1], [1, 2]]}
UNKNOWN = {"node_labels": [99], "edges": []}
JSON = {"content-type": "application/json"}
INFER = "/v2/models/mutag/infer"
DATATYPES = {"int64": "INT64", "uint8": "UINT8"}
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


@pytest.fixture(scope="session")
def predictor(mutag_model) -> Predictor:
    return load(mutag_model.exported, "cpu", threads=1)


@pytest.fixture
def service(predictor: Predictor) -> Service:
    return Service(predictor, "mutag", Limits())


@pytest.fixture(scope="session")
def sparse(mutag_model, tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    path = tmp_path_factory.mktemp("sparse") / "model.onnx"
    export(mutag_model.checkpoint, path, layout="sparse")
    return load(path, "cpu", threads=1)


@pytest.fixture(params=["predictor", "sparse"])
def either(request: pytest.FixtureRequest) -> Service:
    """A service of each layout."""
    return Service(request.getfixturevalue(request.param), "mutag", Limits())


def tensors(service: Service) -> Mapping[str, Any]:
    return SPARSE if "ptr" in service.tensors.inputs else PADDED


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
    return body, {"inference-header-content-length": str(len(head))}


def post(service: Service, path: str = "/predict", **given: Any) -> Any:
    return talk(service, lambda client: client.post(path, **given))


def test_concurrent_requests_get_the_answers_of_the_file(either: Service) -> None:
    graphs = [{"node_labels": [0, n % 7], "edges": [[0, 1]], "id": n} for n in range(40)]
    expected = [each.as_entry() for each in either.predictor.predict(graphs)]

    async def ask(client):
        return await asyncio.gather(*(client.post("/predict", json=each) for each in graphs))

    found = [each.json() for each in talk(either, ask)]
    assert [each["id"] for each in found] == list(range(40))
    for mine, other in zip(found, expected, strict=True):
        assert (mine["graph"], mine["class"]) == (0, other["class"])
        assert mine["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
    sample = either.registry.get_sample_value
    assert sample("ihgnn_batch_graphs_sum") == sample("ihgnn_graphs_total", {"result": "answered"})
    assert sample("ihgnn_batch_graphs_count") < 40  # those that waited shared batches
    assert sample("ihgnn_waiting_requests") == 0


def test_a_bad_graph_of_a_list_has_an_error_in_its_place(service: Service) -> None:
    bad = [{**UNKNOWN, "id": "x"}, {"num_nodes": 10**9, "edges": []}, 5, {"edges": [[0, 1]]}]
    huge = {**PATH, "node_attributes": [[2**1024]] * 3}
    answer = post(service, json=[PATH, *bad, huge, PATH])
    found = answer.json()
    assert answer.status_code == 200
    assert [each["graph"] for each in found] == list(range(7))
    assert ["error" in each for each in found] == [False, *[True] * 5, False], found
    assert found[1]["id"] == "x"
    assert "--max-nodes" in found[2]["error"]
    assert found[0]["probabilities"] == found[6]["probabilities"]


def test_unknown_labels_are_answered_on_request(predictor: Predictor) -> None:
    service = Service(predictor, "mutag", Limits())
    assert post(service, json=UNKNOWN).status_code == 422
    assert post(service, "/predict?allow_unknown=true", json=UNKNOWN).json()["unknown_nodes"] == 1
    lenient = Service(predictor, "mutag", Limits(), allow_unknown=True)
    assert post(lenient, json=UNKNOWN).status_code == 200


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"json": []}, 422),
        ({"json": {}}, 422),
        ({"json": [UNKNOWN, UNKNOWN]}, 422),
        ({"json": [PATH] * 4}, 413),
        ({"json": {**PATH, "id": "x" * 5000}}, 413),
        ({"content": b"{", "headers": JSON}, 400),
        ({"content": b'{"a": NaN}', "headers": JSON}, 400),
        ({"content": b"[" * 4000, "headers": JSON}, 400),
        ({"content": b"\xff\xfe\x00", "headers": JSON}, 400),
        ({"content": json.dumps(PATH)}, 415),
        ({"content": json.dumps(PATH), "headers": {"content-type": "text/plain"}}, 415),
        ({"json": PATH, "headers": {"content-encoding": "gzip"}}, 415),
        ({"json": PATH, "params": {"allow_unknown": "perhaps"}}, 422),
    ],
)
def test_what_is_refused_says_why(predictor: Predictor, given: Any, status: int) -> None:
    service = Service(predictor, "mutag", Limits(max_graphs=3, max_body=4096))
    answer = post(service, **given)
    assert answer.status_code == status, answer.text
    content = answer.json()
    reasons = content if isinstance(content, list) else [content]
    assert all(each["error"] for each in reasons)


def test_a_body_of_unknown_length_is_counted_as_it_arrives(predictor: Predictor) -> None:
    service = Service(predictor, "mutag", Limits(max_body=1000))
    sent = []

    async def endless():
        while True:
            sent.append(1)
            yield b" " * 100

    assert post(service, content=endless(), headers=JSON).status_code == 413
    assert len(sent) < 20


def test_a_request_that_does_not_arrive_in_time_is_408(predictor: Predictor) -> None:
    async def slow():
        yield b"["
        await asyncio.sleep(60)
        yield b"]"

    service = Service(predictor, "mutag", Limits(timeout=0.1))
    assert post(service, content=slow(), headers=JSON).status_code == 408


def test_too_many_requests_are_asked_to_come_back_and_health_answers(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ihgnn_cli.deploy.service._MOST_WAITING", 2)
    go = threading.Event()
    run = service._batches.run
    service._batches.run = lambda work: go.wait(30) and run(work)

    async def ask(client):
        first = [asyncio.create_task(client.post("/predict", json=PATH)) for _ in range(2)]
        while service._waiting < 2:
            await asyncio.sleep(0.01)
        refused = await client.post("/predict", json=PATH)
        health = await client.get("/v2/health/ready")
        go.set()
        return refused, health, [each.status_code for each in await asyncio.gather(*first)]

    refused, health, answered = talk(service, ask)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert (health.status_code, answered) == (200, [200, 200])


def test_a_failure_of_the_model_is_500_and_the_service_goes_on(service: Service) -> None:
    good = service._batches.run

    def broken(work: Any) -> Any:
        raise MemoryError

    async def ask(client):
        service._batches.run = broken
        failed = await client.post("/predict", json=PATH)
        service._batches.run = good
        return failed, await client.post("/predict", json=PATH)

    failed, answered = talk(service, ask)
    assert (failed.status_code, answered.status_code) == (500, 200)
    assert "error" in failed.json()


def batcher(run: Any, most_graphs: int = 100) -> Batcher[Any, Any]:
    return Batcher(run, ThreadPoolExecutor(1), most_graphs, lambda graphs, seconds: None)


async def answers(of: Batcher[Any, Any], work: list[tuple[Any, int, int]]) -> list[Any]:
    calls = (of.answer(*each) for each in work)
    return await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.parametrize(("most", "size"), [(3, 1), (100, 1 << 17)])
def test_a_batch_has_what_arrived_up_to_its_graphs_and_nodes(most: int, size: int) -> None:
    batches = []

    def run(work):
        batches.append(list(work))
        return work

    work = [(number, 1, size) for number in range(7)]
    assert asyncio.run(answers(batcher(run, most), work)) == list(range(7))
    assert max(map(len, batches)) == (3 if most == 3 else 2)
    assert [each for batch in batches for each in batch] == list(range(7))


def test_a_request_that_fails_does_not_take_others_with_it() -> None:
    def run(work):
        if "bad" in work:
            raise ValueError("bad")
        return [each.upper() for each in work]

    work = [("a", 1, 1), ("bad", 1, 1), ("b", 1, 1)]
    first, failed, last = asyncio.run(answers(batcher(run), work))
    assert (first, str(failed), last) == ("A", "bad", "B")


def test_tensors_get_the_answers_of_the_file_as_json_and_as_bytes(either: Service) -> None:
    arrays = tensors(either)
    expected = either.predictor.run(arrays)

    async def ask(client):
        body, headers = as_bytes(arrays, parameters={"binary_data_output": True})
        wanted = [{"name": "probabilities"}]
        return (
            await client.post(INFER, json=as_request(arrays, id="7", outputs=wanted)),
            await client.post("/v2/models/mutag/versions/1/infer", content=body, headers=headers),
        )

    plain, binary = talk(either, ask)
    content = plain.json()
    assert (content["model_name"], content["id"], len(content["outputs"])) == ("mutag", "7", 1)
    found = np.reshape(content["outputs"][0]["data"], content["outputs"][0]["shape"])
    np.testing.assert_allclose(found, expected.probabilities, atol=1e-5)
    length = int(binary.headers["inference-header-content-length"])
    listed, rest = json.loads(binary.content[:length])["outputs"], binary.content[length:]
    for each in listed:
        size = each["parameters"]["binary_data_size"]
        mine, rest = np.frombuffer(rest[:size], "<f4"), rest[size:]
        np.testing.assert_allclose(mine, getattr(expected, each["name"]).ravel(), atol=1e-5)
    assert rest == b""


def test_the_server_and_the_model_say_what_they_are(either: Service) -> None:
    async def ask(client):
        paths = ("", "/health/live", "/models/mutag", "/models/mutag/versions/1/ready")
        return [(await client.get(f"/v2{path}")).json() for path in paths]

    server, live, model, ready = talk(either, ask)
    assert (server["name"], server["extensions"]) == ("ihgnn", ["binary_tensor_data"])
    assert (live["live"], ready) == (True, {"name": "mutag", "ready": True})
    assert [each["name"] for each in model["inputs"]] == list(tensors(either))
    assert model["outputs"][1] == {"name": "probabilities", "datatype": "FP32", "shape": [-1, 2]}


def changed(service: Service, tensor: str, **values: Any) -> dict[str, Any]:
    content = as_request(tensors(service))
    entry = next(each for each in content["inputs"] if each["name"] == tensor)
    entry.update(values)
    return content


@pytest.mark.parametrize(
    "values",
    [
        {"shape": [10**9, 0], "data": []},
        {"shape": [0, 0], "data": []},
        {"shape": [2**63, 1]},
        {"shape": [-1, 3]},
        {"shape": [2.0, 3]},
        {"shape": "x"},
        {"datatype": "FP32"},
        {"data": ["a"] * 6},
        {"data": [0.5] * 6},
        {"data": [2**70] * 6},
        {"data": None},
        {"data": [[0], [0, 1]]},
        {"parameters": {"binary_data_size": 10**12}, "data": None},
        {"parameters": {"shared_memory_region": "r"}},
        {"name": "other"},
    ],
)
def test_malformed_tensors_are_refused(either: Service, values: dict[str, Any]) -> None:
    answer = post(either, INFER, json=changed(either, "node_labels", **values))
    assert (answer.status_code, bool(answer.json()["error"])) == (400, True), answer.text


@pytest.mark.parametrize("length", ["²", "-1", "99999", "1", "x", "9" * 5000])
def test_a_wrong_length_of_the_json_part_is_refused(service: Service, length: str) -> None:
    body = json.dumps(as_request(tensors(service)))
    headers = {"inference-header-content-length": length.encode()}
    assert post(service, INFER, content=body, headers=headers).status_code == 400


def test_tensors_that_are_no_graphs_are_refused(either: Service) -> None:
    if "ptr" in either.tensors.inputs:
        wrong = changed(either, "edge_index", data=[0, 1, 1, 9, 1, 0, 9, 1])
    else:
        wrong = changed(either, "adjacency", shape=[2, 2, 2], data=[0] * 8)
    assert post(either, INFER, json=wrong).status_code == 400
    too_many = Service(either.predictor, "mutag", Limits(max_graphs=1))
    assert post(too_many, INFER, json=as_request(tensors(either))).status_code == 400
    too_large = Service(either.predictor, "mutag", Limits(max_nodes=2))
    assert post(too_large, INFER, json=as_request(tensors(either))).status_code == 400


def test_pages_of_other_sites_and_other_models_are_refused(service: Service) -> None:
    content = as_request(tensors(service))
    foreign = {"origin": "http://evil.example"}
    assert post(service, INFER, json=content, headers=foreign).status_code == 403
    own = {"origin": "http://service"}
    assert post(service, INFER, json=content, headers=own).status_code == 200
    for path in ("/v2/models/other/infer", "/v2/models/mutag/versions/2/infer"):
        assert post(service, path, json=content).status_code == 404
    assert "error" in talk(service, lambda client: client.get("/nope")).json()
    assert talk(service, lambda client: client.get("/predict")).status_code == 405


def test_the_page_loads_nothing_from_elsewhere(service: Service) -> None:
    async def ask(client):
        page = (await client.get("/")).text
        loaded = re.findall(r'(?:href|src)="(page/[^"]+)"', page)
        return page, loaded, [(await client.get(f"/{path}")).status_code for path in loaded]

    page, loaded, statuses = talk(service, ask)
    assert 'data-engine="service"' in page
    assert "http" not in re.sub(r"http-equiv|<!doctype html>", "", page)
    assert loaded
    assert set(statuses) == {200}


def test_the_page_gets_graphs_and_metadata_without_digests_of_the_data(service: Service) -> None:
    async def ask(client):
        return [await client.get(path) for path in ("/model.json", "/examples.jsonl", "/metrics")]

    metadata, examples, metrics = talk(service, ask)
    assert "seen" not in metadata.json()["card"]
    assert len(examples.text.splitlines()) == len(load_dataset("MUTAG"))
    assert {"ihgnn_graphs_total", "ihgnn_waiting_requests"} <= set(
        re.findall(r"^# TYPE (\w+)", metrics.text.replace("graphs counter", "graphs_total"), re.M)
    )


def test_answers_on_a_kept_connection_do_not_wait_for_acknowledgements() -> None:
    """With Nagle's algorithm each one waits for the client's delayed acknowledgement, 40 ms."""
    no_delay = []

    class Peer(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            without_delay(transport)
            accepted = transport.get_extra_info("socket")
            no_delay.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    async def main() -> None:
        listening = listen("127.0.0.1", 0)
        peer = await asyncio.get_running_loop().create_server(Peer, sock=listening)
        _, writer = await asyncio.open_connection(*listening.getsockname())
        while not no_delay:
            await asyncio.sleep(0.01)
        writer.close()
        peer.close()

    asyncio.run(main())
    assert no_delay == [1]


def test_a_port_that_is_taken_is_refused() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match="--port"):
            listen("127.0.0.1", port)
        assert url_of("0.0.0.0", taken) == f"http://localhost:{port}"
    assert is_loopback("127.0.0.1")
    assert not is_loopback("0.0.0.0")
