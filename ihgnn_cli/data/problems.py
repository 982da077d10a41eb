"""What all readers share: the first mistakes of a file, and bounds on what is read.

A file of a few kilobytes must not take minutes or gigabytes. So a reader stops after the first few
mistakes, lines have a maximum length, and zips a maximum size and number of members.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.errors import DataError, Problem

MAX_PROBLEMS = 20
MAX_LINE = 1 << 24
"""Bytes of a line: a graph of about a million edges. A line takes up to 30 times as much memory."""
MAX_MEMBERS = 10_000
HARMLESS_BYTES = 64 << 20
"""A zip with less content than this cannot exhaust memory, whatever its compression."""
MAX_COMPRESSION = 200
"""Numbers as text compress by a factor of 6 (COLLAB) to 50; a zip bomb by 1,000 and more."""
NOT_TEXT = "not plain text (perhaps UTF-16 or a binary file)."
SAVE_AS_TEXT = "Save it as UTF-8."
TOO_LONG = f"a line of more than {MAX_LINE >> 20} MB."


@dataclass
class Problems:
    """The mistakes in a data set; reading stops when there are `MAX_PROBLEMS`."""

    found: list[Problem] = field(default_factory=list)

    def add(self, file: str, line: int | None, message: str, remedy: str) -> None:
        """Add a mistake; lines are counted from 1.

        Raises:
            DataError: it is the last one that is reported.
        """
        self.found.append(Problem(file, line, message, remedy))
        if len(self.found) == MAX_PROBLEMS:
            remedy = "Correct these first."
            self.found.append(Problem(file, None, "reading stopped here.", remedy))
            self.stop()

    def add_rows(self, file: str, wrong: NDArray[np.bool_], message: str, remedy: str) -> None:
        """Add a mistake of the rows where `wrong` holds, by the first of them."""
        if wrong.any():
            rows = int(wrong.sum())
            more = f" ({rows:,} such lines)" if rows > 1 else ""
            line = int(wrong.argmax()) + 1
            self.add(file, line, f"{message.removesuffix('.')}{more}.", remedy)

    def stop(self) -> None:
        """Raise the mistakes, if there are any.

        Raises:
            DataError: there are.
        """
        if self.found:
            raise DataError(self.found)
