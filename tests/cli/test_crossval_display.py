"""What the tables of a cross-validation say beside their numbers."""

from pathlib import Path
from typing import Any

import pytest
from finished_crossvals import CONFIGURATION, fold_result, result
from rich.console import Console

from ihgnn_cli.cli import console, crossval_display
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.studies.crossval.result import BestConfiguration, RepeatResult, RuleResult
from ihgnn_cli.studies.crossval.run import Progress
from ihgnn_cli.studies.paper import PaperAccuracy

NOTE = "its choice has seen this and that"
ALL = 105_000
"""Model-epochs of the job."""
PAPER = PaperAccuracy(Variant.FULL, 0.899, 0.06)
TITLES = {
    "nested": "A configuration for each fold",
    "common": "One configuration for all folds",
    "authors": "The authors' script",
}
RULES = tuple(
    RuleResult(key, title, key != "authors", 0.8, 0.1, None, None, NOTE * (key == "common") or None)
    for key, title in TITLES.items()
)


def shown(
    capsys: pytest.CaptureFixture[str],
    *,
    rules: bool = True,
    trained: int | None = ALL,
    **changes: Any,
) -> str:
    known = {"dataset": "MUTAG", "model": "ihgnn", "paper": PAPER, "rules": RULES, "seconds": 600.0}
    known |= {"model_epochs": ALL, "trained_now": ALL, "worker_seconds": 1200.0}
    made = result(**{**known, **changes})
    crossval_display.show(made, Path("job"), rules=rules, trained=trained)
    return capsys.readouterr().out


def row(text: str, begin: str) -> str:
    """The line with the numbers of a row, whose title may go on in the next."""
    (found,) = (line for line in text.splitlines() if line.strip().startswith(begin))
    return found


@pytest.mark.parametrize(
    ("chose", "said"),
    [
        (2, "the configuration that most folds chose (2 of 2), with the median"),
        (
            1,
            "no configuration was chosen by more than one fold; of those chosen, the one with the "
            "best average on validation, with the median",
        ),
    ],
)
def test_the_best_configuration_says_how_many_folds_chose_it(
    capsys: pytest.CaptureFixture[str], chose: int, said: str
) -> None:
    text = shown(capsys, best=BestConfiguration(CONFIGURATION, chose, 7))
    assert said in " ".join(text.split())
    assert "best epochs (7, raised to 20, the fewest for a final training)" in " ".join(
        text.split()
    )


def test_repeats_are_rows_with_their_seed_and_the_mean_has_a_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    repeats = (RepeatResult(7, 0.8, 0.05), RepeatResult(8, 0.9, 0.02))
    folds = tuple(fold_result(number, 0.7 + number / 50) for number in range(10))
    text = shown(capsys, repeats=repeats, folds=folds, rules=False)
    assert "MUTAG: accuracy in %, 2 partitions of 5 folds" in text
    assert row(text, "7").split() == ["7", "80.0", "±", "5.0", "70.0", "78.0"]
    assert row(text, "8 ").split() == ["8", "90.0", "±", "2.0", "80.0", "88.0"]
    assert "mean ± standard deviation over folds of 2 partitions" in text
    assert "Standard error of the mean: 3.1 points (Nadeau and Bengio's correction" in text


def test_the_size_of_stacks_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = row(shown(capsys, stack=15), "Trained")
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
    capsys: pytest.CaptureFixture[str], trained: int | None, told: str
) -> None:
    text = row(shown(capsys, trained=trained), "Trained")
    assert text.startswith("Trained     300 models, 105,000 model-epochs")
    assert text.endswith(told)


def test_the_papers_number_for_an_ablation_names_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "The paper: 89.9 ± 6.0 %, where" in shown(capsys)
    text = shown(capsys, paper=PaperAccuracy(Variant.NO_CONCAT, 0.868, 0.067))
    assert "The paper (no-concat): 86.8 ± 6.7 %, where" in text
    assert " 86.8 ± 6.7" in row(text, "The paper's table (no-concat)")


def progress_lines(capsys: pytest.CaptureFixture[str], *told: Progress) -> list[str]:
    with crossval_display.progress(quiet=False) as tell:
        for each in told:
            tell(each)
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
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = shown(capsys)
    assert " no  " in row(text, "A configuration for each fold")
    assert " no*  " in row(text, "One configuration for all folds")
    assert " YES  " in row(text, "The authors' script")
    assert "in their script 89.9 ± 6.0" in " ".join(row(text, "The paper's table").split())
    assert row(text, "* ") == f"* {NOTE}"


def test_without_rules_there_are_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "The paper's table" not in shown(capsys, rules=False)
