"""Workers as threads of this process, which start at once: a process imports torch first."""

import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest

from ihgnn_cli.jobs import processes
from ihgnn_cli.jobs.processes import Place, run_here


class _Process:
    """The part of a process that its parent uses."""

    exitcode = 0
    pid = 0

    def join(self, timeout: float | None = None) -> None:
        pass

    def is_alive(self) -> bool:
        return False

    def kill(self) -> None:
        pass


def use_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers be threads. Their work is pickled as for a process."""
    monkeypatch.setattr(processes, "_launch", _launch)


def _launch(place: Place) -> tuple[Connection, _Process]:
    """A thread that does what a worker process does."""
    ours, theirs = Pipe()
    process = _Process()

    def live() -> None:
        try:
            run_here(place, theirs)
        except SystemExit:
            process.exitcode = 1
        theirs.close()

    threading.Thread(target=live, daemon=True).start()
    return ours, process
