"""What a cross-validation trains: the grid of configurations, the protocol, and its trainings."""

import hashlib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import StrEnum
from itertools import product
from typing import Any

from ihgnn_cli.data.splits import Fold
from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.training.config import RunConfig, parse_setting
from ihgnn_cli.words import counted

PAPER_LR = (0.01, 0.001, 0.0001)
"""The learning rates of the paper, section "Experimental setup"."""
PAPERS_SELECTION = "which trains every configuration for 350 epochs"
"""What a race differs from."""
PAPER_RUNS = 3
"""Final runs per fold in the protocol."""
COMMON = ("lr", "batch_size", "layers")
"""Settings that every configuration has, in this order."""

# A race keeps the best third of the configurations after each rung, at most three times. On the
# stored curves of four finished protocols (40 folds) its choices test 2.7 ± 1.3 points better than
# those of the full selection (docs/crossval.md has other schedules).
_KEPT, _MOST_CUTS = 3, 3
_SEED_BYTES = 4  # short enough to be typed: `ihgnn train --seed` repeats a training alone

Setting = float | int | str | bool


@dataclass(frozen=True)
class Configuration:
    """One point of the grid."""

    settings: tuple[tuple[str, Setting], ...]
    """Names and values: those of `COMMON`, then others in the grid's order."""

    def __getitem__(self, name: str) -> Any:
        return self.as_plain()[name]

    def __str__(self) -> str:
        return described(self.as_plain())

    @property
    def others(self) -> tuple[tuple[str, Setting], ...]:
        """The settings that are not in `COMMON`."""
        return self.settings[len(COMMON) :]

    def applied(self, config: RunConfig) -> RunConfig:
        """The configuration of a training with these values."""
        return config.with_values(self.as_plain())

    def as_plain(self) -> dict[str, Setting]:
        """The values by name, as stored in files."""
        return dict(self.settings)


def configuration(plain: Mapping[str, Any]) -> Configuration:
    """A configuration from plain values.

    Raises:
        KeyError, TypeError: the values are not a configuration.
    """
    others = {name: value for name, value in dict(plain).items() if name not in COMMON}
    values = {**{name: plain[name] for name in COMMON}, **others}
    if not all(isinstance(value, Setting) for value in values.values()):
        raise TypeError("a setting is a number, a text, true or false")
    return Configuration(tuple(values.items()))


def described(settings: Mapping[str, Setting]) -> str:
    """A configuration in words."""
    others = "".join(f", {key} {shown(of)}" for key, of in settings.items() if key not in COMMON)
    lr, batch_size, layers = (settings[name] for name in COMMON)
    return f"lr {lr:g}, batch size {batch_size}, K = {layers}{others}"


