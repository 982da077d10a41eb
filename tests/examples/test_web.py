"""The page in examples/web, used in a real browser: with WebAssembly, and served by ihgnn."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from elsewhere import BUNDLED, EXAMPLES, NODE_MODULES, needs_npm
from service_client import start_service

from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.deploy.predictor import Predictor, load
from ihgnn_cli.inference.explanation import explain_graph
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.training.classifier import load_torch
from ihgnn_cli.training.devices import resolve_device

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)

pytestmark = [
    needs_npm("onnxruntime-web", "playwright-core", "axe-core"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.filterwarnings("ignore::ihgnn_cli.UnknownLabelsWarning"),
]


class _Quiet(SimpleHTTPRequestHandler):
    extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}  # noqa: RUF012

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def static_page(tmp_path_factory: pytest.TempPathFactory, node: str) -> Iterator[str]:
    """The page with the files of onnxruntime-web, on a local server."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("node", "web"):
        skipped = shutil.ignore_patterns("node_modules", "ort")
        shutil.copytree(EXAMPLES / name, folder / name, ignore=skipped)
    subprocess.run([node, folder / "web" / "copy_ort.mjs", NODE_MODULES], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/web/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def served_page() -> Iterator[str]:
    """The page of `ihgnn serve` with the bundled model."""
    running = start_service(BUNDLED)
    yield f"{running.url}/"
    running.process.terminate()
    running.process.communicate(timeout=30)


@pytest.fixture(scope="module")
def browse(node: str, tmp_path_factory) -> Callable[..., dict[str, Any]]:
    """Use the page at an address, and tell what it showed; see browse.mjs."""

    def run(address: str, name: str, *models: Path) -> dict[str, Any]:
        given = os.environ.get("IHGNN_SCREENSHOTS")
        shots = (Path(given) if given else tmp_path_factory.mktemp("shots")) / name
        script = Path(__file__).parent / "browse.mjs"
        done = subprocess.run(
            [node, script, address, str(CHROMIUM), shots, *models],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return {**found, "address": address}

    return run


@pytest.fixture(scope="module")
def in_wasm(browse, static_page: str, mutag_model) -> dict[str, Any]:
    return browse(static_page, "wasm", mutag_model.exported)


@pytest.fixture(scope="module")
def in_service(browse, served_page: str) -> dict[str, Any]:
    return browse(served_page, "service")


@pytest.fixture(params=["in_wasm", "in_service"])
def told(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the page showed, run both ways."""
    return request.getfixturevalue(request.param)


def expect_as_python(shown: dict[str, Any], model: Predictor) -> None:
    """The probabilities, and those without each node, are those of Python."""
    graph = json.loads(shown["graph"])
    others = [without(graph, node) for node in range(len(graph["node_labels"]))]
    answer, *left = model.predict([graph, *others], allow_unknown=True)
    assert shown["class"].split()[1] == str(answer.class_value)
    assert shown["probabilities"] == pytest.approx(list(answer.probabilities.values()), abs=1e-4)
    before = answer.probabilities[answer.class_value]
    for node, found in enumerate(left):
        effect = before - found.probabilities[answer.class_value]
        assert shown["effects"][str(node)] == pytest.approx(effect, abs=2e-4)


def without(graph: dict[str, Any], node: int) -> dict[str, Any]:
    edges = [edge for edge in graph["edges"] if node not in edge]
    labels = graph["node_labels"]
    return {
        "node_labels": labels[:node] + labels[node + 1 :],
        "edges": [[end - (end > node) for end in edge] for edge in edges],
    }


def test_an_example_is_shown_at_the_start(told) -> None:
    expect_as_python(told["example"], load(BUNDLED))


def test_a_graph_drawn_by_mouse_is_answered_as_by_python(told) -> None:
    drawn = told["drawn"]
    path = {"node_labels": [0, 0, 0, 1, 2], "edges": [[0, 1], [1, 2], [2, 3], [3, 4]]}
    assert json.loads(drawn["graph"]) == path
    assert drawn["homophily"] == {"0": 1, "1": 1, "2": 0.5, "3": 0, "4": 0}
    expect_as_python(drawn, load(BUNDLED))
    assert json.loads(told["undone"])["edges"] == [*path["edges"], [0, 4]]


def test_a_graph_drawn_by_keyboard_is_answered_as_by_python(told) -> None:
    ring = [[0, 1], [1, 2], [0, 2]]
    typed = {"node_labels": [0, 2, 0, 0], "edges": [*ring, [1, 3]]}
    assert json.loads(told["typed"]["graph"]) == typed
    assert told["focused"].startswith("Node ")
    expect_as_python(told["typed"], load(BUNDLED))
    assert json.loads(told["deleted"]) == {"node_labels": [0, 2, 0], "edges": ring}


def test_pasted_json_is_checked_and_answered(told) -> None:
    assert told["refusal"] == "edge [0, 2] in a graph of 2 nodes. Nodes are counted from 0 to 1."
    assert told["pasted"]["notes"] == ["The model does not know the labels of 1 of 4 nodes."]
    expect_as_python(told["pasted"], load(BUNDLED))


def test_another_model_answers_and_sorts_as_its_checkpoint(in_wasm, mutag_model) -> None:
    shown = in_wasm["other"]
    expect_as_python(shown, load(mutag_model.exported))
    classifier = load_torch(mutag_model.checkpoint, resolve_device("cpu"))
    graph = from_graphs([{**json.loads(shown["graph"]), "class": 1}])
    encoded = encode_dataset(classifier.card, graph).dataset
    positions = explain_graph(classifier, graph, encoded, 0).positions
    expected = sorted(positions, key=lambda each: each.position or 0)
    assert shown["order"] == [each.node for each in expected]


def test_a_file_that_is_no_model_is_refused(in_wasm, in_service) -> None:
    assert in_wasm["notAModel"] == "This is not an ONNX file, or it is damaged."
    assert in_service["notAModel"].endswith("This page uses the model of the service.")


def test_everything_is_local(told) -> None:
    assert told["errors"] == []
    site = told["address"].removesuffix("web/")
    assert [each for each in told["requests"] if not each.startswith(site)] == []


def test_the_page_is_accessible_and_fits_a_phone(told) -> None:
    assert told["unmet"] == []
    assert told["unmetInDark"] == []
    assert told["overflow"] == 0
    assert json.loads(told["tapped"]) == {"node_labels": [0], "edges": []}
