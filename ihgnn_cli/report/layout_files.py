"""Tables as Markdown, LaTeX and HTML."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from ihgnn_cli.files import written_whole
from ihgnn_cli.report.layout import Box, Mark, Row, Table

_LATEX = {
    "\\": r"\textbackslash{}",
    **{each: f"\\{each}" for each in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "β": r"$\beta$",
    "†": r"$^\dagger$",
    "–": "--",
    "…": r"\ldots{}",
    "√": r"$\surd$",
}
_TIGHT = re.compile(r"(?<=\d) ± (?=\d)")  # between numbers, as in the paper
_MARKDOWN = "\\`*_[]<>|#~"


def write_markdown(path: Path, tables: Sequence[Table]) -> None:
    """Write tables to a Markdown file.

    Raises:
        IhgnnError: the file cannot be written.
    """
    _write(path, "\n\n".join(markdown(table) for table in tables))


def write_latex(path: Path, tables: Sequence[Table]) -> None:
    r"""Write tables for `\input` in a document that has `\usepackage{booktabs}`.

    Raises:
        IhgnnError: the file cannot be written.
    """
    _write(path, "\n\n".join(latex(table) for table in tables))


def _write(path: Path, text: str) -> None:
    with written_whole(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8", errors="xmlcharrefreplace")


def markdown(table: Table) -> str:
    """A table in GitHub's Markdown."""
    lines = [f"## {_in_markdown(table.title)}", "", _in_markdown(_budget(table)), ""]
    if table.legend:
        lines += [_in_markdown(table.legend), ""]
    lines.append(_markdown_row([table.corner, *table.heads]))
    lines.append("|---|" + "--:|" * len(table.heads))
    for row in table.rows:
        cells = "".join(f" {_markdown_box(box)} |" for box in row.boxes)
        lines.append(f"| {_in_markdown(row.title)} |{cells}")
    if table.notes:
        lines += ["", *(f"- {_in_markdown(note)}" for note in table.notes)]
    return "\n".join(lines)


def _markdown_row(texts: Iterable[str]) -> str:
    return "|" + "".join(f" {_in_markdown(text)} |" for text in texts)


def _markdown_box(box: Box) -> str:
    text = _in_markdown(box.text + ("*" if box.starred else ""))
    if box.mark == Mark.BEST:
        text = f"**{text}**"
    elif box.mark == Mark.TIED:
        text = f"<u>{text}</u>"
    return f"{text}<br><sub>{_in_markdown(box.beside)}</sub>" if box.beside else text


def _in_markdown(text: str) -> str:
    one_line = " ".join(text.split())
    return "".join(f"\\{each}" if each in _MARKDOWN else each for each in one_line)


def latex(table: Table) -> str:
    """A table with booktabs rules."""
    caption = " ".join(part for part in (f"{table.title}.", _budget(table), table.legend) if part)
    lines = [
        f"% {' '.join(_budget(table).split())}",
        r"% Needs \usepackage{booktabs}.",
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{_in_latex(caption)}}}",
        rf"\label{{tab:{_label(table.name)}}}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        rf"\begin{{tabular}}{{l{'c' * len(table.heads)}}}",
        r"\toprule",
        _latex_row([table.corner, *table.heads], r"\textbf{{{}}}"),
        r"\midrule",
    ]
    for row in table.rows:
        lines += _latex_lines(row)
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes:
        notes = [rf"\item {_in_latex(note)}" for note in table.notes]
        lines += [r"\begin{itemize}", *notes, r"\end{itemize}"]
    return "\n".join([*lines, r"\end{table*}"])


def _latex_lines(row: Row) -> Iterator[str]:
    if row.apart:
        yield r"\midrule"
    yield " & ".join([_in_latex(row.title), *(_latex_box(box) for box in row.boxes)]) + r" \\"
    if any(box.beside for box in row.boxes):
        yield _latex_row(["", *(box.beside for box in row.boxes)], r"{{\scriptsize {}}}")


def _latex_row(texts: Iterable[str], form: str) -> str:
    cells = (form.format(_in_latex(text)) if text else "" for text in texts)
    return " & ".join(cells) + r" \\"


def _latex_box(box: Box) -> str:
    text = _in_latex(box.text) + ("$^{*}$" if box.starred else "")
    if box.mark == Mark.BEST:
        return rf"\textbf{{{text}}}"
    return rf"\underline{{{text}}}" if box.mark == Mark.TIED else text


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(each, each) for each in _TIGHT.sub("±", text))


def _label(name: str) -> str:
    return "".join(each if each.isalnum() and each.isascii() else "-" for each in name)


def html(table: Table) -> Iterator[str]:
    """The HTML of a table for `page.table_frame`, without title, legend and notes."""
    yield "<table>\n<thead><tr>"
    yield f'<th scope="col">{escape(table.corner)}</th>'
    yield "".join(f'<th scope="col" class="number">{escape(head)}</th>' for head in table.heads)
    yield "</tr></thead>\n<tbody>"
    for row in table.rows:
        cells = "".join(f'<td class="number">{_html_box(box)}</td>' for box in row.boxes)
        yield f'<tr><th scope="row">{escape(row.title)}</th>{cells}</tr>'
    yield "</tbody>\n</table>"


def _html_box(box: Box) -> str:
    text = escape(box.text) + ("*" if box.starred else "")
    if box.mark == Mark.BEST:
        text = f"<strong>{text}</strong>"
    elif box.mark == Mark.TIED:
        text = f"<u>{text}</u>"
    return f"{text}<br><small>{escape(box.beside)}</small>" if box.beside else text


def _budget(table: Table) -> str:
    return f"Budget {table.budget}: {table.statement}"
