"""The results that are shipped follow from the trainings that are shipped with them."""

import importlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.splits.folds import read_fold_file
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.studies.beside import beside
from ihgnn_cli.studies.choice import choose, scores
from ihgnn_cli.studies.grid import (
    PAPER_BATCH_SIZE,
    PAPER_LAYERS,
    PAPER_LR,
    Configuration,
    with_plain,
)
from ihgnn_cli.studies.paper import paper_accuracy
from ihgnn_cli.studies.rules import rules
from ihgnn_cli.studies.signal.references import ON_ATTRIBUTES, stored_references
from ihgnn_cli.studies.summary import summarize
from ihgnn_cli.studies.units import Record, Stage, parsed

RESULTS = Path(__file__).parent.parent / "results"
NAMES = ("MUTAG", "KKI", "BZR_MD", "DHFR_MD")
RACED = sorted(path.name for path in (RESULTS / "race").iterdir())


def records(name: str) -> list[Record]:
    lines = (RESULTS / name / "units.jsonl").read_text(encoding="utf-8").splitlines()
    return [parsed(line) for line in lines]


def result(name: str) -> dict:
    return json.loads((RESULTS / name / "result.json").read_text(encoding="utf-8"))


def page_row(name: str, heading: str) -> str:
    """The row of a data set in the table below a heading of the page."""
    page = (RESULTS / "README.md").read_text(encoding="utf-8")
    section = page.split(f"# {heading}\n")[1].split("\n## ")[0]
    (row,) = (line for line in section.splitlines() if line.startswith(f"| {name} |"))
    return row


def percent(mean: float, std: float) -> str:
    return f"{100 * mean:.1f} ± {100 * std:.1f}"


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_full_protocol(name: str) -> None:
    found = records(name)
    selected = [each for each in found if each.validated.unit.stage is Stage.SELECT]
    final = [each for each in found if each.validated.unit.stage is Stage.FINAL]
    asked = {
        (Configuration(lr, batch_size, layers), fold)
        for lr in PAPER_LR
        for batch_size in PAPER_BATCH_SIZE
        for layers in PAPER_LAYERS
        for fold in range(10)
    }
    units = [each.validated.unit for each in selected]
    assert {(unit.configuration, unit.fold) for unit in units} == asked
    assert len(units) == len(asked) == 270
    runs = sorted((each.validated.unit.fold, each.validated.unit.run) for each in final)
    assert runs == [(fold, run) for fold in range(10) for run in range(3)]
    assert all(each.validated.epochs == 350 for each in found if not each.validated.diverged)


@pytest.mark.parametrize("name", NAMES)
def test_the_numbers_follow_from_the_trainings(name: str) -> None:
    told, found = result(name), records(name)
    grid = tuple(Configuration(**each) for each in told["job"]["protocol"]["grid"])
    selected = [each for each in found if each.validated.unit.stage is Stage.SELECT]
    final = [each for each in found if each.validated.unit.stage is Stage.FINAL]
    validated = [each.validated for each in selected]
    chosen = choose(validated, grid, 10)
    found_summary = asdict(summarize(chosen, scores(validated, grid), final, 3))
    found_summary["folds"] = [with_plain(fold) for fold in found_summary["folds"]]
    summary = jsonable(found_summary)
    assert {key: told[key] for key in summary} == summary
    made = [jsonable(with_plain(asdict(each))) for each in rules(selected, grid, 10)]
    assert told["rules"] == made
    assert told["model_epochs"] == sum(each.validated.epochs for each in found)


@pytest.mark.parametrize("name", NAMES)
def test_every_training_used_a_split_that_is_shipped(name: str) -> None:
    folds = read_fold_file(RESULTS / name / "splits.json", result(name)["graphs"])
    for each in records(name):
        unit = each.validated.unit
        assert each.validated.split_sha256 == folds[unit.fold].splits[unit.split].digest
        assert each.tested is not None
        assert each.tested.graphs == len(folds[unit.fold].test)


def test_predictions_give_the_accuracies_on_the_bundled_data() -> None:
    data = load_dataset("MUTAG")
    assert result("MUTAG")["job"]["data_sha256"] == data.fingerprint
    folds = read_fold_file(RESULTS / "MUTAG" / "splits.json", len(data))
    for each in records("MUTAG"):
        if each.validated.unit.stage is Stage.FINAL:
            truth = data.graph_class[folds[each.validated.unit.fold].test]
            assert each.tested is not None
            right = np.array(each.tested.predictions) == truth
            assert each.tested.accuracy == right.mean()


@pytest.mark.parametrize("name", NAMES)
def test_the_papers_number_is_that_of_the_full_model(name: str) -> None:
    printed = paper_accuracy(name, Variant.FULL)
    assert printed is not None
    assert result(name)["paper"] == jsonable(asdict(printed))


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_these_numbers(name: str) -> None:
    told = result(name)
    row = page_row(name, "Results")
    shown = [percent(told["test_mean"], told["test_std"])]
    shown += [percent(rule["mean"], rule["std"]) for rule in told["rules"]]
    shown += [f"{100 * told['majority_share']:.1f}", f"{100 * told['runs_std']:.1f}"]
    shown += [percent(told["paper"]["mean"], told["paper"]["std"])]
    for each in shown:
        assert each in row, each


@pytest.mark.parametrize("name", NAMES)
def test_the_page_shows_the_references_on_the_same_folds(name: str) -> None:
    content = json.loads((RESULTS / name / "references.json").read_text(encoding="utf-8"))
    assert content["data_sha256"] == result(name)["job"]["data_sha256"]
    scores = [each["scores"] for each in content["references"] if each["key"] != ON_ATTRIBUTES]
    row = page_row(name, "Comparison with classifiers without a network")
    shown = [percent(each["accuracy"], each["accuracy_std"]) for each in scores]
    for each, box in zip(shown, row.replace("*", "").split(" | ")[1:], strict=False):
        assert each == box


