"""Collects the mistakes in a data file so that all of them can be reported at once."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.errors import MAX_LINES, Problem
from ihgnn_cli.words import counted

MAX_PROBLEMS_PER_FILE = 20


@dataclass
class ProblemList:
    """The mistakes in one file, each kind once with the lines that have it.

    The first `MAX_PROBLEMS_PER_FILE` kinds are listed, the rest is a count.
    """

    file: str
    found: dict[str, Problem] = field(default_factory=dict)
    unlisted: int = 0
    lines: set[int] = field(default_factory=set)
    """Every line with a mistake, including those that are only counted."""

    def add(self, line: int | None, message: str, remedy: str) -> None:
        """Add a mistake; lines are counted from 1."""
        if line is not None:
            self.lines.add(line)
        self._add(Problem(self.file, line, message, remedy))

    def add_rows(self, wrong: NDArray[np.bool_], message: str, remedy: str) -> None:
        """Add the same mistake for every row where `wrong` holds and no mistake is known yet."""
        lines = (np.flatnonzero(wrong & self.sound(len(wrong))) + 1).tolist()
        self.lines.update(lines)
        if lines:
            first, *more = lines
            also = tuple(more[:MAX_LINES])
            self._add(Problem(self.file, first, message, remedy, len(lines), also))

    def _add(self, new: Problem) -> None:
        known = self.found.get(new.kind)
        if known is not None:
            lines = () if new.line is None else (new.line, *new.also)
            self.found[new.kind] = known.followed_by(*lines, count=new.count)
        elif len(self.found) < MAX_PROBLEMS_PER_FILE:
            self.found[new.kind] = new
        else:
            self.unlisted += new.count

    def sound(self, rows: int) -> NDArray[np.bool_]:
        """[rows] whether a row has no mistakes so far; the other rows hold no values."""
        mask = np.ones(rows, dtype=bool)
        mask[[line - 1 for line in self.lines if line <= rows]] = False
        return mask

    def all(self) -> list[Problem]:
        """All problems; those not listed are combined into one."""
        found = list(self.found.values())
        if self.unlisted:
            rest = f"{counted(self.unlisted, 'more problem')} of other kinds."
            remedy = "Fix those above first."
            found.append(Problem(self.file, None, rest, remedy, self.unlisted))
        return found

    def __bool__(self) -> bool:
        return bool(self.found)
