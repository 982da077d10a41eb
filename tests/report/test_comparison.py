"""The table of methods: ours above the paper's, what is marked, and the same in CSV."""

import csv
from dataclasses import replace
from pathlib import Path

from compared import GIN, OURS, WORSE, cell

from ihgnn_cli.report.comparison import (
    accuracy_table,
    auc_table,
    significance_table,
    write_cells,
)
from ihgnn_cli.report.layout import Box, Mark, Table
from ihgnn_cli.studies.comparison import Cell, ReferenceCell, compare, refused_cell
from ihgnn_cli.studies.statistics import Paired

ON_DD = cell("gin", 0.7, 0.8, 0.75, 0.7, 0.8, dataset="DD")
REFUSED = refused_cell("DD", "ppgn", "does not fit: about 96 GB")
ALL = [OURS, GIN, WORSE, ON_DD, REFUSED]


def table(cells: list[Cell]) -> Table:
    return accuracy_table(compare(cells), "table1", "Accuracy")


def boxes(found: Table, title: str) -> tuple[Box, ...]:
    (row,) = (row for row in found.rows if row.title == title)
    return row.boxes


def test_methods_are_rows_and_data_sets_columns_as_in_the_paper() -> None:
    found = table(ALL)
    assert [row.title for row in found.rows] == ["PPGNs", "GIN", "ACM", "IHGNN", "majority class"]
    assert found.heads == ("DD", "MUTAG")
    assert table([cell("gin", 0.5, dataset="IMDB-BINARY")]).heads == ("IMDB-B",)


def test_a_box_has_ours_the_papers_number_and_the_difference() -> None:
    found = table(ALL)
    assert boxes(found, "IHGNN")[1] == Box("84.0 ± 5.8", "89.9 ± 6.0 (−5.9)", Mark.TIED)
    assert boxes(found, "GIN") == (
        Box("75.0 ± 4.5", "75.3 ± 2.9† (−0.3)"),
        Box("82.0 ± 3.7", "83.4 ± 6.4 (−1.4)", Mark.TIED),
    )
    assert boxes(found, "ACM")[1] == Box("59.6 ± 2.4", "80.8 ± 8.1 (−21.2)", starred=True)


def test_nothing_is_marked_where_all_methods_are_tied_and_bold_where_one_is_ahead_of_all() -> None:
    tied = table([OURS, GIN])
    assert [boxes(tied, name)[0].mark for name in ("IHGNN", "GIN")] == [Mark.PLAIN, Mark.PLAIN]
    ahead = table([OURS, WORSE])
    assert [boxes(ahead, name)[0].mark for name in ("IHGNN", "ACM")] == [Mark.BEST, Mark.PLAIN]
    assert "significantly better than every other method" in ahead.legend


def test_not_run_out_of_memory_and_missing_are_told_apart() -> None:
    found = table(ALL)
    assert boxes(found, "PPGNs") == (Box("not run", "OOM"), Box("–", "86.7 ± 6.7"))
    assert boxes(table([cell("mine", 0.5)]), "mine") == (Box("50.0 ± 0.0", "–"),)
    assert any("PPGNs on DD (does not fit: about 96 GB)" in note for note in found.notes)


def test_the_legend_explains_what_is_there() -> None:
    assert "OOM" in table(ALL).legend
    assert "†" in table(ALL).legend
    assert not {"OOM", "†"} & set(table([OURS, GIN]).legend.split())


def test_the_majority_class_is_below_the_methods() -> None:
    assert boxes(table(ALL), "majority class") == (Box("60.0"), Box("60.0"))
    without = table([cell("gin", 0.5, majority_share=None)])
    assert [row.title for row in without.rows] == ["GIN"]


def test_p_values_are_holms_and_the_uncorrected_below_the_difference() -> None:
    """ACM: differences -20, -28, -24, -20, -30; t = -24.4 / sqrt(0.45 · 20.8), p = 0.00134."""
    found = significance_table(compare(ALL), "table1")
    assert [row.title for row in found.rows] == ["PPGNs", "GIN", "ACM"]
    assert boxes(found, "GIN") == (Box("–"), Box("−2.0", "0.399 (0.399)"))
    assert boxes(found, "ACM")[1] == Box("−24.4", "0.003 (0.001)", starred=True)
    assert "Nadeau and Bengio" in found.legend
    other = cell("gin", *GIN.accuracies, splits_sha256="others")
    told = significance_table(compare([OURS, other]), "table1").notes
    assert told == (
        "GIN on MUTAG has no p-value: its splits differ from IHGNN's, so the folds are not the "
        "same graphs.",
    )


def test_csv_has_a_row_a_cell_in_percent(tmp_path: Path) -> None:
    write_cells(tmp_path / "cells.csv", compare(ALL), budget="quick")
    with (tmp_path / "cells.csv").open(encoding="utf-8", newline="") as stream:
        rows = {(row["dataset"], row["model"]): row for row in csv.DictReader(stream)}
    assert len(rows) == 5
    gin = rows["MUTAG", "gin"]
    assert (gin["mean"], gin["paper_mean"], gin["difference"]) == ("82.0", "83.4", "-1.4")
    assert gin["difference_from_ihgnn"] == "-2.0"
    assert round(float(gin["p"]), 6) == 0.399162
    assert (gin["best"], gin["tied_with_best"], gin["budget"]) == ("false", "true", "quick")
    assert (gin["folds"], gin["runs"], gin["epochs"], gin["graphs"]) == ("5", "1", "5", "50")
    refused = rows["DD", "ppgn"]
    assert refused["not_run"] == "does not fit: about 96 GB"
    assert (refused["paper_out_of_memory"], refused["mean"], refused["folds"]) == ("true", "", "")
    assert rows["DD", "gin"]["paper_taken_over"] == "true"
    assert rows["MUTAG", "ihgnn"]["p"] == ""


def test_classifiers_without_a_network_are_the_last_rows() -> None:
    listed = (ReferenceCell("majority class", 0.6, 0.02), ReferenceCell("forest", 0.9, 0.05))
    gap = Paired(-0.05, 0.02, 0.3, 0.6)
    known = replace(OURS, references=listed, best_reference="forest", gap=gap)
    found = table([known, GIN, ON_DD])
    assert [row.title for row in found.rows[-2:]] == ["majority class", "forest"]
    column = found.heads.index("MUTAG")
    assert [row.boxes[column].text for row in found.rows[-2:]] == ["60.0 ± 2.0", "90.0 ± 5.0"]
    assert [row.boxes[1 - column].text for row in found.rows[-2:]] == ["–", "–"]


def test_roc_auc_stands_above_balanced_accuracy_for_methods_and_references() -> None:
    listed = (
        ReferenceCell("majority class", 0.6, 0.02, 0.5, 0.5),
        ReferenceCell("forest", 0.9, 0.05, 0.885, 0.9312),
    )
    ours = replace(OURS, references=listed, balanced_accuracy=0.8125, roc_auc=0.875)
    undefined = replace(GIN, balanced_accuracy=0.7, roc_auc=None)
    comparison = compare([ours, undefined, ON_DD])
    found = auc_table(comparison, "table1")
    assert found is not None
    column = found.heads.index("MUTAG")
    assert {row.title: row.boxes[column] for row in found.rows} == {
        "GIN": Box("-", "70.0"),
        "IHGNN": Box("0.875", "81.2"),
        "majority class": Box("0.500", "50.0"),
        "forest": Box("0.931", "88.5"),
    }
    assert boxes(found, "GIN")[1 - column] == Box("–")
    without = auc_table(compare([OURS, GIN]), "table1")
    assert without is None
