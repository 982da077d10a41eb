"""`ihgnn serve`: what is refused before it starts, and the real process."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ihgnn_cli import load
from ihgnn_cli.data import load_dataset


def test_without_the_extra_the_message_says_how_to_install_it(
    ihgnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").touch()
    for name in ("service", "server"):
        monkeypatch.delitem(sys.modules, f"ihgnn_cli.deploy.{name}", raising=False)
        monkeypatch.delattr(f"ihgnn_cli.deploy.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = ihgnn("serve", "model.onnx")
    assert done.returncode == 2
    assert "is not installed: pip install 'ihgnn-cli[serve]'" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-body", "0"], "--max-body"),
        (["--timeout", "nan"], "--timeout"),
        (["--name", "a/b"], "--name 'a/b' must consist of"),
    ],
)
def test_wrong_options_are_refused(ihgnn, tmp_path: Path, options: list[str], said: str) -> None:
    (tmp_path / "model.onnx").touch()
    done = ihgnn("serve", "model.onnx", *options)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_checkpoint_is_to_be_exported_first(ihgnn, tmp_path: Path) -> None:
    (tmp_path / "ckpt.pt").touch()
    done = ihgnn("serve", "ckpt.pt")
    assert (done.returncode, "ihgnn export ckpt.pt" in done.stderr) == (2, True)


def test_a_port_in_use_and_a_damaged_file_are_refused(ihgnn, tmp_path: Path) -> None:
    for package in ("fastapi", "uvicorn", "prometheus_fastapi_instrumentator"):
        pytest.importorskip(package, reason="the extra 'serve' is not installed")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ihgnn("serve", "model.onnx", "--port", str(port))
        assert (done.returncode, "Give another --host or --port" in done.stderr) == (2, True)
    done = ihgnn("serve", "model.onnx", "--port", "0")
    assert (done.returncode, "is not an ONNX file" in done.stderr) == (2, True)


@pytest.fixture
def start(mutag_model) -> Iterator[Any]:
    """Starts a service, and ends it with the test."""
    from service_client import start_service

    started = []

    def begin(*options: str) -> Any:
        started.append(start_service(mutag_model.exported, *options))
        return started[-1]

    yield begin
    for each in started:
        each.process.kill()
        each.process.communicate()


def test_a_hundred_clients_get_their_own_answers(start) -> None:
    running = start()
    bodies = [json.dumps({"node_labels": [0] * n, "edges": [], "id": n}) for n in range(1, 21)]
    expected = [running.predict(each.encode())["probabilities"] for each in bodies]

    def client(number: int) -> bool:
        turns = [(number + turn) % 20 for turn in range(10)]
        found = [running.predict(bodies[turn].encode()) for turn in turns]
        return all(
            each["id"] == turn + 1
            and each["probabilities"] == pytest.approx(expected[turn], abs=1e-5)
            for turn, each in zip(turns, found, strict=True)
        )

    with ThreadPoolExecutor(100) as pool:
        assert all(pool.map(client, range(100)))


@pytest.mark.skipif(os.name == "nt", reason="Windows ends processes without asking")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_after_the_start_loses_no_request(start, number: signal.Signals) -> None:
    running = start()
    body = b"[%s]" % b",".join([b'{"node_labels": [0, 1], "edges": [[0, 1]]}'] * 200)
    request = (
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    port = int(running.url.rpartition(":")[2])
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    for each in clients:
        each.sendall(request + body)
    running.process.send_signal(number)
    for each in clients:
        each.settimeout(60)
        with each, each.makefile("rb") as answer:
            assert answer.read().startswith(b"HTTP/1.1 200")
    _, written = running.process.communicate(timeout=60)
    assert running.process.returncode == 0
    assert written.endswith("Stopped.\n")


def test_slow_and_endless_heads_are_closed_and_others_are_answered(start) -> None:
    running = start("--timeout", "1")
    address = ("127.0.0.1", int(running.url.rpartition(":")[2]))

    def send_endlessly(endless: socket.socket) -> None:
        for _ in range(10_000):
            endless.sendall(b"GET /" + b"x" * 10_000)

    with (
        socket.create_connection(address, 30) as silent,
        socket.create_connection(address, 30) as slow,
        socket.create_connection(address, 30) as endless,
    ):
        slow.sendall(b"POST /predict HTTP/1.1\r\nHost: ")
        with pytest.raises(ConnectionError):
            send_endlessly(endless)
        assert running.predict()["graph"] == 0
        assert (silent.recv(1), slow.recv(1)) == (b"", b"")


def test_it_says_that_other_machines_can_reach_it(start) -> None:
    running = start("--host", "0.0.0.0")
    assert running.predict()["graph"] == 0
    running.process.terminate()
    _, written = running.process.communicate(timeout=30)
    assert "other machines can reach this service" in written


@pytest.mark.parametrize("binary", [True, False])
def test_a_client_of_triton_gets_the_answers_of_the_file(start, mutag_model, binary: bool) -> None:
    triton = pytest.importorskip(
        "tritonclient.http", reason="tritonclient is not installed; nox -s interop installs it"
    )
    classifier: Any = load(mutag_model.exported, "cpu").classifier
    mutag = load_dataset("MUTAG")
    client = triton.InferenceServerClient(start().url.removeprefix("http://"))
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("mutag")
    assert client.get_model_metadata("mutag")["platform"] == "onnxruntime_onnx"
    datatypes = {"int64": "INT64", "uint8": "UINT8"}
    inputs = []
    for name, each in classifier.inputs(mutag, np.arange(20)).items():
        inputs.append(triton.InferInput(name, each.shape, datatypes[str(each.dtype)]))
        inputs[-1].set_data_from_numpy(each, binary_data=binary)
    expected = classifier.probabilities(mutag, np.arange(20))
    wanted = [triton.InferRequestedOutput("probabilities", binary_data=binary)]
    for outputs in (None, wanted):
        found = client.infer("mutag", inputs, outputs=outputs, request_id="7")
        assert found.get_response()["id"] == "7"
        np.testing.assert_allclose(found.as_numpy("probabilities"), expected, atol=1e-5)
    with pytest.raises(triton.InferenceServerException, match="node_labels"):
        client.infer("mutag", inputs[:1])
    with pytest.raises(triton.InferenceServerException, match="There is only the model mutag"):
        client.infer("other", inputs)
    client.close()


def test_no_request_that_openapi_allows_or_forbids_is_a_server_error(start, tmp_path: Path) -> None:
    schemathesis = Path(sys.executable).with_name("schemathesis")
    if not schemathesis.is_file():
        pytest.skip("schemathesis is not installed; nox -s interop installs it")
    running = start()
    done = subprocess.run(
        [
            str(schemathesis),
            "run",
            f"{running.url}/openapi.json",
            "--max-examples=40",
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
    assert running.predict()["class"] in ("-1", "1")
