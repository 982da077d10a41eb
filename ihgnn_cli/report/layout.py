"""A table before it is written: what stands where, what is marked, what a reader must know.

Terminal, Markdown, LaTeX and HTML are made from the same one, so that they tell the same.
"""

from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """How a number stands out: the best is bold, the runner-up underlined."""

    BEST = "best"
    SECOND = "second"
    PLAIN = ""


@dataclass(frozen=True)
class Box:
    """One place of a table."""

    text: str
    beside: str = ""
    """Of less weight, on a line of its own below."""
    mark: Mark = Mark.PLAIN
    starred: bool = False
    """Whether an asterisk follows the text; the table's legend says what it means."""


@dataclass(frozen=True)
class Row:
    """A line of a table, under its name."""

    title: str
    boxes: tuple[Box, ...]
    apart: bool = False
    """Whether a rule is drawn above."""


@dataclass(frozen=True)
class Table:
    """A table of numbers and what has to be said with it."""

    name: str
    """For labels and files, such as `table1`."""
    title: str
    corner: str
    """What the names of the rows are."""
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    budget: str
    """The name of the budget that the numbers were made with."""
    statement: str
    """What that budget is, in a sentence."""
    legend: str = ""
    """How to read a box."""
    notes: tuple[str, ...] = ()


def percent(share: float) -> str:
    """An accuracy with one digit, as the paper prints it."""
    return f"{100 * share:.1f}"


def spread(mean: float, std: float) -> str:
    """Mean and standard deviation, in percent."""
    return f"{percent(mean)} ± {percent(std)}"


def signed(share: float) -> str:
    """A difference in points, with its sign; what rounds to nothing has none."""
    told = percent(share)
    if float(told) == 0:
        return "0.0"
    return f"+{told}" if share > 0 else told.replace("-", "−")


def p_value(p: float) -> str:
    """A p-value with three digits."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"
