"""Everything that reaches the user's screen: tables, progress, notes, errors, JSON."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from ihgnn_cli import display
from ihgnn_cli.jsonable import jsonable

# The width of tables when the output is not a terminal.
_PLAIN_WIDTH = 100
# Names are folded to no less than this width.
_FOLDED_WIDTH = 10
_ANY_WIDTH = 1000
# Headers of columns that hold words.
_WORDS = ("", "Name", "Where", "Label", "From", "Reference")
# The header of a column of bars: left-aligned, never wrapped.
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


def _show_table(thing: Table) -> None:
    """In a narrow terminal names are folded; numbers are never broken, even if lines get long."""
    needed = Measurement.get(out, out.options.update(width=_ANY_WIDTH), thing).maximum
    for column in thing.columns:
        longest = max(cell_len(str(cell)) for cell in (column.header, *column.cells))
        if not column.no_wrap:
            needed -= max(0, longest - _FOLDED_WIDTH)
    if needed > out.width:
        thing.width = needed
    out.print(thing, crop=False)


def plain(text: str) -> str:
    """Text of unknown origin without control characters."""
    return "".join(each if each.isprintable() else "?" for each in text)


def quoted(path: Path) -> str:
    """A path as it can be pasted into the shell of this system."""
    if str(path).startswith("-"):  # not an option
        path = Path(f"./{path}")
    return subprocess.list2cmdline([path]) if os.name == "nt" else shlex.quote(str(path))


def note(text: str) -> None:
    """Print a remark on standard error."""
    err.print(text, style="dim", soft_wrap=True)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    err.print(f"WARNING: {text}", style="bold red", soft_wrap=True)


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


def work_bar(units: str) -> AbstractContextManager[Callable[[int, int, str | Table], None]]:
    """A progress bar on standard error; see `display.work_bar`."""
    return display.work_bar(err, units)


def work(units: str, *, quiet: bool) -> AbstractContextManager[display.Update]:
    """A progress bar or lines on standard error; see `display.work`."""
    return display.work(err, units, quiet=quiet)
