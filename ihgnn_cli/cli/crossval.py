"""`ihgnn crossval`: nested cross-validation, the fair-comparison protocol, in one command."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import examples, option
from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.studies.crossval.study import Study
    from ihgnn_cli.studies.signal.references import Reference

_MOST_WORKERS = 1024  # on one machine; a larger number is a typing error
_Number = TypeVar("_Number", int, float)


EXAMPLES = examples(
    ("ihgnn crossval", "The paper's protocol on the bundled MUTAG"),
    (
        "ihgnn crossval PROTEINS --model gin --set width=16,32 --workers 4",
        "Another model, two widths compared, four processes",
    ),
    (
        "ihgnn crossval --lr 0.01,0.001 -b 32 -k 3,4 --folds 5 --runs 1 -e 100",
        "A smaller grid, fewer folds, shorter trainings",
    ),
)


def crossval(
    data: options.DataArgument = None,
    dataset: options.OwnData = None,
    features: options.FeatureKind = None,
    inputs: options.Inputs = None,
    edge_labels: options.EdgeLabels = None,
    background_edge_label: options.BackgroundEdgeLabel = None,
    edge_bins: options.EdgeBins = None,
    split_file: Annotated[
        Path | None,
        option(
            "Data",
            "JSON file with published folds.",
            metavar="FILE",
            default="stratified folds, drawn from the seed",
        ),
    ] = None,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    model: options.ModelName = None,
    layers: Annotated[
        str | None,
        option(
            "Model",
            "Values of K, the number of layers after the input layer.",
            "--layers",
            "-k",
            metavar="LIST",
            default="3,4,5",
        ),
    ] = None,
    variant: options.VariantName = None,
    settings: Annotated[
        list[str] | None,
        option(
            "Model",
            "Values of any other setting of the model; repeatable. 'ihgnn models NAME' lists them.",
            "--set",
            metavar="NAME=LIST",
        ),
    ] = None,
    lr: Annotated[
        str | None,
        option("Training", "Learning rates.", metavar="LIST", default="0.01,0.001,0.0001"),
    ] = None,
    batch_size: Annotated[
        str | None,
        option(
            "Training", "Batch sizes.", "--batch-size", "-b", metavar="LIST", default="32,64,128"
        ),
    ] = None,
    label_smoothing: options.LabelSmoothing = None,
    class_weights: options.ClassWeighting = None,
    equal_batches: options.EqualBatches = None,
    snapshots: options.Snapshots = None,
    epochs: options.Epochs = None,
    patience: options.Patience = None,
    seed: options.Seed = None,
    recipe: options.RecipeName = None,
    config: options.ConfigFile = None,
    folds: Annotated[
        int | None,
        option(
            "Protocol",
            "Number of outer folds; with --split-file, the first N of the file.",
            default="10, or all in the file",
        ),
    ] = None,
    inner_folds: Annotated[
        int | None,
        option(
            "Protocol",
            "Folds for choosing the configuration; 1: a single hold-out. More suit small data "
            "sets.",
            default="1",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        option(
            "Protocol",
            "Final runs per fold, or with --snapshots seeds to average.",
            default="3; with --snapshots 1; robust: 5",
            min=1,
        ),
    ] = None,
    repeats: Annotated[
        int,
        option(
            "Protocol",
            "Partitions into folds, drawn from the seed, seed + 1, ...; more continue a job.",
            metavar="R",
            default="1",
            min=1,
        ),
    ] = 1,
    race: Annotated[
        bool,
        option(
            "Protocol",
            "Choose by successive halving, with about a quarter of the epochs (docs/crossval.md).",
            "--race",
        ),
    ] = False,
    rules: Annotated[
        bool,
        option(
            "Protocol",
            "Also show the accuracy under other selection rules from the literature, "
            "including those that choose on test.",
            "--rules",
        ),
    ] = False,
    group_twins: options.GroupTwins = False,
    no_references: Annotated[
        bool,
        option(
            "Protocol",
            "Do not test classifiers without a network on the same folds.",
            "--no-references",
        ),
    ] = False,
    device: options.Device = None,
    workers: options.Workers = "auto",
    stack: options.Stack = "auto",
    cluster: Annotated[
        str | None,
        option(
            "Compute",
            "Run on a Ray cluster: auto, HOST:PORT or ray://HOST:PORT. Needs pip install "
            "'ihgnn-cli\\[cluster]'.",
            metavar="ADDRESS",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        options.output_folder(
            "runs/NAME-crossval-HASH",
            "Folder for the results. Commands with the same folder share the work.",
        ),
    ] = None,
    plot: Annotated[Path | None, options.figure("the accuracy of each fold")] = None,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Estimate test accuracy by nested cross-validation.

    All combinations of the listed values (LIST: A,B,C) are compared. Each fold chooses the
    configuration and the epoch on validation graphs and tests once. Default lists are those of
    IHGNN; other models have the grid of their own paper ('ihgnn models NAME'). They replace lr,
    batch_size, layers and split in --config.

    An interrupted command continues where it stopped when it is run again.
    """
    dataset = options.one_dataset(data, dataset)
    options.refuse_missing(dataset)
    from ihgnn_cli.cli import console
    from ihgnn_cli.report.figures import check_figure_path
    from ihgnn_cli.studies.crossval.protocol import check_choices, listed_settings, own_grid
    from ihgnn_cli.training.config import configure, recipe_grid

    if plot is not None:
        check_figure_path(plot)
    stacked, processes = options.count_or_auto("--stack", stack), _processes(workers, cluster)
    given = options.settings_among(locals(), "lr", "batch_size", "layers")
    chosen = configure(recipe, config, given, model=model)
    lists = {
        "lr": _listed("--lr", lr, float, "0.01,0.001"),
        "batch_size": _listed("--batch-size", batch_size, int, "32,64"),
        "layers": _listed("--layers", layers, int, "3,4"),
        **listed_settings(chosen, settings or ()),
    }
    given_lists = recipe_grid(recipe)
    given_lists.update({name: values for name, values in lists.items() if values is not None})
    made = own_grid(chosen, given_lists)  # lists and folds are refused before torch starts
    check_choices(chosen, made, race=race, rules=rules, inner_folds=inner_folds)
    from ihgnn_cli.cli.starting import read_data
    from ihgnn_cli.studies.folds import make_folds
    from ihgnn_cli.studies.job_folder import CROSSVAL_JOB, refuse_unusable

    if out is not None:
        refuse_unusable(out, CROSSVAL_JOB)
    graphs = read_data(chosen, data_root=data_root, offline=offline, quiet=quiet)
    make_folds(
        graphs,
        chosen.training.seed,
        file=split_file,
        folds=folds,
        inner=inner_folds,
        group_twins=group_twins,
        repeats=repeats,
    )

    from ihgnn_cli.api.crossval import begin
    from ihgnn_cli.cli import crossval_display

    study = begin(
        chosen,
        given_lists,
        graphs,
        runs=runs,
        folds=folds,
        inner_folds=inner_folds,
        repeats=repeats,
        split_file=split_file,
        race=race,
        rules=rules,
        group_twins=group_twins,
        out=out,
        workers=processes,
        stack=stacked,
        cluster=cluster,
        command=shlex.join(["ihgnn", *sys.argv[1:]]),
    )
    folder, kept = study.path, len(study.folders)
    if kept > repeats:
        console.note(
            f"{folder} has {kept} finished partitions and keeps them. To compute "
            f"{counted(repeats, 'repeat')}, choose another --out."
        )
    most = study.folders[0].sizes.most
    if stacked not in (None, most):
        console.note(f"{folder} was started with stacks of up to {most} and keeps them.")
    if study.changed is not None:
        console.warn(
            f"{folder} was started with {study.changed}: the remaining results may differ slightly."
        )
    references = () if no_references else _references(study, quiet=quiet)
    if not quiet:
        crossval_display.announce(study)
    with crossval_display.progress(quiet=quiet) as watch:
        done = study.run(watch, references, console.warn)
    result = done.result
    if as_json:
        console.show_json({**result.as_plain(), "folder": folder})
    else:
        crossval_display.show(result, folder, rules=rules, trained=done.trained)
    if plot is not None:
        from ihgnn_cli.report.crossval import draw_folds

        draw_folds(result, plot)
        if not as_json:
            console.show(f"Figure      {plot}")


def _processes(workers: str, cluster: str | None) -> int | None:
    """The value of --workers, `None` for auto; a cluster may have any number."""
    count = options.count_or_auto("--workers", workers)
    if cluster is None and count is not None and count > _MOST_WORKERS:
        raise InputError(
            f"--workers must be at most {_MOST_WORKERS:,} on one machine, not {count:,}. auto "
            "starts one per core."
        )
    return count


def _listed(
    name: str, text: str | None, kind: type[_Number], example: str
) -> tuple[_Number, ...] | None:
    """The numbers of a comma-separated list; `None` if it is not given."""
    if text is None:
        return None
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError as error:
        what = "whole numbers" if kind is int else "numbers"
        raise InputError(
            f"{name} must be a comma-separated list of {what}, such as {example}, not '{text}'."
        ) from error


def _references(study: "Study", *, quiet: bool) -> "tuple[Reference, ...]":
    """Test the references, and show the best one before the long work starts."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.studies.signal.references import best_reference

    with console.work("fits of references", quiet=quiet) as update:
        found = study.references(update)
    if not quiet:
        best = best_reference(found, study.job.dataset)
        console.note(
            f"Best reference on these folds: {best.title}, {100 * best.scores.accuracy:.1f} %"
        )
    return found
