"""Splits into train, validation and test: drawn from a seed, or read from a file.

A fold file has the format published by Errica et al. (ICLR 2020); graphs are counted from 0:

    [{"test": [...], "model_selection": [{"train": [...], "validation": [...]}, ...]}, ...]

The outer folds of a cross-validation are those of scikit-learn, so that anyone can draw them:

    StratifiedKFold(10, shuffle=True, random_state=seed % 2**32).split(graph_class, graph_class)
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.kinds import ALL, FOLD, HOLDOUT, file_readings, split_shares
from ihgnn_cli.data.twins import twin_groups
from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.files import reading, written_whole
from ihgnn_cli.paths import expanded
from ihgnn_cli.words import counted

PROTOCOL_FOLDS = 10
INNER_VALIDATION_SHARE = 0.1  # of the graphs outside the test part (Errica et al.)
_FORM = '{"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}'
_OTHER_DATA_SET = "The split may belong to another data set."
_Item = TypeVar("_Item")
Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of graphs in three disjoint parts, each ascending and read-only.

    Raises:
        InputError: a part is empty, is not a list of positions, or shares a graph with another.
    """

    train: Positions
    validation: Positions
    test: Positions
    may_be_empty: bool = field(default=False, kw_only=True)
    """Whether validation and test may be: a model may be trained on all graphs that there are."""

    def __post_init__(self) -> None:
        for name, part in self._parts().items():
            empty = self.may_be_empty and name != "train" and not len(part)
            found = np.empty(0, dtype=np.int64) if empty else _ascending(name, part)
            object.__setattr__(self, name, found)
        for (one, first), (other, second) in combinations(self._parts().items(), 2):
            shared = np.intersect1d(first, second)
            if shared.size:
                raise InputError(f"Graph {shared[0]} is in {one} and in {other}. Keep it in one.")

    def check(self, graphs: int) -> None:
        """Check that the parts hold exactly the graphs 0 to `graphs` - 1.

        Raises:
            InputError: they do not; names a graph.
        """
        for name, part in self._parts().items():
            if part.size and part[-1] >= graphs:
                raise InputError(
                    f"Graph {part[-1]} is in {name}, and the data set's graphs are 0 to "
                    f"{graphs - 1}. {_OTHER_DATA_SET}"
                )
        missing = np.setdiff1d(np.arange(graphs), np.concatenate(list(self._parts().values())))
        if missing.size:
            raise InputError(
                f"Graph {missing[0]} is in no part ({len(missing)} of {counted(graphs, 'graph')} "
                f"are in none). {_OTHER_DATA_SET}"
            )

    def as_fold(self) -> dict[str, Any]:
        """The split as an entry of a fold file."""
        inner = {"train": self.train.tolist(), "validation": self.validation.tolist()}
        return {"test": self.test.tolist(), "model_selection": [inner]}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the parts, independent of the order of their graphs."""
        return _digest(self.as_fold())

    def _parts(self) -> dict[str, Positions]:
        return {"train": self.train, "validation": self.validation, "test": self.test}


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
    def test(self) -> Positions:
        """The test graphs, the same in all splits of the fold."""
        return self.splits[0].test

    def as_entry(self) -> dict[str, Any]:
        """The fold as an entry of a fold file."""
        selection = [each for split in self.splits for each in split.as_fold()["model_selection"]]
        return {"test": self.test.tolist(), "model_selection": selection}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the splits in order; with one split, it is that of the split."""
        return _digest(self.as_entry())


