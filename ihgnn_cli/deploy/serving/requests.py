"""Receives requests: bodies of bounded size and time, and refusals with a reason."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ihgnn_cli.deploy.serving.settings import ServeSettings

JSON = "application/json"
RETRY = {"Retry-After": "1"}


class RefusedError(Exception):
    """A request that is not answered, with the status and the reason."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
        self.headers = headers or {}

    def response(self) -> Response:
        """The response that says so."""
        return json_response({"error": self.reason}, self.status, self.headers)


def json_response(
    content: Any, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """A response of JSON."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return Response(text, status, headers, JSON)


class Intake:
    """Admits requests while there is room for them, and reads their bodies."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.waiting = self.bytes = 0

    @contextmanager
    def admitted(self) -> Iterator["Admission"]:
        """Room for one request until the block ends.

        Raises:
            RefusedError: too many requests wait already.
        """
        if self.waiting >= self.settings.max_waiting:
            raise _busy(f"{self.waiting} requests are waiting.")
        self.waiting += 1
        admission = Admission(self)
        try:
            yield admission
        finally:
            self.waiting -= 1
            self.bytes -= admission.bytes


class Admission:
    """An admitted request, whose body counts until it is answered."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.bytes = 0

    async def body(self, request: Request) -> bytes:
        """The whole body.

        Raises:
            RefusedError: it is too large, too slow, compressed, or there is no room for it.
        """
        settings = self._intake.settings
        if request.headers.get("content-encoding", "identity") != "identity":
            raise RefusedError(415, "Compressed bodies are not supported. Send it uncompressed.")
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced[:20]) > settings.body_bytes:
            raise _too_large(settings)
        parts = []
        try:
            async with asyncio.timeout(settings.timeout):
                async for part in request.stream():
                    self._take(len(part))
                    parts.append(part)
        except TimeoutError:
            reason = f"The request did not arrive within {settings.timeout:g} s. Send it again."
            raise RefusedError(408, reason, {"Connection": "close"}) from None
        except ClientDisconnect:
            raise RefusedError(400, "The client left before the end of its request.") from None
        return b"".join(parts)

    def _take(self, count: int) -> None:
        intake, settings = self._intake, self._intake.settings
        self.bytes += count
        intake.bytes += count
        if self.bytes > settings.body_bytes:
            raise _too_large(settings)
        if intake.bytes > settings.waiting_bytes:
            raise _busy(f"{intake.bytes >> 20} MiB of requests are waiting.")


def media_type(request: Request) -> str:
    """The content type without its parameters; empty if there is none."""
    given: str = request.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


def _too_large(settings: ServeSettings) -> RefusedError:
    reason = (
        f"The body is larger than {settings.max_body:g} MiB. Send fewer graphs per request, or "
        "start the service with a larger --max-body."
    )
    return RefusedError(413, reason, {"Connection": "close"})


def _busy(why: str) -> RefusedError:
    return RefusedError(503, f"The service is busy: {why} Try again later.", RETRY)
