"""What the protocol trains, and which models train together.

Units with the same K, batch size and other shape settings are trained as one stack, a bundle.
Bundles depend only on the protocol and the stack sizes, which are fixed when a job starts, and
never on what is left to do. In single precision a model's rounding depends on the other models in
its stack, and an interrupted job must end with the same numbers.
"""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import groupby
from typing import Any

from ihgnn_cli.data.splits import Fold
from ihgnn_cli.errors import SettingError
from ihgnn_cli.studies.grid import PAPER_RUNS, PAPERS_SELECTION, Configuration, check_choices
from ihgnn_cli.studies.units import Stage, Unit
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.words import counted

# A race keeps the best third of the configurations after each rung, at most three times. On the
# stored curves of four finished protocols (40 folds) its choices test 2.7 ± 1.3 points better than
# those of the full selection (docs/crossval.md has other schedules).
_KEPT, _MOST_CUTS = 3, 3
_DIGEST = 8  # hexadecimal digits that distinguish shapes in bundle names


@dataclass(frozen=True)
class Protocol:
    """Everything that determines the numbers, except the data and its splits.

    Raises:
        InputError: a value is out of range.
    """

    config: RunConfig
    """The configuration of every training, except for the grid values and the seed."""
    grid: tuple[Configuration, ...]
    runs: int = PAPER_RUNS
    """Final runs per fold."""
    race: bool = False
    """Whether configurations are chosen by successive halving instead of training all to the end"""

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise SettingError("runs", f"must be at least 1, not {self.runs}.")
        check_choices(self.config, self.grid, race=self.race)

    @property
    def selects(self) -> bool:
        """Whether a configuration and epochs are chosen; otherwise snapshots are averaged."""
        return not self.config.training.snapshots

    @property
    def race_in_words(self) -> str | None:
        """What a race trains in each fold; `None` without a race."""
        if len(self.rungs) < 2:
            return None
        whole = self.config.training.epochs
        steps = ", ".join(
            f"{counted(rung.configurations, 'configuration') if not place else rung.configurations}"
            f" for {counted(rung.epochs or whole, 'epoch')}"
            for place, rung in enumerate(self.rungs)
        )
        return (
            f"Race: in each fold {steps}, keeping the best third by validation, "
            "rounded up, each time. This is a different selection procedure from the paper's, "
            f"{PAPERS_SELECTION}."
        )

    def on(self, config: RunConfig) -> "Protocol":
        """The same protocol with another base configuration."""
        return replace(self, config=config)

    def as_plain(self) -> dict[str, Any]:
        """The protocol as plain values; grid values replace those of the configuration."""
        config = self.config.as_plain()
        for key in self.grid[0].as_plain():
            for section in ("model", "training"):
                config[section].pop(key, None)
        for key in ("split", "split_from"):
            del config["data"][key]
        del config["training"]["device"]
        plain = {**config, "grid": [each.as_plain() for each in self.grid], "runs": self.runs}
        if len(self.rungs) > 1:
            plain["race"] = [list(astuple(rung)) for rung in self.rungs]
        return plain

    @property
    def rungs(self) -> "tuple[Rung, ...]":
        """The steps of the selection in each fold; one without a race, none without a choice."""
        if not self.selects:
            return ()
        epochs, count = self.config.training.epochs, len(self.grid)
        cuts = 0
        while self.race and cuts < _MOST_CUTS and _KEPT**cuts < count:
            cuts += 1
        early = (
            Rung(max(1, round(epochs / _KEPT ** (cuts - cut))), math.ceil(count / _KEPT**cut))
            for cut in range(cuts)
        )
        return *early, Rung(None, math.ceil(count / _KEPT**cuts))


@dataclass(frozen=True)
class Rung:
    """A step of the selection in a fold."""

    epochs: int | None
    """`None`: those of the protocol."""
    configurations: int


@dataclass(frozen=True)
class Bundle:
    """Units that are trained as one stack."""

    name: str
    units: tuple[Unit, ...]

    def __len__(self) -> int:
        return len(self.units)

    def part(self, units: Sequence[Unit]) -> "Bundle":
        """Consecutive units of this bundle as a bundle of their own."""
        if len(units) == len(self.units):
            return self
        first = self.units.index(units[0])
        return Bundle(f"{self.name}-{first}-{first + len(units)}", tuple(units))


def selection_units(
    protocol: Protocol,
    folds: Sequence[Fold],
    rung: int = 0,
    left: Mapping[int, Collection[Configuration]] | None = None,
) -> list[Unit]:
    """The trainings of a rung: each configuration on every split of every fold, once.

    Args:
        protocol: the protocol.
        folds: its folds.
        rung: index of the rung.
        left: the configurations still in the race, by fold; by default all.
    """
    if not protocol.selects:
        return []
    return [
        Unit(Stage.SELECT, number, split, configuration, 0, protocol.rungs[rung].epochs)
        for configuration in protocol.grid
        for number, fold in enumerate(folds)
        if left is None or configuration in left[number]
        for split in range(len(fold.splits))
    ]


def final_units(
    protocol: Protocol, folds: Sequence[Fold], chosen: Mapping[int, Configuration]
) -> list[Unit]:
    """The chosen configuration of every fold, `runs` times; runs cycle through the splits."""
    return [
        Unit(Stage.FINAL, number, run % len(fold.splits), chosen[number], run)
        for number, fold in enumerate(folds)
        for run in range(protocol.runs)
    ]


def bundles(units: Iterable[Unit], stack: int, folds: int | None = None) -> list[Bundle]:
    """The units in stacks of nearly equal size, at most `stack` each, most expensive first.

    So that all workers finish at about the same time. `folds` is the number of folds of a
    partition: repeats share no stacks, so that they do not depend on the number of repeats.
    """

    def shape(unit: Unit) -> tuple[Any, ...]:
        each = unit.configuration
        others = ",".join(f"{key} {value}" for key, value in each.others)
        repeat = 0 if folds is None else unit.fold // folds
        return repeat, -each.layers, each.batch_size, others

    def neighbors(unit: Unit) -> tuple[object, ...]:
        # Adam updates neighbours with the same learning rate together.
        return *shape(unit), unit.configuration.lr, unit.fold, unit.split, unit.run

    made = []
    for (repeat, _, batch_size, others), group in groupby(sorted(units, key=neighbors), shape):
        members = list(group)
        count = math.ceil(len(members) / stack)
        stage, layers = members[0].stage, members[0].configuration.layers
        digest = f"-{hashlib.sha256(others.encode()).hexdigest()[:_DIGEST]}" if others else ""
        for number in range(count):
            part = slice(*(len(members) * at // count for at in (number, number + 1)))
            rung = "" if members[0].epochs is None else f"-epochs{members[0].epochs}"
            again = f"-repeat{repeat}" if repeat else ""
            name = f"{stage}-k{layers}-batch{batch_size}{digest}{rung}-{number}{again}"
            made.append(Bundle(name, tuple(members[part])))
    # The cost of an epoch grows with the number of layers and little with smaller batches.
    return sorted(made, key=lambda each: -len(each) * (each.units[0].configuration.layers + 1))
