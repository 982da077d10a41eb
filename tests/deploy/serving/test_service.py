"""What people, Prometheus and OpenAPI tools see of the service."""

import json
import re
from dataclasses import replace

import pytest
from elsewhere import BUNDLED, EXAMPLES, entries_of
from service_client import talk

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.data.edge_bins import EdgeBins
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.onnx_model import OnnxClassifier
from ihgnn_cli.deploy.serving.app import Service
from ihgnn_cli.deploy.serving.openapi import example, graph_schema
from ihgnn_cli.deploy.serving.page import example_lines
from ihgnn_cli.deploy.serving.server import is_loopback, listen, url_of
from ihgnn_cli.deploy.serving.settings import ServeSettings
from ihgnn_cli.errors import InputError


def test_the_page_is_that_of_the_examples_and_asks_the_service(send) -> None:
    answer = send("GET", "/")
    assert answer.headers["content-type"].startswith("text/html")
    assert 'data-engine="service"' in answer.text
    assert "http" not in re.sub(r"http-equiv|<!doctype html>", "", answer.text)  # all is local
    loaded = re.findall(r'(?:href|src)="(page/[^"]+)"', answer.text)
    assert loaded == ["page/web/style.css", "page/web/app.mjs"]
    modules = ["page/web/service.mjs", "page/node/ihgnn.mjs"]
    for path in (*loaded, *modules):
        found = send("GET", f"/{path}")
        assert (found.status_code, found.text) == (200, (EXAMPLES / path[5:]).read_text())
    assert found.headers["content-type"].startswith("text/javascript")
    assert send("GET", "/page/web/package.json").status_code == 404


def test_the_page_gets_the_metadata_without_digests_of_the_data(send, padded) -> None:
    metadata = send("GET", "/model.json").json()
    assert metadata["card"]["split"]["test"] == padded.card.split.test.tolist()
    assert "seen" not in metadata["card"]


def test_the_graphs_of_the_bundled_data_are_examples(padded: OnnxClassifier) -> None:
    graphs = [json.loads(each) for each in example_lines(padded.card).splitlines()]
    expected = entries_of(BUNDLED.with_name("mutag.jsonl"))
    assert [
        {key: graph[key] for key in each} for graph, each in zip(graphs, expected, strict=True)
    ] == expected
    assert example_lines(replace(padded.card, fingerprint="of other data")) == ""
    assert example_lines(replace(padded.card, dataset_name="mine")) == ""
    bonds = with_edge_labels(load_dataset("MUTAG"), use=True)
    card = replace(padded.card, fingerprint=bonds.fingerprint)
    assert '"edge_labels"' in example_lines(
        replace(card, edge_label_values=bonds.edge_label_values)
    )
    assert example_lines(replace(card, edge_label_values=("other",))) == ""


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


def test_the_example_of_a_model_with_edge_bins_has_the_attribute(padded: OnnxClassifier) -> None:
    bins = replace(padded.card, edge_label_values=(0, 1), edge_bins=EdgeBins((2.5,)))
    assert example(bins)["edge_attributes"] == [[2.5], [2.5]]
    assert graph_schema(bins)["required"] == ["node_labels", "edges", "edge_attributes"]
    both = replace(bins, edge_label_values=("7,0",), edge_bins=EdgeBins((2.5,), labels=True))
    assert example(both)["edge_labels"] == ["7", "7"]
    assert graph_schema(both)["required"][2:] == ["edge_labels", "edge_attributes"]


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
    assert settings.nodes_of(padded) == 2_000
    assert settings.nodes_of(sparse) == 100_000
    about = replace(padded.metadata, card=replace(padded.card, max_nodes=5_000))
    large = replace(padded, metadata=about)
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
