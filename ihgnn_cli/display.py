"""Progress bars in terminals and notebooks, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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

Update = Callable[[int, int, str], None]
"""Takes the units done, their total, and a line of text to show below the bar."""


class ProgressDisplay:
    """Bars for reading and downloading; shows nothing where the console is not a terminal."""

    def __init__(self, console: Console, *, shown: bool = True) -> None:
        self._console = console
        self._shown = shown and is_live(console)

    @contextmanager
    def task(self, description: str, total: int | None) -> Iterator[Advance]:
        """Show one bar of bytes."""
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
    """A bar of units of work with the time that is left, and a line or a table under it.

    The time is counted from the first that is told, which need not be the first of all. Gives a
    function that takes the units done, all of them, and the line.
    """
    bar = RichProgress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{units},"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        auto_refresh=False,
        # Long enough that workers which report in turns make a steady estimate.
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


def is_live(console: Console) -> bool:
    """Whether a console can redraw what it shows: a terminal, or a notebook with ipywidgets."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return console.is_terminal and not console.is_dumb_terminal


class Display:
    """The progress that the Python API shows.

    Args:
        progress: `None` shows it in terminals and notebooks only; `True` and `False` insist.
            Where nothing can be redrawn, each tenth of the work is one line.
    """

    def __init__(self, progress: bool | None = None) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        shown = self._console.is_jupyter or is_live(self._console)
        self._shown = shown if progress is None else progress
        self.reading = ProgressDisplay(self._console, shown=self._shown)
        """For reading and downloading."""

    @contextmanager
    def work(self, units: str) -> Iterator[Update]:
        """Show the work of the block as one bar of these units."""
        if not self._shown:
            yield lambda _done, _total, _text: None
        elif is_live(self._console):
            with work_bar(self._console, units) as update:
                yield update
        else:
            told = -1

            def tell(done: int, total: int, text: str) -> None:
                nonlocal told
                if 10 * done // total > told:
                    told = 10 * done // total
                    line = f"{done:,} of {total:,} {units}: {text}"
                    self._console.print(line, soft_wrap=True)

            yield tell
