"""`ihgnn crossval`: nested cross-validation, the fair-comparison protocol, as one command."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ihgnn_cli.cli.options import (
    DATA_PANEL,
    TRAINING_PANEL,
    WORK_PANEL,
    AsJson,
    DataRoot,
    Device,
    Epochs,
    FeatureKind,
    ModelName,
    Offline,
    OwnData,
    Patience,
    Quiet,
    RecipeName,
    Workers,
    count_or_auto,
    named_folder,
    run_name,
)
from ihgnn_cli.models.settings import Variant

if TYPE_CHECKING:
    from ihgnn_cli.jobs.executor import Executor
    from ihgnn_cli.studies.crossval import Finished
    from ihgnn_cli.studies.work import Job

_RUNS = Path("runs")
_GRID, _PROTOCOL = "Grid", "Protocol"
_MOST_WORKERS = 1024  # on one machine; a larger number is a slip of the finger
_Number = TypeVar("_Number", int, float)


def crossval(
    dataset: OwnData = None,
    features: FeatureKind = None,
    split_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The folds, as JSON in the published form. Default: stratified folds by the seed.",
            rich_help_panel=DATA_PANEL,
        ),
    ] = None,
    model: ModelName = None,
    lr: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Learning rates that compete. Default: the model's own grid, of ihgnn "
            "0.01,0.001,0.0001.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    batch_size: Annotated[
        str | None,
        typer.Option(
            "--batch-size",
            "-b",
            metavar="LIST",
            help="Batch sizes that compete. Default: of ihgnn 32,64,128.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers",
            "-k",
            metavar="LIST",
            help="K, the layers on top of the input layer, that compete. Default: of ihgnn 3,4,5.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=LIST",
            help="Values of any other setting of the model that compete; again for others. "
            "'ihgnn models NAME' lists them.",
            rich_help_panel=_GRID,
        ),
    ] = None,
    variant: Annotated[
        Variant | None,
        typer.Option(
            help="The paper's model (full, the default) or one of its four ablations.",
            rich_help_panel=_PROTOCOL,
        ),
    ] = None,
    epochs: Epochs = None,
    patience: Patience = None,
    folds: Annotated[
        int | None, typer.Option(help="Default: 10.", rich_help_panel=_PROTOCOL)
    ] = None,
    inner_folds: Annotated[
        int | None,
        typer.Option(
            help="Choose the configuration by cross-validation inside each fold instead of one "
            "hold-out: for small data sets. Default: 1, the hold-out.",
            rich_help_panel=_PROTOCOL,
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Final runs of a fold's chosen configuration. Default: 3.",
            rich_help_panel=_PROTOCOL,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Of the folds and of all runs. Default: 0.", rich_help_panel=_PROTOCOL),
    ] = None,
    rules: Annotated[
        bool,
        typer.Option(
            "--rules",
            help="Show the same runs under the other rules of the literature, too, those that "
            "choose on test labelled so.",
            rich_help_panel=_PROTOCOL,
        ),
    ] = False,
    recipe: RecipeName = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="TOML as for 'ihgnn train'; lr, batch_size, layers and split in it do not count.",
            rich_help_panel=TRAINING_PANEL,
        ),
    ] = None,
    device: Device = None,
    workers: Workers = "auto",
    stack: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="Models that a process trains together. auto: as many as pay and fit in memory.",
            rich_help_panel=WORK_PANEL,
        ),
    ] = "auto",
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Distribute the work over a Ray cluster: auto, HOST:PORT or ray://HOST:PORT. "
            "Needs pip install 'ihgnn-cli\\[cluster]'.",
            rich_help_panel=WORK_PANEL,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            parser=named_folder,
            help="The folder of the results. The same command goes on in it; several at once "
            "share the work. Default: runs/NAME-crossval-..., by what is asked.",
            rich_help_panel=WORK_PANEL,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the folds as .png, .svg or .pdf."),
    ] = None,
    quiet: Quiet = False,
    data_root: DataRoot = None,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Nested cross-validation: choose epoch and configuration on validation, test once.

    Every fold tests graphs that nothing was chosen by. Kill it at any time: the same command goes
    on where it was.
    """
    from ihgnn_cli.cli import console, crossval_display
    from ihgnn_cli.report.figures import check_figure_path
    from ihgnn_cli.studies import crossval as jobs
    from ihgnn_cli.studies.grid import listed_settings, own_grid
    from ihgnn_cli.studies.plan import PAPER_RUNS, Protocol
    from ihgnn_cli.studies.work import Job
    from ihgnn_cli.training.config import configure, recipe_grid
    from ihgnn_cli.training.loading import load_data

    if plot is not None:
        check_figure_path(plot)
    stacked, processes = count_or_auto("--stack", stack), _processes(workers, cluster)
    given = {
        "dataset": dataset,
        "features": features,
        "variant": variant,
        "epochs": epochs,
        "patience": patience,
        "seed": seed,
        "device": device,
    }
    chosen = configure(recipe, config, given, model=model)
    lists = {
        "lr": _listed("--lr", lr, float, "0.01,0.001"),
        "batch_size": _listed("--batch-size", batch_size, int, "32,64"),
        "layers": _listed("--layers", layers, int, "3,4"),
        **listed_settings(chosen, settings or ()),
    }
    given_lists = recipe_grid(recipe)
    given_lists.update({name: values for name, values in lists.items() if values is not None})
    protocol = Protocol(chosen, own_grid(chosen, given_lists), PAPER_RUNS if runs is None else runs)
    executor = _executor(cluster, chosen.training.device, processes)
    chosen, data = load_data(
        chosen, data_root=data_root, offline=offline, progress=console.ProgressDisplay()
    )
    made = jobs.make_folds(
        data, chosen.training.seed, file=split_file, folds=folds, inner=inner_folds
    )
    job = Job(protocol.on(chosen), data, made, curves=rules)
    folder = out or jobs.default_folder(_RUNS, job, run_name(data.name, chosen))
    command = shlex.join(["ihgnn", *sys.argv[1:]])
    size = jobs.begin(job, folder, executor, stack=stacked, command=command)
    if stacked not in (None, size):
        console.note(f"{folder} was begun with stacks of {size}; they stay.")
    changed = jobs.other_versions(folder, executor)
    if changed is not None:
        console.warn(f"{folder} was begun with {changed}: the rest may end with other numbers.")
    most = jobs.most_workers(job, folder)
    if cluster is None and executor.workers > most:
        executor = _executor(None, chosen.training.device, most)
    done = _finish(job, folder, executor, size, quiet=quiet, command=command)
    if as_json:
        console.show_json({**done.result, "folder": folder})
    else:
        crossval_display.show(done.result, folder, rules=rules, trained=done.trained)
    if plot is not None:
        from ihgnn_cli.report.crossval import draw_folds

        draw_folds(done.result, plot)
        if not as_json:
            console.show(f"Figure      {plot}")


