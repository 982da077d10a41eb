"""`ihgnn signal` as a user meets it."""

import json

import pytest
from refusals import assert_refused

from ihgnn_cli.studies.signal import references

DATA = "synthetic:graphs=24,nodes=12,degree=2"


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "TREES", 10)


def test_references_ceiling_twins_and_test_end_in_a_sentence(ihgnn, tmp_path) -> None:
    args = ("signal", DATA, "--folds", "3", "--permutations", "40")
    shown = ihgnn(*args, "--plot", "signal.png")
    assert shown.returncode == 0, shown.stderr
    for text in (
        "std over 3 folds",
        "random forest, histograms",
        "1-WL ceiling",
        "have a twin in training",
        "40 shuffles of the classes",
        "ihgnn crossval",
    ):
        assert text in shown.stdout, text
    assert "15 of 15 fits" in shown.stderr
    assert (tmp_path / "signal.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(ihgnn(*args, "--json", "-q").stdout)
    assert told["conclusion"] in " ".join(shown.stdout.split())
    assert told["permutation_test"]["permutations"] == 40
    assert len(told["references"]) == 5
    assert len(told["ceiling"]["rounds"]) == 6


@pytest.mark.usefixtures("thread_workers")
def test_the_folds_are_those_of_crossval(ihgnn, tmp_path) -> None:
    args = (DATA, "--folds", "2", "--seed", "3", "--json", "-q")
    told = json.loads(ihgnn("signal", *args, "--permutations", "0").stdout)
    assert told["permutation_test"] is None
    grid = ("--lr", "0.01", "-b", "32", "-k", "1", "-e", "1", "--runs", "1", "--workers", "1")
    result = json.loads(ihgnn("crossval", *args, *grid, "--out", "job").stdout)
    beside = {each["key"]: each["accuracy"] for each in result["references"]["methods"]}
    assert beside == {each["key"]: each["scores"]["accuracy"] for each in told["references"]}
    assert 0 <= result["roc_auc"] <= 1
    assert (tmp_path / "job" / "references.json").is_file()
    again = ihgnn("crossval", *args[:-2], *grid, "--out", "job")
    assert "best reference" in again.stdout
    assert "SVM, 1-WL kernel" in again.stdout
    assert "models finished" not in again.stderr


def test_edge_labels_change_what_is_attainable(ihgnn, tmp_path) -> None:
    # Triangles of which one edge means "no bond"; the class is the label of the other two.
    lines = [
        {
            "node_labels": [0, 0, 0],
            "edges": [[0, 1], [1, 2], [0, 2]],
            "edge_labels": [["a", "b"][kind], ["a", "b"][kind], "none"],
            "class": kind,
        }
        for kind in (0, 1) * 6
    ]
    file = tmp_path / "bonds.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    args = ("signal", "bonds.jsonl", "--folds", "2", "--permutations", "0", "--json", "-q")
    dropped = ("--background-edge-label", "none")
    plain = json.loads(ihgnn(*args, *dropped).stdout)
    assert (plain["edge_labels"], plain["background_edge_label"]) == (False, "none")
    assert plain["ceiling"]["rounds"][-1] == 0.5
    used = json.loads(ihgnn(*args, *dropped, "--edge-labels").stdout)
    assert used["ceiling"]["rounds"][:2] == [0.5, 1.0]
    assert used["references"][-1]["scores"]["accuracy"] == 1.0
    shown = ihgnn(*args[:-2], *dropped, "--edge-labels")
    assert "with edge labels" in shown.stdout
    assert "Edges" not in shown.stdout
    plainly = ihgnn(*args[:-2])
    assert "3 edge labels, not used: --edge-labels" in plainly.stdout
    assert "all graphs are complete; if the most frequent edge label" in plainly.stdout
    again = (
        "crossval bonds.jsonl --recipe robust --folds 2 --background-edge-label none --edge-labels"
    )
    assert again in " ".join(shown.stdout.split())
    told = json.loads(ihgnn("homophily", "bonds.jsonl", "--json", *dropped).stdout)
    assert told["datasets"][0]["mean_edges"] == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--permutations", "-1"), "--permutations must be 0 (no test) or at least 40, not -1."),
        (("--permutations", "39"), "--permutations must be 0 (no test) or at least 40, not 39."),
        (("--folds", "1"), "--folds must be at least 2, not 1."),
        (("--group-twins", "--split-file", "x.json"), "Give one."),
        (("--background-edge-label", "9"), "Its edge labels are 0 ("),
        (("--plot", "figure.txt"), "Cannot draw to figure.txt"),
    ],
)
def test_wrong_values_are_refused(ihgnn, args, said) -> None:
    assert_refused(ihgnn("signal", "MUTAG", *args), 2, said)
