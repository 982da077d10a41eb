"""The trials of a search as a CSV table and as an HTML page; `tuning_figures` draws them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ihgnn_cli.report.layout import auc_text
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
from ihgnn_cli.studies.tuning.rows import TrialRow
from ihgnn_cli.words import counted

PAGE = "report.html"


def write_trials(path: Path, rows: Sequence[TrialRow]) -> None:
    """Write a CSV file: one row per trial, one column per setting, unknown cells empty."""
    names = _names(rows)
    head = ["trial", "state", "validation_accuracy", "validation_loss", *names]
    head += ["best_epoch", "seconds", "tries", "failure"]
    cells = (
        [
            *(row.number, row.state, row.accuracy, row.loss),
            *(_cell(row.params.get(name)) for name in names),
            *(row.best_epoch, row.seconds, row.tries, row.failure),
        ]
        for row in rows
    )
    write_rows(path, head, cells)


def write_report(
    rows: Sequence[TrialRow],
    result: Mapping[str, Any],
    figures: Mapping[str, Path],
    folder: Path,
) -> None:
    """Write the page to the folder of a search.

    Args:
        rows: the trials.
        result: the content of `result.json`.
        figures: PNG files by caption.
        folder: where to write.

    Raises:
        IhgnnError: they cannot be written.
    """
    final, best = result["final"], result["best"]
    test = final["test"]
    params = ", ".join(f"{name} {_shown(value)}" for name, value in best["params"].items())
    runs = f"one run at epoch {final['best_epoch']}, chosen on validation"
    if final["snapshots"]:
        runs = f"mean prediction of {len(final['seeds'])} seeds, no epoch chosen"
    scores = f"{test['balanced_accuracy']:.1%}; {auc_text(test['roc_auc'])}"
    facts = [
        ("Data set", result["dataset"]),
        ("Best trial", f"{best['trial']}: {params}"),
        ("Its validation accuracy", f"{best['validation_accuracy']:.1%}"),
        (
            "Test accuracy of these settings",
            f"{test['accuracy']:.1%} of {counted(test['graphs'], 'graph')}, {runs}",
        ),
        ("Their balanced accuracy and ROC-AUC", scores),
        ("Trials", ", ".join(f"{count:,} {name}" for name, count in result["trials"].items())),
        ("Chosen by", result["chosen_by"]),
        ("Search", f"{result['search']['sampler']}, pruner {result['search']['pruner']}"),
        ("Storage", result["storage"]),
        ("Data SHA-256", result["search"]["data_sha256"]),
        ("Command", result["provenance"]["command"]),
        ("Finished", result["finished"]),
    ]
    body = (
        *fact_list(facts),
        *figure_list(figures, "See the table of trials for numbers."),
        f"<h2>{counted(len(rows), 'trial')}</h2>",
        "<p>Validation accuracy and loss; for a pruned trial, when it was stopped.</p>",
        *table_frame("Trials", _table(rows, best["trial"])),
    )
    write_document(folder / PAGE, f"Search on {result['dataset']}", body)


def _table(rows: Sequence[TrialRow], best: int) -> Iterator[str]:
    names = _names(rows)
    heads = ["accuracy", "loss", *names, "best epoch", "seconds", "tries"]
    yield '<table class="sorted">\n<thead><tr>'
    yield column_head("trial", True) + column_head("state", False)
    yield "".join(column_head(name, True) for name in heads)
    yield column_head("failure", False) + "</tr></thead>\n<tbody>"
    for row in rows:
        mark = " best" if row.number == best else ""
        cells = [
            f'<th scope="row" class="number" data-key="{row.number}">{row.number}</th>',
            text_cell(row.state, f"{row.state}{mark and ', best'}"),
            number_cell(row.accuracy, f"{100 * (row.accuracy or 0):.2f} %"),
            number_cell(row.loss, f"{row.loss or 0:.4f}"),
            *(_setting(row.params.get(name)) for name in names),
            number_cell(row.best_epoch, f"{row.best_epoch or 0:g}"),
            number_cell(row.seconds, f"{row.seconds or 0:.1f}"),
            number_cell(row.tries, str(row.tries)),
            text_cell(row.failure or "", row.failure or "", "long"),
        ]
        yield f'<tr class="{row.state}{mark}">{"".join(cells)}</tr>'
    yield "</tbody>\n</table>"


def _names(rows: Sequence[TrialRow]) -> list[str]:
    """The settings that were searched, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row.params))


def _setting(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = str(_cell(value) or "")
        return text_cell(text, text)
    return number_cell(value, f"{value:.4g}" if isinstance(value, float) else str(value))


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
