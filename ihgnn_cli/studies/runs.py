"""Lists the folders of trainings, searches and cross-validations below a directory.

Only the small files in them are read, and nothing here needs torch.
"""

import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from ihgnn_cli.data.splits import PROTOCOL_FOLDS
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.registry import DEFAULT_MODEL
from ihgnn_cli.studies.crossval.protocol import PAPER_RUNS, own_grid
from ihgnn_cli.studies.crossval.result import CrossvalResult
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.folder import BEST, CONFIG, METRICS, RESULT, SPLITS
from ihgnn_cli.training.unfinished import CROSSVAL, TUNE

CELLS = "cells"
"""The folder that the cross-validations of a reproduction are in, by data set and model."""
_CROSSVAL_DEFAULTS = {"folds": PROTOCOL_FOLDS, "inner_folds": 1, "runs": PAPER_RUNS}
# Not settings that one compares.
_OTHER = ("name", "dataset", "device", "split_from")


class Kind(StrEnum):
    """The command that made a folder."""

    TRAIN = "train"
    CROSSVAL = "crossval"
    TUNE = "tune"
    REPRODUCE = "reproduce"


class State(StrEnum):
    """Whether the work is done."""

    FINISHED = "finished"
    RESUMABLE = "resumable"
    DAMAGED = "damaged"


class Order(StrEnum):
    """What a list is sorted by."""

    DATE = "date"
    """The newest first."""
    ACCURACY = "accuracy"
    """The highest first, folders without one last."""


@dataclass(frozen=True)
class RunFolder:
    """What a folder says about itself; `None` and empty values are unknown."""

    folder: Path
    kind: Kind
    state: State
    date: datetime
    """When it was finished, or last changed."""
    dataset: str = ""
    model: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    differing: Mapping[str, Any] = field(default_factory=dict)
    """The settings that are not the model's defaults."""
    found: Mapping[str, Any] = field(default_factory=dict)
    """The settings that a search found to be best."""
    accuracy: float | None = None
    """On test graphs; of a cross-validation, the mean over folds."""
    balanced_accuracy: float | None = None
    roc_auc: float | None = None
    accuracy_std: float | None = None
    """Over the folds of a cross-validation."""
    procedure: str = ""
    """How the result was made, if not by choosing an epoch and among complete trainings: "race" or
    "snapshots" (nothing chosen)."""
    epoch: int | None = None
    """The best epoch of a finished training, the last epoch of another."""
    problem: str = ""
    """What is damaged."""


def find_runs(parent: Path, order: Order = Order.DATE) -> list[RunFolder]:
    """All run folders at or below a directory, sorted; a damaged one is listed as damaged.

    Raises:
        InputError: the directory does not exist.
    """
    if not parent.is_dir():
        raise InputError(f"There is no folder {parent}. Give a folder with runs.")
    found = list(_found(parent))
    found.sort(key=lambda each: (each.date, str(each.folder)), reverse=True)
    if order == Order.ACCURACY:
        found.sort(key=lambda each: -1.0 if each.accuracy is None else each.accuracy, reverse=True)
    return found


def crossval_folder(folder: Path) -> RunFolder:
    """What the folder of a cross-validation says about itself."""
    return _read(folder, Kind.CROSSVAL, _crossval)


def _found(parent: Path) -> Iterator[RunFolder]:
    for place, folders, files in os.walk(parent):
        folder = Path(place)
        for kind, marks, read in (
            (Kind.CROSSVAL, {CROSSVAL}, _crossval),
            (Kind.TUNE, {TUNE}, _tune),
            (Kind.TRAIN, {CONFIG, SPLITS}, _train),
            (Kind.TRAIN, {CONFIG, BEST}, _train),  # the splits are missing
        ):
            if marks <= set(files):
                folders.clear()  # a run has no other runs inside, except its own
                yield _read(folder, kind, read)
                break
        folders[:] = [each for each in folders if not each.startswith(".")]


def _read(
    folder: Path, kind: Kind, read: Callable[[Path, dict[str, Any] | None], dict[str, Any]]
) -> RunFolder:
    if kind == Kind.CROSSVAL and folder.absolute().parent.parent.name == CELLS:
        kind = Kind.REPRODUCE
    date = datetime.fromtimestamp(_changed(folder), UTC)
    try:
        path = folder / RESULT
        result = _json(path) if path.is_file() else None
        known = read(folder, result)
        if result is not None:
            date = datetime.fromisoformat(result["finished"])
    except (_DamageError, InputError) as error:
        return RunFolder(folder, kind, State.DAMAGED, date, problem=str(error))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        return RunFolder(folder, kind, State.DAMAGED, date, problem=problem)
    state = State.RESUMABLE if result is None else State.FINISHED
    differing = _differing(known["model"], known["settings"])
    return RunFolder(folder, kind, state, date, differing=differing, **known)


