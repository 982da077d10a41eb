"""Options that several commands share, so that each is declared and explained once."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ihgnn_cli.cli.help import (
    COMPUTE_PANEL,
    DATA_PANEL,
    EDGE_PANEL,
    MODEL_PANEL,
    OUTPUT_PANEL,
    PROTOCOL_PANEL,
    TRAINING_PANEL,
)
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.training.kinds import ClassWeights, Recipe

_DATA_SUFFIXES = (".csv", ".jsonl", ".zip")


def complete_dataset(incomplete: str) -> list[str]:
    """Data set names for shell completion."""
    from ihgnn_cli.data.sources.catalogue import catalogue
    from ihgnn_cli.data.sources.synthetic_spec import PREFIX
    from ihgnn_cli.paths import data_root

    root = data_root()
    local = {path.stem for path in root.iterdir()} if root.is_dir() else set()
    names = sorted({*catalogue(), *local, f"{PREFIX}homophily="})
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def complete_model(incomplete: str) -> list[str]:
    """Model names for shell completion."""
    from ihgnn_cli.models.registry import model_names

    return [name for name in model_names() if name.startswith(incomplete.lower())]


EXPORTED = "an exported .onnx file"
TRAINED = "a run folder or its ckpt.pt"
ANY_MODEL = f"a run folder, its ckpt.pt, or {EXPORTED}"


def refuse_missing(data: str | None, model: Path | None = None, accepted: str = ANY_MODEL) -> None:
    """Refuse files that do not exist at once, before NumPy, torch or onnxruntime is imported.

    `accepted` is what the command takes for a model.

    Raises:
        InputError: the data looks like a path, and there is none; or there is no such model.
    """
    from ihgnn_cli.errors import InputError
    from ihgnn_cli.paths import expanded

    # os.path.exists also takes names that are too long for a path.
    if model is not None and not os.path.exists(model):  # noqa: PTH110
        problem = "is a data set, not a model" if _is_data(str(model)) else "does not exist"
        raise InputError(f"{model} {problem}. Give {accepted}.")
    if data is None or data.startswith("synthetic:") or Path(data).suffix not in _DATA_SUFFIXES:
        return
    if not os.path.exists(expanded(Path(data))):  # noqa: PTH110
        raise InputError(f"No file or folder '{data}'. Give a path that exists, or a name.")


def _is_data(name: str) -> bool:
    """Whether this is the name of a data set."""
    if not name.replace("-", "_").isidentifier():
        return False
    from ihgnn_cli.data.sources.catalogue import catalogue

    return name in catalogue()


def named_folder(text: str) -> Path:
    """The folder that an option names; an empty name would mean the current folder.

    Raises:
        InputError: it is empty, or the path of a file.
    """
    from ihgnn_cli.errors import InputError

    if not text:
        raise InputError("--out needs the name of a folder.")
    if Path(text).exists() and not Path(text).is_dir():
        raise InputError(f"{text} is not a folder. Choose another --out.")
    return Path(text)


def one_dataset(argument: str | None, option: str | None) -> str | None:
    """The data set given as an argument or with `--dataset`.

    Raises:
        InputError: both are given and differ.
    """
    from ihgnn_cli.errors import InputError

    if argument is not None and option not in (None, argument):
        raise InputError(
            f"Two data sets are given, {argument} and --dataset {option}. Give one of them."
        )
    return option if argument is None else argument


def some_bins(count: int | None) -> int | None:
    """The number of edge bins that the option asks for; leaving it out means none, and 0 does not.

    Raises:
        InputError: it is 0.
    """
    from ihgnn_cli.errors import InputError

    if count == 0:
        raise InputError("--edge-bins must be from 2 to 64, not 0.")
    return count


def output_folder(default: str, what: str = "Folder for the results.") -> Any:
    """The option `--out`."""
    return typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        parser=named_folder,
        help=what,
        show_default=default,
        rich_help_panel=OUTPUT_PANEL,
    )


def figure(what: str) -> Any:
    """The option `--plot`."""
    return typer.Option(
        "--plot",
        metavar="FILE",
        help=f"Draw {what}, as .png, .svg or .pdf.",
        rich_help_panel=OUTPUT_PANEL,
    )


# Data
DataArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="DATASET",
        help="Data set: a name (MUTAG, ...), a TU folder or zip, a .jsonl file, a .csv of SMILES, "
        "or synthetic:... [dim]\\[default: MUTAG][/dim]",
        autocompletion=complete_dataset,
        show_default=False,
    ),
]
OwnData = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        "-d",
        metavar="NAME",
        help="The same as the argument DATASET.",
        autocompletion=complete_dataset,
        rich_help_panel=DATA_PANEL,
    ),
]
OtherData = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        "-d",
        metavar="NAME",
        help="Data set: a name, a path or synthetic:...",
        autocompletion=complete_dataset,
        show_default="the model's own",
        rich_help_panel=DATA_PANEL,
    ),
]
FeatureKind = Annotated[
    Literal["labels", "attributes", "both"] | None,
    typer.Option(
        "--features",
        metavar="KIND",
        help="Node features: labels, attributes or both.",
        show_default="labels",
        rich_help_panel=DATA_PANEL,
    ),
]
Inputs = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        metavar="LIST",
        help="Extra node inputs: degree, homophily, triangles, random-walk (docs: training).",
        show_default="none",
        rich_help_panel=DATA_PANEL,
    ),
]
EdgeLabels = Annotated[
    bool | None,
    typer.Option(
        "--edge-labels",
        help="Tell edges apart by their labels.",
        rich_help_panel=EDGE_PANEL,
    ),
]
BackgroundEdgeLabel = Annotated[
    str | None,
    typer.Option(
        "--background-edge-label",
        metavar="LABEL",
        help="Leave out edges with this label: 'no bond' in complete graphs.",
        rich_help_panel=EDGE_PANEL,
    ),
]
EdgeBins = Annotated[
    int | None,
    typer.Option(
        "--edge-bins",
        metavar="N",
        help="Tell edges apart by N bins of their attribute, such as a distance: 2 to 64.",
        show_default="none",
        callback=some_bins,
        rich_help_panel=EDGE_PANEL,
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="SPLIT",
        help="Shares of train/validation/test, holdout (0.8/0.1/0.1), fold:N (of 10, from 0), or "
        "a file: FILE, FILE:N, FILE:N:I.",
        show_default="holdout",
        rich_help_panel=DATA_PANEL,
    ),
]
DataRoot = Annotated[
    Path | None,
    typer.Option(
        "--data-root",
        metavar="DIR",
        help="Folder with data sets; downloads go here.",
        show_default="$IHGNN_DATA, else the user's cache folder",
        file_okay=False,
        rich_help_panel=DATA_PANEL,
    ),
]
GroupTwins = Annotated[
    bool,
    typer.Option(
        "--group-twins",
        help="Draw folds that keep graphs with the same 1-WL colouring together.",
        rich_help_panel=PROTOCOL_PANEL,
    ),
]
AllowUnknown = Annotated[
    bool,
    typer.Option(
        "--allow-unknown",
        help="Continue even if the model does not know the labels of more than 9 in 10 nodes.",
        rich_help_panel=DATA_PANEL,
    ),
]
Offline = Annotated[
    bool,
    typer.Option(
        "--offline",
        help="Never use the network; fail if data is not on this machine.",
        rich_help_panel=DATA_PANEL,
    ),
]

# Model
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Model to train; 'ihgnn models' lists all.",
        autocompletion=complete_model,
        show_default="ihgnn",
        rich_help_panel=MODEL_PANEL,
    ),
]
VariantName = Annotated[
    Variant | None,
    typer.Option(
        "--variant",
        metavar="NAME",
        help="full, or an ablation of IHGNN: no-integration, no-separation, no-adaptive, "
        "no-concat.",
        show_default="full",
        rich_help_panel=MODEL_PANEL,
    ),
]
TrainedModel = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="Folder of a run or search, its checkpoint, or an exported .onnx file.",
    ),
]

# Training
Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs",
        "-e",
        help="Number of epochs.",
        show_default="350",
        rich_help_panel=TRAINING_PANEL,
    ),
]
LabelSmoothing = Annotated[
    float | None,
    typer.Option(
        help="Share of each graph's target that the training loss spreads over all classes.",
        show_default="0",
        rich_help_panel=TRAINING_PANEL,
    ),
]
ClassWeighting = Annotated[
    ClassWeights | None,
    typer.Option(
        "--class-weights",
        metavar="NAME",
        help="Weight of graphs in the training loss: none, or balanced (equal weight per class).",
        show_default="none",
        rich_help_panel=TRAINING_PANEL,
    ),
]
EqualBatches = Annotated[
    bool | None,
    typer.Option(
        "--equal-batches",
        help="Batches of equal size, without a small last one.",
        rich_help_panel=TRAINING_PANEL,
    ),
]
Snapshots = Annotated[
    int | None,
    typer.Option(
        help="Average the predictions of N epochs, evenly spaced after the first tenth, instead of "
        "choosing one.",
        show_default="0",
        rich_help_panel=TRAINING_PANEL,
    ),
]
Patience = Annotated[
    int | None,
    typer.Option(
        help="Stop after this many epochs without improvement on validation; 0: never.",
        show_default="0",
        rich_help_panel=TRAINING_PANEL,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        help="Random seed of splits and training.",
        show_default="0",
        rich_help_panel=TRAINING_PANEL,
    ),
]
RecipeName = Annotated[
    Recipe | None,
    typer.Option(
        "--recipe",
        metavar="NAME",
        help="Preset: paper (its text), authors (their code) or robust (an ensemble); see 'ihgnn "
        "recipes'.",
        show_default="paper",
        rich_help_panel=TRAINING_PANEL,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="TOML file with settings, such as a run's config.toml. It overrides --recipe, and "
        "options override it.",
        rich_help_panel=TRAINING_PANEL,
    ),
]

# Compute
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="cpu, cuda, cuda:N, or auto: a GPU if there is one.",
        show_default="auto",
        rich_help_panel=COMPUTE_PANEL,
    ),
]
Provider = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="For an exported model: an onnxruntime provider instead of --device; 'ihgnn env' "
        "lists those available.",
        rich_help_panel=COMPUTE_PANEL,
    ),
]
Workers = Annotated[
    str,
    typer.Option(
        metavar="N",
        help="Worker processes. auto: one per core, pinned to it, or one per GPU.",
        rich_help_panel=COMPUTE_PANEL,
    ),
]
Stack = Annotated[
    str,
    typer.Option(
        metavar="N",
        help="Models that a process trains together. auto: as many as improve throughput and fit "
        "in memory.",
        show_default="auto",
        rich_help_panel=COMPUTE_PANEL,
    ),
]

# Output
ConformalShare = Annotated[
    float | None,
    typer.Option(
        "--conformal",
        metavar="ALPHA",
        help="Prediction sets that miss the true class of about this share of graphs or fewer, on "
        "average, such as 0.1.",
        show_default="none",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Show the result only, no progress.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT_PANEL),
]


def refuse_swapped(model: Path, other: Path | str, usage: str) -> None:
    """Refuse two arguments in the wrong order.

    Raises:
        InputError: `other` is a model and `model` is not; `usage` is the right command, in which
            `{0}` is the model and `{1}` the other argument.
    """
    from ihgnn_cli.cli.console import quoted
    from ihgnn_cli.errors import InputError
    from ihgnn_cli.training.folder import is_model

    if is_model(Path(other)) and not is_model(model):
        shown = "-" if model == Path("-") else quoted(model)  # standard input
        right = usage.format(quoted(Path(other)), shown)
        raise InputError(f"The arguments are in the wrong order. Use: {right}")


def chosen_providers(device: str | None, provider: str | None) -> list[str] | None:
    """The providers that `--provider` names.

    Raises:
        InputError: `--device` is given, too.
    """
    from ihgnn_cli.errors import InputError

    if provider is None:
        return None
    if device is not None:
        raise InputError("--device and --provider exclude each other. Give one of them.")
    return [provider]


def count_or_auto(name: str, text: str) -> int | None:
    """The value of an option that is a number from 1 or auto; `None` for auto.

    Raises:
        InputError: it is neither.
    """
    from ihgnn_cli.errors import InputError

    if text == "auto":
        return None
    if not text.isdecimal() or len(text) > 6 or int(text) < 1:
        raise InputError(f"{name} must be auto or a whole number from 1, not '{text}'.")
    return int(text)


def check_conformal(alpha: float | None) -> None:
    """Refuse a wrong `--conformal`.

    Raises:
        InputError: it is given and not between 0 and 1.
    """
    from ihgnn_cli.models.conformal import check_alpha

    if alpha is not None:
        check_alpha(alpha)
