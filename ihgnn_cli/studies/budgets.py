"""How much is spent on a reproduction: the same on every model, and always stated."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ihgnn_cli.studies.grid import Configuration, Setting, grid, own_grid, shown
from ihgnn_cli.studies.paper import paper_datasets
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.words import counted


class BudgetName(StrEnum):
    """What can be asked for."""

    QUICK = "quick"
    PAPER = "paper"


@dataclass(frozen=True)
class Budget:
    """Of each model on each data set."""

    name: BudgetName
    epochs: int
    folds: int
    runs: int
    """Final runs a fold."""
    lists: Mapping[str, tuple[Setting, ...]] | None
    """Values that compete, the same for every model, which has its defaults otherwise; `None` for
    the grid of each model's own paper."""
    seeds: int
    """Final runs a fold where the band is over seeds."""
    datasets: tuple[str, ...]
    """Of the paper's, where none are asked for."""
    sweep_graphs: int
    """Of each synthetic data set of the sweep over homophily."""
    sweep_folds: int
    sweep_betas: tuple[float, ...]
    """Homophily of these data sets."""

    def grid(self, config: RunConfig) -> tuple[Configuration, ...]:
        """The configurations of a model that compete."""
        if self.lists is None:
            return own_grid(config)
        layers = (config.model.layers,)
        return grid(config, **{"layers": layers, **self.lists})  # type: ignore[arg-type]

    def statement(self, *, folds: int | str | None = None, runs: int | None = None) -> str:
        """What was spent, in a sentence; folds and runs where they are not the budget's."""
        if self.lists is None:
            compete = "the grid of each method's own paper competes"
        else:
            told = " and ".join(
                f"{_NAMES.get(name, name)} {' or '.join(shown(each) for each in values)}"
                for name, values in self.lists.items()
            )
            compete = f"{told} compete, with each method's other settings at their defaults"
        return (
            f"The same for every method: {folds or self.folds} outer folds, "
            f"one inner hold-out (90/10) by which {compete}, {self.epochs} epochs per training, "
            f"{counted(runs or self.runs, 'final run')} per fold; epoch and configuration by "
            "validation, tested once."
        )


_NAMES = {"lr": "learning rate", "batch_size": "batch size"}

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
    BudgetName.PAPER: Budget(
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
    ),
}
