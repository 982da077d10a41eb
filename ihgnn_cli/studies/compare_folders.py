"""Finished cross-validations of the same graphs and folds, each compared with the first one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ihgnn_cli.data.splits import Fold, read_fold_file
from ihgnn_cli.errors import InputError
from ihgnn_cli.paths import expanded
from ihgnn_cli.studies.comparison import Cell, cell_of
from ihgnn_cli.studies.crossval.result import RESULT, CrossvalResult
from ihgnn_cli.studies.crossval.summary import tested_share
from ihgnn_cli.studies.job_folder import CROSSVAL_JOB
from ihgnn_cli.studies.runs import RunFolder, crossval_folder
from ihgnn_cli.studies.statistics import Paired, family, paired
from ihgnn_cli.training.folder import SPLITS
from ihgnn_cli.training.unfinished import continued
from ihgnn_cli.words import counted


@dataclass(frozen=True)
class Compared:
    """The result of a cross-validation, and its difference from that of the first one."""

    folder: Path
    title: str
    """Of the model."""
    procedure: str
    """"race" or "snapshots" (nothing chosen); empty for the full selection."""
    settings: Mapping[str, Any]
    """Those that are not the same in all folders."""
    partial: str
    """What part of the folds was run; empty for all of them."""
    accuracy: float
    accuracy_std: float
    """Over the folds."""
    balanced_accuracy: float | None
    """This and `roc_auc` are means over folds and runs."""
    roc_auc: float | None
    other_data: bool = False
    """Whether the edges, labels or attributes that it read differ from those of the first one."""
    gap: Paired | None = None
    """This minus the first one; `None` for the first one."""


@dataclass(frozen=True)
class _Finished:
    """What the folder of a finished cross-validation holds."""

    path: Path
    cell: Cell
    accuracy: float
    accuracy_std: float
    run: RunFolder
    folds: tuple[Fold, ...]
    """Of all partitions."""
    partial: str


def compare_folders(given: Sequence[Path]) -> tuple[Compared, ...]:
    """Compare the results in these folders.

    Raises:
        InputError: there are fewer than two, one is given twice or is not a finished
            cross-validation, or they do not have the same graphs and folds.
    """
    paths = list(map(expanded, given))
    if len(paths) < 2:
        raise InputError("Give two or more folders of cross-validations to compare.")
    for at, path in enumerate(paths):
        if path.resolve() in [each.resolve() for each in paths[:at]]:
            raise InputError(f"{path} is given twice. Give each folder once.")
    found = [_finished(path) for path in paths]
    first = found[0]
    for each in found[1:]:
        _require_the_same_folds(each, first)
    share = tested_share(first.folds, first.cell.graphs)
    gaps = family([paired(each.cell.method, first.cell.method, share) for each in found[1:]])
    differing = _differing([each.run.settings for each in found])
    return tuple(
        Compared(
            folder=each.path,
            title=each.cell.title,
            procedure=each.run.procedure,
            settings=settings,
            partial=each.partial,
            accuracy=each.accuracy,
            accuracy_std=each.accuracy_std,
            balanced_accuracy=each.run.balanced_accuracy,
            roc_auc=each.run.roc_auc,
            other_data=each.cell.data_sha256 != first.cell.data_sha256,
            gap=gap,
        )
        for each, settings, gap in zip(found, differing, [None, *gaps], strict=True)
    )


def _finished(path: Path) -> _Finished:
    if not (path / CROSSVAL_JOB.file).is_file():
        raise InputError(
            f"{path} is not the folder of a cross-validation ('ihgnn runs' lists them)."
        )
    if not (path / RESULT).is_file():
        raise InputError(f"{path} is not finished. {continued(path)}")
    result = CrossvalResult.read(path)
    cell = cell_of(result, result.model)
    run = crossval_folder(path)
    if run.problem:
        raise InputError(f"{path} is damaged: {run.problem}. {continued(path)}")
    partial = result.partial or ""
    parts = [path, *(path / f"seed-{each.seed}" for each in result.repeats[1:])]
    read = [read_fold_file(part / SPLITS, cell.graphs, whole=not partial) for part in parts]
    folds = tuple(fold for each in read for fold in each)
    if len(folds) != len(cell.accuracies):
        raise InputError(
            f"{path / RESULT} has {counted(len(cell.accuracies), 'fold')}, and its split files "
            f"have {len(folds)}. {continued(path)}"
        )
    return _Finished(path, cell, result.test_mean, result.test_std, run, folds, partial)


def _require_the_same_folds(other: _Finished, first: _Finished) -> None:
    """Refuse other graphs, by what the results say of them, and other folds."""
    data = [(each.dataset, each.graphs) for each in (other.cell, first.cell)]
    if data[0] != data[1]:
        raise InputError(
            f"{other.path} is of {data[0][0]} ({data[0][1]:,} graphs), and {first.path} of "
            f"{data[1][0]} ({data[1][1]:,}). Compare results of the same graphs."
        )
    if other.cell.majority_share != first.cell.majority_share:
        raise InputError(
            f"{other.path} and {first.path} are of different data sets named {data[0][0]}: their "
            "classes differ. Compare results of the same graphs."
        )
    counts = [_counted(each) for each in (other, first)]
    if counts[0] != counts[1]:
        raise InputError(
            f"{other.path} has {counts[0]}, and {first.path} has {counts[1]}. Compare "
            "cross-validations with the same --repeats and --folds."
        )
    tests = [[sorted(fold.test.tolist()) for fold in each.folds] for each in (other, first)]
    if tests[0] != tests[1]:
        raise InputError(
            f"{other.path} has other folds than {first.path}. Compare cross-validations with the "
            "same --seed, --group-twins and --split-file."
        )


def _counted(found: _Finished) -> str:
    """The number of folds in words."""
    repeats = found.cell.repeats
    each = counted(len(found.folds) // repeats, "fold")
    return each if repeats == 1 else f"{repeats} partitions of {each}"


def _differing(settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The settings of each that are not the same in all; a setting that one lacks differs."""
    nothing = object()
    names = dict.fromkeys(name for each in settings for name in each)
    differ = [
        name
        for name in names
        if any(each.get(name, nothing) != settings[0].get(name, nothing) for each in settings)
    ]
    return [{name: each[name] for name in differ if name in each} for each in settings]
