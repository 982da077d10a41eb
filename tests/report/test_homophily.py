"""Figures, CSV and JSON of homophily."""

import csv
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.sources import locate
from ihgnn_cli.errors import InputError
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.summary import summarize
from ihgnn_cli.report.homophily import as_entry, draw_histograms, remarks, write_csv


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_figures_are_written_in_the_format_of_their_name(
    tmp_path: Path, suffix: str, start: bytes
) -> None:
    target = tmp_path / f"figure{suffix}"
    draw_histograms([summarize(load_dataset("MUTAG"))], Measure.NODE, target)
    assert target.read_bytes().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [target.name]


def test_a_figure_names_its_data_sets_and_shows_their_means(tmp_path: Path) -> None:
    import matplotlib as mpl

    summary = summarize(load_dataset("MUTAG"))
    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_histograms([summary, summary], Measure.NODE, tmp_path / "two.svg")
    texts = [each.text for each in ET.parse(tmp_path / "two.svg").iter() if each.text]
    assert texts.count("MUTAG (mean 0.65, 188 graphs)") == 2


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        draw_histograms([summarize(load_dataset("MUTAG"))], Measure.NODE, tmp_path / "x.gif")
    assert not any(tmp_path.iterdir())


def test_csv_has_a_row_a_graph(tmp_path: Path) -> None:
    dataset = load_dataset("MUTAG")
    summary = summarize(dataset, (Measure.NODE, Measure.EDGE))
    write_csv([dataset], [summary], [Measure.NODE, Measure.EDGE], tmp_path / "graphs.csv")
    rows = read_rows(tmp_path / "graphs.csv")
    assert len(rows) == 188
    assert rows[0]["dataset"] == "MUTAG"
    assert (rows[0]["graph"], rows[0]["class"]) == ("0", "1")
    assert (rows[0]["nodes"], rows[0]["edges"], rows[0]["isolated_nodes"]) == ("17", "19", "0")
    assert [float(row["node_homophily"]) for row in rows] == (
        summary.of(Measure.NODE).values.tolist()
    )
    assert "edge_homophily" in rows[0]


def test_an_undefined_value_is_an_empty_cell(tmp_path: Path) -> None:
    lone = tmp_path / "lone.jsonl"
    lone.write_text('{"node_labels": ["C", "C"], "edges": [[0, 1]], "class": "x"}\n')
    dataset = load_dataset(str(lone))
    summary = summarize(dataset, (Measure.ADJUSTED, Measure.NODE))
    write_csv([dataset], [summary], list(Measure)[::2], tmp_path / "graphs.csv")
    (row,) = read_rows(tmp_path / "graphs.csv")
    assert (row["adjusted_homophily"], row["node_homophily"]) == ("", "1.0")


def test_json_has_the_documented_keys() -> None:
    dataset, source = load_dataset("MUTAG"), locate("MUTAG")
    entry = as_entry(dataset, source, summarize(dataset), compare_paper=True)
    assert entry["name"] == "MUTAG"
    assert entry["label_source"] == "labels"
    assert (entry["graphs"], entry["node_labels"], entry["classes"]) == (188, 7, 2)
    assert entry["beta_mean"] == pytest.approx(0.6466, abs=1e-4)
    assert entry["paper"]["beta_mean"] == 0.65  # type: ignore[index]
    assert entry["paper_differences"] == []
    assert entry["fingerprint"] == dataset.fingerprint


def test_degree_labels_isolated_nodes_and_changes_in_reading_are_said(tmp_path: Path) -> None:
    graphs = tmp_path / "odd.jsonl"
    graphs.write_text('{"num_nodes": 3, "edges": [[0, 1], [0, 1], [1, 1]], "class": 0}\n')
    dataset = load_dataset(str(graphs))
    told = " ".join(remarks(dataset, summarize(dataset), [Measure.NODE]))
    assert "each node's degree is its label" in told
    assert "1 node has no neighbours and counts as 0" in told
    assert "1 self-loop left out" in told
    assert "1 duplicate edge merged" in told
