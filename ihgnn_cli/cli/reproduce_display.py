"""What `ihgnn reproduce` shows: progress, and at the end the table."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from rich.text import Text

from ihgnn_cli.cli import console
from ihgnn_cli.report.layout import Box, Mark, Table, spread
from ihgnn_cli.words import counted, duration

if TYPE_CHECKING:
    from ihgnn_cli.studies.crossval.run import Progress
    from ihgnn_cli.studies.reproduction import Estimate, Outcome, Watcher

_LINE_SECONDS = 60.0  # between two lines where there is no bar
_STYLES = {Mark.BEST: "bold", Mark.TIED: "underline", Mark.PLAIN: ""}


@contextmanager
def watching(cells: int, *, quiet: bool) -> "Iterator[Watcher]":
    """Show the progress of all cells: a bar in a terminal, otherwise a line a minute."""
    from ihgnn_cli.studies.reproduction import Watcher

    if quiet:
        yield Watcher(warn=console.warn)
        return
    live = console.err.is_terminal and not console.err.is_dumb_terminal
    done, reported = 0, time.monotonic()

    def finished(outcome: "Outcome") -> None:
        nonlocal done
        done += 1
        console.note(f"{done} of {cells}: {_outcome(outcome)}")

    def progress(now: "Progress") -> None:
        nonlocal reported
        if now.killed:
            console.warn("A worker was killed from outside. Its work is done again.")
        text = f"{done} of {counted(cells, 'cell')} finished"
        if now.seconds_left is not None:
            text += f", about {duration(now.seconds_left)} left"
        if live:
            update(now.epochs, now.of_epochs, text)
        elif time.monotonic() - reported >= _LINE_SECONDS:
            reported = time.monotonic()
            console.note(f"{now.epochs:,} of {now.of_epochs:,} model-epochs; {text}")

    with ExitStack() as stack:
        update = stack.enter_context(console.work_bar("model-epochs")) if live else _nothing
        yield Watcher(_preparing, _estimated, progress, finished, console.warn)


def _nothing(_done: int, _total: int, _below: str) -> None:
    pass


def _preparing(done: int, cells: int, _cell: str) -> None:
    if not done:
        console.note(f"Preparing {counted(cells, 'cell')} (a method on a data set) ...")


def _estimated(estimate: "Estimate") -> None:
    console.note(
        f"To train: {counted(estimate.model_epochs, 'model-epoch')}, about "
        f"{duration(estimate.seconds)} here."
    )


def _outcome(outcome: "Outcome") -> str:
    result = outcome.result
    if result is None:
        return f"{outcome.cell} {outcome.refused}"
    return f"{outcome.cell} {spread(result.test_mean, result.test_std)} %"


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
