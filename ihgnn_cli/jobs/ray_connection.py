"""Connecting to a Ray cluster: fails quickly, prints nothing, suggests a remedy."""

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
# Timeout for a host that does not answer; Ray itself would try for 15 minutes.
_CONNECT_SECONDS = 10.0
# Ray reads these when it is imported.
_SETTINGS = {
    "RAY_ENABLE_AUTO_CONNECT": "0",  # a lost connection must not start a new cluster
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # each takes 40 seconds
    "GRPC_VERBOSITY": "NONE",  # keep standard error for the user
}


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Ray, connected to a cluster inside the block.

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
    # The only way to keep Ray from printing worker deaths on standard output.
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
    """Refuse an invalid address, or one that does not answer."""
    if address == AUTO:
        return
    match = _ADDRESS.fullmatch(address)
    if match is None or not 0 < int(match[3]) < 2**16:
        raise InputError(
            f"'{address}' is not a Ray cluster address. Use auto, HOST:PORT or ray://HOST:PORT."
        )
    try:
        socket.create_connection((match[2].strip("[]"), int(match[3])), _CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise _unreachable(address, f"{why or error}.") from error


def _unreachable(address: str, why: str) -> InputError:
    if address == AUTO:
        advice = (
            "'ray start --head' starts one on this machine; --cluster ray://HOST:10001 connects to "
            "one on another machine."
        )
    elif address.startswith("ray://"):
        advice = "Use the port of Ray's client server on the head node, by default 10001."
    else:
        advice = (
            "This machine must be a node of the cluster (ray start --address=HOST:PORT). From "
            "other machines, use ray://HOST:10001."
        )
    return InputError(f"Cannot reach a Ray cluster at {address}: {why}\n{advice}")


def _without_advice(text: str) -> str:
    """Ray's error message without its advice on options that ihgnn does not have."""
    return re.split(r"(?<=\.) +(?=Please\b)", text)[0]


@contextmanager
def _our_signals() -> Iterator[None]:
    """Restore the SIGTERM handler, which Ray replaces."""
    ours = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if ours is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ours)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep standard error clean: Ray's C++ code writes to it despite all settings."""
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
    """The first line of an error message, as a sentence."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".: ") + "."
