"""`ihgnn train`: train a model in a run folder, or continue an interrupted run."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import examples, option
from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.api.train import Showing
    from ihgnn_cli.training.config import RunConfig
    from ihgnn_cli.training.epoch import Epoch
    from ihgnn_cli.training.run import Prepared, Watch


EXAMPLES = examples(
    ("ihgnn train", "IHGNN on the bundled MUTAG"),
    (
        "ihgnn train PROTEINS --split fold:0 --lr 0.01 -o runs/proteins",
        "Another data set, the first of 10 folds",
    ),
    ("ihgnn train graphs.jsonl --split 0.7/0.1/0.2", "Your own graphs, with other shares"),
    ("ihgnn train --model gin --set learn_eps=true", "Another model with a setting of its own"),
    ("ihgnn train --resume runs/proteins --epochs 500", "Continue a run"),
    ("ihgnn train --final --config runs/proteins/config.toml", "All graphs, for a model to use"),
)


def train(
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
        int | None,
        option(
            "Model",
            "K, the number of layers after the input layer; 0: no message passing.",
            "--layers",
            "-k",
            default="3",
        ),
    ] = None,
    width: Annotated[int | None, option("Model", "Width of the layers.", default="32")] = None,
    hidden: Annotated[
        int | None, option("Model", "Hidden width of the classifier.", default="128")
    ] = None,
    dropout: Annotated[
        float | None, option("Model", "Dropout rate in the classifier.", default="0.5")
    ] = None,
    variant: options.VariantName = None,
    settings: Annotated[
        list[str] | None,
        option(
            "Model",
            "Any other setting of the model; repeatable. 'ihgnn models NAME' lists them.",
            "--set",
            metavar="NAME=VALUE",
        ),
    ] = None,
    lr: Annotated[
        float | None, option("Training", "Learning rate of Adam.", default="0.001")
    ] = None,
    batch_size: Annotated[
        int | None, option("Training", "Graphs per batch.", "--batch-size", "-b", default="32")
    ] = None,
    weight_decay: Annotated[
        float | None, option("Training", "Weight decay of Adam.", default="0")
    ] = None,
    label_smoothing: options.LabelSmoothing = None,
    class_weights: options.ClassWeighting = None,
    equal_batches: options.EqualBatches = None,
    ensemble: Annotated[
        int | None,
        option(
            "Training",
            "Models trained together with different seeds; predictions are their mean.",
            default="1",
        ),
    ] = None,
    snapshots: options.Snapshots = None,
    epochs: options.Epochs = None,
    patience: options.Patience = None,
    seed: options.Seed = None,
    final: Annotated[
        bool,
        option(
            "Training",
            "Train on all graphs; no accuracy can be measured. Needs --epochs, or --config "
            "of a finished run, tune or crossval.",
            "--final",
        ),
    ] = False,
    recipe: options.RecipeName = None,
    config: options.ConfigFile = None,
    device: options.Device = None,
    out: Annotated[
        Path | None, options.output_folder("runs/NAME-1, runs/NAME-2, ...", "Folder of the run.")
    ] = None,
    resume: Annotated[
        Path | None,
        option(
            "Output",
            "Continue an interrupted run, or a finished one with more --epochs.",
            metavar="DIR",
        ),
    ] = None,
    tensorboard: Annotated[
        bool, option("Output", "Also log to the folder 'tensorboard' of the run.", "--tensorboard")
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Train a model, choose the best epoch on validation, and test once.

    Without options, IHGNN is trained on the bundled MUTAG. Defaults are those of IHGNN; other
    models have their own ('ihgnn models NAME').
    """
    dataset = options.one_dataset(data, dataset)
    options.refuse_missing(dataset)
    given = options.settings_among(locals())
    from ihgnn_cli.cli import console
    from ihgnn_cli.training import folder as folders
    from ihgnn_cli.training.config import configure, parse_setting
    from ihgnn_cli.training.final import asks_for_final, final_config

    if resume is not None:
        free = ("epochs", "patience", "device")
        fixed = {name: value for name, value in given.items() if name not in free}
        fixed |= {"model": model, "set": settings, "recipe": recipe, "config": config, "out": out}
        _refuse_with_resume({**fixed, "final": final or None})
        before = folders.config_of(resume)
        chosen = folders.config_of(resume, epochs=epochs, patience=patience)
        done = folders.finished(resume)
        if done is not None and chosen == before:
            console.note(f"{resume} is finished. {_to_go_on(chosen)}")
            if not (resume / folders.CURVES).is_file():
                from ihgnn_cli.api.train import draw

                draw(resume, done)
            show_run(done, resume, as_json)
            return
        chosen = chosen.with_values(_set({"device": device}))
    else:
        final = asks_for_final(given, final=final)
        chosen = configure(recipe, config, given, model=model)
        own = dict(parse_setting(chosen, text) for text in settings or ())
        chosen = chosen.with_values(own, "--set")
        if final:
            chosen = final_config(chosen, epochs=epochs, file=config)
        if out is not None:
            folders.refuse_used(out)
    from ihgnn_cli.cli.starting import read_data
    from ihgnn_cli.data.splits import load_split

    graphs = read_data(chosen, data_root=data_root, offline=offline, quiet=quiet)
    if resume is None:
        load_split(chosen.data.split, graphs, chosen.training.seed)  # refused before torch starts

    from ihgnn_cli.api import train as trainings

    log = None
    if tensorboard:
        from ihgnn_cli.report.tensorboard import tensorboard_logger

        log = tensorboard_logger()
    trained = trainings.carry_out(
        chosen,
        graphs,
        _showing(log, quiet=quiet),
        out=out,
        resume=resume,
        command=shlex.join(["ihgnn", *sys.argv[1:]]),
    )
    show_run(trained.result, trained.folder, as_json)


