"""What the tests of `ihgnn tune` share: small searches and their files."""

import csv
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy.event
from sqlalchemy.engine import Engine

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


@contextmanager
def fast_sqlite() -> Iterator[None]:
    """Let SQLite not wait for the disk: studies of tests need not survive a power failure."""

    def hurry(connection: object, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")

    sqlalchemy.event.listen(Engine, "connect", hurry)
    yield
    sqlalchemy.event.remove(Engine, "connect", hurry)
