"""Studies of tests are thrown away, and so SQLite waits for no disk."""

import sqlite3
from collections.abc import Iterator

import pytest
import sqlalchemy.event
from sqlalchemy.engine import Engine


def _hurry(connection: object, _: object) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture(autouse=True, scope="session")
def hurried_sqlite() -> Iterator[None]:
    """What is written is seen by others at once, and would not outlive a power cut."""
    sqlalchemy.event.listen(Engine, "connect", _hurry)
    yield
    sqlalchemy.event.remove(Engine, "connect", _hurry)
