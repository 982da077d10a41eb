"""What the tables of a cross-validation say beside their numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ihgnn_cli.cli import console, crossval_display
from ihgnn_cli.jobs.queue import Step
from ihgnn_cli.studies.crossval import Progress

SHIPPED = Path(__file__).parents[2] / "results" / "MUTAG" / "result.json"
NOTE = "its choice has seen this and that"


ALL = 105_000
"""Model-epochs of that job."""


def shown(
    capsys: pytest.CaptureFixture[str],
    result: dict[str, Any],
    *,
    rules: bool = True,
    trained: int | None = ALL,
) -> str:
    crossval_display.show(result, Path("job"), rules=rules, trained=trained)
    return capsys.readouterr().out


@pytest.fixture
def result() -> dict[str, Any]:
    """Of before stacks and notes were told."""
    found: dict[str, Any] = json.loads(SHIPPED.read_text(encoding="utf-8"))
    return found


def row(text: str, begin: str) -> str:
    """The line with the numbers of a row, whose title may go on in the next."""
    (found,) = (line for line in text.splitlines() if line.strip().startswith(begin))
    return found


def test_results_of_before_stacks_and_notes_were_told_are_shown(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    later = {
        *("balanced_accuracy", "roc_auc", "references", "repeats", "test_error", "best", "race"),
        *("stack", "final_stack", "model", "partial", "snapshots", "group_twins"),
    }
    old = {key: value for key, value in result.items() if key not in later}
    old["rules"] = [{key: rule[key] for key in rule if key != "note"} for rule in result["rules"]]
    text = shown(capsys, old)
    assert "Trained     300 models, 105,000 model-epochs, in " in text
    assert "*" not in text


@pytest.mark.parametrize(
    ("chose", "said"),
    [
        (3, "the configuration that most folds chose (3 of 10), with the median"),
        (
            1,
            "no configuration was chosen by more than one fold; of those chosen, the one with the "
            "best average on validation, with the median",
        ),
    ],
)
def test_the_best_configuration_says_how_many_folds_chose_it(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any], chose: int, said: str
) -> None:
    text = shown(capsys, {**result, "best": {"folds": chose, "epochs": 7}})
    assert said in " ".join(text.split())
    assert "best epochs (7, raised to 20, the fewest for a final training)" in " ".join(
        text.split()
    )


def test_repeats_are_rows_with_their_seed_and_the_mean_has_a_standard_error(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    repeats = [
        {"seed": 7, "test_mean": 0.8, "test_std": 0.05},
        {"seed": 8, "test_mean": 0.9, "test_std": 0.02},
    ]
    folds = [
        {**fold, "test_mean": 0.7 + number / 50} for number, fold in enumerate(result["folds"])
    ]
    told = {**result, "repeats": repeats, "test_error": 0.031, "folds": folds}
    text = shown(capsys, told, rules=False)
    assert "MUTAG: accuracy in %, 2 partitions of 5 folds" in text
    assert row(text, "7").split() == ["7", "80.0", "±", "5.0", "70.0", "78.0"]
    assert row(text, "8 ").split() == ["8", "90.0", "±", "2.0", "80.0", "88.0"]
    assert "mean ± standard deviation over folds of 2 partitions" in text
    assert "Standard error of the mean: 3.1 points (Nadeau and Bengio's correction" in text


def test_the_size_of_stacks_is_told(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    told = row(shown(capsys, {**result, "stack": 15}), "Trained")
    assert "105,000 model-epochs, stacks of 15, in " in told
    assert told.endswith("with 2 workers")  # in the same line


@pytest.mark.parametrize(
    ("trained", "told"),
    [
        (ALL, "in 10 min: 175 per second with 2 workers"),
        (350, "(20 min of worker time); 350 of them now, in 10 min: 175 per second with 2 workers"),
        (0, "all by other commands (20 min of worker time)"),
        (None, "all by earlier commands (20 min of worker time)"),
    ],
)
def test_what_was_trained_now_is_told_apart_from_what_was_there(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any], trained: int | None, told: str
) -> None:
    times = {"seconds": 600.0, "worker_seconds": 1200.0, "model_epochs_per_second": 175.0}
    text = row(shown(capsys, {**result, **times}, trained=trained), "Trained")
    assert text.startswith("Trained     300 models, 105,000 model-epochs")
    assert text.endswith(told)


def test_the_papers_number_for_an_ablation_names_it(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    assert "The paper: 89.9 ± 6.0 %, where" in shown(capsys, result)
    paper = {"variant": "no-concat", "mean": 0.868, "std": 0.067}
    text = shown(capsys, {**result, "paper": paper})
    assert "The paper (no-concat): 86.8 ± 6.7 %, where" in text
    assert " 86.8 ± 6.7" in row(text, "The paper's table (no-concat)")


def progress_lines(capsys: pytest.CaptureFixture[str], *told: Progress) -> list[str]:
    with crossval_display.progress(quiet=False) as tell:
        for each in told:
            tell(each, Step())
    return capsys.readouterr().err.splitlines()


def test_without_a_terminal_a_line_is_told_for_each_tenth(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = [Progress(0, 2, 0, 40), Progress(0, 2, 3, 40), Progress(0, 2, 4, 40)]
    assert progress_lines(capsys, *steps, Progress(2, 2, 40, 40)) == [
        "0 of 40 model-epochs: 0 of 2 models finished",
        "4 of 40 model-epochs: 0 of 2 models finished",
        "40 of 40 model-epochs: 2 of 2 models finished",
    ]


def test_nothing_is_told_of_progress_where_there_is_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert progress_lines(capsys) == []
    monkeypatch.setattr(console, "err", Console(stderr=True, force_terminal=True, width=80))
    assert progress_lines(capsys) == []
    assert "2 of 2 models finished" in progress_lines(capsys, Progress(2, 2, 40, 40))


def test_rules_say_whether_they_look_at_test_and_the_paper_by_what_it_does(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    result["rules"][1]["note"] = NOTE
    text = shown(capsys, result)
    assert " no  " in row(text, "A configuration for each fold")
    assert " no*  " in row(text, "One configuration for all folds")
    assert " YES  " in row(text, "The authors' script")
    assert " in their script  89.9 ± 6.0" in row(text, "The paper's table")
    assert row(text, "* ") == f"* {NOTE}"


def test_without_rules_there_are_none(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    assert "The paper's table" not in shown(capsys, result, rules=False)
