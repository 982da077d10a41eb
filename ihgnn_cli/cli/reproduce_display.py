"""What `ihgnn reproduce` shows: progress, and at the end the tables."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.text import Text

from ihgnn_cli.cli import console
from ihgnn_cli.report.layout import Box, Mark, Table, spread

if TYPE_CHECKING:
    from ihgnn_cli.studies.crossval import Progress
    from ihgnn_cli.studies.reproduction import CellPlan, Done

_LINE_SECONDS = 60.0  # between two lines about a cell that takes long
_STYLES = {Mark.BEST: "bold", Mark.TIED: "underline", Mark.PLAIN: ""}

Watch = Callable[[int, "CellPlan", "Progress", object], None]
"""Called with the number of a cell, its plan, and its progress."""
Tell = Callable[[int, "Done", float], None]
"""Called with the number of a cell, its outcome, and the seconds it took."""


@contextmanager
def progress(total: int, *, quiet: bool) -> Iterator[tuple[Watch, Tell]]:
    """A bar of cells in a terminal, otherwise a line per finished cell."""

    def say(number: int, done: "Done", seconds: float) -> None:
        if not quiet:
            console.note(f"{number + 1} of {total}: {_outcome(done)} ({seconds:.0f} s)")

    def line(plan: "CellPlan", progress: "Progress") -> str:
        return f"{plan}: {progress.epochs:,} of {progress.of_epochs:,} model-epochs"

    if quiet:
        yield (lambda *_: None), say
    elif not console.err.is_terminal or console.err.is_dumb_terminal:
        reported = time.monotonic()

        def tell(_number: int, plan: "CellPlan", progress: "Progress", _step: object) -> None:
            nonlocal reported
            over = progress.epochs >= progress.of_epochs
            if not over and time.monotonic() - reported >= _LINE_SECONDS:
                reported = time.monotonic()
                console.note(line(plan, progress))

        yield tell, say
    else:
        with console.work_bar("cells") as update:

            def watch(number: int, plan: "CellPlan", progress: "Progress", _step: object) -> None:
                update(number, total, line(plan, progress))

            def finished(number: int, done: "Done", seconds: float) -> None:
                say(number, done, seconds)
                update(number + 1, total, "")

            yield watch, finished


def _outcome(done: "Done") -> str:
    if done.result is None:
        return f"{done.plan} {done.refused}"
    return f"{done.plan} {spread(done.result['test_mean'], done.result['test_std'])} %"


def show_table(table: Table) -> None:
    """Show a table below its title and a few sentences."""
    console.show(table.title, style="bold")
    console.show(" ".join(table.summary or (table.legend,)))
    shown = console.table(None, table.corner, *table.heads)
    shown.columns[0].justify = "left"
    for row in table.rows:
        if row.apart:
            shown.add_section()
        shown.add_row(row.title, *(_cell(box) for box in row.boxes))
    console.show(shown)


def _cell(box: Box) -> Text:
    text = Text(f"{box.text}{'*' if box.starred else ''}", style=_STYLES[box.mark])
    if box.beside:
        text.append(f"\n{box.beside}", style="not bold not underline dim")
    return text
