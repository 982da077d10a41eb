"""Requests to a service in this process or another; skips the tests without the extra."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ihgnn_cli.deploy.service import Service

for package in ("fastapi", "uvicorn", "prometheus_fastapi_instrumentator"):
    pytest.importorskip(package, reason="the extra 'serve' is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed (dependency group 'test')")


@asynccontextmanager
async def client_of(service: "Service") -> AsyncIterator[Any]:
    """A client of a started service."""
    app = service.app()
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        yield client


def talk(service: "Service", conversation: Callable[[Any], Awaitable[Any]]) -> Any:
    """Start the service, talk to it, stop it."""

    async def main() -> Any:
        async with client_of(service) as client:
            return await conversation(client)

    return asyncio.run(main())


PATH = b'{"node_labels": [0, 0, 1], "edges": [[0, 1], [1, 2]]}'


@dataclass
class Running:
    """A started service."""

    process: subprocess.Popen[str]
    url: str

    def wait_for(self, requests: int) -> None:
        """Wait until this many requests have arrived and none is answered."""
        waiting = f"ihgnn_waiting_requests {requests}.0".encode()
        while waiting not in urllib.request.urlopen(f"{self.url}/metrics").read():
            time.sleep(0.01)

    def predict(self, body: bytes = PATH) -> dict[str, object]:
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/predict", body, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def start_service(model: Path, *options: str) -> Running:
    command = shutil.which("ihgnn", path=str(Path(sys.executable).parent)) or "ihgnn"
    # A shell starts background jobs with SIGINT ignored, and the tests may be one of them.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [command, "serve", str(model), "--port", "0", "--json", "--name", "mutag", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    assert process.stdout
    told = ""
    for line in process.stdout:
        told += line
        if line == "}\n":
            break
    assert told, process.communicate()[1]
    return Running(process, json.loads(told)["url"])
