"""Homophily beside the paper's."""

from dataclasses import replace
from pathlib import Path

from ihgnn_cli.data import load_dataset
from ihgnn_cli.homophily.paper import MISPLACED_DEGREES
from ihgnn_cli.homophily.summary import summarize
from ihgnn_cli.report.homophily_table import homophily_table
from ihgnn_cli.report.layout import Table


def table(*sources: str | Path) -> Table:
    found = [load_dataset(str(source)) for source in sources]
    summaries = [summarize(each) for each in found]
    return homophily_table(found, summaries)


def test_mutag_is_as_in_the_paper() -> None:
    found = table("MUTAG")
    (row,) = found.rows
    assert row.title == "MUTAG"
    assert [box.text for box in row.boxes][:4] == ["188", "0.65 ± 0.14", "0.65 ± 0.14", "0.00"]
    assert found.notes == ()


def test_the_social_data_sets_differ_and_the_reason_is_told(real_data: Path) -> None:
    found = table(real_data / "IMDB-MULTI.zip")
    (row,) = found.rows
    assert [box.text for box in row.boxes][1:4] == ["0.81 ± 0.23", "0.72 ± 0.32", "+0.09"]
    assert f"IMDB-MULTI: {MISPLACED_DEGREES}" in found.notes


def test_a_data_set_that_the_paper_lacks_has_no_number_beside_it() -> None:
    dataset = load_dataset("MUTAG")
    mine = replace(summarize(dataset), name="mine")
    found = homophily_table([dataset], [mine])
    assert [box.text for box in found.rows[0].boxes][2:4] == ["–", "–"]
