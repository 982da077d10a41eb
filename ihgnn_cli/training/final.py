"""The configuration of a final training, on all graphs.

No graphs are left to choose the epoch, so its number has to be known before: from a run, a search
or a cross-validation with the same settings, or from the user.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ihgnn_cli.data.kinds import ALL
from ihgnn_cli.errors import InputError
from ihgnn_cli.training.config import RunConfig, read_sections
from ihgnn_cli.training.folder import BEST_CONFIG, CONFIG, RESULT, SPLITS


def asks_for_final(settings: dict[str, Any], *, final: bool) -> bool:
    """Whether all graphs are to train; the split `all` says so too and is removed.

    Raises:
        InputError: a setting needs graphs for validation or test.
    """
    if settings.get("split") == ALL:
        del settings["split"]
        final = True
    for name in ("split", "patience") if final else ():
        if settings.get(name) is not None:
            raise InputError(f"A final training uses all graphs to train. Leave out --{name}.")
    return final


def final_config(
    config: RunConfig, *, epochs: int | None = None, file: Path | None = None
) -> RunConfig:
    """The configuration with all graphs for training and a known number of epochs.

    Args:
        config: the settings; its split and patience do not matter.
        epochs: the number of epochs, if it is given.
        file: the configuration file that the settings come from.

    Raises:
        InputError: neither says how many epochs to train.
    """
    known = epochs or (None if file is None else _recorded(file))
    if known is None:
        raise InputError(
            "A final training has no validation graphs to choose the epoch. Give its number with "
            "--epochs, or give the best.toml of a crossval or tune, or a run's config.toml, with "
            "--config."
        )
    return replace(
        config,
        data=replace(config.data, split=ALL, split_from=""),
        training=replace(config.training, epochs=known, patience=0),
    )


def _recorded(file: Path) -> int | None:
    """The best epoch of the run or search that wrote a file, or else the epochs in the file.

    A run that is not finished has no best epoch yet, and its file has the largest number only.
    """
    training: Any = read_sections(file).get("training", {})
    found = training.get("epochs")
    if file.name in (CONFIG, BEST_CONFIG):
        if file.name == CONFIG and (file.parent / SPLITS).is_file():
            found = None
        try:
            result = json.loads((file.parent / RESULT).read_text(encoding="utf-8"))
            found = result.get("final", result).get("best_epoch", found)
        except (OSError, ValueError, AttributeError):
            pass  # not a finished run or search
    return found if isinstance(found, int) else None
