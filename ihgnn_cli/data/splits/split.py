"""A split into train, validation and test, and the hold-out split."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.splits.stratify import random_bits, stratified
from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted

_OTHER_DATA_SET = "The split may belong to another data set."


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of graphs in three disjoint parts, each ascending and read-only.

    Raises:
        InputError: a part is empty, is not a list of positions, or shares a graph with another.
    """

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]
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
        return hashlib.sha256(compact_json(self.as_fold()).encode()).hexdigest()

    def _parts(self) -> dict[str, NDArray[np.int64]]:
        return {"train": self.train, "validation": self.validation, "test": self.test}


def holdout(
    graph_class: NDArray[np.integer],
    seed: int,
    *,
    validation_share: float = 0.1,
    test_share: float = 0.1,
) -> Split:
    """One stratified split: the count of a class in a part is proportional to within 1.

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


def compact_json(content: object) -> str:
    """JSON on one line without spaces, for hashing and for fold files."""
    return json.dumps(content, separators=(",", ":"))


def _part_size(name: str, share: float, graphs: int) -> int:
    if not 0 < share < 1:
        raise InputError(
            f"The share {share:g} of {name} is not between 0 and 1. Use a share such as 0.1."
        )
    return max(1, round(share * graphs))


def _ascending(name: str, part: NDArray[np.int64]) -> NDArray[np.int64]:
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
