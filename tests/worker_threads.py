"""Workers as threads of this process, which start at once: a process imports torch first."""

import pickle
import threading
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import pytest

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.jobs import processes
from ihgnn_cli.jobs.old_processes import Workers, tell
from ihgnn_cli.jobs.processes import Place, run_here


class _Process:
    """The part of a process that its parent uses."""

    exitcode = 0
    pid = 0

    def join(self, timeout: float | None = None) -> None:
        pass

    def kill(self) -> None:
        pass

    def is_alive(self) -> bool:
        return False


def use_threads(monkeypatch: pytest.MonkeyPatch, *, pickled: bool = True) -> None:
    """Let workers be threads. Their work is pickled as for a process, unless a test patches it."""

    def launch(workers: Workers, device: str, core: int | None) -> tuple[Connection, _Process]:
        ours, theirs = Pipe()
        process = _Process()
        life = pickle.loads(pickle.dumps(workers.life)) if pickled else workers.life

        def live() -> None:
            with suppress(OSError):  # the parent has closed the channel
                try:
                    life(device, theirs)
                except IhgnnError as error:
                    tell(theirs, error)
                except SystemExit:
                    process.exitcode = -9
                theirs.close()

        threading.Thread(target=live, daemon=True).start()
        return ours, process

    monkeypatch.setattr(Workers, "launch", launch)
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
