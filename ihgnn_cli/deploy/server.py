"""Runs the service in this process until it is asked to stop."""

import asyncio
import logging
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ihgnn_cli.deploy.service import Service
from ihgnn_cli.errors import InputError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Seconds that an idle connection stays open: longer than clients and proxies keep theirs.
_KEEP_ALIVE = 75
# Seconds in which requests that are on their way when the service stops are still read.
_DRAIN = 0.2
_MOST_HEAD = 1 << 16
"""Bytes of a request's address and headers together."""


class _Protocol(H11Protocol):  # type: ignore[misc]
    """HTTP with a limit on the time that a request's head takes, which uvicorn does not have."""

    head_timeout = 30.0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        without_delay(transport)
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        if self._head_timer is None and self.conn.their_state is h11.IDLE:
            self._start_timer()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._start_timer()

    def _start_timer(self) -> None:
        self._stop_timer()
        self._head_timer = self.loop.call_later(self.head_timeout, self.transport.close)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _Server(uvicorn.Server):  # type: ignore[misc]
    """Answers everything that was accepted before it stops, which is a normal end."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals that are ignored, as in background jobs, stay so.
        heard = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
        before = {each: signal.signal(each, self.handle_exit) for each in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def main_loop(self) -> None:
        self._announce()  # now signals are handled, so nobody is told too early
        await super().main_loop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.sleep(_DRAIN)  # connections that the system has accepted already
        await super().shutdown(sockets)


def without_delay(transport: Any) -> None:
    """Send answers at once, which asyncio sets only for sockets of a protocol that it recognises.

    Otherwise an answer on a connection that is kept open waits for the client's delayed
    acknowledgement of the one before (40 ms).
    """
    transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections.

    Raises:
        InputError: the address cannot be used.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        return socket.create_server(address, family=family, backlog=2048)
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"Cannot listen on {host}, port {port}: {reason}. Give another --host or --port."
        ) from error


def url_of(host: str, listening: socket.socket) -> str:
    """The address of the service; a host that means all addresses is reached as localhost."""
    shown = "localhost" if host in ("", "0.0.0.0", "::") else host  # noqa: S104
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{listening.getsockname()[1]}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    return host in ("localhost", "::1") or host.startswith("127.")


def run(service: Service, listening: socket.socket, started: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM; then answer what was accepted, and return.

    A second Ctrl-C stops at once.

    Args:
        service: what to serve.
        listening: from `listen`.
        started: is called when clients can connect and signals are handled.
    """
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # refusals are counted, not logged
    timeout = service.limits.timeout
    protocol = type("Protocol", (_Protocol,), {"head_timeout": timeout})
    config = uvicorn.Config(
        service.app(),
        log_config=None,
        access_log=False,
        server_header=False,
        http=protocol,
        ws="none",
        h11_max_incomplete_event_size=_MOST_HEAD,
        timeout_keep_alive=_KEEP_ALIVE,
        # A request may take one timeout to arrive and another one to be answered.
        timeout_graceful_shutdown=2 * math.ceil(timeout) + 1,
    )
    with listening:
        _Server(config, started).run(sockets=[listening])
