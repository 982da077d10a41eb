"""Everything that reaches the user's screen: tables, progress, notes, errors, JSON."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.progress import Advance

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


class ProgressDisplay:
    """Progress bars on standard error, if that is a terminal."""

    @contextmanager
    def task(self, description: str, total: int | None) -> Iterator[Advance]:
        """Show one bar of bytes."""
        with RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        ) as display:
            bar = display.add_task(description, total=total)
            yield lambda done: display.advance(bar, done)


@contextmanager
def work_bar(units: str) -> Iterator[Callable[[int, int, str | Table], None]]:
    """A progress bar with the remaining time, and a line or a table below it.

    Time is measured from the first update. Yields a function that takes the units done, their
    total, and the line or table.
    """
    bar = RichProgress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{units},"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=err,
        auto_refresh=False,
        # Long enough that workers which report in turns make a steady estimate.
        speed_estimate_period=60,
    )
    task = bar.add_task("", total=None, start=False)
    with Live(bar, console=err, transient=True, refresh_per_second=8) as live:

        def update(done: int, total: int, below: str | Table) -> None:
            bar.update(task, completed=done, total=total)
            if not bar.tasks[0].started:
                bar.start_task(task)
            if isinstance(below, str):
                live.update(Group(bar, Text(below, overflow="ellipsis", no_wrap=True)))
            else:
                live.update(Group(bar, below))

        yield update
