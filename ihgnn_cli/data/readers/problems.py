"""Collects the mistakes in a data file so that all of them can be reported at once."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.errors import Problem
from ihgnn_cli.words import counted

MAX_PROBLEMS_PER_FILE = 20


@dataclass
class ProblemList:
    """The mistakes in one file: the first `MAX_PROBLEMS_PER_FILE` in full, the rest as a count."""

    file: str
    found: list[Problem] = field(default_factory=list)
    unlisted: int = 0
    lines: set[int] = field(default_factory=set)
    """Every line with a mistake, including those that are only counted."""

    def add(self, line: int | None, message: str, remedy: str) -> None:
        """Add a mistake; lines are counted from 1."""
        if line is not None:
            self.lines.add(line)
        if len(self.found) < MAX_PROBLEMS_PER_FILE:
            self.found.append(Problem(self.file, line, message, remedy))
        else:
            self.unlisted += 1

    def add_rows(self, wrong: NDArray[np.bool_], message: str, remedy: str) -> None:
        """Add the same mistake for every row where `wrong` holds and no mistake is known yet."""
        for row in np.flatnonzero(wrong & self.sound(len(wrong))).tolist():
            self.add(row + 1, message, remedy)

    def sound(self, rows: int) -> NDArray[np.bool_]:
        """[rows] whether a row has no mistakes so far; the other rows hold no values."""
        mask = np.ones(rows, dtype=bool)
        mask[[line - 1 for line in self.lines if line <= rows]] = False
        return mask

    def all(self) -> list[Problem]:
        """All problems; those not listed in full are combined into one."""
        if not self.unlisted:
            return self.found
        rest = f"{counted(self.unlisted, 'more problem')} like these."
        remedy = "Fix those above first."
        return [*self.found, Problem(self.file, None, rest, remedy, self.unlisted)]

    def __bool__(self) -> bool:
        return bool(self.found)
