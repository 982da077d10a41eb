"""Progress bars in terminals and notebooks, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib.util import find_spec

from rich.console import Console, Group
from rich.live import Live
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

from ihgnn_cli.progress import Advance

# Bytes that take about a second to read.
_LARGE = 10_000_000

Update = Callable[[int, int, str], None]
"""Takes the units done, their total, and a line of text to show below the bar."""


class ProgressDisplay:
    """Progress bars for reading and downloading; shown only if the console can redraw."""

    def __init__(self, console: Console, *, shown: bool = True) -> None:
        self._console = console
        self._shown = shown and is_live(console)
        self._lines = shown and not self._shown

    @contextmanager
    def task(self, description: str, total: int | None) -> Iterator[Advance]:
        """Show one progress bar in bytes; large files get a line where nothing can be redrawn."""
        if self._lines and (total or 0) > _LARGE:
            self._console.print(description, style="dim", soft_wrap=True)
        with RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=not self._shown,
        ) as display:
            bar = display.add_task(description, total=total)
            yield lambda done: display.advance(bar, done)


@contextmanager
def work_bar(console: Console, units: str) -> Iterator[Callable[[int, int, str | Table], None]]:
    """A progress bar with the remaining time, and a line or a table below it.

    The time is measured from the first update, when some units may be done already. Yields a
    function that takes the units done, their total, and the line or table.
    """
    bar = RichProgress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{units},"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        auto_refresh=False,
        # Long enough for a steady estimate when workers report in turn.
        speed_estimate_period=60,
    )
    task = bar.add_task("", total=None, start=False)
    with Live(bar, console=console, transient=True, refresh_per_second=8) as live:

        def update(done: int, total: int, below: str | Table) -> None:
            bar.update(task, completed=done, total=total)
            if not bar.tasks[0].started:
                bar.start_task(task)
            if isinstance(below, str):
                live.update(Group(bar, Text(below, overflow="ellipsis", no_wrap=True)))
            else:
                live.update(Group(bar, below))

        yield update


@contextmanager
def work(console: Console, units: str, *, quiet: bool = False) -> Iterator[Update]:
    """A progress bar, or where the console cannot redraw, a line for each tenth of the work."""
    if quiet:
        yield lambda _done, _total, _text: None
    elif is_live(console):
        with work_bar(console, units) as update:
            yield update
    else:
        printed = -1

        def report(done: int, total: int, text: str) -> None:
            nonlocal printed
            tenths = 10 * done // max(total, 1)
            if tenths > printed:
                printed = tenths
                console.print(f"{done:,} of {total:,} {units}: {text}", style="dim", soft_wrap=True)

        yield report


@contextmanager
def in_steps(
    bar: Callable[[str], AbstractContextManager[Update]],
) -> Iterator[Callable[[str, int, int, str], None]]:
    """Progress of work in several steps: one bar at a time, in the units of the step.

    Args:
        bar: opens the bar of a step.
    """
    shown: dict[str, Update] = {}
    with ExitStack() as stack:

        def tell(step: str, done: int, total: int, text: str) -> None:
            if step not in shown:
                stack.close()  # the bar of the step before
                shown[step] = stack.enter_context(bar(step))
            shown[step](done, total, text)

        yield tell


def is_live(console: Console) -> bool:
    """Whether a console can redraw its output: a terminal, or a notebook with ipywidgets."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return console.is_terminal and not console.is_dumb_terminal


class Display:
    """Progress display of the Python API.

    Args:
        progress: `True` shows progress, `False` hides it, and `None` shows it in terminals and
            notebooks only. Where the output cannot be redrawn, each tenth of the work is one line.
    """

    def __init__(self, progress: bool | None = None) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        shown = self._console.is_jupyter or is_live(self._console)
        self._shown = shown if progress is None else progress
        self.reading = ProgressDisplay(self._console, shown=self._shown)
        """Display for reading and downloading."""

    def say(self, text: str) -> None:
        """Print a line, if progress is shown."""
        if self._shown:
            self._console.print(text, style="dim", soft_wrap=True)

    @contextmanager
    def work(self, units: str) -> Iterator[Update]:
        """Show the work of the block as one progress bar in these units."""
        with work(self._console, units, quiet=not self._shown) as update:
            yield update
