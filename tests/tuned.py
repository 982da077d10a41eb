"""What the tests of `ihgnn tune` share: small searches, their files, threads as workers."""

import csv
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import sqlalchemy.event
from sqlalchemy.engine import Engine

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.jobs.processes import Workers, tell

SMALL = ("--width", "4", "--hidden", "8", "--batch-size", "64,128", "--layers", "1,2")
ONE_WORKER = (*SMALL, "--workers", "1", "--device", "cpu")
TINY = (*ONE_WORKER, "--epochs", "3")
EPOCHS = 60
SLOW = (*ONE_WORKER, "--epochs", str(EPOCHS), "--pruner", "none")
"""Trials that take long enough to be killed in the middle."""


def states(folder: Path) -> dict[str, int]:
    """The number of trials in each state, as stored in the study's file."""
    try:
        # Not read-only: what a killed process left half-written has to be rolled back.
        with sqlite3.connect(f"file:{folder / 'study.db'}?mode=rw", uri=True) as study:
            return dict(study.execute("select state, count(*) from trials group by state"))
    except sqlite3.Error:
        return {}


def finished(folder: Path) -> int:
    """The number of complete trials."""
    return states(folder).get("COMPLETE", 0)


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "trials.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


class _Process:
    """The part of a process that its parent uses."""

    exitcode = 0

    def join(self, timeout: float) -> None:
        pass

    def is_alive(self) -> bool:
        return False


def use_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers be threads of this process, which start immediately."""

    def launch(workers: Workers, device: str, core: int | None) -> tuple[Connection, _Process]:
        ours, theirs = Pipe()
        process = _Process()

        def live() -> None:
            with suppress(OSError):  # the parent has closed the channel
                try:
                    workers.life(device, theirs)
                except IhgnnError as error:
                    tell(theirs, error)
                except SystemExit:
                    process.exitcode = -9
                theirs.close()

        threading.Thread(target=live, daemon=True).start()
        return ours, process

    monkeypatch.setattr(Workers, "launch", launch)


@contextmanager
def fast_sqlite() -> Iterator[None]:
    """Let SQLite not wait for the disk: studies of tests need not survive a power failure."""

    def hurry(connection: object, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    sqlalchemy.event.listen(Engine, "connect", hurry)
    yield
    sqlalchemy.event.remove(Engine, "connect", hurry)
