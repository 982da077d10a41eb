"""What `ihgnn reproduce` refuses before it trains, and what it says was spent."""

from pathlib import Path

import pytest
from finished_crossvals import fold_result, result

from ihgnn_cli.cli import reproduce_work
from ihgnn_cli.cli.reproduce_request import Request
from ihgnn_cli.data.access import Access
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.budgets import BUDGETS, BudgetName
from ihgnn_cli.studies.reproduction import Cell, Outcome
from ihgnn_cli.studies.subjects import Subject


def done(folds: int | None) -> Outcome:
    made = None
    if folds is not None:
        made = result(folds=tuple(fold_result(number, 0.5) for number in range(folds)))
    return Outcome(Cell("MUTAG", "gin"), "MUTAG", made)


def test_the_statement_has_the_folds_that_were_run() -> None:
    """Those of published splits may be others than the budget's."""
    quick = BUDGETS[BudgetName.QUICK]
    for cells, told in (
        ([done(10), done(None), done(10)], "10 outer folds"),
        ([done(10), done(5)], "5 to 10 outer folds"),
        ([done(None)], f"{quick.folds} outer folds"),
    ):
        assert f": {told}," in quick.statement(folds=reproduce_work._folds(cells))


def test_a_depth_that_a_model_cannot_have_is_told_before_anything_is_trained(
    tmp_path: Path,
) -> None:
    request = Request(
        subject=Subject.SENSITIVITY,
        datasets=("MUTAG",),
        models=("h2gcn",),
        budget=BUDGETS[BudgetName.QUICK],
        folder=tmp_path / "out",
        seed=0,
        repeats=1,
        splits=None,
        device="cpu",
        workers=1,
        where=Access(offline=True),
        command="",
    )
    with pytest.raises(InputError, match="h2gcn: layers must be from 0 to 10, not 16"):
        reproduce_work.run(request, quiet=True)
    assert not (tmp_path / "out").exists()
