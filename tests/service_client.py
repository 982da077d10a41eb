"""Requests to a service in this process; importing it skips the tests without Starlette."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ihgnn_cli.deploy.serving.app import Service

for package in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(package, reason="the extra 'serve' is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed (dependency group 'test')")


@asynccontextmanager
async def client_of(service: "Service") -> AsyncIterator[Any]:
    """A client of a started service."""
    app = service.app()
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://service") as client,
    ):
        yield client


def talk(service: "Service", conversation: Callable[[Any], Awaitable[Any]]) -> Any:
    """Start the service, talk to it, stop it."""

    async def main() -> Any:
        async with client_of(service) as client:
            return await conversation(client)

    return asyncio.run(main())
