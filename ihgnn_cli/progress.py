"""How long work tells of its progress, without knowing who watches."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Told how many units were done since it was last told."""


class Progress(Protocol):
    """A display of tasks; the command line has one, the library only calls it."""

    def task(self, description: str, total: int | None) -> AbstractContextManager[Advance]:
        """Show a task of `total` bytes (`None`: not known) until the block ends."""


def silent(_: int) -> None:
    """An `Advance` that nobody watches."""


class NoProgress:
    """A display that shows nothing."""

    @contextmanager
    def task(self, description: str, total: int | None) -> Iterator[Advance]:  # noqa: ARG002
        """Do nothing around the block."""
        yield silent


NO_PROGRESS = NoProgress()
