"""Progress reporting for long tasks, independent of the display."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Called with the number of units done since the last call."""


class Progress(Protocol):
    """A progress display; the command line implements it, the library calls it."""

    def task(self, description: str, total: int | None) -> AbstractContextManager[Advance]:
        """Show a task of `total` bytes (`None`: unknown) until the block ends."""


def silent(_: int) -> None:
    """An `Advance` that does nothing."""


class NoProgress:
    """A display that shows nothing."""

    @contextmanager
    def task(self, description: str, total: int | None) -> Iterator[Advance]:  # noqa: ARG002
        """Do nothing around the block."""
        yield silent


NO_PROGRESS = NoProgress()
