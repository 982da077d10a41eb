"""`ihgnn serve`: what is refused before it starts; `tests/deploy/serving` has the service."""

import importlib
import socket
import sys
from pathlib import Path

import pytest


def test_without_the_extra_the_message_says_how_to_install_it(
    ihgnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").touch()
    for name in list(sys.modules):
        if name.startswith("ihgnn_cli.deploy.serving."):
            monkeypatch.delitem(sys.modules, name)
    serving = importlib.import_module("ihgnn_cli.deploy.serving")
    monkeypatch.delattr(serving, "server", raising=False)  # left by an earlier import
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = ihgnn("serve", "model.onnx")
    assert done.returncode == 2
    assert "is not installed: pip install 'ihgnn-cli[serve]'" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-body", "0"], "--max-body must be above 0"),
        (["--batch-wait", "-1"], "--batch-wait must be"),
        (["--timeout", "nan"], "--timeout must be"),
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
    for package in ("starlette", "uvicorn", "prometheus_client"):
        pytest.importorskip(package, reason="the extra 'serve' is not installed")
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = ihgnn("serve", "model.onnx", "--port", str(port))
        assert (done.returncode, "Give another --host or --port" in done.stderr) == (2, True)
    done = ihgnn("serve", "model.onnx", "--port", "0")
    assert (done.returncode, "is not an ONNX file" in done.stderr) == (2, True)
