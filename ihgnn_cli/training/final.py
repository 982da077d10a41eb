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
from ihgnn_cli.files import read_text
from ihgnn_cli.training.config import RunConfig, read_sections
from ihgnn_cli.training.folder import BEST_CONFIG, CONFIG, MOST_BYTES, RESULT, SPLITS
from ihgnn_cli.training.unfinished import TUNE, unfinished_job

LEAST_FINAL_EPOCHS = 20
"""Fewest epochs that a cross-validation suggests for a final training: the best epoch on validation
may come early, but nothing chooses the last one."""


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
        InputError: neither says how many epochs to train, or the file belongs to unfinished work.
    """
    known = epochs or (None if file is None else _recorded(file))
    if known is None and config.training.steps:
        known = config.training.epochs  # which the number of steps replaces
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

    Raises:
        InputError: the run or search is not finished, so its file has the largest number only.
    """
    sections: dict[str, Any] = read_sections(file)
    found = sections.get("training", {}).get("epochs")
    if file.name == CONFIG and (file.parent / SPLITS).is_file():
        found = _result(file).get("best_epoch")
    elif file.name == BEST_CONFIG and (file.parent / TUNE).is_file():
        values = {key: value for part in sections.values() for key, value in part.items()}
        result = _result(file)
        best = (result.get("best") or {}).get("params")
        # A search that was given more trials may have written new settings beside its old result.
        same = best is not None and best.items() <= values.items()
        found = (result.get("final") or {}).get("best_epoch") if same else None
    else:
        return found if isinstance(found, int) else None
    if not isinstance(found, int):
        raise InputError(
            f"{file} belongs to a run or tune that is not finished, so its best epoch is not "
            "known. Finish it, or give the number of epochs with --epochs. "
            f"{unfinished_job(file.parent)}".rstrip()
        )
    return found


def _result(file: Path) -> dict[str, Any]:
    """The result beside a file; empty if there is none."""
    path = file.parent / RESULT
    try:
        result: Any = json.loads(read_text(path, MOST_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read. Give the number of epochs with --epochs."
        ) from error
    return result if isinstance(result, dict) else {}
