"""`ihgnn homophily`, from the shell; its numbers are in the contract."""

import json
import os
from pathlib import Path

import pytest

PAIR = '{"node_labels": [1, 1], "edges": [[0, 1]], "class": 0}\n'


def test_mutag_out_of_the_box(ihgnn) -> None:
    result = ihgnn("homophily", "MUTAG", "-m", "node", "-m", "edge", "-m", "adjusted")
    assert (result.returncode, result.stderr) == (0, "")
    shown = " ".join(result.stdout.split())
    for token in ("MUTAG (bundled)", "188", "17.93", "19.79", "class -1", "class 1"):
        assert token in shown
    for token in ("0.647 ± 0.145", "0.702 ± 0.136", "0.208 ± 0.120"):
        assert token in shown


def test_figure_and_rows_are_written_with_the_measures_asked_for(ihgnn, tmp_path: Path) -> None:
    result = ihgnn("homophily", "MUTAG", "-m", "edge", "--plot", "f.png", "--csv", "rows.csv")
    assert result.returncode == 0
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    rows = (tmp_path / "rows.csv").read_text().splitlines()
    assert rows[0] == "dataset,graph,class,nodes,edges,isolated_nodes,edge_homophily"
    assert len(rows) == 189
    assert sorted(each.name for each in tmp_path.iterdir()) == ["f.png", "rows.csv"]


def test_the_paper_beside_ours(ihgnn, tmp_path: Path) -> None:
    assert "Equal to the paper's" in ihgnn("homophily", "MUTAG", "--compare-paper").stdout
    (tmp_path / "mine.jsonl").write_text(PAIR)
    assert "no row for mine" in ihgnn("homophily", "mine.jsonl", "--compare-paper").stdout
    entry = json.loads(ihgnn("homophily", "mine.jsonl", "--compare-paper", "--json").stdout)
    assert entry["datasets"][0]["paper"] is None


def test_undefined_values_are_null_in_json(ihgnn, tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text(PAIR)
    result = ihgnn("homophily", "one.jsonl", "-m", "adjusted", "--json")
    assert json.loads(result.stdout)["datasets"][0]["measures"]["adjusted"]["mean"] is None


def test_degree_labels_are_named_and_the_paper_explained(ihgnn) -> None:
    result = ihgnn("homophily", "IMDB-BINARY", "--compare-paper")
    shown = " ".join(result.stdout.split())
    for token in ("degree", "0.673 ± 0.202", "0.46 ± 0.27"):
        assert token in shown


@pytest.mark.parametrize(
    ("args", "tokens"),
    [
        (["MUTAG", "bad.jsonl", "--json", "--csv", "rows.csv"], ["bad.jsonl, line 1"]),
        (["MUTAG", "--plot", "x.png", "--csv", "./x.png"], ["--plot", "--csv"]),
        (["mine.jsonl", "--csv", "mine.jsonl"], ["mine.jsonl"]),
        (["MUTAG", "--csv", "folder.png"], ["folder.png", "folder"]),
    ],
)
def test_refusals_give_no_half_answer_and_leave_nothing(ihgnn, tmp_path, args, tokens) -> None:
    (tmp_path / "bad.jsonl").write_text("{]\n")
    (tmp_path / "mine.jsonl").write_text(PAIR)
    (tmp_path / "folder.png").mkdir()
    before = sorted(tmp_path.iterdir())
    result = ihgnn("homophily", *args)
    assert (result.returncode, result.stdout) == (2, "")
    assert all(each in result.stderr for each in tokens), result.stderr
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "mine.jsonl").read_text() == PAIR


def test_words_in_any_script_are_kept_and_escape_sequences_are_not_shown(ihgnn, tmp_path) -> None:
    for value in ("Stickstoff", "酸素", "\x1b[2Jgone"):
        line = json.dumps({"node_labels": [value] * 2, "edges": [[0, 1]], "class": value})
        (tmp_path / "图 $x^2$.jsonl").write_text(line + "\n", encoding="utf-8")
        found = ihgnn("homophily", "图 $x^2$.jsonl", "--json", "--plot", "figure.svg")
        assert json.loads(found.stdout)["datasets"][0]["class_values"] == [value]
        assert "\x1b" not in ihgnn("homophily", "图 $x^2$.jsonl").stdout


def test_a_synthetic_data_set_has_the_homophily_in_its_name(ihgnn) -> None:
    shown = ihgnn("homophily", "synthetic:graphs=100,homophily=0.3").stdout
    assert "synthetic:homophily=0.3,graphs=100 (generated)" in shown
    assert "all 100 0.30" in " ".join(shown.split())
    entry = json.loads(ihgnn("homophily", "synthetic:graphs=100", "--json").stdout)["datasets"][0]
    assert (entry["source"], entry["path"]) == ("generated", None)
    assert not list(Path(os.environ["IHGNN_CACHE"]).glob("**/*.np*"))
