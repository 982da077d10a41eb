"""Budgets of a reproduction: the same for every model, and always reported."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from ihgnn_cli.studies.crossval.protocol import (
    PAPERS_SELECTION,
    Configuration,
    Setting,
    grid,
    own_grid,
    shown,
)
from ihgnn_cli.studies.paper import paper_datasets
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.words import counted


class BudgetName(StrEnum):
    """The available budgets."""

    QUICK = "quick"
    PAPER = "paper"
    RACE = "race"


@dataclass(frozen=True)
class Budget:
    """The budget for each model on each data set."""

    name: BudgetName
    epochs: int
    folds: int
    runs: int
    """Final runs per fold."""
    lists: Mapping[str, tuple[Setting, ...]] | None
    """Candidate values, the same for every model, with defaults for all other settings; `None`:
    the grid of each model's own paper."""
    seeds: int
    """Final runs per fold where the error band is over seeds."""
    datasets: tuple[str, ...]
    """The default data sets, from the paper."""
    sweep_graphs: int
    """Graphs in each synthetic data set of the homophily sweep."""
    sweep_folds: int
    sweep_betas: tuple[float, ...]
    """The homophily values of the sweep."""
    race: bool = False
    """Whether configurations are chosen by successive halving."""

    def grid(self, config: RunConfig) -> tuple[Configuration, ...]:
        """The candidate configurations of a model."""
        if self.lists is None:
            return own_grid(config)
        return grid(config, self.lists)

    def statement(
        self, *, folds: int | str | None = None, runs: int | None = None, repeats: int = 1
    ) -> str:
        """The budget in one sentence; folds and runs override those of the budget."""
        if self.lists is None:
            compete = "the grid of each method's own paper competes"
        else:
            lists = " and ".join(
                f"{_NAMES.get(name, name)} {' or '.join(shown(each) for each in values)}"
                for name, values in self.lists.items()
            )
            compete = f"{lists} compete, with each method's other settings at their defaults"
        if self.race:
            compete += (
                " in a race (successive halving, a different procedure from the paper's, "
                f"{PAPERS_SELECTION})"
            )
        most = "at most " if self.race else ""
        partitions = f"{repeats} partitions of " if repeats > 1 else ""
        return (
            f"The same for every method: {partitions}{folds or self.folds} outer folds, "
            f"one inner hold-out (90/10) by which {compete}, "
            f"{most}{self.epochs} epochs per training, "
            f"{counted(runs or self.runs, 'final run')} per fold; epoch and configuration by "
            "validation, tested once."
        )


_NAMES = {"lr": "learning rate", "batch_size": "batch size"}

_PAPER = Budget(
    name=BudgetName.PAPER,
    epochs=350,
    folds=10,
    runs=3,
    lists=None,
    seeds=10,
    datasets=paper_datasets(),
    sweep_graphs=1000,
    sweep_folds=10,
    sweep_betas=tuple(each / 10 for each in range(11)),
)

BUDGETS = {
    BudgetName.QUICK: Budget(
        name=BudgetName.QUICK,
        epochs=30,
        folds=5,
        runs=1,
        lists={"lr": (0.01, 0.001), "batch_size": (32,)},
        seeds=3,
        datasets=("BZR_MD", "MUTAG"),
        sweep_graphs=200,
        sweep_folds=5,
        sweep_betas=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    ),
    BudgetName.PAPER: _PAPER,
    BudgetName.RACE: replace(_PAPER, name=BudgetName.RACE, race=True),
}
