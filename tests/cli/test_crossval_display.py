"""What the tables of a cross-validation say beside their numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from ihgnn_cli.cli import crossval_display

SHIPPED = Path(__file__).parents[2] / "results" / "MUTAG" / "result.json"
NOTE = "its choice has seen this and that"


def shown(capsys: pytest.CaptureFixture[str], result: dict[str, Any], *, rules: bool = True) -> str:
    crossval_display.show(result, Path("job"), rules=rules)
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
    text = shown(capsys, result)
    assert "Trained     300 models, 105,000 model-epochs, in " in text
    assert "*" not in text


def test_the_size_of_stacks_is_told(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    told = row(shown(capsys, {**result, "stack": 15}), "Trained")
    assert "105,000 model-epochs, stacks of 15, in " in told
    assert told.endswith("with 2 workers")  # in the same line


def test_rules_say_whether_they_look_at_test_and_the_paper_by_what_it_does(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    result["rules"][1]["note"] = NOTE
    text = shown(capsys, result)
    assert " no  " in row(text, "A configuration for each fold")
    assert " no*  " in row(text, "One configuration for all folds")
    assert " YES  " in row(text, "The authors' script")
    assert " by their script  89.9 ± 6.0" in row(text, "The paper's table")
    assert row(text, "* ") == f"* {NOTE}"


def test_without_rules_there_are_none(
    capsys: pytest.CaptureFixture[str], result: dict[str, Any]
) -> None:
    assert "The paper's table" not in shown(capsys, result, rules=False)