def _changed(folder: Path) -> float:
    """When a file in a folder was last changed; files may vanish while a run writes."""
    found = 0.0
    with suppress(OSError):
        for each in folder.iterdir():
            with suppress(OSError):
                found = max(found, each.stat().st_mtime)
    return found


class _DamageError(Exception):
    """A file is missing or cannot be read."""


def _train(folder: Path, result: dict[str, Any] | None) -> dict[str, Any]:
    try:
        config = tomllib.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _DamageError(f"{CONFIG} cannot be read") from error
    for name in (SPLITS, *(() if result is None else (BEST,))):
        if not (folder / name).is_file():
            raise _DamageError(f"{name} is missing")
    known = {
        "model": config["model"].get("name", DEFAULT_MODEL),
        "settings": _settings(config),
        "procedure": _procedure(config),
    }
    if result is None:
        metrics = folder / METRICS
        epochs = len(metrics.read_bytes().splitlines()) if metrics.is_file() else 0
        dataset = Path(config["data"]["dataset"]).name
        for suffix in (".zip", ".jsonl", ".csv"):
            dataset = dataset.removesuffix(suffix)
        return {**known, "dataset": dataset, "epoch": epochs or None}
    test = result["test"]  # None if all graphs were trained on
    return {
        **known,
        "dataset": result["dataset"],
        **({} if test is None else _scores(test, "accuracy")),
        "epoch": int(result["best_epoch"]),
    }


def _crossval(folder: Path, result: dict[str, Any] | None) -> dict[str, Any]:
    identity = _json(folder / CROSSVAL)["identity"]
    protocol = identity["protocol"]
    more = {
        **_values(protocol["grid"]),
        "configurations": len(protocol["grid"]),
        "folds": identity["folds"],
        "inner_folds": identity["inner_folds"],
        "runs": protocol["runs"],
    }
    known = {
        "dataset": protocol["data"]["dataset"],
        "model": protocol["model"].get("name", DEFAULT_MODEL),
        "settings": {**_settings(protocol), **more},
        "procedure": _procedure(protocol),
    }
    if result is None:
        return known
    found = CrossvalResult.parsed(result, folder / RESULT)
    if len(found.repeats) > 1:
        known["settings"]["repeats"] = len(found.repeats)
    return {
        **known,
        "accuracy": found.test_mean,
        "accuracy_std": found.test_std,
        "balanced_accuracy": found.balanced_accuracy,
        "roc_auc": found.roc_auc,
    }


def _values(grid: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The values of each setting in a grid: one, or a list of those that compete."""
    names = grid[0] if grid else ()
    found = {name: list(dict.fromkeys(each[name] for each in grid)) for name in names}
    return {name: of if len(of) > 1 else of[0] for name, of in found.items()}


def _tune(folder: Path, result: dict[str, Any] | None) -> dict[str, Any]:
    identity = _json(folder / TUNE)["identity"]
    known = {
        "dataset": identity["data"]["dataset"],
        "model": identity["model"].get("name", DEFAULT_MODEL),
        "settings": _settings(identity),
        "procedure": _procedure(identity),
    }
    if result is None:
        return known
    final = result["final"]
    return {
        **known,
        "found": dict(result["best"]["params"]),
        **_scores(final["test"], "accuracy"),
        "epoch": int(final["best_epoch"]),
    }


def _scores(result: Mapping[str, Any], accuracy: str) -> dict[str, Any]:
    """Accuracy, balanced accuracy and ROC-AUC of test graphs."""
    more = {name: result.get(name) for name in ("balanced_accuracy", "roc_auc")}
    return {"accuracy": float(result[accuracy]), **more}


def _procedure(sections: Mapping[str, Any]) -> str:
    """The procedure of a configuration or protocol (`RunFolder.procedure`)."""
    if sections["training"].get("snapshots"):
        return "snapshots"
    return "race" if "race" in sections else ""


def _settings(sections: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in the sections of a configuration, by name."""
    found: dict[str, Any] = {}
    for name in ("data", "model", "training"):
        found |= {key: value for key, value in sections[name].items() if key not in _OTHER}
    return found


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _DamageError(f"{path.name} cannot be read") from error
    if not isinstance(content, dict):
        raise _DamageError(f"{path.name} holds no object")
    return content


def _differing(model: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are not the defaults of their model; all of an unknown model."""
    try:
        config = RunConfig().of_model(model)
    except InputError:  # its package is not installed
        return dict(settings)
    grid = [each.as_plain() for each in own_grid(config)]
    single = _settings(config.as_plain()) | _CROSSVAL_DEFAULTS
    competing = _values(grid) | {"configurations": len(grid)}
    if settings.get("features") == "labels":  # what `auto` finds in most data
        single["features"] = "labels"
    nothing = object()
    return {
        key: value
        for key, value in settings.items()
        if value not in (single.get(key, nothing), competing.get(key, nothing))
    }
