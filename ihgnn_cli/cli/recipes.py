"""`ihgnn recipes`: the presets of --recipe side by side."""

from dataclasses import asdict
from typing import Any

from ihgnn_cli.cli.help import examples
from ihgnn_cli.cli.options import AsJson

EXAMPLES = examples(
    ("ihgnn recipes", "Settings that differ, and the cost of a cross-validation"),
    ("ihgnn crossval MUTAG --recipe robust", "Use one"),
)


def recipes(as_json: AsJson = False) -> None:
    """Compare the recipes of train, tune and crossval."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.studies.recipes import all_recipes, differing

    found = all_recipes()
    if as_json:
        console.show_json({each.name: asdict(each) for each in found})
        return
    for each in found:
        console.show(f"{each.name}: {each.purpose}")
    shown = console.table("\nSettings that differ", "", *(each.name for each in found))
    for name in differing(found):
        shown.add_row(name, *(_text(each.settings[name]) for each in found))
    console.show(shown)
    costs = console.table("Cross-validation, 10 folds", "", *(each.name for each in found))
    for title, values in {
        "Configurations compared": [f"{each.cost.configurations}" for each in found],
        "Runs per fold": [f"{each.cost.runs}" for each in found],
        "Epochs": [_range(each.cost.epochs) for each in found],
        "Model-epochs": [_range(each.cost.model_epochs) for each in found],
    }.items():
        costs.add_row(title, *values)
    console.show(costs)
    for each in found:
        if each.settings["steps"]:
            console.show(
                f"{each.name}: the number of epochs follows from the number of graphs, so that a "
                f"training takes about {each.settings['steps']} optimizer steps."
            )
        console.show(f"tune --recipe {each.name}: a trial is judged by {each.tune}.")
    console.next_steps(("crossval", "MUTAG", "--recipe", "robust"))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value == "" else str(value)


def _range(values: tuple[int, int]) -> str:
    low, high = values
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