def _processes(workers: str, cluster: str | None) -> int | None:
    """What --workers says, `None` for auto; a cluster may have any number."""
    from ihgnn_cli.errors import InputError

    count = count_or_auto("--workers", workers)
    if cluster is None and count is not None and count > _MOST_WORKERS:
        raise InputError(
            f"--workers is at most {_MOST_WORKERS:,} on one machine, not {count:,}. auto has one a "
            "core."
        )
    return count


def _executor(cluster: str | None, device: str, workers: int | None) -> "Executor":
    if cluster is not None:
        from ihgnn_cli.jobs.cluster import cluster_executor

        return cluster_executor(cluster, device, workers)
    from ihgnn_cli.studies.places import local_executor

    return local_executor(device, workers)


def _listed(
    name: str, text: str | None, kind: type[_Number], example: str
) -> tuple[_Number, ...] | None:
    """The numbers of a list with commas; `None` where there is none."""
    from ihgnn_cli.errors import InputError

    if text is None:
        return None
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError as error:
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(
            f"{name} is a list of {what} with commas, as {example}, not '{text}'."
        ) from error


def _finish(
    job: "Job", folder: Path, executor: "Executor", stack: int, *, quiet: bool, command: str
) -> "Finished":
    from ihgnn_cli.cli import console, crossval_display
    from ihgnn_cli.studies import crossval as jobs
    from ihgnn_cli.words import counted

    protocol, folds = job.protocol, job.folds
    title = "" if protocol.config.spec.stacked else f"{protocol.config.spec.title} on "
    if not quiet:
        inner = len(folds[0].splits)
        inner_text = "" if inner == 1 else f" × {inner} inner folds"
        console.note(
            f"{title}{job.dataset.name}: {counted(len(protocol.grid), 'configuration')} × "
            f"{len(folds)} folds{inner_text}, then {counted(protocol.runs, 'run')} a fold, "
            f"{protocol.config.training.epochs} epochs each; "
            f"{counted(executor.workers, 'worker')} on {executor.device.type}, stacks of up to "
            f"{stack}; in {folder}"
        )
    try:
        with crossval_display.progress(quiet) as show:
            return jobs.finish(job, folder, executor, stack, show, command=command)
    except (KeyboardInterrupt, SystemExit):
        console.note("Finished units are kept: the same command continues with the rest.")
        raise
