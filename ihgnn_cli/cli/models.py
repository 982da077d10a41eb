"""`ihgnn models`: which models there are, and what one of them takes."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ihgnn_cli.cli.options import AsJson, complete_model

if TYPE_CHECKING:
    from ihgnn_cli.models.spec import ModelSpec


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="One of them, for its settings, its grid and where it departs from its paper.",
            autocompletion=complete_model,
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the models with their papers, parameters and cost, or describe one of them."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.models.registry import all_models, find_model
    from ihgnn_cli.models.spec import ModelSpec

    if name is not None:
        spec = find_model(name)
        if as_json:
            console.show_json(_entry(spec))
        else:
            _describe(spec)
        return
    found = list(all_models())
    specs = [spec for _, spec in found if isinstance(spec, ModelSpec)]
    broken = {each: str(spec) for each, spec in found if not isinstance(spec, ModelSpec)}
    if as_json:
        console.show_json({"models": [_entry(spec) for spec in specs], "broken": broken})
        return
    shown = console.table(None, "Name", "Parameters", "Cost of a graph", "From", "Reference")
    for spec in specs:
        shown.add_row(
            spec.name,
            _told_parameters(spec),
            spec.cost,
            spec.package,
            console.plain(spec.reference),
        )
    console.show(shown)
    console.show(
        "Parameters: at the model's defaults, for MUTAG. Cost: what time and memory of a step grow "
        "with; n nodes, e edges.\n'ihgnn models NAME' tells more of one; the ablations of ihgnn "
        "are its --variant. Your own: docs/models.md."
    )
    for problem in broken.values():
        console.warn(problem)


def _parameters(spec: "ModelSpec") -> int | None:
    """Of one model at its defaults, for MUTAG; `None` where it cannot be made for that."""
    from ihgnn_cli.models.settings import Inputs
    from ihgnn_cli.models.spec import ModelSpec
    from ihgnn_cli.training.config import RunConfig
    from ihgnn_cli.training.needs import parameter_count

    of_mutag = Inputs(labels=7, attributes=0, classes=2, max_nodes=28)
    try:
        return parameter_count(RunConfig().of_model(spec.name), of_mutag)
    except Exception:
        if spec.package == ModelSpec.package:
            raise
        return None  # somebody else's model, which must not hide the others


def _told_parameters(spec: "ModelSpec") -> str:
    count = _parameters(spec)
    return "–" if count is None else f"{count:,}"


def _entry(spec: "ModelSpec") -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "name": spec.name,
        "title": spec.title,
        "reference": spec.reference,
        "parameters_on_mutag": _parameters(spec),
        "cost": spec.cost,
        "package": spec.package,
        "stacked": spec.stacked is not None,
        "settings": asdict(spec.settings()),
        "grid": {name: list(values) for name, values in spec.grid.items()},
        "grid_source": spec.grid_source,
        "note": spec.note,
    }


def _describe(spec: "ModelSpec") -> None:
    from dataclasses import asdict

    from ihgnn_cli.cli import console
    from ihgnn_cli.studies.grid import shown as value_shown

    console.show(spec.title, style="bold")
    console.show(
        f"{console.plain(spec.reference)}\n{_told_parameters(spec)} parameters for MUTAG; the cost "
        f"of a graph grows with {spec.cost}; from the package {spec.package}"
    )
    if spec.note:
        console.show(spec.note)
    settings = console.table("\nSettings (--set NAME=VALUE)", "Name", "Default", "Grid")
    own = asdict(spec.settings())
    for name in [*own, *(each for each in spec.grid if each not in own)]:
        values = spec.grid.get(name, ())
        default = value_shown(own[name]) if name in own else f"--{name.replace('_', '-')}"
        settings.add_row(name, default, ", ".join(value_shown(each) for each in values))
    console.show(settings)
    if spec.grid_source:
        console.show(f"Grid: {spec.grid_source}")
