"""`ihgnn tune`: an Optuna search over learning rate, batch size, K and more."""

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import examples, option
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.tuning.names import PrunerName, SamplerName

if TYPE_CHECKING:
    from ihgnn_cli.studies.tuning.job import TrialsRun, TuneJob

_STORAGE_VARIABLE = "IHGNN_STORAGE"


EXAMPLES = examples(
    ("ihgnn tune -n 30", "30 trials on the bundled MUTAG"),
    (
        "ihgnn tune PROTEINS --lr 0.0001:0.1 -k 2,3,4 --dropout 0:0.7 --timeout 2h",
        "Wider ranges, at most two hours",
    ),
    (
        "ihgnn tune --lr 0.01,0.001 -b 32,64 -k 3 --sampler grid --pruner none",
        "Every point of a grid",
    ),
    (
        "ihgnn tune --storage postgresql://user@host/db --study mutag",
        "One search shared by all machines that run this",
    ),
)


def tune(
    data: options.DataArgument = None,
    dataset: options.OwnData = None,
    features: options.FeatureKind = None,
    inputs: options.Inputs = None,
    edge_labels: options.EdgeLabels = None,
    background_edge_label: options.BackgroundEdgeLabel = None,
    edge_bins: options.EdgeBins = None,
    split: options.Split = None,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    model: options.ModelName = None,
    layers: Annotated[
        str | None,
        option(
            "Model",
            "K, the number of layers after the input layer.",
            "--layers",
            "-k",
            metavar="SPACE",
            default="3,4,5",
        ),
    ] = None,
    width: Annotated[
        str | None, option("Model", "Width of the layers.", metavar="SPACE", default="32")
    ] = None,
    hidden: Annotated[
        str | None,
        option("Model", "Hidden width of the classifier.", metavar="SPACE", default="128"),
    ] = None,
    dropout: Annotated[
        str | None,
        option("Model", "Dropout rate in the classifier.", metavar="SPACE", default="0.5"),
    ] = None,
    variant: Annotated[
        str | None,
        option(
            "Model",
            "full, or ablations of IHGNN: no-integration, no-separation, no-adaptive, no-concat.",
            metavar="LIST",
            default="full",
        ),
    ] = None,
    more: Annotated[
        list[str] | None,
        option(
            "Model",
            "Any other setting of the model; repeatable. 'ihgnn models NAME' lists them.",
            "--set",
            metavar="NAME=SPACE",
        ),
    ] = None,
    lr: Annotated[
        str | None, option("Training", "Learning rate.", metavar="SPACE", default="0.0001:0.01")
    ] = None,
    batch_size: Annotated[
        str | None,
        option(
            "Training",
            "Graphs per batch.",
            "--batch-size",
            "-b",
            metavar="SPACE",
            default="32,64,128",
        ),
    ] = None,
    epochs: options.Epochs = None,
    patience: options.Patience = None,
    label_smoothing: options.LabelSmoothing = None,
    class_weights: options.ClassWeighting = None,
    seed: options.Seed = None,
    recipe: options.RecipeName = None,
    config: options.ConfigFile = None,
    trials: Annotated[
        int | None,
        option(
            "Search",
            "Total number of trials, over all commands and machines.",
            "--trials",
            "-n",
            default="50; with --sampler grid all points",
            min=1,
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        option(
            "Search", "Start no trial after this time: seconds, or 30m, 2h, 1h30m.", metavar="TIME"
        ),
    ] = None,
    sampler: Annotated[
        SamplerName,
        option("Search", "Chooses the settings to try: tpe, gp, random or grid.", metavar="NAME"),
    ] = SamplerName.TPE,
    pruner: Annotated[
        PrunerName,
        option(
            "Search", "Stops unpromising trials early: median, hyperband or none.", metavar="NAME"
        ),
    ] = PrunerName.MEDIAN,
    inner_folds: Annotated[
        int,
        option(
            "Search",
            "Validate each trial on this many folds; 1: the split's own validation graphs.",
            default="1",
            min=1,
        ),
    ] = 1,
    device: options.Device = None,
    workers: options.Workers = "auto",
    storage: Annotated[
        str | None,
        option(
            "Compute",
            "Shared study: postgresql://... or sqlite:///FILE.",
            metavar="URL",
            default=f"${_STORAGE_VARIABLE}, else SQLite in --out",
            envvar=_STORAGE_VARIABLE,
            show_envvar=False,
        ),
    ] = None,
    study: Annotated[
        str | None,
        option(
            "Compute", "Name of the study in the storage.", metavar="NAME", default="NAME-tune-HASH"
        ),
    ] = None,
    out: Annotated[Path | None, options.output_folder("runs/NAME-tune-HASH")] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Search for the settings with the best validation accuracy; test them once.

    SPACE is a range LOW:HIGH (on a log scale: LOW:HIGH:log, the default of lr), a list A,B,C, or
    one fixed value. Default spaces are those of IHGNN; other models have their own
    ('ihgnn models NAME').

    An interrupted command continues where it stopped when it is run again.
    """
    dataset = options.one_dataset(data, dataset)
    options.refuse_missing(dataset)
    from ihgnn_cli.studies.tuning.space import make_space
    from ihgnn_cli.training.config import configure

    seconds = _seconds(timeout)
    processes = options.count_or_auto("--workers", workers)
    spaces = {
        "lr": lr,
        "batch_size": batch_size,
        "layers": layers,
        "width": width,
        "hidden": hidden,
        "dropout": dropout,
        "variant": variant,
    }
    given = options.settings_among(locals(), *spaces)
    settings = configure(recipe, config, given, model=model)
    texts = {**spaces, **dict(_named(each) for each in more or ())}
    # Settings, data and split are refused before torch and optuna start.
    make_space(settings, texts, grid=sampler == SamplerName.GRID)
    from ihgnn_cli.cli.starting import read_data
    from ihgnn_cli.data.splits import load_split
    from ihgnn_cli.studies.job_folder import SEARCH, refuse_unusable
    from ihgnn_cli.studies.tuning.storage import address

    if out is not None:
        refuse_unusable(out, SEARCH)
    address(storage, out or Path())
    graphs = read_data(settings, data_root=data_root, offline=offline, quiet=quiet)
    load_split(settings.data.split, graphs, settings.training.seed)

    from ihgnn_cli.cli import console, tune_display
    from ihgnn_cli.masking import masked
    from ihgnn_cli.studies.tuning.job import plan_search

    job = plan_search(
        settings,
        texts,
        graphs,
        trials=trials,
        sampler=sampler,
        pruner=pruner,
        inner_folds=inner_folds,
        storage=storage,
        study=study,
        out=out,
        workers=processes,
        command=shlex.join(["ihgnn", *map(masked, sys.argv[1:])]),
    )
    if trials is not None and trials > job.total:
        points = f"{job.total:,}"
        console.note(f"The grid has {points} points; running {points} trials.")
    job.open()
    done = _run_trials(job, seconds, quiet=quiet, silent=as_json)
    result = _finish(job, done, quiet=quiet)
    if as_json:
        console.show_json({**result, "folder": job.folder})
    else:
        tune_display.show(result, done.trials, job.folder)


def _run_trials(job: "TuneJob", timeout: float | None, *, quiet: bool, silent: bool) -> "TrialsRun":
    """Run the trials; if interrupted, show the best so far (unless `silent`)."""
    from ihgnn_cli.api.tune import run_trials
    from ihgnn_cli.cli import console, tune_display

    if not quiet:
        tune_display.show_start(job)

    def kept() -> str:
        if not silent:
            tune_display.show_best(job.trials())
        return "Finished trials are kept: the same command continues with the rest."

    epochs = job.search.config.training.epochs
    with console.keeping(kept), tune_display.progress(epochs, quiet=quiet) as show:
        done = run_trials(job, show, timeout)
    if done.finished < done.total:
        console.note("The time is up. The next command runs the remaining trials.")
    return done


def _finish(job: "TuneJob", done: "TrialsRun", *, quiet: bool) -> "dict[str, Any]":
    """Train the best settings, test them, and write the results."""
    from ihgnn_cli.api.tune import finish
    from ihgnn_cli.cli import console
    from ihgnn_cli.studies.tuning.trials import best_trials

    kept = "All trials are kept: the same command continues with the last training."
    text, epochs = "", job.search.config.training.epochs
    for best in best_trials(done.trials)[:1]:
        text = f"training and testing the settings of trial {best.number}"
    with console.keeping(lambda: kept), console.work("epochs", quiet=quiet) as update:
        if text:
            update(0, epochs, text)
        return finish(job, done, lambda now, _best: update(now.epoch, epochs, text))


def _named(text: str) -> tuple[str, str]:
    name, found, space = text.partition("=")
    if not found:
        raise InputError(f"--set takes NAME=SPACE, such as --set width=16,32, not '{text}'.")
    return name.strip(), space.strip()


def _seconds(text: str | None) -> float | None:
    """A time such as 90, 45s, 30m, 2h or 1h30m, in seconds."""
    if text is None:
        return None
    number = r"(\d{1,6}(?:\.\d{1,6})?)"
    match = re.fullmatch(rf"{number}|(?:{number}h)?(?:{number}m)?(?:{number}s)?", text.strip())
    parts = [] if match is None else [float(each) if each else 0.0 for each in match.groups()]
    total = sum(part * unit for part, unit in zip(parts, (1, 3600, 60, 1), strict=False))
    if total <= 0:
        raise InputError(f"--timeout must be a time such as 90, 30m, 2h or 1h30m, not '{text}'.")
    return total