def test_the_page_shows_the_difference_from_the_best_reference(tmp_path: Path) -> None:
    data = load_dataset("MUTAG")
    folds = read_fold_file(RESULTS / "MUTAG" / "splits.json", len(data))
    copied = tmp_path / "references.json"
    shutil.copy(RESULTS / "MUTAG" / "references.json", copied)
    before = copied.read_bytes()
    found = stored_references(copied, data, folds, 0)
    assert copied.read_bytes() == before  # they belong to these folds and were not computed again
    final = [each for each in records("MUTAG") if each.validated.unit.stage is Stage.FINAL]
    told = beside(found, final, folds, data)
    gap = f"{100 * told['difference']:.1f} ± {100 * told['error']:.1f}"
    row = page_row("MUTAG", "Comparison with classifiers without a network")
    assert row.endswith(f"| {gap} |")


@pytest.mark.parametrize("name", RACED)
def test_the_page_shows_the_race_as_its_final_runs_give_it(name: str) -> None:
    told = result(f"race/{name}")
    final = [each for each in records(f"race/{name}") if each.validated.unit.stage is Stage.FINAL]
    runs = sorted((each.validated.unit.fold, each.validated.unit.run) for each in final)
    assert runs == [(fold, run) for fold in range(10) for run in range(3)]
    by_fold = [
        np.mean([each.tested.accuracy for each in final if each.validated.unit.fold == fold])
        for fold in range(10)
    ]
    assert told["test_mean"] == pytest.approx(np.mean(by_fold))
    row = page_row(name.replace("-seed", ", seed "), "By a race")
    references = told["references"]
    shown = [f"**{percent(np.mean(by_fold), np.std(by_fold))}**"]
    shown += [f"{100 * told['balanced_accuracy']:.1f}", f"{told['roc_auc']:.3f}"]
    shown += [percent(references["difference"], references["error"])]
    (best,) = (each for each in references["methods"] if each["key"] == references["best"])
    shown += [percent(best["accuracy"], best["accuracy_std"])]
    for each in shown:
        assert f"| {each} |" in row, each


def test_the_page_tells_which_rule_closes_how_much_of_the_gap() -> None:
    page = " ".join((RESULTS / "README.md").read_text(encoding="utf-8").split())
    told = [result(name) for name in NAMES]
    paper = np.array([100 * each["paper"]["mean"] for each in told])
    headline = np.array([100 * each["test_mean"] for each in told])
    by_rule = {
        key: np.array(
            [100 * rule["mean"] for each in told for rule in each["rules"] if rule["key"] == key]
        )
        for key in ("nested", "authors", "common-test-epoch")
    }
    gaps = paper - by_rule["nested"]
    where = zip(gaps, ("points on MUTAG", "on KKI", "on BZR_MD", "on DHFR_MD"), strict=True)
    of_gaps = [f"{gap:.1f} {name}" for gap, name in where]
    assert f"{', '.join(of_gaps[:3])} and {of_gaps[3]}" in page
    for key in ("authors", "common-test-epoch"):
        first, second, third, last = by_rule[key] - by_rule["nested"]
        assert f"{first:.1f}, {second:.1f}, {third:.1f} and {last:.1f}" in page
        spread = np.array([100 * each["paper"]["std"] for each in told])
        assert (abs(by_rule[key] - paper) < spread).all()
    for name, better, gap in zip(
        NAMES, by_rule["authors"] - headline, paper - headline, strict=True
    ):
        points = "points " if name == "MUTAG" else ""
        assert f"{better:.1f} of {gap:.1f} {points}on {name}" in page
    assert f"({by_rule['common-test-epoch'][3] - headline[3]:.1f} of 7.7)" in page


@pytest.mark.parametrize("name", RACED)
def test_the_result_of_a_race_follows_from_its_final_runs(name: str) -> None:
    folder = RESULTS / "race" / name
    lines = (folder / "units.jsonl").read_text(encoding="utf-8").splitlines()
    found = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    final = [each for each in map(parsed, lines) if each.validated.unit.stage == Stage.FINAL]
    tests = [
        [each.tested.accuracy for each in final if each.validated.unit.fold == fold]
        for fold in range(10)
    ]
    assert [len(each) for each in tests] == [3] * 10
    assert np.mean(tests) == pytest.approx(found["test_mean"])
    assert np.std(np.mean(tests, axis=1)) == pytest.approx(found["test_std"])
    protocol = found["job"]["protocol"]
    epochs = protocol["training"]["epochs"]
    selection = sum((each or epochs) * count for each, count in protocol["race"])
    assert selection + 3 * epochs == {350: 2453, 117: 810, 27: 189}[epochs]
    trained = sum(parsed(line).validated.epochs for line in lines)
    assert trained == found["model_epochs"] == 10 * (selection + 3 * epochs)


def rows_of(page: str, heading: str) -> list[str]:
    """The rows of numbers in the first table below a heading."""
    lines = page.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0].splitlines()
    return [line for line in lines if line.startswith("|")][2:]


def test_the_tables_of_all_data_sets_have_the_rows_of_the_stored_results(
    real_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IHGNN_DATA", str(real_data))
    monkeypatch.syspath_prepend(RESULTS)
    table = importlib.import_module("table")
    page = (RESULTS.parent / "docs" / "results.md").read_text(encoding="utf-8")
    shown = rows_of(page, "Accuracy") + rows_of(page, "ROC-AUC and balanced accuracy")
    assert shown == list(table.rows())
    readme = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
    assert rows_of(readme, "Results") == list(table.readme_rows())
