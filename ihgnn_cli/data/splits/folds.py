"""Folds: draw them from a seed, read and write fold files.

A fold file has the format published by Errica et al. (ICLR 2020); graphs are counted from 0:

    [{"test": [...], "model_selection": [{"train": [...], "validation": [...]}, ...]}, ...]
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.splits.split import Split, compact_json
from ihgnn_cli.data.splits.stratify import by_class, grouped, random_bits, stratified
from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.files import written_whole
from ihgnn_cli.words import counted

PROTOCOL_FOLDS = 10
INNER_VALIDATION_SHARE = 0.1  # of the graphs outside the test part (Errica et al.)

_FORM = '{"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}'


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold: a test part, and one or more splits of the rest into train and validation.

    Raises:
        InputError: there is no split, or the splits have different test parts.
    """

    splits: tuple[Split, ...]

    def __post_init__(self) -> None:
        if not self.splits:
            raise InputError("A fold has no splits. Give at least one.")
        for number, split in enumerate(self.splits):
            if not np.array_equal(split.test, self.test):
                raise InputError(
                    f"Split {number} of a fold tests other graphs than split 0. "
                    "Give all splits of a fold the same test part."
                )

    @property
    def test(self) -> NDArray[np.int64]:
        """The test graphs, the same in all splits of the fold."""
        return self.splits[0].test

    def as_entry(self) -> dict[str, Any]:
        """The fold as an entry of a fold file."""
        selection = [each for split in self.splits for each in split.as_fold()["model_selection"]]
        return {"test": self.test.tolist(), "model_selection": selection}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the splits in order; with one split, it is that of the split."""
        return hashlib.sha256(compact_json(self.as_entry()).encode()).hexdigest()


def draw_folds(
    graph_class: NDArray[np.integer],
    seed: int,
    folds: int = PROTOCOL_FOLDS,
    inner: int = 1,
    groups: NDArray[np.integer] | None = None,
) -> list[Fold]:
    """Draw the folds of the protocol: each graph is tested once; a tenth of the rest validates.

    With `inner` >= 2, the rest is cut into that many parts instead, and each part is the validation
    part of one split. Stratified: the sizes of test parts (and of inner parts), and the counts of
    each class in them, differ by at most 1.

    With `groups` (a number per graph), the graphs of a group are in the same part of every split,
    and parts are as equal as that allows.

    Raises:
        InputError: there are fewer than two folds, no inner splits, or too few graphs or groups.
    """
    _check_counts(len(graph_class), folds, inner)
    if groups is not None:
        _check_groups(groups, folds, inner)
    random = random_bits(seed)
    drawn = []
    for test in _dealt(graph_class, folds, random, groups):
        rest = np.setdiff1d(np.arange(len(graph_class)), test)
        of_rest = None if groups is None else groups[rest]
        if groups is not None:
            _check_rest(groups, rest, folds, inner)
        validating = _validating(graph_class[rest], inner, random, of_rest)
        splits = [
            Split(np.delete(rest, validation), rest[validation], test) for validation in validating
        ]
        drawn.append(Fold(tuple(splits)))
    return drawn


def inner_folds(
    graph_class: NDArray[np.integer], split: Split, seed: int, inner: int
) -> tuple[Split, ...]:
    """Redistribute the train and validation graphs of a split into `inner` parts.

    Each part is the validation part of one split. With one part, return the split itself.

    Raises:
        InputError: there are too few graphs, or all of them train.
    """
    if not len(split.validation):
        raise InputError("All graphs train, and none are left for validation. Use another split.")
    if inner < 1:
        raise SettingError("inner_folds", f"must be at least 1, not {inner}.")
    if inner == 1:
        return (split,)
    rest = np.union1d(split.train, split.validation)
    if inner > len(rest):
        raise InputError(
            f"{counted(len(rest), 'graph')} for training and validation cannot be divided into "
            f"{counted(inner, 'inner fold')}. Use 1 to {len(rest)}."
        )
    parts = _dealt(graph_class[rest], inner, random_bits(seed))
    return tuple(Split(np.delete(rest, part), rest[part], split.test) for part in parts)


def read_fold_file(path: Path, graphs: int, *, whole: bool = True) -> list[Fold]:
    """Read a fold file, or a file of one fold without the list, for a data set of `graphs` graphs.

    Args:
        path: the file.
        graphs: of the data set.
        whole: whether several folds have to test every graph.

    Raises:
        InputError: the file cannot be read or has another format, a split does not hold all graphs
            once, or a graph is in the test part of two folds, or (if `whole`) of none.
    """
    content = _read_json(path)
    entries = content if isinstance(content, list) else [content]
    if not entries:
        raise InputError(f"{path} holds no folds. Write a list of {_FORM}.")
    folds = []
    for number, entry in enumerate(entries):
        try:
            folds.append(_parsed(entry, graphs))
        except InputError as error:
            raise InputError(f"{path}, fold {number} (counted from 0): {error}") from error
    if len(folds) > 1:
        tested = np.bincount(np.concatenate([fold.test for fold in folds]), minlength=graphs)
        wrong = tested != 1 if whole else tested > 1
        for graph in np.flatnonzero(wrong)[:1]:
            found = [str(number) for number, fold in enumerate(folds) if graph in fold.test]
            where = f"folds {' and '.join(found)}" if found else "no fold"
            some = "" if found else ", or use the folds that there are with --folds"
            raise InputError(
                f"{path}: graph {graph} is in the test part of {where}. Put it into exactly "
                f"one{some}."
            )
    return folds


def write_fold_file(folds: Sequence[Fold], path: Path) -> None:
    """Write a fold file atomically."""
    with written_whole(path) as temporary:
        temporary.write_text(fold_file(folds), encoding="utf-8", newline="\n")


def fold_file(folds: Sequence[Fold]) -> str:
    """The content of a fold file, one fold per line."""
    lines = ",\n".join(compact_json(fold.as_entry()) for fold in folds)
    return f"[\n{lines}\n]\n"


def _check_counts(graphs: int, folds: int, inner: int) -> None:
    if folds < 2:
        raise SettingError("folds", f"must be at least 2, not {folds}.")
    if inner < 1:
        raise SettingError("inner_folds", f"must be at least 1, not {inner}.")
    rest = max(2, inner)  # graphs a fold needs outside its test part
    least = max(folds, -(-rest * folds // (folds - 1)))  # rounded up, like the largest test part
    if graphs < least:
        within = f" with {inner} inner splits each" if inner > 1 else ""
        fewer = ["--folds"] * (folds > 2) + ["--inner-folds"] * (inner > 1)
        other = f", or a smaller {' or '.join(fewer)}" if fewer else ""
        raise InputError(
            f"{counted(graphs, 'graph')} cannot be split into {folds} folds{within}. "
            f"Give at least {least} graphs{other}."
        )


def _check_groups(groups: NDArray[np.integer], folds: int, inner: int) -> None:
    there, least = len(np.unique(groups)), _fewest_groups(inner)
    if there < least:
        parts = f"{inner} inner folds and a test" if inner > 1 else "training, validation and test"
        fewer = "use fewer --inner-folds or " if inner > 1 and there > 2 else ""
        raise InputError(
            f"Folds that keep twins together need at least {least} groups of twins, for {parts}, "
            f"and the data has {there}. To go on, {fewer}leave out --group-twins."
        )
    if there < folds:
        raise InputError(
            f"{there} groups of twins cannot be divided into {folds} folds. "
            f"{_better_folds(there, inner)}"
        )


def _check_rest(
    groups: NDArray[np.integer], rest: NDArray[np.int64], folds: int, inner: int
) -> None:
    """If there are few folds, one of them may test most of the groups."""
    left, least = len(np.unique(groups[rest])), _fewest_groups(inner) - 1
    if left < least:
        raise InputError(
            f"One of the {folds} folds leaves {counted(left, 'group')} of twins for training and "
            f"validation, which need {least}. {_better_folds(len(np.unique(groups)), inner)}"
        )


def _fewest_groups(inner: int) -> int:
    """One group to test, and the others to train and validate."""
    return max(2, inner) + 1


def _better_folds(groups: int, inner: int) -> str:
    least = _fewest_groups(inner)
    numbers = f"{least}" if groups == least else f"{least} to {groups}"
    return f"Use {numbers} folds, or leave out --group-twins."


def _validating(
    graph_class: NDArray[np.integer],
    inner: int,
    random: np.random.PCG64,
    groups: NDArray[np.integer] | None,
) -> list[NDArray[np.int64]]:
    """The validation positions of each split."""
    if inner > 1:
        return _dealt(graph_class, inner, random, groups)
    graphs = len(graph_class)
    size = max(1, round(INNER_VALIDATION_SHARE * graphs))
    if groups is None:
        return stratified(graph_class, (graphs - size, size), random)[1:]
    # One of ten parts; the first ones received the largest groups.
    count = min(round(1 / INNER_VALIDATION_SHARE), len(np.unique(groups)))
    parts = grouped(graph_class, groups, count, random)
    return [min(parts, key=lambda part: abs(len(part) - size))]


def _dealt(
    graph_class: NDArray[np.integer],
    parts: int,
    random: np.random.PCG64,
    groups: NDArray[np.integer] | None = None,
) -> list[NDArray[np.int64]]:
    """Deal all positions into parts in turn, class by class, or groups to parts."""
    if groups is not None:
        return grouped(graph_class, groups, parts, random)
    order = by_class(graph_class, random)
    return [order[part::parts] for part in range(parts)]


def _parsed(entry: object, graphs: int) -> Fold:
    selection = _member(entry, "model_selection")
    if not selection:
        raise InputError(f"model_selection is empty. Write {_FORM}.")
    test = _positions(entry, "test")
    splits = []
    for number, each in enumerate(selection):
        try:
            split = Split(_positions(each, "train"), _positions(each, "validation"), test)
            split.check(graphs)
        except InputError as error:
            if len(selection) == 1:
                raise
            raise InputError(f"split {number}: {error}") from error
        splits.append(split)
    return Fold(tuple(splits))


def _positions(entry: object, key: str) -> NDArray[np.int64]:
    values = _member(entry, key)
    for value in values:
        if type(value) is not int:  # True is an int, too
            shown = json.dumps(value)[:40]
            raise InputError(f"{key} holds {shown}. Write whole numbers, graphs counted from 0.")
    return np.array(values)


def _member(entry: object, key: str) -> list[Any]:
    if not isinstance(entry, dict):
        raise InputError(f"{json.dumps(entry)[:40]} is not an object. Write {_FORM}.")
    if not isinstance(entry.get(key), list):
        raise InputError(f"{key} is {'not a list' if key in entry else 'missing'}. Write {_FORM}.")
    return list(entry[key])


def _read_json(path: Path) -> object:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder. Give a JSON fold file.")
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Cannot read {path}: {reason}. Give a JSON fold file.") from error
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}). Write a list of {_FORM}.") from error
