"""Read lines from a file, a pipe or a terminal as they arrive, in bounded memory."""

import os
import select
from collections.abc import Iterator
from typing import BinaryIO

from ihgnn_cli.data.problems import MAX_LINE
from ihgnn_cli.files import reading
from ihgnn_cli.progress import Advance, silent

_BLOCK = 1 << 18


def lines_as_they_come(
    stream: BinaryIO, name: str, advance: Advance = silent
) -> Iterator[bytes | None]:
    """Yield each line without its newline, and `None` when no more input is available yet.

    A line of more than `MAX_LINE` bytes is cut to one byte more than that.

    `None` tells a caller that collects lines to process what it has, because the sender may be
    waiting for an answer. Where the system cannot tell whether there is more (pipes on Windows),
    `None` follows each block.

    Raises:
        InputError: the stream cannot be read; `name` is its name in the message.
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
    """Read at most one block; wait if nothing is available; empty at the end."""
    with reading(name):
        return os.read(descriptor, _BLOCK)


def _has_more(descriptor: int) -> bool:
    """Whether a read would return at once, as it also does at the end of the stream."""
    try:
        return bool(select.select([descriptor], [], [], 0)[0])
    except (OSError, ValueError):  # Windows, or a descriptor too large for select
        return False
