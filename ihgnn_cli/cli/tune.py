"""`ihgnn tune`: an Optuna search over learning rate, batch size, K and more."""

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

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
    run_name,
)
from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName

_RUNS = Path("runs")
_SPACE, _SEARCH = "Search space", "Search"
_STORAGE_VARIABLE = "IHGNN_STORAGE"
_TRIALS = 50


def tune(
    dataset: OwnData = None,
    features: FeatureKind = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="holdout (the default), fold:N, or a file of folds, as in 'ihgnn train'.",
            rich_help_panel=DATA_PANEL,
        ),
    ] = None,
    model: ModelName = None,
    lr: Annotated[
        str | None,
        typer.Option(
            metavar="SPACE",
            help="A range LOW:HIGH, by scale unless LOW:HIGH:linear, or a list A,B,C; one value "
            "stays. Default: 0.0001:0.01.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    batch_size: Annotated[
        str | None,
        typer.Option(
            "--batch-size",
            "-b",
            metavar="SPACE",
            help="Likewise. Default: the model's own grid, of ihgnn 32,64,128.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            "--layers",
            "-k",
            metavar="SPACE",
            help="K, the layers on top of the input layer. Default: of ihgnn 3,4,5.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(
            metavar="SPACE",
            help="Width of the layers. Default: of ihgnn 32.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            metavar="SPACE",
            help="Hidden width of the classifier. Default: of ihgnn 128.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    dropout: Annotated[
        str | None,
        typer.Option(
            metavar="SPACE",
            help="Of ihgnn in the classifier. Default: of ihgnn 0.5.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="The model (full, the default) or its ablations no-integration, no-separation, "
            "no-adaptive, no-concat.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    more: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=SPACE",
            help="Any other setting of the model, likewise; again for others. 'ihgnn models NAME' "
            "lists them.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    search_space: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML: a table for each setting, with low and high (and log), or values.",
            rich_help_panel=_SPACE,
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(
            "--trials",
            "-n",
            help="In all, those of earlier commands and other machines included. Default: 50, of "
            "a grid all its points.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Begin no trial after this: seconds, or as 30m, 2h, 1h30m.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    sampler: Annotated[
        SamplerName,
        typer.Option(help="Who chooses the settings to try.", rich_help_panel=_SEARCH),
    ] = SamplerName.TPE,
    pruner: Annotated[
        PrunerName,
        typer.Option(help="Who gives up trials that do badly.", rich_help_panel=_SEARCH),
    ] = PrunerName.MEDIAN,
    inner_folds: Annotated[
        int,
        typer.Option(
            help="Train each trial so many times, with another part for validation each time, and "
            "take the mean; 1: the split's own hold-out.",
            rich_help_panel=_SEARCH,
        ),
    ] = 1,
    report_every: Annotated[
        int | None,
        typer.Option(
            metavar="EPOCHS",
            help="How often trials report to the pruner. Default: 50 times in a training.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Of the split, the search and all trainings. Default: 0.",
            rich_help_panel=_SEARCH,
        ),
    ] = None,
    epochs: Epochs = None,
    patience: Patience = None,
    recipe: RecipeName = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="TOML as for 'ihgnn train', for what is not searched.",
            rich_help_panel=TRAINING_PANEL,
        ),
    ] = None,
    device: Device = None,
    workers: Workers = "auto",
    stack: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="Trials that a process trains together. auto: as many as pay and fit in memory.",
            rich_help_panel=WORK_PANEL,
        ),
    ] = "auto",
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="postgresql://..., sqlite:///FILE or journal:FILE: the same command "
            "on several machines is one search. Default: SQLite in the folder.",
            envvar=_STORAGE_VARIABLE,
            show_default=False,
            rich_help_panel=WORK_PANEL,
        ),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The study's name in the storage. Default: by what is asked.",
            rich_help_panel=WORK_PANEL,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="The folder of the results; the same command goes on in it. Default: "
            "runs/NAME-tune-..., by what is asked.",
            rich_help_panel=WORK_PANEL,
        ),
    ] = None,
    dashboard: Annotated[
        bool,
        typer.Option(
            "--dashboard",
            help="Look at the study in a browser, and do no trials. Needs pip install "
            "'ihgnn-cli\\[dashboard]'.",
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(help="Of the dashboard; 0: one that is free.", min=0, max=65535)
    ] = 8080,
    quiet: Quiet = False,
    data_root: DataRoot = None,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Search for good settings by validation accuracy; the best are trained and tested once.

    Kill it at any time: the same command goes on, and --trials is the total.
    """
    from ihgnn_cli.errors import InputError
    from ihgnn_cli.training.config import configure

    if out is not None and out == Path():
        raise InputError("--out needs the name of a folder.")
    seconds = _seconds(timeout)
    together, processes = count_or_auto("--stack", stack), count_or_auto("--workers", workers)
    given = {
        "dataset": dataset,
        "features": features,
        "split": split,
        "epochs": epochs,
        "patience": patience,
        "seed": seed,
        "device": device,
    }
    settings = configure(recipe, config, given, model=model)

    from ihgnn_cli.cli import console, tune_display
    from ihgnn_cli.cli.dashboard import serve
    from ihgnn_cli.cli.tune_work import TuneWork, opened
    from ihgnn_cli.masking import masked
    from ihgnn_cli.studies.places import local_places
    from ihgnn_cli.studies.tuning import search as searches
    from ihgnn_cli.studies.tuning.space import make_space
    from ihgnn_cli.studies.tuning.storage import address
    from ihgnn_cli.studies.tuning.study import find_study
    from ihgnn_cli.training.loading import load_data

    texts = {
        "lr": lr,
        "batch_size": batch_size,
        "layers": layers,
        "width": width,
        "hidden": hidden,
        "dropout": dropout,
        "variant": variant,
        **dict(_named(each) for each in more or ()),
    }
    grid = sampler == SamplerName.GRID
    space, settings = make_space(settings, texts, search_space, grid=grid)
    total = _total(trials, space.size() if grid else None)
    places = local_places(settings.training.device, processes)
    settings, data = load_data(
        settings, data_root=data_root, offline=offline, progress=console.ProgressDisplay()
    )
    search = searches.prepare(
        settings,
        space,
        data,
        sampler=sampler,
        pruner=pruner,
        inner=inner_folds,
        interval=report_every,
    )
    name = f"{run_name(data.name, settings)}-tune-{search.digest}"
    folder = out or _RUNS / name
    where = address(storage, folder)
    command = shlex.join(["ihgnn", *map(masked, sys.argv[1:])])
    study = study or name
    if dashboard:
        serve(find_study(where, study), where, port)
        return
    size = together or searches.trials_together(search, places)  # refuses before there is a folder
    made = opened(search, where, folder, study, command)
    work = TuneWork(search, made, where, folder, places, command, data_root, offline)
    done = work.conduct(total, size, seconds, quiet=quiet, silent=as_json)
    result = work.conclude(done, quiet=quiet)
    if as_json:
        console.show_json({**result, "folder": folder})
    else:
        tune_display.show(result, done.slots, folder)


def _named(text: str) -> tuple[str, str]:
    from ihgnn_cli.errors import InputError

    name, found, space = text.partition("=")
    if not found:
        raise InputError(f"--set takes NAME=SPACE, as --set width=16,32, not '{text}'.")
    return name.strip(), space.strip()


def _total(trials: int | None, points: int | None) -> int:
    """How many trials there are to be; a grid has an end."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.errors import InputError

    if trials is not None and not 1 <= trials <= 10**6:
        raise InputError(f"--trials must be from 1 to 1,000,000, not {trials}.")
    if points is None:
        return trials or _TRIALS
    if trials is not None and trials > points:
        console.note(f"The grid has {points:,} points: {points:,} trials are all there is.")
    return min(trials or points, points)


def _seconds(text: str | None) -> float | None:
    """A time as 90, 45s, 30m, 2h or 1h30m, in seconds."""
    from ihgnn_cli.errors import InputError

    if text is None:
        return None
    number = r"(\d{1,6}(?:\.\d{1,6})?)"
    match = re.fullmatch(rf"{number}|(?:{number}h)?(?:{number}m)?(?:{number}s)?", text.strip())
    parts = [] if match is None else [float(each) if each else 0.0 for each in match.groups()]
    total = sum(part * unit for part, unit in zip(parts, (1, 3600, 60, 1), strict=False))
    if total <= 0:
        raise InputError(f"--timeout is a time as 90, 30m, 2h or 1h30m, not '{text}'.")
    return total
