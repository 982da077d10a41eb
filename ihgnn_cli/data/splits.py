"""Which graphs train, which validate and which test: drawn from a seed, or read from a file.

A file of folds has the form of the published ones (Errica et al., ICLR 2020), graphs counted from
0 in the data set's order:

    [{"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}, ...]
"""

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.stratify import by_class, random_bits, stratified
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import written_whole
from ihgnn_cli.paths import expanded
from ihgnn_cli.words import counted

HOLDOUT = "holdout"
PROTOCOL_FOLDS = 10
INNER_VALIDATION_SHARE = 0.1  # of the graphs that a fold does not test (Errica et al.)

_FOLD = re.compile(r"fold:([0-9]{1,9})")
_NUMBERED_FILE = re.compile(r"(.+):([0-9]{1,9})", re.DOTALL)
_FORM = '{"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}'
_OTHER_DATA_SET = "The split may belong to another data set."


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of graphs, three parts without a graph in common, each ascending and read-only.

    Raises:
        InputError: a part is empty, is no list of positions, or shares a graph with another.
    """

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name, part in self._parts().items():
            object.__setattr__(self, name, _ascending(name, part))
        for (one, first), (other, second) in combinations(self._parts().items(), 2):
            shared = np.intersect1d(first, second)
            if shared.size:
                raise InputError(f"Graph {shared[0]} is in {one} and in {other}. Keep it in one.")

    def check(self, graphs: int) -> None:
        """Make sure that the parts hold the graphs 0 to `graphs` - 1, and all of them.

        Raises:
            InputError: they do not; names a graph.
        """
        for name, part in self._parts().items():
            if part[-1] >= graphs:
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
        """The split as an entry of a file of folds."""
        inner = {"train": self.train.tolist(), "validation": self.validation.tolist()}
        return {"test": self.test.tolist(), "model_selection": [inner]}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the parts: the same graphs in each, however they were ordered."""
        return hashlib.sha256(_compact(self.as_fold()).encode()).hexdigest()

    def _parts(self) -> dict[str, NDArray[np.int64]]:
        return {"train": self.train, "validation": self.validation, "test": self.test}


