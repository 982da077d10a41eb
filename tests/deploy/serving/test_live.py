"""The real process: a client of Triton, OpenAPI fuzzing, signals (`nox -s interop`)."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from service_client import PATH, Running, start_service

from ihgnn_cli.data import load_dataset
from ihgnn_cli.deploy.onnx_model import OnnxClassifier

triton = pytest.importorskip(
    "tritonclient.http", reason="tritonclient is not installed; nox -s interop installs it"
)

DATATYPES = {"int64": "INT64", "uint8": "UINT8"}


@pytest.fixture
def live(mutag_model) -> Iterator[Running]:
    running = start_service(mutag_model.exported)
    yield running
    running.process.kill()
    running.process.communicate()


@pytest.mark.parametrize("binary", [True, False])
def test_a_client_of_triton_gets_the_answers_of_the_file(
    live: Running, padded: OnnxClassifier, binary: bool
) -> None:
    mutag = load_dataset("MUTAG")
    client = triton.InferenceServerClient(live.url.removeprefix("http://"))
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("mutag")
    assert client.get_model_metadata("mutag")["platform"] == "onnxruntime_onnx"
    inputs = []
    for name, each in padded.inputs(mutag, np.arange(20)).items():
        inputs.append(triton.InferInput(name, each.shape, DATATYPES[str(each.dtype)]))
        inputs[-1].set_data_from_numpy(each, binary_data=binary)
    wanted = [triton.InferRequestedOutput("probabilities", binary_data=binary)]
    expected = padded.probabilities(mutag, np.arange(20))
    for outputs in (None, wanted):
        found = client.infer("mutag", inputs, outputs=outputs, request_id="7")
        assert found.get_response()["id"] == "7"
        np.testing.assert_allclose(found.as_numpy("probabilities"), expected, atol=1e-5)
    with pytest.raises(triton.InferenceServerException, match="adjacency is missing"):
        client.infer("mutag", inputs[:1])
    with pytest.raises(triton.InferenceServerException, match="There is only the model mutag"):
        client.infer("other", inputs)
    client.close()


def test_no_request_that_openapi_allows_or_forbids_is_a_server_error(
    live: Running, tmp_path: Path
) -> None:
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            f"{live.url}/openapi.json",
            "--max-examples=60",
            "--seed=1",
            "--phases=examples,coverage,fuzzing",
            "--checks=not_a_server_error,status_code_conformance,content_type_conformance,"
            "response_schema_conformance",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert live.predict()["class"] in ("-1", "1")


@pytest.mark.skipif(os.name == "nt", reason="Windows ends processes without asking")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_all_answers(mutag_model, number: signal.Signals) -> None:
    running = start_service(mutag_model.exported, "--batch-wait", "1000")
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(running.predict) for _ in range(8)]
        running.wait_for(8)
        running.process.send_signal(number)
        assert len({json.dumps(each.result()) for each in calls}) == 1
    _, told = running.process.communicate(timeout=30)
    assert running.process.returncode == 0
    assert told.endswith("Stopped.\n")


@pytest.mark.skipif(os.name == "nt", reason="Windows ends processes without asking")
def test_a_request_that_is_slow_to_arrive_and_to_answer_outlives_the_signal(mutag_model) -> None:
    running = start_service(mutag_model.exported, "--timeout", "3", "--batch-wait", "2500")
    connection = http.client.HTTPConnection(running.url.removeprefix("http://"))
    connection.putrequest("POST", "/predict")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(PATH)))
    connection.endheaders(PATH[:10])
    running.wait_for(1)
    running.process.terminate()
    time.sleep(2.5)
    connection.send(PATH[10:])
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)["graph"]) == (200, 0)
    connection.close()
    running.process.communicate(timeout=30)
    assert running.process.returncode == 0


def test_a_hundred_clients_get_their_own_answers(live: Running) -> None:
    def labels(size: int) -> bytes:
        return json.dumps({"node_labels": [0] * size, "edges": [], "id": size}).encode()

    expected = {size: live.predict(labels(size)) for size in range(1, 21)}
    wrong: list[object] = []

    def client(number: int) -> None:
        for turn in range(20):
            size = 1 + (number + turn) % 20
            found = live.predict(labels(size))
            close = all(
                abs(p - found["probabilities"][name]) < 1e-5  # type: ignore[index]
                for name, p in expected[size]["probabilities"].items()  # type: ignore[attr-defined]
            )
            if found["id"] != size or not close:
                wrong.append(found)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_it_says_that_other_machines_can_reach_it(mutag_model) -> None:
    running = start_service(mutag_model.exported, "--host", "0.0.0.0")
    assert running.predict()["graph"] == 0
    running.process.terminate()
    _, told = running.process.communicate(timeout=30)
    assert "other machines can reach this service" in told
