"""Resolves the data set and the configuration of a call."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.data.access import DEFAULT, Access
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.data.sources import locate, read
from ihgnn_cli.display import Display
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.registry import find_model
from ihgnn_cli.settings import checked
from ihgnn_cli.training.config import (
    LOSS_AND_DECAY,
    RunConfig,
    TrainingSettings,
    configure,
    no_setting,
)
from ihgnn_cli.training.kinds import Recipe

Graphs = str | Path | GraphDataset | Iterable[Any]
"""The name or path of a data set, a loaded data set, or a list of graphs."""
# The data set is a separate argument; split_from is only recorded.
_NO_SETTINGS = ("dataset", "split_from")
# Names in other libraries.
_ELSEWHERE = {
    "learning_rate": "lr",
    "num_layers": "layers",
    "hidden_channels": "width",
    "max_epochs": "epochs",
    "random_state": "seed",
}


@in_python
def load_dataset(
    data: Graphs,
    *,
    data_root: Path | str | None = None,
    offline: bool = False,
    progress: bool | None = None,
) -> GraphDataset:
    """Load a data set by name or path, or make one from a list of graphs.

    Args:
        data: a name (`"MUTAG"`, `"PROTEINS"`), a path to a TU folder or zip or a .jsonl file,
            `"synthetic:homophily=0.3"`, or a list of torch-geometric `Data`, networkx graphs or
            dicts (docs/python.md).
        data_root: folder that holds NAME.zip or NAME/ and receives downloads.
        offline: never download.
        progress: show a bar; by default in terminals and notebooks only.

    Raises:
        InputError: the data does not exist or is not valid.
        DownloadError: the download failed.
    """
    return dataset_of(data, access(data_root, offline, Display(progress)))


def access(data_root: Path | str | None, offline: bool, display: Display) -> Access:
    """Where the data sets of a call may come from."""
    return Access(None if data_root is None else Path(data_root), offline, display.reading)


def dataset_of(data: Graphs, where: Access = DEFAULT) -> GraphDataset:
    """As `load_dataset`, with the caller's progress display."""
    if isinstance(data, GraphDataset):
        return data
    if isinstance(data, str | Path):
        return read(locate(str(data), where), where.progress)
    return from_graphs(data)


def configured(
    settings: Mapping[str, Any],
    *,
    model: str | None = None,
    recipe: str | None = None,
    config: RunConfig | Path | str | None = None,
    call: Callable[..., Any] | None = None,
) -> RunConfig:
    """A configuration from settings by name; `None` means not given.

    Args:
        settings: values by name, such as `lr` and `layers`.
        model: name in the registry; by default the configuration's model, or else IHGNN.
        recipe: `"paper"`, `"authors"` or `"robust"`.
        config: a TOML file or the `config` of a run, for all other settings.
        call: the function whose arguments may have been misspelled.

    Raises:
        InputError: a setting does not exist, or a value is out of range.
    """
    chosen = None if recipe is None else checked("recipe", recipe, Recipe)
    if isinstance(config, RunConfig):
        other = model is not None and find_model(model).name != config.model_name
        if other or chosen is not None:
            raise InputError(
                f"config is a whole configuration of the model {config.model_name}. Leave out "
                "model and recipe, or give them without config."
            )
        base = config
    else:
        base = configure(chosen, None if config is None else Path(config), model=model)
    known = [name for name in base.names() if name not in _NO_SETTINGS]
    arguments = [] if call is None else inspect.signature(call).parameters
    for name in settings:
        if name not in known:
            named = [each for each in arguments if each != "settings"]
            raise no_setting(base, name, [*known, *named], _ELSEWHERE.get(name, name))
    return base.with_values({key: value for key, value in settings.items() if value is not None})


def whole_numbers(**given: Any) -> dict[str, Any]:
    """Arguments of a call that are whole numbers or `None`, by name.

    Raises:
        InputError: one is something else.
    """
    return {name: checked(name, value, int | None) for name, value in given.items()}  # type: ignore[arg-type]


def searchable(config: RunConfig) -> tuple[str, ...]:
    """The settings that can be searched: the model's own, and those of optimiser and loss."""
    return ("lr", "batch_size", *LOSS_AND_DECAY, *(each.name for each in fields(config.model)))


def divided(
    settings: Mapping[str, Any], config: RunConfig, listed: Iterable[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split settings into those with a fixed value and those that are searched.

    Args:
        settings: values by name; a list or tuple is searched.
        config: a configuration of the same model.
        listed: settings that are searched even with a single value.

    Raises:
        InputError: a setting that takes one value has several.
    """
    names = searchable(config)
    competing = {
        name: value
        for name, value in settings.items()
        if value is not None
        and name in names
        and (name in listed or isinstance(value, list | tuple))
    }
    fixed = {name: value for name, value in settings.items() if name not in competing}
    for name, value in fixed.items():
        if isinstance(value, list | tuple):
            own = {each.name for each in fields(TrainingSettings)}
            kind = "training" if name in own else "data"
            raise InputError(f"{name} is a setting of {kind} and takes one value, not {value!r}.")
    return fixed, competing
