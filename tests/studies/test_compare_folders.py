"""Comparisons of finished cross-validations, with differences computed by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from finished_crossvals import FOLDS, RIGHT, SOME, finished

import ihgnn_cli
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.compare_folders import compare_folders


def test_differences_are_paired_over_graphs_and_tested_over_folds(tmp_path: Path) -> None:
    base, other = finished(tmp_path / "base", RIGHT), finished(tmp_path / "other", SOME)
    first, second = ihgnn_cli.compare(base, str(other))
    assert (first.gap, first.other_data, second.other_data) == (None, False, False)
    assert (second.title, second.accuracy, second.roc_auc) == ("GIN", 0.625, 0.75)
    assert second.gap is not None
    # Graphs: 0, -1/2, 0, -1. Folds: -1/4 and -1/2: t = -3/8 / sqrt((1/2 + 1) / 32) = -sqrt(3).
    assert second.gap.difference == pytest.approx(-3 / 8)
    assert second.gap.error == pytest.approx(np.std([0, 0.5, 0, 1], ddof=1) / 2)
    assert second.gap.p == second.gap.p_holm == pytest.approx(1 / 3)


def test_repeats_are_more_folds_of_the_test(tmp_path: Path) -> None:
    right = {"graphs": RIGHT["graphs"], "folds": [1, 1, 1, 1]}
    some = {"graphs": SOME["graphs"], "folds": [0.75, 0.5, 0.75, 0.5]}
    base = finished(tmp_path / "base", right, folds=FOLDS * 2, seeds=(0, 1))
    other = finished(tmp_path / "other", some, folds=FOLDS * 2, seeds=(0, 1))
    _, found = ihgnn_cli.compare(base, other)
    assert found.gap is not None
    # -1/4, -1/2, -1/4, -1/2: variance 1/48, t = -3/8 / sqrt((1/4 + 1) / 48).
    assert found.gap.t == pytest.approx(-3 / 8 / np.sqrt(5 / 192))
    assert found.gap.error == pytest.approx(np.std([0, 0.5, 0, 1], ddof=1) / 2)


def test_some_folds_of_a_file_are_compared_on_the_graphs_that_they_test(tmp_path: Path) -> None:
    def partial(name: str, hits: dict[str, list]) -> Path:
        return finished(tmp_path / name, hits, folds=FOLDS[:1], partial="1 of 2 folds")

    base = partial("base", {"graphs": [1, 1, None, None], "folds": [1]})
    other = partial("other", {"graphs": [1, 0.5, None, None], "folds": [0.75]})
    _, found = ihgnn_cli.compare(base, other)
    assert found.partial == "1 of 2 folds"
    assert found.gap is not None
    assert (found.gap.difference, found.gap.p) == (-0.25, None)
    assert found.gap.verdict == "Not tested against"
    assert "there is only one fold" in found.gap.told


def test_settings_that_differ_are_named(tmp_path: Path) -> None:
    base = finished(tmp_path / "base", RIGHT)
    more = {"training": {"epochs": 3, "snapshots": 2}}
    other = finished(tmp_path / "other", SOME, protocol=more)
    first, second = ihgnn_cli.compare(base, other)
    assert (first.settings, first.procedure) == ({}, "")
    assert (second.settings, second.procedure) == ({"snapshots": 2}, "snapshots")


def test_settings_that_compete_are_among_them(tmp_path: Path) -> None:
    grid = [{"lr": lr, "batch_size": 32, "layers": 3} for lr in (0.01, 0.001)]
    base = finished(tmp_path / "base", RIGHT)
    other = finished(tmp_path / "other", SOME, protocol={"grid": grid})
    slow = finished(tmp_path / "slow", SOME, protocol={"grid": grid[1:]})
    first, second, third = ihgnn_cli.compare(base, other, slow)
    assert first.settings == {"lr": 0.01, "configurations": 1}
    assert second.settings == {"lr": [0.01, 0.001], "configurations": 2}
    assert third.settings == {"lr": 0.001, "configurations": 1}


def test_an_unfinished_one_names_the_command_that_finishes_it(tmp_path: Path) -> None:
    base, other = finished(tmp_path / "base", RIGHT), finished(tmp_path / "other", SOME)
    (other / "result.json").unlink()
    with pytest.raises(
        InputError, match=r"other is not finished\. Continue it: ihgnn crossval FOUR"
    ):
        compare_folders([base, other])


def test_a_folder_whose_files_do_not_belong_together_is_refused(tmp_path: Path) -> None:
    base, other = finished(tmp_path / "base", RIGHT), finished(tmp_path / "other", SOME)
    plain = json.loads((other / "result.json").read_text())
    for content, said in (
        (plain | {"folds": plain["folds"][:1]}, "has 1 fold, and its split files have 2"),
        (plain | {"graphs": "four"}, r"is damaged \(graphs: .*Remove it, and the same command"),
        (plain | {"format": 0}, "was made by another version of ihgnn"),
        (3, "was made by another version of ihgnn"),
    ):
        (other / "result.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match=said):
            compare_folders([base, other])
    (other / "result.json").write_text("{")
    with pytest.raises(InputError, match=r"is damaged\. Remove it"):
        compare_folders([base, other])
