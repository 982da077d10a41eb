"""Connecting to a Ray cluster: quickly, quietly, and with a remedy where it fails."""

import logging
import os
import re
import signal
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ihgnn_cli.errors import InputError

AUTO = "auto"
_ADDRESS = re.compile(r"(ray://)?([^\s:/]+|\[[0-9a-fA-F:.]+\]):(\d{1,5})")
# A host that does not answer; Ray itself would try for a quarter of an hour.
_CONNECT_SECONDS = 10.0
# Ray reads these when it is imported.
_SETTINGS = {
    "RAY_ENABLE_AUTO_CONNECT": "0",  # a lost connection is not to start a cluster of its own
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # each takes 40 seconds
    "GRPC_VERBOSITY": "NONE",  # standard error is for what the user has to know
}


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster in the block.

    Raises:
        InputError: Ray is not installed, or there is no cluster.
    """
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    if address == AUTO:
        address = os.environ.get("RAY_ADDRESS") or AUTO
    _check(address)
    try:
        with warnings.catch_warnings(), _our_signals(), _silence():
            warnings.simplefilter("ignore")
            ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    except Exception as error:
        with suppress(Exception):
            ray.shutdown()
        raise _unreachable(address, _without_advice(first_line(error))) from error
    # The one way to keep Ray from printing the deaths of workers on standard output.
    ray._private.worker._worker_logs_enabled = False
    try:
        yield ray
    finally:
        ray.shutdown()
        ray._private.worker._worker_logs_enabled = True


def _ray() -> Any:
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise InputError("--cluster needs Ray: pip install 'ihgnn-cli[cluster]'") from error
    return ray


def _check(address: str) -> None:
    """Refuse an address where nobody answers."""
    if address == AUTO:
        return
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match[3]) < 2**16:
        raise InputError(
            f"'{address}' is no address of a Ray cluster. Use auto, HOST:PORT or ray://HOST:PORT."
        )
    try:
        socket.create_connection((match[2].strip("[]"), int(match[3])), _CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise _unreachable(address, f"{why or error}.") from error


def _unreachable(address: str, why: str) -> InputError:
    if address == AUTO:
        advice = (
            "'ray start --head' starts one on this machine; --cluster ray://HOST:10001 reaches one "
            "whose head is elsewhere."
        )
    elif address.startswith("ray://"):
        advice = "The port is that of Ray's client server on the head, by default 10001."
    else:
        advice = (
            "This machine has to be a node of it (ray start --address=HOST:PORT); from others use "
            "ray://HOST:10001."
        )
    return InputError(f"Cannot reach a Ray cluster at {address}: {why}\n{advice}")


def _without_advice(text: str) -> str:
    """What Ray says went wrong, without its advice on options of its own, which ihgnn has not."""
    return re.split(r"(?<=\.) +(?=Please\b)", text)[0]


@contextmanager
def _our_signals() -> Iterator[None]:
    """Keep what SIGTERM does: Ray has its own idea of it."""
    ours = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if ours is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep standard error clean: Ray writes to it past all settings, from C++."""
    try:
        ours = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def first_line(error: Exception) -> str:
    """As a sentence."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".: ") + "."
