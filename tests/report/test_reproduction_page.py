"""The page of a reproduction holds tables, figures, test, budget and origins, and loads nothing."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import finished_crossvals
from compared import GIN, OURS, WORSE, cell

from ihgnn_cli.report.comparison import accuracy_table, significance_table
from ihgnn_cli.report.comparison_figure import draw_comparison
from ihgnn_cli.report.comparison_notes import TEST_EXPLAINED
from ihgnn_cli.report.reproduction_page import write_page
from ihgnn_cli.studies.comparison import Comparison, compare, refused_cell

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
REFUSED = refused_cell("DD", "ppgn", "does not fit: about 96 GB")
RESULT = finished_crossvals.result(
    provenance={"ihgnn": "0.1.0", "command": "ihgnn crossval --dataset MUTAG"}
)


class Page(HTMLParser):
    """What a browser would find."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self._cell = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.opened.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._cell:
            self.rows[-1][-1] += data


def written(folder: Path, comparison: Comparison, **changes: Any) -> Page:
    budget = {"budget": "quick", "statement": "one run of 5 epochs", **changes}
    tables = [
        accuracy_table(comparison, "table1", "Accuracy"),
        significance_table(comparison, "table1"),
    ]
    tables = [replace(each, **budget) for each in tables]
    draw_comparison(comparison, "MUTAG", folder / "mutag.svg", budget="quick")
    figures = {"MUTAG": folder / "mutag.svg"}
    write_page(
        *(folder / "page.html", "Table 1", tables, figures), comparison=comparison, results=[RESULT]
    )
    return Page((folder / "page.html").read_text(encoding="utf-8"))


def test_budget_test_origins_and_commands_are_told(tmp_path: Path) -> None:
    page = written(tmp_path, compare([OURS, GIN]))
    for told in ("quick", "one run of 5 epochs", TEST_EXPLAINED, "0.1.0"):
        assert page.words.count(told) == 1
    assert "ihgnn crossval --dataset MUTAG" in page.words


def test_all_results_are_in_a_table_that_can_be_sorted(tmp_path: Path) -> None:
    gin = replace(GIN, balanced_accuracy=0.795, roc_auc=0.834)
    page = written(tmp_path, compare([OURS, gin, WORSE, REFUSED]))
    assert [attrs.get("class") for tag, attrs in page.opened if tag == "table"] == [
        *(None, None, "sorted")
    ]
    start = next(place for place, row in enumerate(page.rows) if row[:1] == ["data set"])
    assert page.rows[start + 1 :] == [
        ["DD", "PPGNs", "", "OOM", *[""] * 9, "not run: does not fit: about 96 GB"],
        [
            *("MUTAG", "GIN", "82.0 ± 3.7", "83.4 ± 6.4", "−1.4", "−2.0"),
            *("0.399", "0.399", "79.5", "0.834", "5", "1", "5", "not separable from the best"),
        ],
        [
            *("MUTAG", "ACM", "59.6 ± 2.4", "80.8 ± 8.1", "−21.2", "−24.4"),
            *("0.001", "0.003", "", "", "5", "1", "5"),
            "no better than the majority class (60.0 %)",
        ],
        [
            *("MUTAG", "IHGNN", "84.0 ± 5.8", "89.9 ± 6.0", "−5.9", ""),
            *("", "", "", "", "5", "1", "5", "not separable from the best"),
        ],
    ]


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    page = written(tmp_path, compare([OURS, GIN]))
    tags = [tag for tag, _ in page.opened]
    assert tags.count("svg") == 1
    assert not {"link", "iframe", "object", "base", "img", "image"} & set(tags)
    links = [attrs[name] for _, attrs in page.opened for name in ("src", "href") if name in attrs]
    assert links
    assert all(str(link).startswith("#") for link in links)
    assert "http:" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    (policy,) = [attrs["content"] for tag, attrs in page.opened if "http-equiv" in attrs]
    assert str(policy).startswith("default-src 'none'")


def test_nothing_that_is_given_becomes_markup(tmp_path: Path) -> None:
    evil = [cell("ihgnn", 0.5, 0.6), cell(EVIL, 0.5, 0.7), refused_cell("MUTAG", "gin", EVIL)]
    page = written(tmp_path, compare(evil), statement=EVIL)
    assert [tag for tag, _ in page.opened].count("script") == 1
    assert "img" not in [tag for tag, _ in page.opened]
    assert not any(name.startswith("on") for _, attrs in page.opened for name in attrs)


def test_tables_alone_make_a_page(tmp_path: Path) -> None:
    table = accuracy_table(compare([OURS]), "t", "Accuracy")
    write_page(tmp_path / "page.html", "Alone", [table], {})
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "svg" not in [tag for tag, _ in page.opened]
    assert TEST_EXPLAINED not in page.words
