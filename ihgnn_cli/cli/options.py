"""Options that several commands share, so that the same word means the same everywhere."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ihgnn_cli.training.kinds import Recipe


def complete_dataset(incomplete: str) -> list[str]:
    """Names that the shell may offer for a data set."""
    from ihgnn_cli.data.catalogue import catalogue
    from ihgnn_cli.data.synthetic_spec import PREFIX
    from ihgnn_cli.paths import data_root

    root = data_root()
    local = {path.stem for path in root.iterdir()} if root.is_dir() else set()
    names = sorted({*catalogue(), *local, f"{PREFIX}homophily="})
    return [name for name in names if name.startswith(incomplete)]


DataRoot = Annotated[
    Path | None,
    typer.Option(
        "--data-root",
        metavar="DIR",
        help="Folder that holds NAME.zip or NAME/ and receives downloads. "
        "Default: $IHGNN_DATA, else the platform's cache folder.",
        file_okay=False,
    ),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Never use the network; fail where data is not here.")
]
DATA_PANEL = "Data"
OwnData = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        "-d",
        metavar="NAME",
        help="A name (MUTAG, PROTEINS, ...), a path to a TU folder or zip or a .jsonl file, or "
        "synthetic:homophily=0.3,... for graphs made so. Default: the bundled MUTAG.",
        autocompletion=complete_dataset,
        rich_help_panel=DATA_PANEL,
    ),
]
FeatureKind = Annotated[
    Literal["labels", "attributes", "both"] | None,
    typer.Option(
        "--features",
        help="What the model sees of a node. Default: labels.",
        rich_help_panel=DATA_PANEL,
    ),
]
OtherData = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        "-d",
        metavar="NAME",
        help="Other data than the model's own: a name, a path or synthetic:...",
        autocompletion=complete_dataset,
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="auto (a GPU where there is one; the default), cpu, cuda or cuda:N.",
    ),
]
Provider = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        help="For an exported model: a provider of onnxruntime instead of a device; 'ihgnn env' "
        "shows which load.",
    ),
]


def chosen_providers(device: str | None, provider: str | None) -> list[str] | None:
    """What `--provider` asks for.

    Raises:
        InputError: `--device` asks for something, too.
    """
    from ihgnn_cli.errors import InputError

    if provider is None:
        return None
    if device is not None:
        raise InputError("--device and --provider both say where to run. Give one of them.")
    return [provider]


def complete_model(incomplete: str) -> list[str]:
    """Names that the shell may offer for a model."""
    from ihgnn_cli.models.registry import model_names

    return [name for name in model_names() if name.startswith(incomplete)]


MODEL_PANEL, TRAINING_PANEL, WORK_PANEL = "Model", "Training", "Work"
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="Another model than ihgnn: gin, ppgn, graphormer, ...; 'ihgnn models' lists them.",
        autocompletion=complete_model,
        rich_help_panel=MODEL_PANEL,
    ),
]
Epochs = Annotated[
    int | None,
    typer.Option("--epochs", "-e", help="Default: 350.", rich_help_panel=TRAINING_PANEL),
]
Patience = Annotated[
    int | None,
    typer.Option(
        help="Stop a training after this many epochs without a better one on validation. "
        "Default: 0, never.",
        rich_help_panel=TRAINING_PANEL,
    ),
]
RecipeName = Annotated[
    Recipe | None,
    typer.Option(
        "--recipe",
        help="Settings that belong together: paper (the text; what the defaults are) or "
        "authors (their published code).",
        rich_help_panel=TRAINING_PANEL,
    ),
]
Workers = Annotated[
    str,
    typer.Option(
        metavar="N",
        help="Processes. auto: one a core, pinned to it, or one a GPU.",
        rich_help_panel=WORK_PANEL,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show the result, not the progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def named_folder(text: str) -> Path:
    """The folder that an option names; an empty name would be the one that the user is in.

    Raises:
        InputError: it is empty.
    """
    from ihgnn_cli.errors import InputError

    if not text:
        raise InputError("--out needs the name of a folder.")
    return Path(text)


def count_or_auto(name: str, text: str) -> int | None:
    """What an option says that is a number from 1, or auto: `None`.

    Raises:
        InputError: it is neither.
    """
    from ihgnn_cli.errors import InputError

    if text == "auto":
        return None
    if not text.isdecimal() or len(text) > 6 or int(text) < 1:
        raise InputError(f"{name} is auto or a whole number from 1, not '{text}'.")
    return int(text)
