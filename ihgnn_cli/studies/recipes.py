"""The recipes side by side: their settings, and what they cost in a cross-validation."""

from dataclasses import dataclass
from typing import Any

from ihgnn_cli.data.splits.folds import PROTOCOL_FOLDS
from ihgnn_cli.studies.grid import PAPER_RUNS, own_grid
from ihgnn_cli.training.config import (
    LEAST_EPOCHS,
    MOST_EPOCHS,
    RunConfig,
    configure,
    recipe_grid,
)
from ihgnn_cli.training.kinds import Recipe
from ihgnn_cli.words import counted

_PURPOSE = {
    Recipe.PAPER: "the paper's text; the default",
    Recipe.AUTHORS: "the authors' published code where it differs from the text",
    Recipe.ROBUST: "an ensemble that chooses nothing, at a twentieth of the paper's cost or less",
}
# Settings of a machine or of one run.
_NOT_SHOWN = {"dataset", "split", "split_from", "device", "seed", "patience"}


@dataclass(frozen=True)
class RecipeCost:
    """What a recipe trains in a cross-validation of ten folds."""

    configurations: int
    """Compared on validation in each fold; 0: none are."""
    runs: int
    """Final runs per fold, or seeds whose predictions are averaged."""
    epochs: tuple[int, int]
    """Fewest and most, by the number of graphs."""
    model_epochs: tuple[int, int]
    """The same, over all trainings."""


@dataclass(frozen=True)
class RecipeSummary:
    """A recipe."""

    name: Recipe
    purpose: str
    settings: dict[str, Any]
    cost: RecipeCost
    tune: str
    """What a trial of `ihgnn tune` is judged by, and what is trained in the end."""


def all_recipes() -> list[RecipeSummary]:
    """All recipes, in order."""
    return [_summary(recipe) for recipe in Recipe]


def differing(recipes: list[RecipeSummary]) -> list[str]:
    """The settings in which recipes differ."""
    return [
        name
        for name in recipes[0].settings
        if len({repr(each.settings[name]) for each in recipes}) > 1
    ]


def _summary(recipe: Recipe) -> RecipeSummary:
    config = configure(recipe)
    grid = recipe_grid(recipe)
    settings: dict[str, Any] = {
        name: value
        for section in config.as_plain().values()
        for name, value in section.items()
        if name not in _NOT_SHOWN
    }
    if config.training.steps:
        settings["epochs"] = f"{LEAST_EPOCHS} to {MOST_EPOCHS}"
    return RecipeSummary(recipe, _PURPOSE[recipe], settings, _cost(config, grid), _tune(config))


def _tune(config: RunConfig) -> str:
    training = config.training
    if not training.snapshots:
        return "a model's best validation epoch; one final run"
    return (
        f"the mean prediction of {counted(training.snapshots, 'epoch')} of a model; a final "
        f"ensemble of {counted(training.ensemble, 'seed')}"
    )


def _cost(config: RunConfig, grid: dict[str, tuple[Any, ...]]) -> RecipeCost:
    training = config.training
    selects = not training.snapshots
    compared = len(own_grid(config, grid)) if selects else 0
    runs = PAPER_RUNS if selects else training.ensemble
    epochs = (training.epochs, training.epochs)
    if training.steps:
        epochs = (LEAST_EPOCHS, MOST_EPOCHS)
    trained = PROTOCOL_FOLDS * (compared + runs)
    return RecipeCost(compared, runs, epochs, (trained * epochs[0], trained * epochs[1]))
