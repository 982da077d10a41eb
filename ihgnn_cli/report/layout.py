"""The content of a table, from which terminal, Markdown, LaTeX and HTML output are made."""

import math
from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """How a number is highlighted."""

    BEST = "best"
    """Bold: better than all others, outside the noise."""
    TIED = "tied"
    """Underlined: the best, or not separable from it."""
    PLAIN = ""


@dataclass(frozen=True)
class Box:
    """One cell of a table."""

    text: str
    beside: str = ""
    """Smaller text on a second line."""
    mark: Mark = Mark.PLAIN
    starred: bool = False
    """Whether an asterisk follows the text; the table's legend explains it."""


@dataclass(frozen=True)
class Row:
    """A row of a table."""

    title: str
    boxes: tuple[Box, ...]
    apart: bool = False
    """Whether a rule is drawn above the row."""


@dataclass(frozen=True)
class Table:
    """A table of numbers with its legend and notes."""

    name: str
    """For labels and files, such as `table1`."""
    title: str
    corner: str
    """Heading of the column of row names."""
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    budget: str = ""
    """Name of the budget that the numbers were computed with."""
    statement: str = ""
    """One sentence that describes the budget."""
    legend: str = ""
    """How to read a cell."""
    notes: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    """Short sentences for the terminal, instead of legend and notes."""


def percent(share: float) -> str:
    """An accuracy with one digit, as the paper prints it."""
    return f"{100 * share:.1f}"


def spread(mean: float, std: float) -> str:
    """Mean and standard deviation, in percent."""
    return f"{percent(mean)} ± {percent(std)}"


def signed(share: float) -> str:
    """A difference in points with its sign; 0.0 has none."""
    text = percent(share)
    if float(text) == 0:
        return "0.0"
    return f"+{text}" if share > 0 else text.replace("-", "−")


def p_value(p: float) -> str:
    """A p-value with three digits; never 0."""
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def auc_text(value: float | None) -> str:
    """An area with three digits; `-` if it is undefined."""
    return "-" if value is None or math.isnan(value) else f"{value:.3f}"
