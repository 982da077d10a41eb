"""`ihgnn models`: list the models, or describe one of them."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from ihgnn_cli.cli.help import argument, examples
from ihgnn_cli.cli.options import AsJson, complete_model

if TYPE_CHECKING:
    from ihgnn_cli.models.spec import ModelSpec


EXAMPLES = examples(
    ("ihgnn models", "List all models"),
    ("ihgnn models gin", "Settings and grid of one"),
)


def models(
    name: Annotated[
        str | None,
        argument(
            "NAME",
            "Describe this model: settings, grid, and differences from its paper.",
            autocompletion=complete_model,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the models, or describe one of them."""
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
    others = any(spec.package != ModelSpec.package for spec in specs)
    origin = ["From"] if others else []
    shown = console.table(
        None, "Name", "Parameters", "Cost per graph", "Export", *origin, "Reference"
    )
    for spec in specs:
        origin = [spec.package] if others else []
        export = "both" if len(spec.layouts) > 1 else "".join(spec.layouts) or "–"
        reference = console.plain(spec.reference)
        shown.add_row(*(spec.name, _parameters_text(spec), spec.cost, export, *origin, reference))
    console.show(shown)
    console.show(
        "Parameters: with default settings, for MUTAG. Cost: how time and memory of a training "
        "step grow with n nodes and e edges. Export: to ONNX, in the padded layout "
        "or in both.\n"
        "'ihgnn models NAME' describes a model; --variant selects ablations of "
        "ihgnn. To add your own model, read docs/models.md."
    )
    for problem in broken.values():
        console.warn(problem)


def _parameters_text(spec: "ModelSpec") -> str:
    return "–" if spec.parameters is None else f"{spec.parameters:,}"


def _entry(spec: "ModelSpec") -> dict[str, Any]:
    return {
        "name": spec.name,
        "title": spec.title,
        "reference": spec.reference,
        "parameters_on_mutag": spec.parameters,
        "cost": spec.cost,
        "package": spec.package,
        "stacked": spec.stacked is not None,
        "edge_labels": spec.edge_labels(spec.settings()),
        "layouts": list(spec.layouts),
        "layouts_note": spec.layouts_note,
        "settings": asdict(spec.settings()),
        "grid": {name: list(values) for name, values in spec.grid.items()},
        "grid_source": spec.grid_source,
        "note": spec.note,
    }


def _describe(spec: "ModelSpec") -> None:
    from ihgnn_cli.cli import console
    from ihgnn_cli.studies.crossval.protocol import shown as value_shown

    console.show(spec.title, style="bold")
    console.show(
        f"{console.plain(spec.reference)}\n{_parameters_text(spec)} parameters for MUTAG; cost per "
        f"graph grows with {spec.cost}; from the package {spec.package}"
    )
    if spec.note:
        console.show(spec.note)
    if spec.edge_labels(spec.settings()):
        console.show(
            "Reads edge labels with --edge-labels, and bins of an edge attribute with --edge-bins."
        )
    layouts = " or ".join(spec.layouts)
    export = f"--layout {layouts}" if layouts else "not possible"
    console.show(f"Export to ONNX: {export}. {spec.layouts_note}".strip())
    settings = console.table("\nSettings (--set NAME=VALUE)", "Name", "Default", "Grid")
    own = asdict(spec.settings())
    for name in [*own, *(each for each in spec.grid if each not in own)]:
        values = spec.grid.get(name, ())
        default = value_shown(own[name]) if name in own else f"--{name.replace('_', '-')}"
        settings.add_row(name, default, ", ".join(value_shown(each) for each in values))
    console.show(settings)
    if spec.grid_source:
        console.show(f"Grid: {spec.grid_source}")
    console.show("")
    console.next_steps(("train", "--model", spec.name), ("crossval", "--model", spec.name))
