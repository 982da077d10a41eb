"""`ihgnn homophily`, from the shell."""

import csv
import json
import os
from pathlib import Path

import pytest


def test_mutag_out_of_the_box(ihgnn) -> None:
    result = ihgnn("homophily", "MUTAG")
    assert result.returncode == 0
    assert result.stderr == ""
    for part in (
        "MUTAG (bundled)",
        "188",
        "17.93",
        "19.79",
        "0.647 ± 0.145",
        "class -1",
        "class 1",
    ):
        assert part in result.stdout


def test_json_is_one_document_with_the_papers_columns(ihgnn) -> None:
    result = ihgnn("homophily", "MUTAG", "MUTAG", "--json", "-m", "edge", "-m", "adjusted")
    first, second = json.loads(result.stdout)["datasets"]
    assert first == second
    assert {
        "name": "MUTAG",
        "graphs": 188,
        "node_labels": 7,
        "classes": 2,
        "label_source": "labels",
        "source": "bundled",
    }.items() <= first.items()
    assert (round(first["mean_nodes"], 2), round(first["mean_edges"], 2)) == (17.93, 19.79)
    assert (round(first["beta_mean"], 2), round(first["beta_std"], 2)) == (0.65, 0.14)
    assert list(first["measures"]) == ["edge", "adjusted", "node"]
    assert sum(first["measures"]["edge"]["histogram"]["counts"]) == 188


def test_measures_stand_side_by_side(ihgnn) -> None:
    result = ihgnn("homophily", "MUTAG", "-m", "node", "-m", "edge", "-m", "adjusted")
    shown = " ".join(result.stdout.split())
    assert "Node homophily β Edge homophily Adjusted homophily" in shown
    assert "all 0.647 ± 0.145 0.702 ± 0.136 0.208 ± 0.120" in shown


def test_figure_and_rows_are_written(ihgnn, tmp_path: Path) -> None:
    result = ihgnn("homophily", "MUTAG", "--plot", "figure.png", "--csv", "graphs.csv")
    assert result.returncode == 0
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "graphs.csv").open(newline="") as stream:
        assert len(list(csv.reader(stream))) == 189
    assert sorted(each.name for each in tmp_path.iterdir()) == ["figure.png", "graphs.csv"]


def test_the_paper_beside_ours(ihgnn, tmp_path: Path) -> None:
    assert "Equal to the paper's, up to its last printed digit" in (
        ihgnn("homophily", "MUTAG", "--compare-paper").stdout
    )
    (tmp_path / "mine.jsonl").write_text('{"node_labels": [1, 1], "edges": [[0, 1]], "class": 0}\n')
    shown = ihgnn("homophily", "mine.jsonl", "--compare-paper")
    assert "The paper has no row for mine" in shown.stdout
    entry = json.loads(ihgnn("homophily", "mine.jsonl", "--compare-paper", "--json").stdout)
    assert entry["datasets"][0]["paper"] is None


def test_undefined_values_are_null_in_json(ihgnn, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"node_labels": [1, 1], "edges": [[0, 1]], "class": 0}\n')
    result = ihgnn("homophily", "one.jsonl", "-m", "adjusted", "--json")
    assert json.loads(result.stdout)["datasets"][0]["measures"]["adjusted"]["mean"] is None
    assert "undefined" in ihgnn("homophily", "one.jsonl", "-m", "adjusted").stdout


def test_degree_labels_are_said_and_explained(ihgnn, real_data: Path) -> None:
    shown = ihgnn("homophily", "IMDB-BINARY", "--data-root", real_data, "--compare-paper").stdout
    assert "each node's degree is its label" in shown
    assert "0.673 ± 0.202" in shown
    assert "0.46 ± 0.27" in shown
    assert "gives nodes the degrees of other nodes" in " ".join(shown.split())


