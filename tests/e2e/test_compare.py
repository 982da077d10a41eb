"""`ihgnn compare` as a user meets it."""

import json
from pathlib import Path

import pytest
from finished_crossvals import FOLDS, RIGHT, SOME, finished, fold
from refusals import assert_refused


def test_the_first_is_the_base_of_all_comparisons(ihgnn, tmp_path: Path) -> None:
    finished(tmp_path / "base", SOME)
    finished(tmp_path / "same", SOME, data="b")
    finished(tmp_path / "right", RIGHT, protocol={"training": {"epochs": 5}, "race": [[1, 1]]})
    shown = ihgnn("compare", "base", "same", "right")
    assert shown.returncode == 0, shown.stderr
    for token in ("62.5", "100.0", "+37.5", "0.667", "Holm"):
        assert token in shown.stdout
    told = json.loads(ihgnn("compare", "base", "same", "right", "--json").stdout)
    assert told["base"] == "base"
    assert [each["significant"] for each in told["results"]] == [None, False, False]
    assert told["results"][1]["gap"]["difference"] == 0
    assert told["results"][2]["procedure"] == "race"
    assert told["results"][2]["settings"] == {"epochs": 5}


@pytest.mark.parametrize(
    ("args", "tokens"),
    [
        (("base",), ["two"]),
        (("base", "nowhere"), ["nowhere"]),
        (("base", "running"), ["running", "ihgnn crossval FOUR"]),
        (("base", "others"), ["others", "folds"]),
        (("base", "five"), ["FIVE (4", "FOUR (4"]),
        (("base", "namesake"), ["namesake", "FOUR"]),
        (("base", "twice"), ["twice", "2 partitions"]),
        (("base", "others/../base"), ["others/../base"]),
        (("base", "old"), ["result.json"]),
        (("base", "short"), ["result.json"]),
    ],
)
def test_what_cannot_be_compared_is_refused(ihgnn, tmp_path: Path, args, tokens) -> None:
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
    assert_refused(ihgnn("compare", *args), 2, *tokens)
