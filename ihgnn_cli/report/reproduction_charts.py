"""Charts of accuracy by number of layers and by homophily, from finished cells."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ihgnn_cli.errors import InputError
from ihgnn_cli.report.curves import Chart, Curve, Spread, make_curve
from ihgnn_cli.studies.budgets import Budget
from ihgnn_cli.studies.paper import model_title

if TYPE_CHECKING:  # it imports torch
    from ihgnn_cli.studies.reproduction import Outcome


def sensitivity_chart(
    done: "Sequence[Outcome]", models: Sequence[str], budget: Budget, statement: str
) -> Chart:
    """One line per data set (and per model, if there are several): mean over folds and seeds.

    Raises:
        InputError: nothing was run.
    """
    curves = []
    for dataset in dict.fromkeys(each.dataset for each in done):
        for model in models:
            points = [
                (float(each.cell.layers or 0), each.result.runs)
                for each in done
                if (each.dataset, each.cell.model) == (dataset, model) and each.result is not None
            ]
            named = dataset if len(models) == 1 else f"{dataset}, {model_title(model)}"
            if points:
                curves.append(make_curve(named, points, Spread.STD))
    return Chart(
        name="sensitivity",
        title="Accuracy by the number of layers K",
        x_name="K",
        lines="data set",
        band=Spread.STD.describe(f"{budget.seeds} seeds, each the mean over folds"),
        curves=_some(curves),
        budget=budget.name,
        statement=statement,
        log2=True,
        notes=_not_run(done),
    )


def sweep_chart(
    done: "Sequence[Outcome]",
    models: Sequence[str],
    betas: Mapping[str, float],
    budget: Budget,
    statement: str,
) -> Chart:
    """One line per model: mean over folds, on one synthetic data set per homophily.

    Raises:
        InputError: nothing was run.
    """
    curves = []
    for model in models:
        points = [
            (betas[each.cell.dataset], [fold.test_mean for fold in each.result.folds])
            for each in done
            if each.cell.model == model and each.result is not None
        ]
        if points:
            curves.append(make_curve(model_title(model), points, Spread.STD))
    return Chart(
        name="homophily-sweep",
        title="Accuracy by the homophily of synthetic graphs",
        x_name="mean node homophily β",
        lines="model",
        band=Spread.STD.describe(f"{budget.sweep_folds} folds"),
        curves=_some(curves),
        budget=budget.name,
        statement=statement,
        chance=0.5,
        notes=_not_run(done),
    )


def _some(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    if not curves:
        raise InputError("No run succeeded, so there is nothing to draw.")
    return tuple(curves)


def _not_run(done: "Sequence[Outcome]") -> tuple[str, ...]:
    return tuple(f"{each.cell} {each.refused}." for each in done if each.result is None)
