"""Options that several commands share, so that each is declared and explained once."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from ihgnn_cli.cli.help import argument, option
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.training.kinds import ClassWeights, Recipe

_DATA_SUFFIXES = (".csv", ".jsonl", ".zip")


def complete_dataset(incomplete: str) -> list[str]:
    """Data set names for shell completion."""
    from ihgnn_cli.data.catalogue import catalogue
    from ihgnn_cli.data.synthetic_spec import PREFIX
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
    from ihgnn_cli.data.catalogue import catalogue

    return name in catalogue()


def named_folder(text: str) -> Path:
    """The folder that an option names; an empty name would mean the current folder.

    Raises:
        InputError: it is empty, or the path of a file.
    """
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
    if argument is not None and option not in (None, argument):
        raise InputError(
            f"Two data sets are given, {argument} and --dataset {option}. Give one of them."
        )
    return option if argument is None else argument


def settings_among(options: Mapping[str, object], *own: str) -> dict[str, object]:
    """The options of a command that are settings of a configuration, without its `own` ones."""
    from ihgnn_cli.training.config import RunConfig

    names = set(RunConfig().names()).difference(own)
    return {name: value for name, value in options.items() if name in names}


def some_bins(count: int | None) -> int | None:
    """The number of edge bins that the option asks for; leaving it out means none, and 0 does not.

    Raises:
        InputError: it is 0.
    """
    if count == 0:
        raise InputError("--edge-bins must be from 2 to 64, not 0.")
    return count


def output_folder(default: str, what: str = "Folder for the results.") -> Any:
    """The option `--out`."""
    return option(
        "Output", what, "--out", "-o", metavar="DIR", default=default, parser=named_folder
    )


def figure(what: str) -> Any:
    """The option `--plot`."""
    return option("Output", f"Draw {what}, as .png, .svg or .pdf.", "--plot", metavar="FILE")


# Data
DataArgument = Annotated[
    str | None,
    argument(
        "DATASET",
        "Data set: a name (MUTAG, ...), a TU folder or zip, a .jsonl file, a .csv of SMILES, "
        "or synthetic:...",
        default="MUTAG",
        autocompletion=complete_dataset,
    ),
]
OwnData = Annotated[
    str | None,
    option(
        "Data",
        "The same as the argument DATASET.",
        "--dataset",
        "-d",
        metavar="NAME",
        autocompletion=complete_dataset,
    ),
]
OtherData = Annotated[
    str | None,
    option(
        "Data",
        "Data set: a name, a path or synthetic:...",
        "--dataset",
        "-d",
        metavar="NAME",
        default="the model's own",
        autocompletion=complete_dataset,
    ),
]
FeatureKind = Annotated[
    Literal["auto", "labels", "attributes", "both"] | None,
    option(
        "Data",
        "Node features: labels, attributes, both, or auto (labels, else attributes).",
        metavar="KIND",
        default="auto",
    ),
]
Inputs = Annotated[
    str | None,
    option(
        "Data",
        "Extra node inputs: degree, homophily, triangles, random-walk (docs: training).",
        metavar="LIST",
        default="none",
    ),
]
EdgeLabels = Annotated[
    bool | None, option("Edge labels", "Tell edges apart by their labels.", "--edge-labels")
]
BackgroundEdgeLabel = Annotated[
    str | None,
    option(
        "Edge labels",
        "Leave out edges with this label: 'no bond' in complete graphs.",
        metavar="LABEL",
    ),
]
EdgeBins = Annotated[
    int | None,
    option(
        "Edge labels",
        "Tell edges apart by N bins of their attribute, such as a distance: 2 to 64.",
        metavar="N",
        default="none",
        callback=some_bins,
    ),
]
Split = Annotated[
    str | None,
    option(
        "Data",
        "Shares of train/validation/test, holdout (0.8/0.1/0.1), fold:N (0 to 9), fold:N:twins, "
        "FILE, FILE:N or FILE:N:I.",
        metavar="SPLIT",
        default="holdout",
    ),
]
DataRoot = Annotated[
    Path | None,
    option(
        "Data",
        "Folder with data sets; downloads go here.",
        metavar="DIR",
        default="$IHGNN_DATA, else the user's cache folder",
        file_okay=False,
    ),
]
GroupTwins = Annotated[
    bool,
    option(
        "Protocol",
        "Draw folds that keep graphs with the same 1-WL colouring together.",
        "--group-twins",
    ),
]
AllowUnknown = Annotated[
    bool,
    option(
        "Data",
        "Continue even if the model does not know the labels of more than 9 in 10 nodes.",
        "--allow-unknown",
    ),
]
Offline = Annotated[
    bool, option("Data", "Never use the network; fail if data is not on this machine.", "--offline")
]

# Model
ModelName = Annotated[
    str | None,
    option(
        "Model",
        "Model to train; 'ihgnn models' lists all.",
        metavar="NAME",
        default="ihgnn",
        autocompletion=complete_model,
    ),
]
VariantName = Annotated[
    Variant | None,
    option(
        "Model",
        "full, or an ablation of IHGNN: no-integration, no-separation, no-adaptive, no-concat.",
        metavar="NAME",
        default="full",
    ),
]
ExportedModel = Annotated[Path, argument("MODEL", "An exported .onnx file.")]
TrainedModel = Annotated[
    Path, argument("MODEL", "Folder of a run or search, its checkpoint, or an exported .onnx file.")
]

# Training
Epochs = Annotated[
    int | None, option("Training", "Number of epochs.", "--epochs", "-e", default="350")
]
LabelSmoothing = Annotated[
    float | None,
    option(
        "Training",
        "Share of each graph's target that the training loss spreads over all classes.",
        default="0",
    ),
]
ClassWeighting = Annotated[
    ClassWeights | None,
    option(
        "Training",
        "Weight of graphs in the training loss: none, or balanced (equal weight per class).",
        metavar="NAME",
        default="none",
    ),
]
EqualBatches = Annotated[
    bool | None,
    option("Training", "Batches of equal size, without a small last one.", "--equal-batches"),
]
Snapshots = Annotated[
    int | None,
    option(
        "Training",
        "Average the predictions of N epochs, evenly spaced after the first tenth, instead of "
        "choosing one.",
        default="0",
    ),
]
Patience = Annotated[
    int | None,
    option(
        "Training",
        "Stop after this many epochs without improvement on validation; 0: never.",
        default="0",
    ),
]
Seed = Annotated[int | None, option("Training", "Random seed of splits and training.", default="0")]
RecipeName = Annotated[
    Recipe | None,
    option(
        "Training",
        "Preset: paper (its text), authors (their code) or robust (an ensemble).",
        metavar="NAME",
        default="paper",
    ),
]
ConfigFile = Annotated[
    Path | None,
    option(
        "Training",
        "TOML file with settings, such as a run's config.toml. It overrides --recipe, and "
        "options override it.",
        "--config",
        "-c",
        metavar="FILE",
    ),
]

# Compute
Device = Annotated[
    str | None,
    option(
        "Compute",
        "cpu, cuda, cuda:N, or auto: a GPU if there is one.",
        metavar="DEVICE",
        default="auto",
    ),
]
Provider = Annotated[
    str | None,
    option(
        "Compute",
        "For an exported model: an onnxruntime provider instead of --device; 'ihgnn env' "
        "lists those available.",
        metavar="NAME",
    ),
]
Workers = Annotated[
    str,
    option(
        "Compute",
        "Worker processes. auto: one per core, or up to 8 per GPU.",
        metavar="N",
    ),
]
Stack = Annotated[
    str,
    option(
        "Compute",
        "Models that a process trains together. auto: as many as improve throughput and fit "
        "in memory.",
        metavar="N",
        default="auto",
    ),
]

# Output
ConformalShare = Annotated[
    float | None,
    option(
        "Output",
        "Prediction sets that miss the true class of about this share of graphs or fewer, on "
        "average, such as 0.1.",
        metavar="ALPHA",
        default="none",
    ),
]


def _quieten(wanted: bool) -> bool:
    if wanted:
        for handler in logging.getLogger("ihgnn_cli").handlers:
            handler.setLevel(logging.WARNING)
    return wanted


Quiet = Annotated[
    bool,
    option("Output", "Show the result only, no progress.", "--quiet", "-q", callback=_quieten),
]
AsJson = Annotated[bool, option("Output", "Print the result as JSON.", "--json")]


def refuse_swapped(model: Path, other: Path | str, usage: str) -> None:
    """Refuse two arguments in the wrong order.

    Raises:
        InputError: `other` is a model and `model` is not; `usage` is the right command, in which
            `{0}` is the model and `{1}` the other argument.
    """
    from ihgnn_cli.cli.console import quoted
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
