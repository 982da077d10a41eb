"""`ihgnn compare` on folders of cross-validations, with differences computed by hand."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from refusals import assert_refused

import ihgnn_cli
from ihgnn_cli.data.splits import Fold, Split, write_fold_file


def fold(train: Sequence[int], validation: Sequence[int], test: Sequence[int]) -> Fold:
    return Fold((Split(*map(np.array, (train, validation, test))),))


FOLDS = (fold([2], [3], [0, 1]), fold([0], [1], [2, 3]))
RIGHT = {"graphs": [1, 1, 1, 1], "folds": [1, 1]}
SOME = {"graphs": [1, 0.5, 1, 0], "folds": [0.75, 0.5]}


def made(
    folder: Path, hits: dict[str, list[float]], *, folds: Sequence[Fold] = FOLDS, **changes: object
) -> Path:
    """The folder of a finished cross-validation of four graphs."""
    folder.mkdir()
    means = hits["folds"]
    result = {
        "dataset": "FOUR",
        "graphs": 4,
        "model": "gin",
        "test_mean": float(np.mean(means)),
        "test_std": float(np.std(means)),
        "balanced_accuracy": 0.5,
        "roc_auc": 0.75,
        "folds": [{"test_mean": each} for each in means],
        "graph_accuracies": hits["graphs"],
        "job": {"data_sha256": "a"},
        **dict.fromkeys(("runs", "paper", "model_epochs", "trained_now", "seconds")),
        **changes,
    }
    (folder / "crossval.json").write_text(
        json.dumps({"command": "ihgnn crossval FOUR", "stack": 1, "identity": {}})
    )
    (folder / "result.json").write_text(json.dumps(result))
    write_fold_file(folds, folder / "splits.json")
    return folder


def test_differences_are_paired_over_graphs_and_tested_over_folds(tmp_path: Path) -> None:
    base, other = made(tmp_path / "base", RIGHT), made(tmp_path / "other", SOME)
    first, second = ihgnn_cli.compare(base, str(other))
    assert (first.gap, first.other_data, second.other_data) == (None, False, False)
    assert (second.title, second.accuracy, second.roc_auc) == ("GIN", 0.625, 0.75)
    assert second.gap is not None
    # Graphs: 0, -1/2, 0, -1. Folds: -1/4 and -1/2: t = -3/8 / sqrt((1/2 + 1) / 32) = -sqrt(3).
    assert second.gap.difference == pytest.approx(-3 / 8)
    assert second.gap.error == pytest.approx(np.std([0, 0.5, 0, 1], ddof=1) / 2)
    assert second.gap.p == second.gap.p_holm == pytest.approx(1 / 3)


def test_the_first_is_the_base_of_all_comparisons(ihgnn, tmp_path: Path) -> None:
    made(tmp_path / "base", SOME)
    made(tmp_path / "same", SOME, job={"data_sha256": "b"})
    made(tmp_path / "right", RIGHT)
    shown = ihgnn("compare", "base", "same", "right")
    assert shown.returncode == 0, shown.stderr
    words = " ".join(shown.stdout.split())
    assert "right GIN 100.0 ± 0.0 50.0 0.750 +37.5 ± 23.9 0.667" in words
    assert "right: not distinguishable from base: +37.5 ± 23.9 points" in words
    assert "p = 0.667 after Holm's correction over 2 comparisons" in words
    assert "Read other edges, labels or attributes of these graphs: same." in words
    told = json.loads(ihgnn("compare", "base", "same", "right", "--json").stdout)
    assert told["base"] == "base"
    assert [each["significant"] for each in told["results"]] == [None, False, False]
    assert told["results"][1]["gap"]["difference"] == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("base",), "Give two or more folders"),
        (("base", "nowhere"), "nowhere is not the folder of a cross-validation"),
        (("base", "running"), "running is not finished. Repeat its command: ihgnn crossval FOUR"),
        (("base", "others"), "others has other folds than base."),
        (("base", "five"), "five is of FIVE (4 graphs), and base of FOUR (4)."),
    ],
)
def test_what_cannot_be_compared_is_refused(ihgnn, tmp_path: Path, args, said) -> None:
    made(tmp_path / "base", RIGHT)
    (made(tmp_path / "running", RIGHT) / "result.json").unlink()
    made(tmp_path / "others", RIGHT, folds=(fold([1], [3], [0, 2]), fold([0], [2], [1, 3])))
    made(tmp_path / "five", RIGHT, dataset="FIVE")
    assert_refused(ihgnn("compare", *args), 2, said)