def _set(given: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in given.items() if value is not None}


def _refuse_with_resume(given: dict[str, object]) -> None:
    for name in _set(given):
        raise InputError(
            f"--{name.replace('_', '-')} cannot be changed when a run is resumed. Leave it out, "
            "or start a new run."
        )


def _showing(log: "Callable[[Path], Watch] | None", *, quiet: bool) -> "Showing":
    """Notes at the start, progress, and what is kept of an interrupted run, on standard error."""
    from ihgnn_cli.api.train import epoch_line
    from ihgnn_cli.cli import console
    from ihgnn_cli.training.snapshots import fewer_snapshots

    @contextmanager
    def showing(prepared: "Prepared", folder: Path) -> "Iterator[Watch]":
        training = prepared.config.training
        if not quiet:
            console.note(_started(prepared, folder))
            fewer = fewer_snapshots(training)
            if fewer is not None:
                console.note(fewer)
        logged = None if log is None else log(folder)
        with (
            console.keeping(
                lambda: f"Continue with: ihgnn train --resume {console.quoted(folder)}"
            ),
            console.work("epochs", quiet=quiet) as update,
        ):

            def watch(epoch: "Epoch", best: "Epoch | None") -> None:
                line = epoch_line(epoch, best, training.ensemble)
                update(epoch.epoch, training.epochs, line)
                if logged is not None:
                    logged(epoch, best)

            yield watch

    return showing


def _started(prepared: "Prepared", folder: Path) -> str:
    """What is trained on how many graphs, and after which epoch a run continues."""
    from ihgnn_cli.models.registry import DEFAULT_MODEL
    from ihgnn_cli.training.run import last_epoch

    config, split = prepared.config, prepared.split
    model = "" if config.model_name == DEFAULT_MODEL else f"{config.spec.title} on "
    others = f"{len(split.validation):,} for validation, {len(split.test):,} for testing"
    if config.data.final:
        epochs = counted(config.training.epochs, "epoch")
        others = f"none for validation or testing; {epochs}"
    if config.training.ensemble > 1:
        others += f"; {config.training.ensemble} models"
    done = last_epoch(folder)
    return (
        f"{model}{prepared.dataset.name}: {counted(len(split.train), 'training graph')}, {others} "
        f"({config.data.split_from or config.data.split}, seed {config.training.seed}); "
        f"on {prepared.device}; in {folder}"
    ) + (f"\nContinuing after epoch {done:,}." if done else "")


