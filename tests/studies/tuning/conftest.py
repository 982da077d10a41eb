"""Studies in SQLite do not wait for the disk."""

from collections.abc import Iterator

import pytest
from tuned import fast_sqlite


@pytest.fixture(autouse=True, scope="session")
def sqlite_does_not_wait() -> Iterator[None]:
    with fast_sqlite():
        yield
