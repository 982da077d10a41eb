"""`ihgnn compare` as a user meets it."""

import json
from pathlib import Path

import pytest
from finished_crossvals import FOLDS, RIGHT, SOME, finished, fold
from refusals import assert_refused

from ihgnn_cli.cli import console


def test_the_first_is_the_base_of_all_comparisons(
    ihgnn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.out, "width", 120)  # the table is wider than 80
    finished(tmp_path / "base", SOME)
    finished(tmp_path / "same", SOME, data="b")
    finished(tmp_path / "right", RIGHT, protocol={"training": {"epochs": 5}, "race": [[1, 1]]})
    shown = ihgnn("compare", "base", "same", "right")
    assert shown.returncode == 0, shown.stderr
    words = " ".join(shown.stdout.split())
    assert "base GIN 62.5 ± 12.5 50.0 0.750" in words
    assert "right GIN, race 100.0 ± 0.0 50.0 0.750" in words
    assert "+37.5 ± 23.9 0.667 epochs 5" in words
    assert "right: not distinguishable from base: +37.5 ± 23.9 points" in words
    assert "p = 0.667 after Holm's correction over 2 comparisons" in words
    assert "Other data than in base (edges, labels or attributes): same." in words
    told = json.loads(ihgnn("compare", "base", "same", "right", "--json").stdout)
    assert told["base"] == "base"
    assert [each["significant"] for each in told["results"]] == [None, False, False]
    assert told["results"][1]["gap"]["difference"] == 0
    assert told["results"][2]["procedure"] == "race"
    assert told["results"][2]["settings"] == {"epochs": 5}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("base",), "Give two or more folders"),
        (("base", "nowhere"), "nowhere is not the folder of a cross-validation"),
        (
            ("base", "running"),
            "running is not finished. Continue it: ihgnn crossval FOUR",
        ),
        (("base", "others"), "others has other folds than base."),
        (("base", "five"), "five is of FIVE (4 graphs), and base of FOUR (4)."),
        (("base", "namesake"), "namesake and base are of different data sets named FOUR"),
        (("base", "twice"), "twice has 2 partitions of 2 folds, and base has 2 folds."),
        (("base", "others/../base"), "others/../base is given twice."),
        (("base", "old"), "result.json was made by another version of ihgnn. Remove it, and the"),
        (("base", "short"), "result.json is damaged (: Value error, 2 accuracies of 4 graphs)."),
    ],
)
def test_what_cannot_be_compared_is_refused(ihgnn, tmp_path: Path, args, said) -> None:
    finished(tmp_path / "base", RIGHT)
    (finished(tmp_path / "running", RIGHT) / "result.json").unlink()
    finished(tmp_path / "others", RIGHT, folds=(fold([1], [3], [0, 2]), fold([0], [2], [1, 3])))
    finished(tmp_path / "five", RIGHT, dataset="FIVE")
    finished(tmp_path / "namesake", RIGHT, majority_share=0.75)
    twice = {"graphs": RIGHT["graphs"], "folds": [1, 1, 1, 1]}
    finished(tmp_path / "twice", twice, folds=FOLDS * 2, seeds=(0, 1))
    finished(tmp_path / "old", RIGHT, format=0)
    short = finished(tmp_path / "short", RIGHT) / "result.json"
    plain = json.loads(short.read_text())
    short.write_text(json.dumps(plain | {"graph_accuracies": [1, 1]}))
    assert_refused(ihgnn("compare", *args), 2, said)
