"""Commands that run while a test looks on."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

PATIENCE = 600
"""Timeout in seconds for processes that end by themselves; pytest ends a test after 900."""

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


def start_script(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """A Python script in a process of its own, which can be written to."""
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def let_go(workers: Sequence[subprocess.Popen[str]]) -> None:
    """Release processes that print "ready" and wait for a line, once all of them are ready."""
    for worker in workers:
        assert worker.stdout
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("go\n")
        worker.stdin.flush()


def wait_for(what: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Wait until something is so while a command runs."""
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The worker processes that a command has started (not Python's own helper)."""
    return [
        int(pid)
        for pid in (entry.name for entry in Path("/proc").iterdir() if entry.name.isdecimal())
        if _parent(pid) == process.pid and b"spawn_main" in _of_process(pid, "cmdline")
    ]


def lives(pid: int) -> bool:
    """Whether a process is running; a zombie is not."""
    stat = _of_process(str(pid), "stat")
    return bool(stat) and stat.rpartition(b")")[2].split()[0] != b"Z"


def _parent(pid: str) -> int | None:
    stat = _of_process(pid, "stat")
    return int(stat.rpartition(b")")[2].split()[1]) if stat else None


def _of_process(pid: str, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has ended since
        return b""
