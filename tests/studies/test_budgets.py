"""Budgets: the same for every model, and told in a sentence."""

import pytest

from ihgnn_cli.studies.budgets import BUDGETS, BudgetName
from ihgnn_cli.studies.grid import Configuration, own_grid
from ihgnn_cli.studies.paper import paper_datasets
from ihgnn_cli.training.config import configure

QUICK, PAPER = BUDGETS[BudgetName.QUICK], BUDGETS[BudgetName.PAPER]


def test_every_name_is_a_budget_of_that_name() -> None:
    assert set(BUDGETS) == set(BudgetName)
    assert all(budget.name is name for name, budget in BUDGETS.items())


@pytest.mark.parametrize(("model", "layers"), [("ihgnn", 3), ("gin", 4), ("gprgnn", 10)])
def test_the_quick_budget_has_two_learning_rates_for_every_model(model: str, layers: int) -> None:
    """The rest of a model is at its own defaults."""
    assert QUICK.grid(configure(model=model)) == (
        Configuration(0.01, 32, layers),
        Configuration(0.001, 32, layers),
    )


@pytest.mark.parametrize(("model", "size"), [("ihgnn", 27), ("gin", 12), ("pgcn", 32)])
def test_the_paper_s_budget_has_the_grid_of_each_model_s_own_paper(model: str, size: int) -> None:
    config = configure(model=model)
    assert PAPER.grid(config) == own_grid(config)
    assert len(PAPER.grid(config)) == size


def test_the_paper_s_budget_is_the_paper_s_protocol() -> None:
    assert (PAPER.epochs, PAPER.folds, PAPER.runs) == (350, 10, 3)
    assert PAPER.datasets == paper_datasets()
    assert set(QUICK.datasets) < set(paper_datasets())


def test_a_budget_is_stated_in_a_sentence() -> None:
    assert QUICK.statement() == (
        "The same for every method: 5 outer folds, one inner hold-out (90/10) by "
        "which learning rate 0.01 or 0.001 and batch size 32 compete, with each method's other "
        "settings at their defaults, 30 epochs per training, 1 final run per fold; epoch and "
        "configuration by validation, tested once."
    )
    told = PAPER.statement()
    assert "the grid of each method's own paper competes" in told
    assert "350 epochs per training, 3 final runs per fold" in told


def test_a_statement_tells_folds_and_runs_that_are_not_the_budget_s() -> None:
    told = QUICK.statement(folds=7, runs=3)
    assert "7 outer folds" in told
    assert "3 final runs per fold" in told
    assert "10 outer" not in told
