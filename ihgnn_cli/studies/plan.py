"""What the protocol trains, and which of it together.

Units that share K, batch size and the rest of their shape are trained as one stack, a bundle.
Bundles follow from the protocol and the sizes of stacks alone, which are fixed when a job begins,
never from what is left to do: in single precision a model's rounding depends on its neighbours in
the stack, and an interrupted job has to end with the same numbers.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from ihgnn_cli.data.splits import Fold
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.grid import Configuration
from ihgnn_cli.studies.units import Stage, Unit
from ihgnn_cli.training.config import RunConfig, comparable

PAPER_RUNS = 3
_DIGEST = 8  # hexadecimal digits that tell shapes apart in the names of bundles


@dataclass(frozen=True)
class Protocol:
    """All that decides the numbers, but for the data and its splits.

    Raises:
        InputError: a value is out of its range.
    """

    config: RunConfig
    """Of every training, but for the values of the grid and the seed of each."""
    grid: tuple[Configuration, ...]
    runs: int = PAPER_RUNS
    """Final runs a fold."""

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise InputError(f"runs must be at least 1, not {self.runs}.")

    def on(self, config: RunConfig) -> "Protocol":
        """The same with another configuration of all trainings."""
        return replace(self, config=config)

    def as_plain(self) -> dict[str, Any]:
        """The protocol as plain values; those of the grid stand for the configuration's."""
        config = comparable(self.config.as_plain())
        for key in self.grid[0].as_plain():
            for section in ("model", "training"):
                config[section].pop(key, None)
        for key in ("split", "split_from"):
            del config["data"][key]
        del config["training"]["device"]
        return {**config, "grid": [each.as_plain() for each in self.grid], "runs": self.runs}


@dataclass(frozen=True)
class Bundle:
    """Units that are trained as one stack."""

    name: str
    units: tuple[Unit, ...]

    def __len__(self) -> int:
        return len(self.units)

    def halves(self) -> "tuple[Bundle, Bundle]":
        """The same work for half the memory."""
        middle = len(self.units) // 2
        first, second = self.units[:middle], self.units[middle:]
        return Bundle(f"{self.name}a", first), Bundle(f"{self.name}b", second)


def selection_units(protocol: Protocol, folds: Sequence[Fold]) -> list[Unit]:
    """Every configuration on every split of every fold, once."""
    return [
        Unit(Stage.SELECT, number, split, configuration, 0)
        for configuration in protocol.grid
        for number, fold in enumerate(folds)
        for split in range(len(fold.splits))
    ]


def final_units(
    protocol: Protocol, folds: Sequence[Fold], chosen: Mapping[int, Configuration]
) -> list[Unit]:
    """The chosen configuration of every fold, several times; runs take turns with the splits."""
    return [
        Unit(Stage.FINAL, number, run % len(fold.splits), chosen[number], run)
        for number, fold in enumerate(folds)
        for run in range(protocol.runs)
    ]


def bundles(units: Iterable[Unit], stack: int) -> list[Bundle]:
    """The units in stacks of nearly equal size, at most `stack` each, the costly ones first."""

    def shape(unit: Unit) -> tuple[Any, ...]:
        each = unit.configuration
        others = ",".join(f"{key} {value}" for key, value in each.others)
        return -each.layers, each.batch_size, others

    def neighbors(unit: Unit) -> tuple[object, ...]:
        # Adam moves neighbours with the same learning rate together.
        return *shape(unit), unit.configuration.lr, unit.fold, unit.split, unit.run

    made = []
    for (_, batch_size, others), group in groupby(sorted(units, key=neighbors), shape):
        members = list(group)
        count = math.ceil(len(members) / stack)
        stage, layers = members[0].stage, members[0].configuration.layers
        told = f"-{hashlib.sha256(others.encode()).hexdigest()[:_DIGEST]}" if others else ""
        for number in range(count):
            part = slice(*(len(members) * at // count for at in (number, number + 1)))
            name = f"{stage}-k{layers}-batch{batch_size}{told}-{number}"
            made.append(Bundle(name, tuple(members[part])))
    return made