def show_run(result: dict[str, Any], folder: Path, as_json: bool) -> None:
    """The result of a finished run."""
    from ihgnn_cli.cli import console
    from ihgnn_cli.models.registry import find_model
    from ihgnn_cli.training import folder as folders

    checkpoint = folder / folders.BEST
    if as_json:
        console.show_json({**result, "folder": folder, "checkpoint": checkpoint})
        return
    seconds = f"{result['seconds']:.0f} s"
    if result["test"] is None:
        graphs = counted(result["train"]["graphs"], "graph")
        estimated = "the accuracy of a model whose epoch is chosen on validation"
        if result["snapshots"]:
            estimated = "it for the same settings"
        console.show(f"Trained on all {graphs}", style="bold")
        console.show(
            f"{counted(result['epochs'], 'epoch')} in {seconds}; {_kept(result)}. No accuracy "
            f"can be measured: no graphs are left to test. 'ihgnn crossval' estimates {estimated}."
        )
    else:
        _show_accuracy(result, seconds)
    console.show(f"\nRun folder  {folder}\nCheckpoint  {checkpoint}")
    config = result["config"]
    own = config["data"]["dataset"]  # empty for graphs of a Python program
    exported = find_model(config["model"]["name"]).exportable
    console.next_steps(
        *([] if result["test"] is None else [("evaluate", folder)]),
        *([("export", folder)] if exported else []),
        *([("predict", folder, own)] if own else []),
    )


def _to_go_on(config: "RunConfig") -> str:
    """What to do for more epochs than those of a finished run."""
    if config.training.snapshots:
        return "Its snapshots are spaced over its epochs: start a new run for more epochs."
    return "To continue it, give more --epochs or --patience."


def _kept(result: dict[str, Any]) -> str:
    """What a final training keeps."""
    models, epochs = len(result["seeds"]), len(result["snapshots"])
    if epochs:
        of = f" of each of {models} models" if models > 1 else ""
        return f"{counted(epochs, 'epoch')}{of} {'is' if epochs == 1 else 'are'} kept"
    return "the last one is kept" if models == 1 else f"the last one of {models} models is kept"


def _show_accuracy(result: dict[str, Any], seconds: str) -> None:
    from ihgnn_cli.cli import console

    test, validation, training = (
        result["test"],
        result["validation"],
        result["config"]["training"],
    )
    ended = f"Trained all {counted(result['epochs'], 'epoch')} in {seconds}."
    alone = result["members_test"]
    if result["stopped"] == "patience":
        ended = (
            f"Stopped after {training['patience']} epochs without improvement, of at most "
            f"{training['epochs']}, in {seconds}."
        )
    runs = "One run"
    if alone:
        runs = f"The mean prediction of {len(alone)} models"
    epoch = f"Epoch {result['best_epoch']} of {result['epochs']}, chosen"
    if alone:
        epoch = "The epoch of each was chosen"
    chosen = (
        f"{epoch} on {counted(validation['graphs'], 'validation graph')} "
        f"({validation['accuracy']:.1%}{' together' if alone else ''})."
    )
    if result["snapshots"]:
        chosen = (
            f"Average over {counted(len(result['seeds']), 'seed')} and "
            f"{counted(len(result['snapshots']), 'epoch')} ({result['snapshots'][0]} to "
            f"{result['epochs']}); nothing was chosen."
        )
        if len(result["seeds"]) == len(result["snapshots"]) == 1:
            chosen = "The last epoch is kept; nothing was chosen."
    console.show(f"Test accuracy {test['accuracy']:.1%}", style="bold")
    console.show(
        f"{runs} on {counted(test['graphs'], 'test graph')}; 95 % interval "
        f"{test['accuracy_low']:.1%} to {test['accuracy_high']:.1%}; majority class "
        f"{test['majority_share']:.1%}. {chosen} {ended}"
    )
    console.show_scores(test)
    if alone:
        console.show(
            f"Single models: {sum(alone) / len(alone):.1%} on average, {min(alone):.1%} to "
            f"{max(alone):.1%}."
        )