def load_split(text: str, dataset: GraphDataset, seed: int) -> Split:
    """Load the split that a text names.

    `0.7/0.1/0.2` are the shares of train, validation and test, drawn like `holdout`, which is
    `0.8/0.1/0.1`. Folds and splits are counted from 0; `fold:3` is one of `draw_folds`, and
    `fold:3:twins` one of those that keep graphs with the same 1-WL colouring together. Use `FILE`
    for a file with one split, `FILE:3` for a fold with one split, and `FILE:3:0` otherwise. A file
    whose own name ends in `:3` is found, too, and `./holdout` is a file. With `all`, every graph
    trains, and validation and test are empty.

    Raises:
        InputError: the text has another form, or there is no such fold or split.
    """
    if text == ALL:
        none = np.empty(0, dtype=np.int64)
        return Split(np.arange(len(dataset)), none, none, may_be_empty=True)
    shares = split_shares(text)
    if text == HOLDOUT or shares is not None:
        _, validation, test = shares or (0.8, 0.1, 0.1)
        return holdout(dataset.graph_class, seed, validation_share=validation, test_share=test)
    if match := FOLD.fullmatch(text):
        groups = twin_groups(dataset) if match[2] else None
        drawn = draw_folds(dataset.graph_class, seed, groups=groups)
        return _numbered(drawn, int(match[1]), "fold", "The protocol").splits[0]
    for name, numbers in file_readings(text):
        path = expanded(Path(name))
        if os.path.exists(path):  # noqa: PTH110  names too long for a path raise in Path.exists
            return _from_file(path, numbers, dataset)
    raise InputError(
        f"No split '{text}', and no file of that name. Give {HOLDOUT}, shares such as 0.8/0.1/0.1, "
        f"fold:N or fold:N:twins (N from 0 to {PROTOCOL_FOLDS - 1}), or a fold file as FILE, "
        "FILE:N or FILE:N:I."
    )


def holdout(
    graph_class: NDArray[np.integer],
    seed: int,
    *,
    validation_share: float = 0.1,
    test_share: float = 0.1,
) -> Split:
    """One stratified split: each class has its share of each part, to within one graph per cut.

    Raises:
        InputError: there are fewer than three graphs, or none is left for training.
    """
    graphs = len(graph_class)
    if graphs < 3:
        raise InputError(
            f"{counted(graphs, 'graph')} cannot be split into train, validation and test. "
            "Give at least 3 graphs."
        )
    validation = _part_size("validation", validation_share, graphs)
    test = _part_size("test", test_share, graphs)
    train = graphs - validation - test
    if train < 1:
        raise InputError(
            f"{validation} validation and {test} test graphs leave none of {graphs} graphs for "
            "training. Use smaller shares."
        )
    return Split(*stratified(graph_class, (train, validation, test), random_bits(seed)))


def draw_folds(
    graph_class: NDArray[np.integer],
    seed: int,
    folds: int = PROTOCOL_FOLDS,
    inner: int = 1,
    groups: NDArray[np.integer] | None = None,
) -> list[Fold]:
    """Draw the folds of the protocol: each graph is tested once; a tenth of the rest validates.

    The test parts are those of scikit-learn's `StratifiedKFold`, unless a class has fewer members
    than there are folds. With `inner` >= 2, the rest is cut into that many parts instead, and each
    part is the validation part of one split. The sizes of test parts (and of inner parts), and the
    counts of each class in them, differ by at most 1.

    With `groups` (a number per graph), the graphs of a group are in the same part of every split,
    and parts are as equal as that allows.

    Raises:
        InputError: there are fewer than two folds, no inner splits, or too few graphs or groups.
    """
    _check_counts(len(graph_class), folds, inner, groups)
    random = random_bits(seed)
    drawn = []
    for test in _test_parts(graph_class, seed, folds, random, groups):
        rest = np.setdiff1d(np.arange(len(graph_class)), test)
        of_rest = None if groups is None else groups[rest]
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
    with reading(path):
        content = path.read_bytes()
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}). Write a list of {_FORM}.") from error
    entries = entries if isinstance(entries, list) else [entries]
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
    lines = ",\n".join(_compact(fold.as_entry()) for fold in folds)
    return f"[\n{lines}\n]\n"


def random_bits(seed: int) -> np.random.PCG64:
    """Raw random bits, which NumPy guarantees to be the same everywhere."""
    if seed < 0:
        raise InputError(f"The seed {seed} is negative. Use a whole number from 0.")
    return np.random.PCG64(seed)


