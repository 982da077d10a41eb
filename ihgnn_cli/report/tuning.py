"""The trials of a search as a CSV table and as an HTML page; `tuning_figures` draws them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ihgnn_cli.report.page import (
    column_head,
    fact_list,
    figure_list,
    number_cell,
    table_frame,
    text_cell,
    write_document,
)
from ihgnn_cli.report.tables import write_rows
from ihgnn_cli.studies.tuning.rows import TrialRow, Value
from ihgnn_cli.words import counted


def names_of(rows: Sequence[TrialRow]) -> list[str]:
    """The settings that were searched, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row.params))


def write_trials(path: Path, rows: Sequence[TrialRow]) -> None:
    """Write a CSV file: one row per trial, one column per setting, unknown cells empty."""
    names = names_of(rows)
    head = ["trial", "state", "validation_accuracy", "validation_loss", *names]
    head += ["best_epoch", "seconds", "tries", "failure"]
    cells = (
        [
            *(row.number, row.state_name, row.accuracy, row.loss),
            *(_cell(row.params.get(name)) for name in names),
            *(row.best_epoch, row.seconds, row.tries, row.failure),
        ]
        for row in rows
    )
    write_rows(path, head, cells)


def write_page(
    path: Path,
    title: str,
    facts: Sequence[tuple[str, str]],
    rows: Sequence[TrialRow],
    *,
    best: int | None,
    figures: Mapping[str, Path],
) -> None:
    """Write a search as one HTML file.

    Args:
        path: the HTML file.
        title: the heading.
        facts: names and values to list below the heading.
        rows: the trials.
        best: the number of the best trial.
        figures: PNG files by caption.

    Raises:
        InputError: the path is a folder.
        IhgnnError: the page cannot be written.
    """
    write_document(path, title, _body(facts, rows, best, figures))


def _body(
    facts: Sequence[tuple[str, str]],
    rows: Sequence[TrialRow],
    best: int | None,
    figures: Mapping[str, Path],
) -> Iterator[str]:
    yield from fact_list(facts)
    yield from figure_list(figures, "See the table of trials for numbers.")
    yield f"<h2>{counted(len(rows), 'trial')}</h2>"
    yield "<p>Validation accuracy and loss; for a pruned trial, when it was stopped.</p>"
    yield from table_frame("Trials", _table(rows, best))


def _table(rows: Sequence[TrialRow], best: int | None) -> Iterator[str]:
    names = names_of(rows)
    numeric = {name for name in names if all(_is_numeric(row.params.get(name)) for row in rows)}
    yield '<table class="sorted">\n<thead><tr>'
    yield column_head("trial", True) + column_head("state", False) + column_head("accuracy", True)
    yield column_head("loss", True) + "".join(column_head(name, name in numeric) for name in names)
    chosen_epochs = any(row.best_epoch is not None for row in rows)
    last = (*(("best epoch",) if chosen_epochs else ()), "seconds", "tries")
    yield "".join(column_head(name, True) for name in last)
    yield column_head("failure", False) + "</tr></thead>\n<tbody>"
    for row in rows:
        chosen = row.number == best
        state = f"{row.state_name}, best" if chosen else row.state_name
        epoch = number_cell(row.best_epoch, f"{row.best_epoch or 0:g}")
        yield (
            f'<tr class="{row.state_name}{" best" if chosen else ""}">'
            + "".join(
                (
                    f'<th scope="row" class="number" data-key="{row.number}">{row.number}</th>',
                    text_cell(state, state),
                    number_cell(row.accuracy, f"{row.percent:.2f} %"),
                    number_cell(row.loss, f"{row.loss or 0:.4f}"),
                    *(_setting(row.params.get(name)) for name in names),
                    epoch if chosen_epochs else "",
                    number_cell(row.seconds, f"{row.seconds or 0:.1f}"),
                    number_cell(row.tries, str(row.tries)),
                    text_cell(row.failure or "", row.failure or "", "long"),
                )
            )
            + "</tr>"
        )
    yield "</tbody>\n</table>"


def _setting(value: Value | None) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = str(_cell(value) or "")
        return text_cell(text, text)
    return number_cell(value, f"{value:.4g}" if isinstance(value, float) else str(value))


def _is_numeric(value: Value | None) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: Value | None) -> object:
    return str(value).lower() if isinstance(value, bool) else value
