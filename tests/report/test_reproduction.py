"""The files of a reproduction: all of them, each with its budget, and names that are safe."""

import csv
from pathlib import Path

import finished_crossvals
import pytest
from compared import GIN, OURS, cell

from ihgnn_cli.data import load_dataset
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.report.curves import Chart, Spread, make_curve
from ihgnn_cli.report.reproduction import Written, write_chart, write_comparison, write_homophily
from ihgnn_cli.studies.comparison import Cell, compare, refused_cell
from ihgnn_cli.studies.ranks import Ranks

RESULT = finished_crossvals.result(
    provenance={"ihgnn": "0.1.0", "command": "ihgnn reproduce table1"}
)
STATEMENT = "Budget 'quick': two folds."


def written(folder: Path, *cells: Cell) -> Written:
    return write_comparison(
        compare(list(cells)),
        [RESULT],
        folder,
        name="table1",
        title="Accuracy of some",
        budget="quick",
        statement=STATEMENT,
    )


def names(found: Written) -> list[str]:
    return [path.name for path in found.files]


def test_a_comparison_is_written_in_every_form(tmp_path: Path) -> None:
    found = written(tmp_path, OURS, GIN)
    assert names(found) == [
        "table1.md",
        "table1.tex",
        "table1.csv",
        "table1-MUTAG.svg",
        "table1.html",
    ]
    assert sorted(tmp_path.iterdir()) == sorted(found.files)
    texts = {path.suffix: path.read_text(encoding="utf-8") for path in found.files}
    for text in texts.values():
        assert "quick" in text
    for suffix in (".md", ".html"):
        assert "84.0 ± 5.8" in texts[suffix]
        assert "89.9 ± 6.0" in texts[suffix]  # the paper's
    assert "two folds" in texts[".tex"]
    assert "ihgnn reproduce table1" in texts[".html"]
    assert "<svg" in texts[".svg"]


def test_three_data_sets_are_ranked_in_a_table(tmp_path: Path) -> None:
    cells = [
        cell(model, mean, mean, dataset=name)
        for name in ("DD", "KKI", "MUTAG")
        for model, mean in (("gin", 0.6), ("acm", 0.5), ("ihgnn", 0.7))
    ]
    found = written(tmp_path, *cells)
    assert isinstance(found.ranks, Ranks)
    assert found.ranks.average == (1, 2, 3)
    assert [row.title for row in found.tables[2].rows] == ["IHGNN", "GIN", "ACM"]
    for suffix in ("md", "tex", "html"):
        text = (tmp_path / f"table1.{suffix}").read_text(encoding="utf-8")
        assert "Average ranks over the data sets" in text
        assert "Average ranks of 3 methods over 3 data sets" in text
    two = written(tmp_path / "two", *cells[:6])
    assert two.tables[0].notes[-1] == two.ranks
    assert "No ranks" in str(two.ranks)


def test_the_numbers_are_in_a_csv_with_a_row_a_cell(tmp_path: Path) -> None:
    written(tmp_path, OURS, GIN, refused_cell("DD", "gin", "does not fit: about 96 GB"))
    with (tmp_path / "table1.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 3
    assert {"quick"} == {row["budget"] for row in rows}


def test_the_tables_are_given_back_to_be_shown(tmp_path: Path) -> None:
    accuracy, tests = written(tmp_path, OURS, GIN).tables
    assert accuracy.title == "Accuracy of some"
    assert accuracy.heads == ("MUTAG",)
    assert tests.title != accuracy.title
    assert {accuracy.statement, tests.statement} == {STATEMENT}


def test_a_data_set_on_which_nothing_was_run_has_no_figure(tmp_path: Path) -> None:
    refused = refused_cell("DD", "gin", "does not fit: about 96 GB")
    found = written(tmp_path, OURS, refused)
    assert [name for name in names(found) if name.endswith(".svg")] == ["table1-MUTAG.svg"]
    assert "does not fit" in (tmp_path / "table1.md").read_text(encoding="utf-8")


def test_figures_have_names_that_any_disk_takes(tmp_path: Path) -> None:
    found = written(tmp_path, cell("ihgnn", 0.5, 0.6, dataset="synthetic:graphs=4,seed=1/../x"))
    (figure,) = [name for name in names(found) if name.endswith(".svg")]
    assert figure == "table1-synthetic_graphs_4_seed_1_.._x.svg"
    assert (tmp_path / figure).is_file()


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IhgnnError, match="Cannot write"):
        written(tmp_path / "file", OURS)


def test_curves_are_written_in_every_form(tmp_path: Path) -> None:
    chart = Chart(
        name="sensitivity",
        title="Accuracy by K",
        x_name="K",
        lines="data set",
        band="over seeds",
        curves=(make_curve("MUTAG", [(1.0, [0.5, 0.7]), (2.0, [0.75])], Spread.STD),),
        budget="quick",
        statement=STATEMENT,
        log2=True,
        notes=("IHGNN on DD does not fit.",),
    )
    found = write_chart(chart, [RESULT], tmp_path)
    assert names(found) == [f"sensitivity.{each}" for each in ("md", "tex", "csv", "svg", "html")]
    page = (tmp_path / "sensitivity.html").read_text(encoding="utf-8")
    for told in (STATEMENT.replace("'", "&#x27;"), "IHGNN on DD does not fit.", "<svg"):
        assert told in page
    assert "60.0" in (tmp_path / "sensitivity.md").read_text(encoding="utf-8")


def test_homophily_is_written_in_every_form(tmp_path: Path) -> None:
    found = write_homophily(
        [load_dataset("MUTAG")], tmp_path, budget="quick", statement="Nothing is trained."
    )
    assert names(found) == [f"figure1.{each}" for each in ("md", "tex", "csv", "svg", "html")]
    text = (tmp_path / "figure1.md").read_text(encoding="utf-8")
    assert "MUTAG" in text
    assert "Nothing is trained." in text
