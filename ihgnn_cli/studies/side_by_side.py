"""Finished cross-validations of the same graphs and folds, each compared with the first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ihgnn_cli.data.splits import Fold, read_fold_file
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.registry import DEFAULT_MODEL
from ihgnn_cli.studies import folder as folders
from ihgnn_cli.studies.beside import tested_share
from ihgnn_cli.studies.folds import of_repeat
from ihgnn_cli.studies.paired import Method, Paired, family, paired
from ihgnn_cli.studies.paper import model_title


@dataclass(frozen=True)
class Compared:
    """The result of a cross-validation, and its difference from that of the first one."""

    folder: Path
    title: str
    """Of the model."""
    accuracy: float
    accuracy_std: float
    """Over the folds."""
    balanced_accuracy: float | None
    """This and `roc_auc` are missing in results of older versions."""
    roc_auc: float | None
    other_data: bool = False
    """Whether it read other edges, labels or attributes of the graphs than the first one."""
    gap: Paired | None = None
    """This minus the first one; `None` for the first one."""


def compare_folders(given: Sequence[Path]) -> tuple[Compared, ...]:
    """Compare the results in these folders.

    Raises:
        InputError: there are fewer than two, one is not a finished cross-validation, or they do not
            have the same graphs and folds.
    """
    if len(given) < 2:
        raise InputError("Give two or more folders of cross-validations to compare.")
    results = [_finished(each) for each in given]
    first, folds = results[0], _folds(given[0], results[0])
    for path, result in zip(given[1:], results[1:], strict=True):
        data = [(each["dataset"], each["graphs"]) for each in (result, first)]
        if data[0] != data[1]:
            raise InputError(
                f"{path} is of {data[0][0]} ({data[0][1]:,} graphs), and {given[0]} of "
                f"{data[1][0]} ({data[1][1]:,}). Compare results of the same graphs."
            )
        if _tests(_folds(path, result)) != _tests(folds):
            raise InputError(
                f"{path} has other folds than {given[0]}. Compare cross-validations with the same "
                "--seed, --folds, --repeats, --group-twins and --split-file."
            )
    share, methods = tested_share(folds, first["graphs"]), [_method(each) for each in results]
    gaps = [None, *family([paired(each, methods[0], share) for each in methods[1:]])]
    compared = [_compared(*each) for each in zip(given, results, gaps, strict=True)]
    hashes = [each["job"]["data_sha256"] for each in results]
    return tuple(
        replace(each, other_data=digest != hashes[0])
        for each, digest in zip(compared, hashes, strict=True)
    )


def _finished(path: Path) -> dict[str, Any]:
    if not (path / folders.JOB).is_file():
        raise InputError(
            f"{path} is not the folder of a cross-validation ('ihgnn runs' lists them)."
        )
    result = folders.read_result(path)
    if result is None:
        raise InputError(f"{path} is not finished. Repeat its command: {folders.command_of(path)}")
    return result


def _folds(path: Path, result: Mapping[str, Any]) -> tuple[Fold, ...]:
    """The folds of all partitions."""
    repeats = len(result.get("repeats", (0,)))  # missing in older results
    files = [path / of_repeat(folders.SPLITS, repeat) for repeat in range(repeats)]
    return tuple(fold for file in files for fold in read_fold_file(file, result["graphs"]))


def _tests(folds: Sequence[Fold]) -> list[list[int]]:
    return [sorted(fold.test.tolist()) for fold in folds]


def _method(result: Mapping[str, Any]) -> Method:
    accuracies = tuple(float(fold["test_mean"]) for fold in result["folds"])
    return Method(accuracies, tuple(result.get("graph_accuracies", ())))


def _compared(path: Path, result: Mapping[str, Any], gap: Paired | None) -> Compared:
    return Compared(
        folder=path,
        title=model_title(result.get("model", DEFAULT_MODEL)),
        accuracy=result["test_mean"],
        accuracy_std=result["test_std"],
        balanced_accuracy=result.get("balanced_accuracy"),
        roc_auc=result.get("roc_auc"),
        gap=gap,
    )