def test_one_bad_data_set_gives_no_half_answer(ihgnn, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{]\n")
    result = ihgnn("homophily", "MUTAG", "bad.jsonl", "--json", "--csv", "graphs.csv")
    assert (result.returncode, result.stdout) == (2, "")
    assert "bad.jsonl, line 1" in result.stderr
    assert not (tmp_path / "graphs.csv").exists()


@pytest.mark.parametrize("label", ["C", "Stickstoff", "酸素"])
def test_string_labels_survive(ihgnn, tmp_path: Path, label: str) -> None:
    line = json.dumps({"node_labels": [label, label], "edges": [[0, 1]], "class": label})
    (tmp_path / "words.jsonl").write_text(line + "\n", encoding="utf-8")
    entry = json.loads(ihgnn("homophily", "words.jsonl", "--json").stdout)["datasets"][0]
    assert entry["class_values"] == [label]


def test_figure_and_rows_need_files_of_their_own(ihgnn, tmp_path: Path) -> None:
    result = ihgnn("homophily", "MUTAG", "--plot", "x.png", "--csv", "./x.png")
    assert (result.returncode, result.stdout) == (2, "")
    assert "different files" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_never_overwrites_the_data(ihgnn, write_tu, tmp_path: Path) -> None:
    line = '{"node_labels": [1, 1], "edges": [[0, 1]], "class": 0}\n'
    (tmp_path / "mine.jsonl").write_text(line)
    folder = write_tu(A="1, 2\n", graph_indicator="1\n1\n", graph_labels="1\n")
    for data, output in (("mine.jsonl", "mine.jsonl"), (folder, folder / "TINY_A.txt")):
        result = ihgnn("homophily", data, "--csv", output)
        assert (result.returncode, result.stdout) == (2, "")
        assert "belongs to the data set" in result.stderr
    assert (tmp_path / "mine.jsonl").read_text() == line
    assert (folder / "TINY_A.txt").read_text() == "1, 2\n"


def test_rows_hold_the_measures_asked_for(ihgnn, tmp_path: Path) -> None:
    ihgnn("homophily", "MUTAG", "-m", "edge", "--csv", "rows.csv")
    head = (tmp_path / "rows.csv").read_text().splitlines()[0]
    assert head == "dataset,graph,class,nodes,edges,isolated_nodes,edge_homophily"


def test_a_folder_as_an_output_is_a_mistake(ihgnn, tmp_path: Path) -> None:
    (tmp_path / "figure.png").mkdir()
    for output in ("figure.png", "."):
        result = ihgnn("homophily", "MUTAG", "--csv", output)
        assert (result.returncode, result.stdout) == (2, "")
        assert "is a folder" in result.stderr


def test_escape_sequences_in_the_data_do_not_reach_the_terminal(
    ihgnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    line = json.dumps({"node_labels": [1, 1], "edges": [[0, 1]], "class": "\x1b[2Jgone"})
    (tmp_path / "evil.jsonl").write_text(line + "\n")
    shown = ihgnn("homophily", "evil.jsonl").stdout
    assert "\x1b" not in shown
    assert "class ?[2Jgone" in shown


def test_a_name_is_drawn_as_it_is_and_in_any_script(ihgnn, tmp_path: Path) -> None:
    line = '{"node_labels": [1, 1], "edges": [[0, 1]], "class": 0}\n'
    (tmp_path / "图 $x^2$.jsonl").write_text(line)
    result = ihgnn("homophily", "图 $x^2$.jsonl", "--plot", "figure.svg", "-m", "adjusted")
    assert (result.returncode, result.stderr) == (0, "Wrote figure.svg\n")


def test_a_synthetic_data_set_has_the_homophily_in_its_name(ihgnn, tmp_path: Path) -> None:
    shown = ihgnn("homophily", "synthetic:graphs=100,homophily=0.3", "--csv", "graphs.csv")
    assert shown.returncode == 0
    assert "synthetic:homophily=0.3,graphs=100 (generated)" in shown.stdout
    assert "all 100 0.30" in " ".join(shown.stdout.split())
    entry = json.loads(ihgnn("homophily", "synthetic:graphs=100", "--json").stdout)["datasets"][0]
    assert (entry["source"], entry["path"]) == ("generated", None)
    assert not list(Path(os.environ["IHGNN_CACHE"]).glob("**/*.npy"))
