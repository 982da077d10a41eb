"""`ihgnn reproduce`: the paper's tables and figures, with the published numbers beside."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import argument, examples, option
from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.settings import checked
from ihgnn_cli.studies.subjects import Subject

_RUNS = Path("runs")
_QUICK = "quick"


EXAMPLES = examples(
    ("ihgnn reproduce table1", "All methods with the quick budget"),
    (
        "ihgnn reproduce table1 --models ihgnn,gin -d MUTAG,PROTEINS --budget paper",
        "Two methods on two data sets with the paper's budget",
    ),
    ("ihgnn reproduce figure1", "Homophily of the data sets, without training"),
)


def reproduce(
    subject: Annotated[
        Subject, argument("SUBJECT", "table1, table2, figure1, sensitivity or homophily-sweep.")
    ],
    datasets: Annotated[
        str | None,
        option(
            "Data",
            "Comma-separated data sets.",
            "--datasets",
            "-d",
            metavar="LIST",
            default="those of the paper that are on this machine",
        ),
    ] = None,
    splits: Annotated[
        Path | None,
        option(
            "Data",
            "Folder with published folds, NAME.json; for other data sets, folds are drawn.",
            metavar="DIR",
            file_okay=False,
            exists=True,
        ),
    ] = None,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    models: Annotated[
        str | None,
        option(
            "Model",
            "Comma-separated models ('ihgnn models'); ablations as ihgnn:no-concat.",
            metavar="LIST",
            default="all of the table or figure",
        ),
    ] = None,
    seed: options.Seed = None,
    budget: Annotated[
        str,
        option(
            "Protocol",
            "quick: 5 folds, 30 epochs, 2 learning rates. paper: 10 folds, 350 epochs, full "
            "grids; days. race: paper with successive halving.",
            metavar="NAME",
            default=_QUICK,
        ),
    ] = _QUICK,
    repeats: Annotated[
        int,
        option(
            "Protocol",
            "Partitions into folds, drawn from the seed, seed + 1, ...",
            metavar="R",
            default="1",
        ),
    ] = 1,
    device: options.Device = None,
    workers: options.Workers = "auto",
    out: Annotated[Path | None, options.output_folder("runs/reproduce-BUDGET")] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Reproduce a table or figure of the paper, with the published numbers beside.

    - table1: IHGNN and fourteen other methods
    - table2: IHGNN and its ablations
    - figure1: homophily of the graphs
    - sensitivity: accuracy by number of layers K
    - homophily-sweep: accuracy by homophily, on synthetic graphs

    Results are written as Markdown, LaTeX, CSV and an HTML page with figures; each states its
    budget. An interrupted command continues where it stopped when it is run again.
    """
    from ihgnn_cli.cli import console
    from ihgnn_cli.cli.reproduce_request import Request, chosen_datasets, chosen_models
    from ihgnn_cli.studies.budgets import BUDGETS, BudgetName
    from ihgnn_cli.training.config import configure
    from ihgnn_cli.training.devices import check_device_name

    chosen = BUDGETS[checked("budget", budget, BudgetName)]
    processes = options.count_or_auto("--workers", workers)
    if repeats < 1:
        raise SettingError("repeats", f"must be at least 1, not {repeats}.")
    if repeats > 1 and splits is not None:
        raise InputError("--repeats draws partitions, and --splits reads one. Give one.")
    folder = out or _RUNS / f"reproduce-{chosen.name}"
    names = None if datasets is None else _listed("--datasets", datasets)
    keys = None if models is None else _listed("--models", models)
    configure(overrides={"seed": seed})  # refused before torch starts
    check_device_name(device or "auto")
    where = console.access(data_root, offline)
    request = Request(
        subject=subject,
        models=chosen_models(subject, keys),
        datasets=chosen_datasets(subject, names, chosen, where),
        budget=chosen,
        folder=folder,
        seed=seed or 0,
        repeats=repeats,
        splits=splits,
        device=device,
        workers=processes,
        where=where,
        command=shlex.join(["ihgnn", *sys.argv[1:]]),
    )
    if not quiet:
        console.note("Starting PyTorch ...")
    from ihgnn_cli.cli import reproduce_work

    kept = "Finished trainings are kept: the same command continues with the rest."
    with console.keeping(lambda: kept):
        made = reproduce_work.run(request, quiet=quiet)
    if as_json:
        console.show_json(made.as_plain())
    else:
        reproduce_work.show(made)
    if made.failures:
        raise typer.Exit(1)


def _listed(option: str, text: str) -> tuple[str, ...]:
    """The names of a comma-separated list; names of synthetic data sets contain commas."""
    found: list[str] = []
    for part in (each.strip() for each in text.split(",")):
        if found and "=" in part and found[-1].startswith("synthetic:") and ":" not in part:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    if not found:
        raise InputError(f"{option} is empty. Give one or more names, such as A,B.")
    return tuple(dict.fromkeys(found))
