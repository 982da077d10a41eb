"""Accuracy by homophily as a figure, and predictions one row a graph."""

import csv
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.metrics import HomophilyBin, accuracy_by_homophily, reliability
from ihgnn_cli.report.evaluation import draw_evaluation, write_predictions

CERTAIN, TRUTH = np.eye(2)[[0, 0, 1]], np.array([0, 1, 0])
RELIABILITY = reliability(CERTAIN, TRUTH)


@pytest.fixture
def bins() -> list[HomophilyBin]:
    """Ten bins, the first with two graphs, the last with one."""
    return accuracy_by_homophily(CERTAIN, TRUTH, np.array([0, 0.05, 1]))


@pytest.fixture
def three(tmp_path: Path) -> GraphDataset:
    """A pair, a path of three nodes and a single node, of the classes no and yes."""
    file = tmp_path / "three.jsonl"
    file.write_text(
        '{"node_labels": ["C", "C"], "edges": [[0, 1]], "class": "yes"}\n'
        '{"node_labels": ["C", "N", "C"], "edges": [[0, 1], [1, 2]], "class": "no"}\n'
        '{"node_labels": ["C"], "edges": [], "class": "no"}\n'
    )
    return load_dataset(str(file))


def texts(path: Path) -> list[str]:
    return [each.text for each in ET.parse(path).iter() if each.text]


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_the_figure_tells_counts_and_overall_accuracy(
    tmp_path: Path, bins: list[HomophilyBin]
) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_evaluation(bins, RELIABILITY, "Costs $5 and $6", 1 / 3, tmp_path / "a.svg")
    shown = texts(tmp_path / "a.svg")
    assert "Costs $5 and $6" in shown
    assert "Node homophily β" in shown
    assert "overall accuracy 0.333" in shown
    assert "confidence, calibration error 0.667" in shown
    assert (shown.count("2"), shown.count("1"), shown.count("0")) == (1, 1, 0)  # graphs


def test_a_png_is_written(tmp_path: Path, bins: list[HomophilyBin]) -> None:
    draw_evaluation(bins, RELIABILITY, "three", 1 / 3, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


def test_bins_may_all_be_empty(tmp_path: Path) -> None:
    empty = HomophilyBin(0, 1, 0, math.nan, math.nan, math.nan, math.nan, math.nan)
    draw_evaluation([empty], RELIABILITY, "none", math.nan, tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()


def test_other_formats_are_refused(tmp_path: Path, bins: list[HomophilyBin]) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        draw_evaluation(bins, RELIABILITY, "three", 1 / 3, tmp_path / "a.txt")
    assert not any(tmp_path.iterdir())


def test_predictions_have_a_row_a_graph_that_was_evaluated(
    tmp_path: Path, three: GraphDataset
) -> None:
    probabilities = np.array([[0.25, 0.75], [0.1, 0.9]])
    write_predictions(
        tmp_path / "p.csv", three, [2, 0], probabilities, beta=np.array([math.nan, 1.0])
    )
    last, first = read_rows(tmp_path / "p.csv")
    assert last == {
        "graph": "2",
        "id": "",
        "nodes": "1",
        "edges": "0",
        "class": "no",
        "predicted": "yes",
        "correct": "false",
        "p(no)": "0.25",
        "p(yes)": "0.75",
        "beta": "",
    }
    assert (first["graph"], first["nodes"], first["edges"], first["beta"]) == ("0", "2", "1", "1.0")
    assert (first["class"], first["predicted"], first["correct"]) == ("yes", "yes", "true")


def test_probabilities_have_the_digits_of_their_precision(
    tmp_path: Path, three: GraphDataset
) -> None:
    probabilities = np.array([[0.1, 0.9], [1 / 3, 2 / 3], [1e-20, 1]], dtype=np.float32)
    write_predictions(tmp_path / "p.csv", three, np.arange(3), probabilities, np.zeros(3))
    written = [row["p(no)"] for row in read_rows(tmp_path / "p.csv")]
    assert written == ["0.1", "0.33333334", "1e-20"]
    assert np.array_equal(np.array(written, dtype=np.float32), probabilities[:, 0])


def test_shapes_that_do_not_fit_are_refused_and_nothing_is_written(
    tmp_path: Path, three: GraphDataset
) -> None:
    target = tmp_path / "p.csv"
    for probabilities, beta in (
        (np.eye(2), np.zeros(3)),
        (np.eye(3), np.zeros(3)),
        (np.ones((3, 2)) / 2, np.zeros(2)),
    ):
        with pytest.raises(ValueError, match="3 graphs of 2 classes"):
            write_predictions(target, three, [0, 1, 2], probabilities, beta)
    with pytest.raises(IndexError):
        write_predictions(target, three, [0, 3], np.eye(2), np.zeros(2))
    assert [file.name for file in tmp_path.iterdir()] == ["three.jsonl"]
