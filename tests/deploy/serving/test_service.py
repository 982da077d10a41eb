"""What people, Prometheus and OpenAPI tools see of the service."""

import json
from dataclasses import replace

import pytest
from service_client import talk

from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.onnx_model import OnnxClassifier
from ihgnn_cli.deploy.serving.app import Service
from ihgnn_cli.deploy.serving.openapi import example, graph_schema
from ihgnn_cli.deploy.serving.page import page
from ihgnn_cli.deploy.serving.server import is_loopback, listen, url_of
from ihgnn_cli.deploy.serving.settings import ServeSettings
from ihgnn_cli.errors import InputError


def test_the_page_describes_the_model_and_has_a_form(send) -> None:
    answer = send("GET", "/")
    assert answer.headers["content-type"].startswith("text/html")
    for text in ("mutag", "MUTAG", "<form>", "/v2/models/mutag/infer", "/metrics"):
        assert text in answer.text
    assert "http" not in answer.text.replace("<!doctype html>", "")  # loads nothing from elsewhere


def test_names_on_the_page_are_escaped(padded: OnnxClassifier) -> None:
    card = replace(padded.card, dataset_name="<script>", class_values=("<b>", "x"))
    assert "<b>" not in page("m", card, {"paths": {}})
    assert page("m", card, {"paths": {}}).count("<script>") == 1


def test_the_openapi_description_names_every_endpoint(send) -> None:
    document = send("GET", "/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert {"/predict", "/v2/models/{name}/infer", "/metrics"} <= document["paths"].keys()
    graph = document["components"]["schemas"]["Graph"]
    assert graph["required"] == ["node_labels", "edges"]
    assert send("POST", "/predict", json=graph["examples"][0]).status_code == 200


def test_the_example_has_what_a_model_reads(padded: OnnxClassifier) -> None:
    degrees = replace(padded.card, label_source=LabelSource.DEGREE)
    assert example(degrees) == {"num_nodes": 3, "edges": [[0, 1], [1, 2]]}
    both = replace(padded.card, features=Features.BOTH, attributes=2)
    assert example(both)["node_attributes"] == [[0.0, 0.0]] * 3
    assert graph_schema(both)["required"] == ["node_labels", "edges", "node_attributes"]


def test_metrics_count_requests_and_graphs(padded: OnnxClassifier) -> None:
    graph = {"node_labels": [0], "edges": []}

    async def ask(client):
        await client.post("/predict", json=[graph, graph, 1])
        await client.get("/nope")
        return (await client.get("/metrics")).text

    text = talk(Service(padded, "mutag", ServeSettings()), ask)
    assert 'ihgnn_requests_total{endpoint="/predict",status="200"} 1.0' in text
    assert 'ihgnn_requests_total{endpoint="other",status="404"} 1.0' in text
    assert 'ihgnn_graphs_total{result="answered"} 2.0' in text
    assert 'ihgnn_graphs_total{result="refused"} 1.0' in text
    assert "ihgnn_waiting_requests 0.0" in text


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("batch_size", 0),
        ("batch_wait", -1.0),
        ("max_graphs", 0),
        ("max_nodes", 0),
        ("max_body", 0.0),
        ("max_body", float("nan")),
        ("max_waiting", 0),
        ("timeout", 1e9),
    ],
)
def test_settings_out_of_range_are_refused(setting: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{setting} must be"):
        ServeSettings(**{setting: value})


def test_the_largest_graph_is_at_least_m(padded: OnnxClassifier, sparse: OnnxClassifier) -> None:
    settings = ServeSettings()
    assert settings.nodes_of(padded.described) == 2_000
    assert settings.nodes_of(sparse.described) == 100_000
    large = replace(padded.described, card=replace(padded.card, max_nodes=5_000))
    assert settings.nodes_of(large) == 5_000
    assert ServeSettings(max_nodes=10).nodes_of(large) == 10


def test_a_port_that_is_taken_is_refused() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert url_of("127.0.0.1", taken) == f"http://127.0.0.1:{port}"
        assert url_of("0.0.0.0", taken) == f"http://localhost:{port}"
        with pytest.raises(InputError, match="another --host or --port"):
            listen("127.0.0.1", port)
    with pytest.raises(InputError, match=r"Cannot listen on no\.such\.host\.invalid"):
        listen("no.such.host.invalid", 0)


def test_loopback_is_this_machine_only() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.1.2.3", "localhost", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "example.org")))


def test_the_document_is_json(send) -> None:
    assert json.loads(send("GET", "/openapi.json").text)["info"]["title"].startswith("mutag")