def shown(value: Setting | Sequence[Setting]) -> str:
    """A value as text for display; of a list, those that compete."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, str | int) else " or ".join(map(shown, value))


def grid(config: RunConfig, lists: Mapping[str, Sequence[Setting]]) -> tuple[Configuration, ...]:
    """All combinations, in the given order; ties go to the earlier one.

    Settings that are not in `lists` keep the value from the configuration.

    Raises:
        InputError: a list is empty or repeats a value, or a value is out of range.
    """
    own = {
        "lr": (config.training.lr,),
        "batch_size": (config.training.batch_size,),
        "layers": (config.model.layers,),
    }
    every: dict[str, Sequence[Setting]] = {**own, **lists}
    for key, values in every.items():
        if not values:
            raise SettingError(key, "is empty. Give one or more values, such as 1,2,3.")
        for at, value in enumerate(values):
            if value in values[:at]:
                raise SettingError(key, f"names {shown(value)} twice. Name it once.")
    made = tuple(
        Configuration(tuple(zip(every, values, strict=True))) for values in product(*every.values())
    )
    for each in made:
        each.applied(config)  # raises if a value is out of range
    return made


def own_grid(
    config: RunConfig, given: Mapping[str, Sequence[Setting]] | None = None
) -> tuple[Configuration, ...]:
    """The grid of the model's own paper; given lists replace its own.

    With snapshots nothing is chosen, and only given lists count.

    Raises:
        InputError: see `grid`.
    """
    own = {} if config.training.snapshots else config.spec.grid
    return grid(config, {**own, **(given or {})})


def listed_settings(config: RunConfig, texts: Sequence[str]) -> dict[str, tuple[Setting, ...]]:
    """Parse texts such as `order=2,3` into lists of values for the model's settings.

    Raises:
        InputError: a text does not have that form, or there is no such setting.
    """
    found: dict[str, tuple[Setting, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"--set takes NAME=LIST, such as --set width=16,32, not '{text}'.")
        pairs = [parse_setting(config, f"{name}={each}") for each in values.split(",")]
        found[pairs[0][0]] = tuple(_plain(value) for _, value in pairs)
    return found


def _plain(value: Any) -> Setting:
    plain: Setting = value.value if isinstance(value, StrEnum) else value
    return plain


def check_choices(
    config: RunConfig,
    made: Sequence[Configuration],
    *,
    race: bool = False,
    rules: bool = False,
    inner_folds: int | None = None,
) -> None:
    """Check that the parts of a protocol go together.

    A race cannot show selection rules, and a cross-validation that averages snapshots chooses
    nothing.

    Raises:
        InputError: they do not, or members without snapshots are to be averaged.
    """
    if race and rules:
        raise SettingError(
            "rules", "needs all configurations trained to the end, without a race. Drop one."
        )
    if not config.training.snapshots:
        if config.training.ensemble > 1:
            raise SettingError("ensemble", "needs snapshots in a cross-validation. Set both.")
        return
    asked = {
        "a list of values": len(made) > 1,
        "--race": race,
        "--rules": rules,
        "--inner-folds (or a split file with several)": (inner_folds or 1) > 1,
    }
    for what, given in asked.items():
        if given:
            raise InputError(
                "With snapshots, as in the recipe robust, predictions are averaged and nothing is "
                f"chosen, so {what} has no meaning. Leave it out, or use settings without "
                "snapshots."
            )


@dataclass(frozen=True)
class Rung:
    """A step of the selection in a fold."""

    epochs: int | None
    """`None`: those of the protocol."""
    configurations: int


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
    def rungs(self) -> tuple[Rung, ...]:
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

    @property
    def race_in_words(self) -> str | None:
        """What a race trains in each fold; `None` without a race."""
        if len(self.rungs) < 2:
            return None
        first, *later = self.rungs
        steps = [f"{counted(first.configurations, 'configuration')} for {_epochs(self, first)}"]
        steps += [f"{rung.configurations} for {_epochs(self, rung)}" for rung in later]
        return (
            f"Race: in each fold {', '.join(steps)}, keeping the best third by validation, "
            "rounded up, each time. This is a different selection procedure from the paper's, "
            f"{PAPERS_SELECTION}."
        )

    def trainings(self, folds: Sequence[Fold]) -> int:
        """The number of trainings."""
        return sum(self._counts(folds).values())

    def model_epochs(self, folds: Sequence[Fold]) -> int:
        """The number of model-epochs if every training runs to its end."""
        return sum(epochs * count for epochs, count in self._counts(folds).items())

    def _counts(self, folds: Sequence[Fold]) -> dict[int, int]:
        """The number of trainings by their epochs."""
        whole, splits = self.config.training.epochs, sum(len(fold.splits) for fold in folds)
        counts = {whole: self.runs * len(folds)}
        for rung in self.rungs:
            epochs = rung.epochs or whole
            counts[epochs] = counts.get(epochs, 0) + rung.configurations * splits
        return counts

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


def _epochs(protocol: Protocol, rung: Rung) -> str:
    return counted(rung.epochs or protocol.config.training.epochs, "epoch")


class Stage(StrEnum):
    """The purpose of a training."""

    SELECT = "select"
    """One of the candidate configurations of a fold."""
    FINAL = "final"
    """A run of a fold's chosen configuration, which is tested."""


@dataclass(frozen=True)
class Training:
    """Identifies one training of a job."""

    stage: Stage
    fold: int
    split: int
    """Index of the fold's split into train and validation."""
    configuration: Configuration
    run: int
    epochs: int | None = None
    """Epochs of an early rung of a race; `None`: those of the protocol."""

    @property
    def name(self) -> str:
        """A text that no other training of the job has."""
        return self._text if self.epochs is None else f"{self._text}-epochs{self.epochs}"

    @property
    def _text(self) -> str:
        """What the seed is derived from: a change of this text would change every number."""
        each = self.configuration
        others = "".join(f"-{key}{_in_name(value)}" for key, value in each.others)
        return (
            f"{self.stage}-fold{self.fold}-split{self.split}-lr{float(each['lr'])!r}"
            f"-batch{each['batch_size']}-k{each['layers']}{others}-run{self.run}"
        )

    def seed(self, seed: int) -> int:
        """The training's seed, derived from that of the job; the same in all rungs of a race."""
        digest = hashlib.sha256(f"{seed} {self._text}".encode()).digest()
        return int.from_bytes(digest[:_SEED_BYTES], "big")


def _in_name(value: Setting) -> str:
    """A setting's value with all digits, without characters that file names cannot have."""
    text = repr(value) if isinstance(value, float) else shown(value)
    return re.sub(r"[^\w.+-]", "_", text)


def selection_trainings(
    protocol: Protocol,
    folds: Sequence[Fold],
    rung: int = 0,
    left: Mapping[int, Collection[Configuration]] | None = None,
) -> list[Training]:
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
        Training(Stage.SELECT, number, split, each, 0, protocol.rungs[rung].epochs)
        for each in protocol.grid
        for number, fold in enumerate(folds)
        if left is None or each in left[number]
        for split in range(len(fold.splits))
    ]


def final_trainings(
    protocol: Protocol, folds: Sequence[Fold], chosen: Mapping[int, Configuration]
) -> list[Training]:
    """The chosen configuration of every fold, `runs` times; runs cycle through the splits."""
    return [
        Training(Stage.FINAL, number, run % len(fold.splits), chosen[number], run)
        for number, fold in enumerate(folds)
        for run in range(protocol.runs)
    ]
