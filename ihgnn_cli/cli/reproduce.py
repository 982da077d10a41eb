"""`ihgnn reproduce`: the paper's tables and figures, ours beside the paper's."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ihgnn_cli.cli.options import (
    WORK_PANEL,
    AsJson,
    DataRoot,
    Device,
    Offline,
    Quiet,
    Workers,
    count_or_auto,
    named_folder,
)
from ihgnn_cli.studies.subjects import Subject

if TYPE_CHECKING:
    from ihgnn_cli.studies.budgets import BudgetName

_RUNS = Path("runs")
_QUICK = "quick"


def reproduce(
    subject: Annotated[
        Subject,
        typer.Argument(
            help="table1: IHGNN and fourteen methods. table2: its ablations. figure1: the "
            "homophily of the graphs. sensitivity: accuracy by K. homophily-sweep: accuracy by "
            "homophily, on synthetic graphs.",
            show_default=False,
        ),
    ],
    datasets: Annotated[
        str | None,
        typer.Option(
            "--datasets",
            "-d",
            metavar="LIST",
            help="With commas. Default: the paper's data sets that are on this machine.",
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            metavar="LIST",
            help="With commas, as 'ihgnn models' lists them; ablations as ihgnn:no-concat. "
            "Default: all of the table.",
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            metavar="quick|paper",
            help="What is spent on each model. quick: 5 folds, 30 epochs, two learning rates, one "
            "run a fold. paper: 10 folds, 350 epochs, each method's own grid, three runs a fold: "
            "days.",
        ),
    ] = _QUICK,
    seed: Annotated[int, typer.Option(help="Of the folds and of all runs.")] = 0,
    splits: Annotated[
        Path | None,
        typer.Option(
            "--splits",
            metavar="DIR",
            help="A folder with published folds as NAME.json; other data sets get drawn ones.",
            file_okay=False,
            exists=True,
        ),
    ] = None,
    device: Device = None,
    workers: Workers = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            parser=named_folder,
            help="The folder of cells and reports. The same command goes on in it. Default: "
            "runs/reproduce-BUDGET.",
            rich_help_panel=WORK_PANEL,
        ),
    ] = None,
    quiet: Quiet = False,
    data_root: DataRoot = None,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Run what is missing of a table or figure of the paper, and write it, ours beside theirs.

    Terminal, Markdown, LaTeX, CSV and one HTML page with figures. Kill it at any time: the same
    command goes on. Every output says which budget made it.
    """
    from ihgnn_cli.cli import console, reproduce_work
    from ihgnn_cli.studies.budgets import BUDGETS

    chosen = BUDGETS[_budget(budget)]
    processes = count_or_auto("--workers", workers)
    folder = out or _RUNS / f"reproduce-{chosen.name}"
    names = None if datasets is None else _listed("--datasets", datasets)
    keys = None if models is None else _listed("--models", models)
    request = reproduce_work.Request(
        subject=subject,
        datasets=names,
        models=keys,
        budget=chosen,
        folder=folder,
        seed=seed,
        splits=splits,
        device=device,
        workers=processes,
        data_root=data_root,
        offline=offline,
        command=shlex.join(["ihgnn", *sys.argv[1:]]),
    )
    try:
        made = reproduce_work.run(request, quiet=quiet)
    except (KeyboardInterrupt, SystemExit):
        console.note("Finished units are kept: the same command continues with the rest.")
        raise
    if as_json:
        console.show_json(made.as_plain())
    else:
        reproduce_work.show(made)
    if made.failures:
        raise typer.Exit(1)


def _budget(text: str) -> "BudgetName":
    from ihgnn_cli.errors import InputError
    from ihgnn_cli.studies.budgets import BudgetName

    try:
        return BudgetName(text)
    except ValueError:
        raise InputError(f"--budget is {' or '.join(BudgetName)}, not '{text}'.") from None


def _listed(option: str, text: str) -> tuple[str, ...]:
    """The names of a list with commas; those of synthetic data sets have commas themselves."""
    from ihgnn_cli.errors import InputError

    found: list[str] = []
    for part in (each.strip() for each in text.split(",")):
        if found and "=" in part and found[-1].startswith("synthetic:") and ":" not in part:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    if not found:
        raise InputError(f"{option} is empty. Give one or several names, as A,B.")
    return tuple(dict.fromkeys(found))
