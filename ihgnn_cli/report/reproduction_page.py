"""Reproduced tables and figures of the paper as one self-contained HTML page."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from ihgnn_cli.report.comparison_notes import TEST_EXPLAINED
from ihgnn_cli.report.layout import Table, auc_text, p_value, percent, signed, spread
from ihgnn_cli.report.layout_files import html
from ihgnn_cli.report.origins import commands, origin_facts
from ihgnn_cli.report.page import (
    column_head,
    fact_list,
    figure_list,
    number_cell,
    table_frame,
    text_cell,
    write_document,
)
from ihgnn_cli.studies.comparison import Comparison, Entry, Place
from ihgnn_cli.studies.crossval.result import CrossvalResult
from ihgnn_cli.words import counted

_TEXTS = ("data set", "method")
_NUMBERS = (
    *("ours in %", "paper in %", "difference in points", "minus IHGNN in points, paired"),
    *("p", "p (Holm)", "balanced accuracy in %", "ROC-AUC", "folds", "runs", "epochs"),
)


def write_page(
    path: Path,
    title: str,
    tables: Sequence[Table],
    figures: Mapping[str, Path],
    *,
    comparison: Comparison | None = None,
    results: Sequence[CrossvalResult] = (),
) -> None:
    """Write tables and figures as one HTML file.

    Args:
        path: the HTML file.
        title: the heading.
        tables: at least one; the page describes the budget of the first.
        figures: SVG or PNG files by caption.
        comparison: if given, the page has a sortable table of all its numbers and explains the
            test.
        results: the results, for versions and commands.

    Raises:
        InputError: the path is a folder.
        IhgnnError: the page cannot be written.
    """
    write_document(path, title, _body(tables, figures, comparison, results))


def _body(
    tables: Sequence[Table],
    figures: Mapping[str, Path],
    comparison: Comparison | None,
    results: Sequence[CrossvalResult],
) -> Iterator[str]:
    facts = [("Budget", tables[0].budget), ("Description", tables[0].statement)]
    if comparison is not None:
        facts.append(("Test of significance", TEST_EXPLAINED))
    yield from fact_list(facts)
    for table in tables:
        yield f"<h2>{escape(table.title)}</h2>"
        if table.legend:
            yield f"<p>{escape(table.legend.replace(TEST_EXPLAINED, '').strip())}</p>"
        yield from table_frame(table.title, html(table))
        if table.notes:
            yield "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in table.notes) + "</ul>"
    yield from figure_list(figures, "See the tables for numbers.")
    if comparison is not None:
        yield f"<h2>{counted(len(comparison.entries), 'result')}</h2>"
        yield from table_frame("All results", _entries(comparison.entries))
    if results:
        yield "<h2>Provenance</h2>"
        yield from fact_list(origin_facts(results))
        found = commands(results)
        if found:
            yield f"<details><summary>{counted(len(found), 'command')}</summary>"
            yield f"<pre>{escape(chr(10).join(found))}</pre></details>"


def _entries(entries: Sequence[Entry]) -> Iterator[str]:
    yield '<table class="sorted">\n<thead><tr>'
    yield "".join(column_head(name, False) for name in _TEXTS)
    yield "".join(column_head(name, True) for name in _NUMBERS) + column_head("remark", False)
    yield "</tr></thead>\n<tbody>"
    for entry in entries:
        best = ' class="best"' if entry.place == Place.BEST else ""
        yield f"<tr{best}>{''.join(_cells(entry))}</tr>"
    yield "</tbody>\n</table>"


def _cells(entry: Entry) -> Iterator[str]:
    cell, test, paper = entry.cell, entry.against, entry.cell.paper
    yield text_cell(cell.dataset, cell.dataset)
    yield text_cell(cell.title, cell.title)
    yield number_cell(cell.mean, spread(cell.mean or 0, cell.std or 0))
    if paper is not None and paper.mean is None:
        yield text_cell("OOM", "", "number")
    else:
        text = "" if paper is None else spread(paper.mean or 0, paper.std or 0)
        yield number_cell(None if paper is None else paper.mean, text)
    yield number_cell(cell.difference, signed(cell.difference or 0))
    away, gap = (None, None) if test is None else (test.difference, test.gap)
    text = signed(away or 0)
    if gap is not None and gap.error is not None:
        text = f"{signed(gap.difference)} ± {percent(gap.error)}"
    yield number_cell(away, text)
    for p in (None, None) if test is None else (test.p, test.p_holm):
        yield number_cell(p, p_value(p or 0))
    balanced, auc = cell.balanced_accuracy, cell.roc_auc
    yield number_cell(balanced, percent(balanced or 0))
    yield number_cell(auc, auc_text(auc))
    run = cell.mean is not None
    for number in (len(cell.folds), cell.runs, cell.epochs):
        yield number_cell(number if run else None, f"{number:,}" if number is not None else "")
    remark = "; ".join(_remarks(entry))
    yield text_cell(remark, remark, "long")


def _remarks(entry: Entry) -> Iterator[str]:
    cell = entry.cell
    if entry.place == Place.BEST:
        yield "better than every other method"
    if entry.place == Place.TIED:
        yield "not separable from the best"
    if cell.refused is not None:
        yield f"not run: {cell.refused}"
    if entry.against is not None and entry.against.untested is not None:
        yield f"not tested: {entry.against.untested}"
    share = cell.majority_share
    if share is not None and cell.mean is not None and cell.mean <= share:
        yield f"no better than the majority class ({percent(share)} %)"
