"""Everything that reaches the user's screen: tables, progress, notes, errors, JSON."""

import json
import os
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table

from ihgnn_cli import display
from ihgnn_cli.data.access import Access
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.report.layout import auc_text

if TYPE_CHECKING:
    from ihgnn_cli.inference.vocabulary import UnknownLabels

# The width of tables when the output is not a terminal.
_PLAIN_WIDTH = 100
# Names and paths that are longer may be broken.
_LONGEST_WORD = 24
# Cells up to this width stay on one line.
_SHORT_WORDS = 16
_ANY_WIDTH = 1000
# Headers of columns that hold words.
_WORDS = ("", "Name", "Case", "Where", "Label", "Cost per graph", "From", "Reference", "Grid")
# The header of a column of bars: left-aligned, never wrapped, left out where it does not fit.
BARS = " "


def _console(stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    terminal = stream.isatty()
    return Console(
        stderr=stderr,
        width=None if terminal or "COLUMNS" in os.environ else _PLAIN_WIDTH,
        highlight=False,
        soft_wrap=False,
        markup=False,
        emoji=False,
    )


out = _console(stderr=False)
err = _console(stderr=True)


def table(title: str | None = None, *heads: str) -> Table:
    """An empty table: words (see `_WORDS`) are left-aligned, numbers right-aligned."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        header_style="bold",
        collapse_padding=True,
        pad_edge=False,
    )
    for head in heads:
        words = head in _WORDS
        left = words or head == BARS
        made.add_column(
            head, justify="left" if left else "right", no_wrap=not words, overflow="fold"
        )
    return made


def bar_width(most: int, beside: int) -> int:
    """The longest bar beside this many characters of text, at most `most`."""
    return max(1, min(most, out.width - beside))


def bar(length: float) -> str:
    """A horizontal bar of this many characters, to an eighth where the terminal has the signs."""
    if not out.encoding.lower().startswith("utf"):
        return "#" * round(length)
    whole, eighths = divmod(round(length * 8), 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[eighths].strip()


def show(thing: object, style: str | None = None) -> None:
    """Print to standard output; text is never wrapped in a pipe, so that paths stay whole."""
    if isinstance(thing, Table):
        _show_table(thing)
    else:
        out.print(thing, style=style, soft_wrap=not out.is_terminal)


def show_scores(found: Mapping[str, Any]) -> None:
    """Print ROC-AUC and balanced accuracy of a result."""
    balanced, auc = found["balanced_accuracy"], auc_text(found["roc_auc"])
    show(f"ROC-AUC {auc}, balanced accuracy {balanced:.1%}")


def _show_table(thing: Table) -> None:
    """Print a table in the width of the terminal; lines in a file may be longer."""
    parts = narrowed(thing, out)
    if not has_width():
        thing.width = _width_of(thing, out)
        parts = [thing]
    for part in parts:
        out.print(part, crop=False)


def narrowed(thing: Table, console: Console) -> list[Table]:
    """The table in tables that fit the console: words, numbers and bars are never broken.

    If it is too wide, headers are wrapped, bars are left out, and words are wrapped. What still
    does not fit goes into further tables, which repeat the first column.
    """
    _wrap_heads(thing, console)
    if not _fits(thing, console):
        thing = _part(thing, [column for column in thing.columns if column.header != BARS])
    _wrap_words(thing, console)
    if _fits(thing, console):
        return [thing]
    first, *rest = thing.columns
    groups = [[first]]
    for column in rest:
        if len(groups[-1]) > 1 and not _fits(_part(thing, [*groups[-1], column]), console):
            groups.append([first])
        groups[-1].append(column)
    parts = [_part(thing, group) for group in groups]
    for part in parts:
        _wrap_words(part, console)
        part.title = thing.title if part is parts[0] else None
    return parts


def has_width() -> bool:
    """Whether standard output has a width to keep to; lines in a file may have any length."""
    return out.is_terminal or "COLUMNS" in os.environ or out.width != _PLAIN_WIDTH


def _width_of(thing: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(width=_ANY_WIDTH), thing).maximum


def _fits(thing: Table, console: Console) -> bool:
    return _width_of(thing, console) <= console.width


def _part(thing: Table, columns: Sequence[Column]) -> Table:
    """A table of some of the columns, with all rows."""
    part = copy(thing)
    part.columns = [replace(column, _index=place) for place, column in enumerate(columns)]
    return part


def _wrap_heads(thing: Table, console: Console) -> None:
    """Wrap the headers that are wider than the cells below them, if the table is too wide."""
    for column in thing.columns:
        if _fits(thing, console):
            return
        words = str(column.header).split()
        if column.no_wrap and len(words) > 1:
            width = max(*_widths(words, by_word=True), *_widths(column.cells, by_word=False), 0)
            column.header = "\n".join(textwrap.wrap(str(column.header), width))


def _wrap_words(thing: Table, console: Console) -> None:
    """Wrap the cells of words, the widest column first, if the table is too wide."""
    columns = [column for column in thing.columns if not column.no_wrap]
    for column in columns:
        column.width = None
    for column in sorted(columns, key=_longest, reverse=True):
        excess = _width_of(thing, console) - console.width
        if excess <= 0:
            return
        column.width = max(_longest(column) - excess, _least(column))


def _longest(column: Column) -> int:
    return max(_widths((column.header, *column.cells), by_word=False), default=0)


def _least(column: Column) -> int:
    """The width that a column of words keeps; only a longer word is broken."""
    word = max(_widths((column.header, *column.cells), by_word=True), default=0)
    return min(_longest(column), max(_SHORT_WORDS, min(word, _LONGEST_WORD)))


def _widths(cells: Iterable[object], *, by_word: bool) -> list[int]:
    """The widths of the words or lines in cells."""
    parts = (str(cell).split() if by_word else str(cell).splitlines() for cell in cells)
    return [cell_len(part) for each in parts for part in each]


def plain(text: str) -> str:
    """Text of unknown origin without control characters."""
    return "".join(each if each.isprintable() else "?" for each in text)


def quoted(word: str | Path) -> str:
    """A word or a path as it can be pasted into the shell of this system."""
    text = str(word)
    if isinstance(word, Path) and text.startswith("-") and text != "-":  # not an option
        text = f"./{text}"
    return subprocess.list2cmdline([text]) if os.name == "nt" else shlex.quote(text)


def next_steps(*commands: Sequence[str | Path]) -> None:
    """Print command lines to continue with, each ready to be copied into a shell."""
    for number, words in enumerate(commands):
        line = " ".join(["ihgnn", *(quoted(each) for each in words)])
        out.print(f"{'' if number else 'Next':12}{line}", soft_wrap=True)


def note(text: str) -> None:
    """Print a remark on standard error."""
    err.print(text, style="dim", soft_wrap=True)


@contextmanager
def keeping(kept: Callable[[], str]) -> Iterator[None]:
    """If the block is interrupted, say what of its work is kept."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        note(kept())
        raise


def warn(text: str) -> None:
    """Print a warning on standard error."""
    err.print(f"WARNING: {text}", style="bold red", soft_wrap=True)


def unknown_labels(labels: "UnknownLabels") -> None:
    """Report nodes that a model does not know: many as a warning, few as a remark."""
    if labels.unknown:
        (warn if labels.many else note)(plain(labels.sentence))


def error(text: str) -> None:
    """Print an error on standard error; never wrapped, so that paths can be copied."""
    err.print(f"Error: {text}", style="red", soft_wrap=True)


def show_json(value: object) -> None:
    """Print one JSON document in ASCII, which every terminal can show; NaN becomes null."""
    sys.stdout.write(json.dumps(jsonable(value), indent=2) + "\n")


class ProgressDisplay(display.ProgressDisplay):
    """Progress bars on standard error, if that is a terminal."""

    def __init__(self) -> None:
        super().__init__(err)


def access(data_root: Path | None, offline: bool) -> Access:
    """Where the data sets of a command may come from."""
    return Access(data_root, offline, ProgressDisplay())


@contextmanager
def work_bar(units: str) -> Iterator[Callable[[int, int, str | Table], None]]:
    """A progress bar on standard error, with what fits of a table; see `display.work_bar`."""
    with display.work_bar(err, units) as update:
        yield lambda done, total, below: update(
            done, total, narrowed(below, err)[0] if isinstance(below, Table) else below
        )


def work(units: str, *, quiet: bool) -> AbstractContextManager[display.Update]:
    """A progress bar or lines on standard error; see `display.work`."""
    return display.work(err, units, quiet=quiet)
