"""`POST /predict`: graphs as JSON, an answer or an error for each."""

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest
from service_client import httpx, talk

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.jsonl import write_jsonl
from ihgnn_cli.deploy.onnx_model import OnnxClassifier
from ihgnn_cli.deploy.predictor import Predictor
from ihgnn_cli.deploy.serving.app import Service
from ihgnn_cli.deploy.serving.settings import ServeSettings

PATH = {"node_labels": [0, 0, 1], "edges": [[0, 1], [1, 2]]}
UNKNOWN = {"node_labels": [98, 99], "edges": [[0, 1]]}
WRONG_EDGE = {"node_labels": [0], "edges": [[0, 3]]}
JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    path = tmp_path_factory.mktemp("graphs") / "mutag.jsonl"
    write_jsonl(load_dataset("MUTAG"), path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_concurrent_requests_get_the_answers_of_the_predictor(
    classifier: OnnxClassifier, graphs: list[dict[str, object]]
) -> None:
    expected = [each.as_entry() for each in Predictor(classifier).predict(graphs)]

    async def all_at_once(client):
        return await asyncio.gather(*(client.post("/predict", json=each) for each in graphs))

    service = Service(classifier, "mutag", ServeSettings())
    found = [each.json() for each in talk(service, all_at_once)]
    assert [each["class"] for each in found] == [each["class"] for each in expected]
    np.testing.assert_allclose(
        [list(each["probabilities"].values()) for each in found],
        [list(each["probabilities"].values()) for each in expected],
        atol=1e-5,
    )
    batches = int(service.metrics._registry.get_sample_value("ihgnn_batch_graphs_count"))
    assert batches < len(graphs) / 4


def test_one_graph_has_one_answer(send) -> None:
    answer = send("POST", "/predict", json={**PATH, "id": "mine"})
    assert answer.status_code == 200
    assert answer.json().keys() == {"graph", "class", "probabilities", "id"}
    assert sum(answer.json()["probabilities"].values()) == pytest.approx(1, abs=1e-6)


def test_in_a_list_errors_stand_beside_answers(send) -> None:
    answer = send("POST", "/predict", json=[PATH, WRONG_EDGE, 7, UNKNOWN, PATH])
    assert answer.status_code == 200
    found = answer.json()
    assert [each["graph"] for each in found] == [0, 1, 2, 3, 4]
    assert ["error" in each for each in found] == [False, True, True, True, False]
    assert found[0]["probabilities"] == found[4]["probabilities"]
    assert "Nodes are counted from 0 to 0" in found[1]["error"]
    assert "allow_unknown=true" in found[3]["error"]


def test_a_refused_graph_has_the_body_of_a_refused_request(send) -> None:
    answer = send("POST", "/predict", json={**WRONG_EDGE, "id": "mine"})
    assert (answer.status_code, answer.json().keys()) == (422, {"error"})
    alone = send("POST", "/predict", json=[{**WRONG_EDGE, "id": "mine"}])
    assert (alone.status_code, [each["graph"] for each in alone.json()]) == (422, [0])
    assert alone.json()[0]["id"] == "mine"


def test_lines_are_answered_in_lines(send) -> None:
    content = f"{json.dumps(PATH)}\n\n{{x\n"
    answer = send("POST", "/predict", content=content, headers=LINES)
    first, second = map(json.loads, answer.text.splitlines())
    assert first["graph"] == 0
    assert first["class"] in ("-1", "1")
    assert second == {"graph": 1, "error": second["error"]}
    assert second["error"].startswith("not JSON")
    assert answer.headers["content-type"].startswith("application/x-ndjson")


def test_unknown_labels_are_answered_for_who_insists(send) -> None:
    assert send("POST", "/predict", json=UNKNOWN).status_code == 422
    answer = send("POST", "/predict?allow_unknown=true", json=UNKNOWN)
    assert (answer.status_code, answer.json()["unknown_nodes"]) == (200, 2)
    allowed = ServeSettings(allow_unknown=True)
    assert send("POST", "/predict", json=UNKNOWN, settings=allowed).status_code == 200


def test_no_graphs_have_no_answers(send) -> None:
    answer = send("POST", "/predict", json=[])
    assert (answer.status_code, answer.json()) == (200, [])


MALFORMED = {
    "nothing": (b"", JSON, 400),
    "not JSON": (b"{", JSON, 400),
    "not text": (b"\xff\xfe\x00", JSON, 400),
    "NaN": (b'{"node_labels": [NaN], "edges": []}', JSON, 400),
    "a repeated key": (b'{"edges": [], "edges": []}', JSON, 400),
    "brackets without end": (b"[" * 100_000, JSON, 400),
    "deep labels": (b'{"edges": [], "node_labels": ' + b"[" * 900 + b"]" * 900 + b"}", JSON, 422),
    "a number": (b"1", JSON, 422),
    "null": (b"null", JSON, 422),
    "a text": (b'"graph"', JSON, 422),
    "no edges": (b'{"node_labels": [0]}', JSON, 422),
    "labels of a wrong type": (b'{"node_labels": [0.5], "edges": []}', JSON, 422),
    "no nodes": (b'{"node_labels": [], "edges": []}', JSON, 422),
    "an infinite id": (b'{"node_labels": [0], "edges": [], "id": 1e999}', JSON, 422),
    "a number of 5,000 digits": (b'{"edges": [], "node_labels": [%s]}' % (b"1" * 5000), JSON, 400),
    "an edge beyond 64 bits": (b'{"node_labels": [0], "edges": [[0, 1%030d]]}' % 0, JSON, 422),
    "another content type": (b"{}", {"Content-Type": "text/plain"}, 415),
    "no content type": (b"{}", {}, 415),
    "compressed": (b"{}", {**JSON, "Content-Encoding": "gzip"}, 415),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_refused_with_a_reason(send, name: str) -> None:
    content, headers, status = MALFORMED[name]
    answer = send("POST", "/predict", content=content, headers=headers)
    assert answer.status_code == status
    assert len(answer.json()["error"]) > 10


def test_an_id_of_many_brackets_is_repeated_or_left_out(send) -> None:
    deep = b'{"node_labels": [0], "edges": [], "id": %s}' % (b"[" * 900 + b"]" * 900)
    answer = send("POST", "/predict", content=deep, headers=JSON)
    assert answer.status_code in (200, 422)


def test_limits_of_size(send) -> None:
    few = ServeSettings(max_graphs=2, max_nodes=3, max_body=0.001)
    assert send("POST", "/predict", json=[PATH] * 2, settings=few).status_code == 200
    many = send("POST", "/predict", json=[PATH] * 3, settings=few)
    assert (many.status_code, "at most 2" in many.json()["error"]) == (413, True)
    large = {"node_labels": [0] * 4, "edges": []}
    assert send("POST", "/predict", json=large, settings=few).status_code == 422
    body = send("POST", "/predict", content=b" " * 2000, headers=JSON, settings=few)
    assert (body.status_code, "--max-body" in body.json()["error"]) == (413, True)


def test_a_body_of_unknown_length_is_read_up_to_the_limit(padded: OnnxClassifier) -> None:
    taken = 0

    async def endless():
        nonlocal taken
        while True:
            taken += 1
            yield b" " * 1000

    service = Service(padded, "mutag", ServeSettings(max_body=0.01))
    answer = talk(service, lambda client: client.post("/predict", content=endless(), headers=JSON))
    assert answer.status_code == 413
    assert taken < 20


def test_a_request_beyond_all_nodes_is_refused(sparse: OnnxClassifier) -> None:
    unlabelled = replace(sparse.card, label_source="degree")
    classifier = OnnxClassifier(replace(sparse.metadata, card=unlabelled), sparse.session)
    bare = [{"num_nodes": 100_000, "edges": []}] * 11
    service = Service(classifier, "mutag", ServeSettings())
    answer = talk(service, lambda client: client.post("/predict", json=bare))
    assert (answer.status_code, "1,100,000 nodes" in answer.json()["error"]) == (413, True)


def test_too_many_requests_are_told_to_come_back(padded: OnnxClassifier) -> None:
    service = Service(padded, "mutag", ServeSettings(max_waiting=3, batch_wait=50))

    async def crowd(client):
        found = await asyncio.gather(*(client.post("/predict", json=PATH) for _ in range(10)))
        return found, await client.post("/predict", json=PATH), await client.get("/metrics")

    found, later, metrics = talk(service, crowd)
    assert sorted(each.status_code for each in found) == [200] * 3 + [503] * 7
    busy = next(each for each in found if each.status_code == 503)
    assert busy.headers["retry-after"] == "1"
    assert later.status_code == 200
    assert 'ihgnn_requests_total{endpoint="/predict",status="503"} 7.0' in metrics.text
    assert service.intake.waiting == service.intake.bytes == 0


def test_bodies_that_wait_have_bounded_size(padded: OnnxClassifier) -> None:
    service = Service(padded, "mutag", ServeSettings(max_body=0.001, batch_wait=50))
    body = json.dumps(PATH).encode().ljust(1000)

    async def crowd(client):
        calls = (client.post("/predict", content=body, headers=JSON) for _ in range(6))
        return await asyncio.gather(*calls)

    found = [each.status_code for each in talk(service, crowd)]
    assert sorted(found) == [200] * 4 + [503] * 2


def test_an_answer_that_takes_too_long_is_503(padded: OnnxClassifier) -> None:
    service = Service(padded, "mutag", ServeSettings(batch_wait=1000, timeout=0.05))
    answer = talk(service, lambda client: client.post("/predict", json=PATH))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_request_that_does_not_arrive_is_408(padded: OnnxClassifier) -> None:
    async def slow():
        yield b"{"
        await asyncio.sleep(10)

    service = Service(padded, "mutag", ServeSettings(timeout=0.05))
    answer = talk(service, lambda client: client.post("/predict", content=slow(), headers=JSON))
    assert answer.status_code == 408


def test_a_failure_of_the_model_is_500_and_the_service_goes_on(
    padded: OnnxClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = OnnxClassifier.with_uncertainty
    failures = iter([True])

    def fails_once(self, dataset, graphs):
        if next(failures, False):
            raise RuntimeError("out of memory")
        return real(self, dataset, graphs)

    monkeypatch.setattr(OnnxClassifier, "with_uncertainty", fails_once)

    async def twice(client):
        return [await client.post("/predict", json=PATH) for _ in range(2)]

    service = Service(padded, "mutag", ServeSettings())
    assert [each.status_code for each in talk(service, twice)] == [500, 200]


def test_what_was_accepted_is_answered_when_the_service_stops(padded: OnnxClassifier) -> None:
    service = Service(padded, "mutag", ServeSettings(batch_wait=200))

    async def main() -> list[httpx.Response]:
        app = service.app()
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            async with app.router.lifespan_context(app):
                calls = [asyncio.create_task(client.post("/predict", json=PATH)) for _ in range(5)]
                while service.intake.waiting < 5:
                    await asyncio.sleep(0.001)
            return await asyncio.gather(*calls)

    assert [each.status_code for each in asyncio.run(main())] == [200] * 5