def holdout(
    graph_class: NDArray[np.integer],
    seed: int,
    *,
    validation_share: float = 0.1,
    test_share: float = 0.1,
) -> Split:
    """One split of all graphs, stratified: a class's count in a part is its share to within 1.

    Raises:
        InputError: there are fewer than three graphs, or none is left to train on.
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
            f"{validation} to validate and {test} to test leave none of {graphs} graphs to train "
            "on. Use smaller shares."
        )
    return Split(*stratified(graph_class, (train, validation, test), random_bits(seed)))


def protocol_folds(
    graph_class: NDArray[np.integer], seed: int, folds: int = PROTOCOL_FOLDS
) -> list[Split]:
    """The folds of the protocol: each graph is tested once, and a tenth of the rest validates.

    Stratified: between two test parts, sizes and the counts of each class differ by at most 1.

    Raises:
        InputError: there are fewer than two folds, or too few graphs for them.
    """
    graphs = len(graph_class)
    if folds < 2:
        raise InputError(f"Cannot make {counted(folds, 'fold')}. Use at least 2.")
    least = folds if folds > 2 else 4  # beside the graphs that a fold tests, it needs two
    if graphs < least:
        raise InputError(
            f"{counted(graphs, 'graph')} cannot be split into {folds} folds. "
            f"Give at least {least} graphs, or another split."
        )
    random = random_bits(seed)
    order = by_class(graph_class, random)
    splits = []
    for fold in range(folds):
        test = order[fold::folds]  # dealt like cards, class after class
        rest = np.setdiff1d(order, test)
        size = _part_size("validation", INNER_VALIDATION_SHARE, len(rest))
        train, validation = stratified(graph_class[rest], (len(rest) - size, size), random)
        splits.append(Split(rest[train], rest[validation], test))
    return splits


def read_folds(path: Path, graphs: int) -> list[Split]:
    """Read a file of folds, or of one fold without the list, for a data set of so many graphs.

    Raises:
        InputError: the file cannot be read or is not in the form, a fold does not hold all graphs
            once, or a graph is in the test part of no fold or of two.
    """
    content = _read_json(path)
    entries = content if isinstance(content, list) else [content]
    if not entries:
        raise InputError(f"{path} holds no folds. Write a list of {_FORM}.")
    splits = []
    for number, entry in enumerate(entries):
        try:
            split = _parsed(entry)
            split.check(graphs)
        except InputError as error:
            raise InputError(f"{path}, fold {number} (counted from 0): {error}") from error
        splits.append(split)
    if len(splits) > 1:
        tested = np.bincount(np.concatenate([split.test for split in splits]), minlength=graphs)
        for graph in np.flatnonzero(tested != 1)[:1]:
            found = [str(number) for number, split in enumerate(splits) if graph in split.test]
            where = f"folds {' and '.join(found)}" if found else "no fold"
            raise InputError(
                f"{path}: graph {graph} is in the test part of {where}. Put it into exactly one."
            )
    return splits


def write_folds(splits: Sequence[Split], path: Path) -> None:
    """Write a file of folds, a fold a line, whole or not at all."""
    lines = ",\n".join(_compact(split.as_fold()) for split in splits)
    with written_whole(path) as temporary:
        temporary.write_text(f"[\n{lines}\n]\n", encoding="utf-8", newline="\n")


def choose(text: str, dataset: GraphDataset, seed: int) -> Split:
    """The split that a text names: `holdout`, `fold:3`, `FILE` or `FILE:3`.

    Folds are counted from 0; `fold:3` is one of `protocol_folds`. `FILE` holds a single fold. A
    file whose own name ends like `:3` is found, and `./holdout` is a file of that name.

    Raises:
        InputError: the text is none of these, or there is no such fold.
    """
    if text == HOLDOUT:
        return holdout(dataset.graph_class, seed)
    if match := _FOLD.fullmatch(text):
        return _numbered(protocol_folds(dataset.graph_class, seed), int(match[1]), "The protocol")
    # os.path: texts that are too long for a path raise in Path.exists
    path, number = expanded(Path(text)), None
    if not os.path.exists(path) and (match := _NUMBERED_FILE.fullmatch(text)):  # noqa: PTH110
        path, number = expanded(Path(match[1])), int(match[2])
    if not text or not os.path.exists(path):  # noqa: PTH110
        raise InputError(
            f"No split '{text}', and no file of that name. Give {HOLDOUT}, fold:N (N from 0 to "
            f"{PROTOCOL_FOLDS - 1}), or a file of folds as FILE or FILE:N."
        )
    splits = read_folds(path, len(dataset))
    if number is None and len(splits) > 1:
        raise InputError(
            f"{path} holds {len(splits)} folds. Append :0 to :{len(splits) - 1} to choose one."
        )
    return _numbered(splits, number or 0, str(path))


def is_drawn(text: str) -> bool:
    """Whether a text for `choose` names a split that the seed decides, and not a file."""
    return text == HOLDOUT or _FOLD.fullmatch(text) is not None


def _numbered(splits: Sequence[Split], number: int, owner: str) -> Split:
    if number >= len(splits):
        there = f"folds are 0 to {len(splits) - 1}" if len(splits) > 1 else "only fold is 0"
        raise InputError(f"{owner} has no fold {number}. Its {there}.")
    return splits[number]


def _part_size(name: str, share: float, graphs: int) -> int:
    if not 0 < share < 1:
        raise InputError(f"The share {share:g} of {name} is not between 0 and 1. Use 0.1, say.")
    return max(1, round(share * graphs))


def _ascending(name: str, part: NDArray[np.int64]) -> NDArray[np.int64]:
    given = np.asarray(part)
    if not given.size:
        raise InputError(f"{name} is empty. Put at least one graph into each part.")
    whole = given.dtype.kind in "iu" and np.can_cast(given.dtype, np.int64)
    if given.ndim != 1 or not whole:
        raise InputError(f"{name} is no list of 64-bit integers. Give the positions of graphs.")
    positions = np.sort(given.astype(np.int64))
    if positions[0] < 0:
        raise InputError(f"Graph {positions[0]} is in {name}. Graphs are counted from 0.")
    repeated = positions[1:][positions[1:] == positions[:-1]]
    if repeated.size:
        raise InputError(f"Graph {repeated[0]} stands twice in {name}. Keep it once.")
    positions.flags.writeable = False
    return positions


def _parsed(entry: object) -> Split:
    selection = _member(entry, "model_selection")
    if len(selection) != 1:
        raise InputError(
            f"model_selection holds {counted(len(selection), 'split')}, and one is supported. "
            "Keep one."
        )
    parts = [(selection[0], "train"), (selection[0], "validation"), (entry, "test")]
    return Split(*(_positions(owner, key) for owner, key in parts))


def _positions(entry: object, key: str) -> NDArray[np.int64]:
    values = _member(entry, key)
    for value in values:
        if type(value) is not int:  # True is an int, too
            shown = json.dumps(value)[:40]
            raise InputError(f"{key} holds {shown}. Write whole numbers, graphs counted from 0.")
    return np.array(values)


def _member(entry: object, key: str) -> list[Any]:
    if not isinstance(entry, dict):
        raise InputError(f"{json.dumps(entry)[:40]} stands where an object belongs. Write {_FORM}.")
    if not isinstance(entry.get(key), list):
        raise InputError(f"{key} is {'not a list' if key in entry else 'missing'}. Write {_FORM}.")
    return list(entry[key])


def _read_json(path: Path) -> object:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder. Give a JSON file of folds.")
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"Cannot read {path}: {reason}. Give a JSON file of folds.") from error
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}). Write a list of {_FORM}.") from error


def _compact(content: object) -> str:
    return json.dumps(content, separators=(",", ":"))
