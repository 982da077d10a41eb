"""Ctrl-C and polite kills (SIGINT, SIGTERM, SIGHUP): held back where they would do harm.

The command line installs one handler for all of them. It raises at once, because files are written
whole or not at all. Calls into a database and the start and end of worker processes must not be cut
short: they run in a `held` block, and a long block calls `safe_point` where it may be left.
"""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

# A signal within this many seconds of another is the same request, sent again, such as to each
# process of a group. A later one is not held back: a hanging connection can be left.
_PATIENCE = 0.5
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class _State:
    """Whether signals are held back in this process, and those that came meanwhile."""

    depth = 0
    waiting: int | None = None
    since = -math.inf
    """When the last signal was obeyed."""


def install() -> None:
    """Handle the signals that this process does not ignore (as nohup and background jobs do)."""
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


def uninstall() -> None:
    """Ignore the signals from now on: the process ends, with the exit code that it has."""
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is handle:
            signal.signal(number, signal.SIG_IGN)


def handle(number: int, _frame: object = None) -> None:
    """Raise what a signal means, or hold it back.

    Raises:
        KeyboardInterrupt: Ctrl-C.
        SystemExit: another signal, with the exit code of a shell.
    """
    now = time.monotonic()
    if now - _State.since < _PATIENCE:
        return
    _State.since = now
    if _State.depth and _State.waiting is None:
        _State.waiting = number
        return
    _raise(number)


@contextmanager
def held() -> Iterator[None]:
    """Hold signals back until the block ends, or comes to a `safe_point`."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals never reach other threads
        return
    _State.depth += 1
    try:
        yield
    finally:
        _State.depth -= 1
        if not _State.depth:
            safe_point()


def safe_point() -> None:
    """Let a signal through that was held back."""
    if _State.waiting is not None and threading.current_thread() is threading.main_thread():
        _raise(_State.waiting)


def _raise(number: int) -> NoReturn:
    _State.waiting = None
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)
