"""Commands that run while a test looks on."""

import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

# A kill is the hardest case and tested always; the polite signals take the same way.
LATER = [pytest.param(name, marks=pytest.mark.long) for name in ("SIGTERM", "SIGINT")]


def start(argv: Sequence[str], **options) -> subprocess.Popen[str]:
    """A command in a session of its own, which Ctrl-C can reach."""
    # A shell starts background jobs with SIGINT ignored, and the tests may be one of them.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        list(argv),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )
    signal.signal(signal.SIGINT, before)
    return process


def wait_for(what: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until something is so while a command runs."""
    deadline = time.monotonic() + 100
    while not what():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The worker processes that a command has started (not Python's own helper)."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
