"""A table is the same in Markdown, LaTeX and HTML, and no text becomes markup."""

import re
from pathlib import Path

import pytest

from ihgnn_cli.report.layout import Box, Mark, Row, Table
from ihgnn_cli.report.layout_files import html, latex, markdown, write_latex, write_markdown

EVIL = r"a_b & 50% #1 $x$ {y} ~^\ <b>|*"
TABLE = Table(
    name="table1",
    title="Accuracy",
    corner="method",
    heads=("DHFR_MD", "DD"),
    rows=(
        Row(
            "GIN", (Box("70.1 ± 2.0", "65.9 ± 5.5 (+4.2)", Mark.BEST, True), Box("not run", "OOM"))
        ),
        Row("IHGNN", (Box("69.0 ± 1.0", mark=Mark.TIED), Box("–")), apart=True),
    ),
    budget="quick",
    statement="one run.",
    legend="How to read it.",
    notes=("A note.",),
)


def test_markdown_has_the_best_bold_ties_underlined_and_the_paper_below() -> None:
    assert markdown(TABLE).splitlines() == [
        "## Accuracy",
        "",
        "Budget quick: one run.",
        "",
        "How to read it.",
        "",
        r"| method | DHFR\_MD | DD |",
        "|---|--:|--:|",
        r"| GIN | **70.1 ± 2.0\***<br><sub>65.9 ± 5.5 (+4.2)</sub> | not run<br><sub>OOM</sub> |",
        "| IHGNN | <u>69.0 ± 1.0</u> | – |",
        "",
        "- A note.",
    ]


def test_latex_has_booktabs_rules_and_a_line_of_its_own_for_the_paper() -> None:
    assert latex(TABLE).splitlines() == [
        "% Budget quick: one run.",
        r"% Needs \usepackage{booktabs}.",
        r"\begin{table*}",
        r"\centering",
        r"\caption{Accuracy. Budget quick: one run. How to read it.}",
        r"\label{tab:table1}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        r"\begin{tabular}{lcc}",
        r"\toprule",
        r"\textbf{method} & \textbf{DHFR\_MD} & \textbf{DD} \\",
        r"\midrule",
        r"GIN & \textbf{70.1$\pm$2.0$^{*}$} & not run \\",
        r" & {\scriptsize 65.9$\pm$5.5 (+4.2)} & {\scriptsize OOM} \\",
        r"\midrule",
        r"IHGNN & \underline{69.0$\pm$1.0} & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\begin{itemize}",
        r"\item A note.",
        r"\end{itemize}",
        r"\end{table*}",
    ]


def test_latex_special_letters_are_escaped() -> None:
    row = Row(EVIL, (Box(EVIL, EVIL),))
    text = latex(Table(EVIL, EVIL, EVIL, (EVIL,), (row,), "b", EVIL, EVIL, (EVIL,)))
    escaped = (
        r"a\_b \& 50\% \#1 \$x\$ \{y\} \textasciitilde{}\textasciicircum{}\textbackslash{} "
        r"\textless{}b\textgreater{}\textbar{}*"
    )
    assert rf"\item {escaped}" in text
    assert f"{escaped} & {escaped} \\\\" in text
    assert rf"{{\scriptsize {escaped}}}" in text
    assert rf"\textbf{{{escaped}}}" in text
    shown = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    bare = re.sub(r"\\.", "", shown)
    assert bare.count("{") == bare.count("}")
    assert r"\label{tab:a-b" in text


def test_a_comment_of_latex_ends_with_its_line() -> None:
    first = latex(Table("t", "t", "c", (), (), "quick", "one\n\\input{evil}")).splitlines()[0]
    assert first == r"% Budget quick: one \input{evil}"


def test_markdown_special_letters_are_escaped() -> None:
    row = Row(EVIL, (Box(EVIL, EVIL),))
    text = markdown(Table("t", EVIL, EVIL, (EVIL,), (row,), "b", EVIL, EVIL, (EVIL,)))
    plain = re.sub(r"\\.", "", text)
    assert "<b>" not in plain
    assert "*" not in plain
    (line,) = (each for each in plain.splitlines() if each.endswith("</sub> |"))
    assert line.count("|") == 3


def test_html_has_the_same_boxes_and_takes_text_as_text() -> None:
    text = "".join(html(TABLE))
    assert "<strong>70.1 ± 2.0*</strong><br><small>65.9 ± 5.5 (+4.2)</small>" in text
    assert "<u>69.0 ± 1.0</u>" in text
    evil = Table("t", "t", EVIL, (EVIL,), (Row(EVIL, (Box(EVIL, EVIL),)),), "b", "s")
    assert "<b>" not in "".join(html(evil))


@pytest.mark.parametrize(("write", "form"), [(write_markdown, markdown), (write_latex, latex)])
def test_files_hold_the_tables_one_below_the_other(tmp_path: Path, write, form) -> None:  # type: ignore[no-untyped-def]
    write(tmp_path / "out", [TABLE, TABLE])
    assert (tmp_path / "out").read_text(encoding="utf-8") == f"{form(TABLE)}\n\n{form(TABLE)}\n"
