"""Lines of a file, a pipe or a keyboard as they come, in memory that does not grow."""

import os
import select
from collections.abc import Iterator
from typing import BinaryIO

from ihgnn_cli.errors import InputError
from ihgnn_cli.progress import Advance, silent

MAX_LINE = 1 << 28
"""In bytes. A longer line is given with one byte more than that, and the rest is passed over."""
_BLOCK = 1 << 18


def lines_as_they_come(
    stream: BinaryIO, name: str, advance: Advance = silent
) -> Iterator[bytes | None]:
    """Each line without its end, and `None` where all that has come was given and more has not.

    A collector of lines knows by the `None` that it is time to work on what it has: whoever is at
    the other end may be waiting for an answer. Where the system cannot tell whether more has come
    (pipes of Windows), there is one after each block.

    Raises:
        InputError: the stream, called by its name, cannot be read.
    """
    descriptor = stream.fileno()
    begun: list[bytes] = []
    length = 0
    while block := _read(descriptor, name):
        advance(len(block))
        first, *others = block.split(b"\n")
        if length <= MAX_LINE:
            begun.append(first)
        length += len(first)
        if others:
            yield b"".join(begun)[: MAX_LINE + 1]
            yield from others[:-1]
            begun, length = [others[-1]], len(others[-1])
        if not _has_more(descriptor):
            yield None
    if length:
        yield b"".join(begun)[: MAX_LINE + 1]


def _read(descriptor: int, name: str) -> bytes:
    """What is there, up to a block; waits where nothing is, and is empty at the end."""
    try:
        return os.read(descriptor, _BLOCK)
    except OSError as error:
        raise InputError(f"Cannot read {name}: {error.strerror or error}.") from error


def _has_more(descriptor: int) -> bool:
    """Whether a read would return at once; so it does at the end of the stream."""
    try:
        return bool(select.select([descriptor], [], [], 0)[0])
    except (OSError, ValueError):  # of Windows, or a number beyond those that select takes
        return False