def stratified(
    graph_class: NDArray[np.integer], sizes: Sequence[int], random: np.random.PCG64
) -> list[Positions]:
    """Divide all positions into stratified parts of these sizes.

    The parts after the first are cut off one after the other. Each cut takes evenly spaced members
    of a list sorted by class, and so the share of each class to within one.
    """
    rest = np.arange(len(graph_class))
    parts = []
    for size in sizes[:0:-1]:
        start = int(random.random_raw()) % max(1, len(rest))
        order = rest[_by_class(graph_class[rest], random)]
        parts.append(order[(np.arange(size) * len(rest) + start) // max(1, size)])
        rest = np.setdiff1d(rest, parts[-1])
    return [rest, *reversed(parts)]


def grouped(
    graph_class: NDArray[np.integer],
    groups: NDArray[np.integer],
    parts: int,
    random: np.random.PCG64,
) -> list[Positions]:
    """Divide all positions into parts without dividing a group, as stratified as that allows.

    Greedy: groups from the largest to the smallest, in random order among equals, each to the part
    that has the smallest shares of the group's classes so far (of equal ones, the smallest part).
    (Until 1.8, `StratifiedGroupKFold` of scikit-learn does not stratify when it shuffles.)
    """
    group, size = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    position, members = np.unique(graph_class, return_inverse=True, return_counts=True)[1:]
    table = np.zeros((len(size), len(members)), dtype=np.int64)
    np.add.at(table, (group, position), 1)
    filled = np.zeros((parts, len(members)))
    part = np.empty(len(size), dtype=np.int64)
    for each in np.lexsort((random.random_raw(len(size)), -size)):
        # How much the group adds to the sum of squares of all shares of classes in parts.
        added = (table[each] * (2 * filled + table[each]) / members**2).sum(axis=1)
        # The first groups fill empty parts, and none is left empty.
        part[each] = np.lexsort((filled.sum(axis=1), added.round(12), filled.any(axis=1)))[0]
        filled[part[each]] += table[each]
    return [np.flatnonzero(part[group] == number) for number in range(parts)]


def _test_parts(
    graph_class: NDArray[np.integer],
    seed: int,
    folds: int,
    random: np.random.PCG64,
    groups: NDArray[np.integer] | None,
) -> list[Positions]:
    if groups is None and np.unique(graph_class, return_counts=True)[1].min() >= folds:
        from sklearn.model_selection import StratifiedKFold

        drawn = StratifiedKFold(folds, shuffle=True, random_state=seed % 2**32)
        return [test for _, test in drawn.split(graph_class, graph_class)]
    return _dealt(graph_class, folds, random, groups)


def _validating(
    graph_class: NDArray[np.integer],
    inner: int,
    random: np.random.PCG64,
    groups: NDArray[np.integer] | None,
) -> list[Positions]:
    """The validation positions of each split."""
    graphs = len(graph_class)
    size = max(1, round(INNER_VALIDATION_SHARE * graphs))
    least = max(2, inner)
    if groups is not None and (left := len(np.unique(groups))) < least:
        raise InputError(
            f"A fold leaves {counted(left, 'group')} of twins for training and validation, which "
            f"need {least}. Use more folds, or leave out --group-twins."
        )
    if inner > 1:
        return _dealt(graph_class, inner, random, groups)
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
) -> list[Positions]:
    """Deal all positions into parts in turn, class by class, or groups to parts."""
    if groups is not None:
        return grouped(graph_class, groups, parts, random)
    order = _by_class(graph_class, random)
    return [order[part::parts] for part in range(parts)]


def _by_class(graph_class: NDArray[np.integer], random: np.random.PCG64) -> Positions:
    """The positions of all graphs, class by class, in random order within a class."""
    return np.lexsort((random.random_raw(len(graph_class)), graph_class)).astype(np.int64)


def _check_counts(graphs: int, folds: int, inner: int, groups: NDArray[np.integer] | None) -> None:
    if folds < 2:
        raise SettingError("folds", f"must be at least 2, not {folds}.")
    if inner < 1:
        raise SettingError("inner_folds", f"must be at least 1, not {inner}.")
    rest = max(2, inner)  # graphs a fold needs outside its test part
    least = max(folds, -(-rest * folds // (folds - 1)))  # rounded up, like the largest test part
    within = f" with {inner} inner splits each" if inner > 1 else ""
    if graphs < least:
        fewer = ["--folds"] * (folds > 2) + ["--inner-folds"] * (inner > 1)
        other = f", or a smaller {' or '.join(fewer)}" if fewer else ""
        raise InputError(
            f"{counted(graphs, 'graph')} cannot be split into {folds} folds{within}. "
            f"Give at least {least} graphs{other}."
        )
    if groups is not None and (there := len(np.unique(groups))) < max(folds, rest + 1):
        most = f"Use {rest + 1} to {there} folds" if there > rest else "Use fewer --inner-folds"
        raise InputError(
            f"{counted(there, 'group')} of twins cannot be divided into {folds} folds{within}, "
            f"which need {max(folds, rest + 1)}. {most}, or leave out --group-twins (:twins)."
        )


def _from_file(path: Path, numbers: tuple[int, ...], dataset: GraphDataset) -> Split:
    folds = read_fold_file(path, len(dataset), whole=False)
    if not numbers and len(folds) > 1:
        raise InputError(
            f"{path} holds {len(folds)} folds. Append :0 to :{len(folds) - 1} to choose one."
        )
    number, inner = [*numbers, 0, 0][:2]
    splits = _numbered(folds, number, "fold", str(path)).splits
    if len(numbers) < 2 and len(splits) > 1:
        raise InputError(
            f"Fold {number} of {path} holds {len(splits)} splits into train and validation. "
            f"Give {path}:{number}:I with I from 0 to {len(splits) - 1} to choose one."
        )
    return _numbered(splits, inner, "split", f"Fold {number} of {path}")


def _numbered(items: Sequence[_Item], number: int, noun: str, owner: str) -> _Item:
    if number >= len(items):
        there = f"{noun}s are 0 to {len(items) - 1}" if len(items) > 1 else f"only {noun} is 0"
        raise InputError(f"{owner} has no {noun} {number}. Its {there}.")
    return items[number]


def _parsed(entry: Any, graphs: int) -> Fold:
    try:
        parts = [(each["train"], each["validation"]) for each in entry["model_selection"]]
        test = entry["test"]
    except (KeyError, TypeError):
        shown = json.dumps(entry)[:40]
        raise InputError(f"{shown} is not a fold. Write {_FORM}.") from None
    for part in (test, *(each for pair in parts for each in pair)):
        if not isinstance(part, list) or set(map(type, part)) - {int}:  # True is an int, too
            shown = json.dumps(part)[:40]
            raise InputError(f"{shown} is not a list of graphs. Write whole numbers from 0.")
    splits = tuple(Split(train, validation, test) for train, validation in parts)
    for split in splits:
        split.check(graphs)
    return Fold(splits)


def _part_size(name: str, share: float, graphs: int) -> int:
    if not 0 < share < 1:
        raise InputError(
            f"The share {share:g} of {name} is not between 0 and 1. Use a share such as 0.1."
        )
    return max(1, round(share * graphs))


def _ascending(name: str, part: Any) -> Positions:
    given = np.asarray(part)
    if not given.size:
        raise InputError(f"{name} is empty. Put at least one graph into each part.")
    whole = given.dtype.kind in "iu" and np.can_cast(given.dtype, np.int64)
    if given.ndim != 1 or not whole:
        raise InputError(f"{name} is not a list of 64-bit integers. Give the positions of graphs.")
    positions = np.sort(given.astype(np.int64))
    if positions[0] < 0:
        raise InputError(f"Graph {positions[0]} is in {name}. Graphs are counted from 0.")
    repeated = positions[1:][positions[1:] == positions[:-1]]
    if repeated.size:
        raise InputError(f"Graph {repeated[0]} appears twice in {name}. Keep it once.")
    positions.flags.writeable = False
    return positions


def _digest(entry: object) -> str:
    return hashlib.sha256(_compact(entry).encode()).hexdigest()


def _compact(content: object) -> str:
    """JSON on one line without spaces."""
    return json.dumps(content, separators=(",", ":"))
