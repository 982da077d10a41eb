"""Runs the service in this process until it is asked to stop."""

import logging
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from ihgnn_cli.deploy.serving.app import Service
from ihgnn_cli.errors import InputError

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Seconds that an idle connection stays open: longer than clients and proxies keep theirs.
_KEEP_ALIVE = 75


class _Server(uvicorn.Server):  # type: ignore[misc]
    """Stops when asked to, and does not raise the signal again: that was a normal end."""

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
        started: is called when clients can connect.
    """
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # refusals are counted, not logged
    # A request may take one timeout to arrive and another one to be answered.
    longest = 2 * math.ceil(service.settings.timeout) + 1
    config = uvicorn.Config(
        service.app(),
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=longest,
    )
    server = _Server(config)
    with listening:
        started()
        server.run(sockets=[listening])
