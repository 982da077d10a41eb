"""`ihgnn train`: train a model in a run folder, and continue an interrupted run."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ihgnn_cli.cli.options import (
    DATA_PANEL,
    MODEL_PANEL,
    TRAINING_PANEL,
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
)
from ihgnn_cli.models.settings import SortKey, SortOrder, ThetaInit, Variant, WeightInit

if TYPE_CHECKING:
    from ihgnn_cli.api.train import Begun
    from ihgnn_cli.training.config import RunConfig
    from ihgnn_cli.training.run import Watch
    from ihgnn_cli.training.stack import Epoch


def train(
    dataset: OwnData = None,
    features: FeatureKind = None,
    split: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="holdout (80/10/10, stratified, by the seed; the default), fold:N (fold N of "
            "the 10-fold protocol, counted from 0), or a file of folds as FILE, FILE:N or "
            "FILE:N:I.",
            rich_help_panel=DATA_PANEL,
        ),
    ] = None,
    model: ModelName = None,
    layers: Annotated[
        int | None,
        typer.Option(
            "--layers",
            "-k",
            help="K, the layers on top of the input layer. Default: the model's, of ihgnn 3.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    width: Annotated[
        int | None,
        typer.Option(
            help="Width of the layers. Default: of ihgnn 32.", rich_help_panel=MODEL_PANEL
        ),
    ] = None,
    hidden: Annotated[
        int | None,
        typer.Option(
            help="Hidden width of the classifier. Default: of ihgnn 128.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    dropout: Annotated[
        float | None,
        typer.Option(
            help="Of ihgnn in the classifier. Default: of ihgnn 0.5.", rich_help_panel=MODEL_PANEL
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any other setting of the model; again for others. 'ihgnn models NAME' lists "
            "them.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    variant: Annotated[
        Variant | None,
        typer.Option(
            help="The paper's model (full, the default) or one of its four ablations.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    sort_key: Annotated[
        SortKey | None,
        typer.Option(
            help="Whose last column sorts the nodes: the aggregate of the layers (the paper; "
            "default) or the last layer (the authors' code).",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    sort_order: Annotated[
        SortOrder | None,
        typer.Option(
            help="ascending (the paper; default) or descending (the authors' code).",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    readout_relu: Annotated[
        bool | None,
        typer.Option(
            "--readout-relu/--no-readout-relu",
            help="A ReLU after the readout, as in the authors' code. Default: no.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    theta_init: Annotated[
        ThetaInit | None,
        typer.Option(
            help="Initial theta, the weights of the layers: mean (1/(K+1); default), glorot "
            "(the authors' code) or ones.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    weight_init: Annotated[
        WeightInit | None,
        typer.Option(
            help="Initial weights of all linear maps: torch (default) or glorot, with biases 0 "
            "(the authors' code).",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(
            "--lr", help="Adam's learning rate. Default: 0.001.", rich_help_panel=TRAINING_PANEL
        ),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option("--batch-size", "-b", help="Default: 32.", rich_help_panel=TRAINING_PANEL),
    ] = None,
    weight_decay: Annotated[
        float | None,
        typer.Option(help="Adam's. Default: 0.", rich_help_panel=TRAINING_PANEL),
    ] = None,
    epochs: Epochs = None,
    patience: Patience = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Of all randomness. Default: 0.", rich_help_panel=TRAINING_PANEL),
    ] = None,
    device: Device = None,
    recipe: RecipeName = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help="TOML, as a run folder's config.toml. What else the command line says, wins.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="The run folder. Default: runs/NAME-1, -2, ..."
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="DIR",
            help="Continue an interrupted run, or a finished one with more --epochs.",
        ),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write DIR/tensorboard, too.")
    ] = False,
    quiet: Quiet = False,
    data_root: DataRoot = None,
    offline: Offline = False,
    as_json: AsJson = False,
) -> None:
    """Train a model; the epoch is chosen on validation, and test is looked at once, at the end.

    Without options it trains IHGNN on the bundled MUTAG.
    """
    given: dict[str, object] = {
        "dataset": dataset,
        "features": features,
        "split": split,
        "layers": layers,
        "width": width,
        "hidden": hidden,
        "dropout": dropout,
        "variant": variant,
        "sort_key": sort_key,
        "sort_order": sort_order,
        "readout_relu": readout_relu,
        "theta_init": theta_init,
        "weight_init": weight_init,
        "lr": lr,
        "batch_size": batch_size,
        "weight_decay": weight_decay,
        "seed": seed,
    }
    from ihgnn_cli.api import train as trainings
    from ihgnn_cli.cli import console
    from ihgnn_cli.training import folder as folders
    from ihgnn_cli.training import run
    from ihgnn_cli.training.config import configure, parse_setting

    log = None
    if tensorboard:
        from ihgnn_cli.report.tensorboard import tensorboard_logger

        log = tensorboard_logger()
    reading: dict[str, Any] = {
        "data_root": data_root,
        "offline": offline,
        "progress": console.ProgressDisplay(),
    }
    if resume is not None:
        fixed = {"model": model, "set": settings, "recipe": recipe, "config": config, "out": out}
        _refuse_with_resume({**given, **fixed})
        before = folders.config_of(resume)
        chosen = folders.config_of(resume, epochs=epochs, patience=patience)
        done = folders.finished(resume)
        if done is not None and chosen == before:
            console.note(f"{resume} is finished. Give more --epochs or --patience to go on.")
            if not (resume / folders.CURVES).is_file():
                trainings.draw(resume, done)
            _show(done, resume, as_json)
            return
        chosen = chosen.with_values(_set({"device": device}))
        prepared = run.prepare(chosen, folder=resume, **reading)
        begun = trainings.Begun(prepared, resume, chosen, new=False)
    else:
        given |= {"epochs": epochs, "patience": patience, "device": device}
        chosen = configure(recipe, config, given, model=model)
        chosen = chosen.with_values(dict(parse_setting(chosen, text) for text in settings or ()))
        begun = trainings.begin(chosen, out, **reading)
    done = _complete(begun, log=log, quiet=quiet)
    _show(done, begun.folder, as_json)


def _set(options: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in options.items() if value is not None}


def _refuse_with_resume(options: dict[str, object]) -> None:
    from ihgnn_cli.errors import InputError

    for name in _set(options):
        raise InputError(
            f"--{name.replace('_', '-')} cannot change a run that was started. Leave it out, or "
            "start a new run."
        )


def _complete(
    begun: "Begun", *, log: "Callable[[Path], Watch] | None", quiet: bool
) -> dict[str, Any]:
    from ihgnn_cli.api.train import complete
    from ihgnn_cli.cli import console
    from ihgnn_cli.words import counted

    prepared, folder = begun.prepared, begun.folder
    split = prepared.split
    settings = prepared.config
    if not quiet:
        console.note(
            f"{_of_model(settings)}{prepared.dataset.name}: "
            f"{counted(len(split.train), 'graph')} to train, "
            f"{len(split.validation):,} to validate, {len(split.test):,} to test "
            f"({settings.data.split_from or settings.data.split}, seed {settings.training.seed}); "
            f"on {prepared.device}; in {folder}"
        )
    try:
        logged = None if log is None else log(folder)
        with _display(settings.training.epochs, quiet) as show:

            def watch(epoch: "Epoch", best: "Epoch") -> None:
                show(epoch, best)
                if logged is not None:
                    logged(epoch, best)

            command = shlex.join(["ihgnn", *sys.argv[1:]])
            return complete(begun, watch, command=command).result
    except (KeyboardInterrupt, SystemExit):
        console.note(f"Continue with: ihgnn train --resume {console.quoted(folder)}")
        raise


def _of_model(config: "RunConfig") -> str:
    """What is trained, unless it is IHGNN."""
    from ihgnn_cli.models.registry import IHGNN

    return "" if config.model_name == IHGNN else f"{config.spec.title} on "


@contextmanager
def _display(epochs: int, quiet: bool) -> "Iterator[Callable[[Epoch, Epoch], None]]":
    """A live bar in a terminal, else a line an epoch, on standard error."""
    from ihgnn_cli.api.train import told
    from ihgnn_cli.cli import console

    if quiet:
        yield lambda _epoch, _best: None
    elif console.err.is_terminal and not console.err.is_dumb_terminal:
        with console.work_bar("epochs") as update:
            yield lambda epoch, best: update(epoch.epoch, epochs, told(epoch, best))
    else:
        digits = len(str(epochs))
        yield lambda epoch, best: console.note(
            f"epoch {epoch.epoch:{digits}}/{epochs}  {told(epoch, best)}"
        )


def _show(result: dict[str, Any], folder: Path, as_json: bool) -> None:
    from ihgnn_cli.cli import console
    from ihgnn_cli.training import folder as folders
    from ihgnn_cli.words import counted

    checkpoint = folder / folders.BEST
    if as_json:
        console.show_json({**result, "folder": folder, "checkpoint": checkpoint})
        return
    test, validation = result["test"], result["validation"]
    why = "all epochs were run"
    if result["stopped"] == "patience":
        training = result["config"]["training"]
        why = f"none of the next {training['patience']} was better, and so the rest of "
        why += f"{training['epochs']} was left out"
    console.show(f"Test accuracy {test['accuracy']:.1%}", style="bold")
    console.show(
        f"of one run on {counted(test['graphs'], 'graph')} (95 % interval "
        f"{test['accuracy_low']:.1%} to {test['accuracy_high']:.1%}; the commonest class alone "
        f"{test['majority_share']:.1%}), at epoch {result['best_epoch']} of {result['epochs']}, "
        f"which was chosen on {counted(validation['graphs'], 'validation graph')} "
        f"({validation['accuracy']:.1%}); {why}, in {result['seconds']:.0f} s."
    )
    console.show(f"\nRun folder  {folder}\nCheckpoint  {checkpoint}")
    console.show(f"Next        ihgnn evaluate {console.quoted(checkpoint)}")
