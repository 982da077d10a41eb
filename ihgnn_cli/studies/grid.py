"""The grid of configurations: learning rate × batch size × K × other model settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Any

from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.training.config import RunConfig, parse_setting

PAPER_LR = (0.01, 0.001, 0.0001)
PAPER_BATCH_SIZE = (32, 64, 128)
PAPER_LAYERS = (3, 4, 5)
"""The paper's grid for IHGNN, section "Experimental setup": 27 configurations."""
PAPERS_SELECTION = "which trains every configuration for 350 epochs"
"""What a race differs from."""
PAPER_RUNS = 3
"""Final runs per fold in the protocol."""
COMMON = ("lr", "batch_size", "layers")
"""Settings that every configuration has."""

Setting = float | int | str | bool


@dataclass(frozen=True)
class Configuration:
    """One point of the grid."""

    lr: float
    batch_size: int
    layers: int
    """K."""
    others: tuple[tuple[str, Setting], ...] = ()
    """All other settings, in the grid's order, as plain values."""

    def __str__(self) -> str:
        others = "".join(f", {key} {shown(value)}" for key, value in self.others)
        return f"lr {self.lr:g}, batch size {self.batch_size}, K = {self.layers}{others}"

    def applied(self, config: RunConfig) -> RunConfig:
        """The configuration of a training with these values."""
        common = replace(
            config,
            model=replace(config.model, layers=self.layers),
            training=replace(config.training, lr=self.lr, batch_size=self.batch_size),
        )
        return common.with_values(dict(self.others)) if self.others else common

    def as_plain(self) -> dict[str, Setting]:
        """The values by name, as stored in files."""
        return {
            "lr": self.lr,
            "batch_size": self.batch_size,
            "layers": self.layers,
            **dict(self.others),
        }


def configuration(plain: Mapping[str, Any]) -> Configuration:
    """A configuration from plain values.

    Raises:
        KeyError, TypeError: the values are not a configuration.
    """
    others = tuple((key, value) for key, value in dict(plain).items() if key not in COMMON)
    if not all(isinstance(value, Setting) for _, value in others):
        raise TypeError("a setting is a number, a text, true or false")
    return Configuration(plain["lr"], plain["batch_size"], plain["layers"], others)


def with_plain(record: dict[str, Any]) -> dict[str, Any]:
    """The output of `asdict`, with its `configuration` in the form used in files."""
    found = record["configuration"]
    if found is None:
        return record
    common = {key: found[key] for key in COMMON}
    return {**record, "configuration": {**common, **dict(found["others"])}}


def shown(value: Setting | list[Setting]) -> str:
    """A value as text for display; of a list, those that compete."""
    if isinstance(value, list):
        return " or ".join(map(shown, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def grid(
    config: RunConfig,
    lr: Sequence[float] = PAPER_LR,
    batch_size: Sequence[int] = PAPER_BATCH_SIZE,
    layers: Sequence[int] = PAPER_LAYERS,
    others: Mapping[str, Sequence[Setting]] | None = None,
) -> tuple[Configuration, ...]:
    """All combinations, in the given order; ties go to the earlier one.

    Raises:
        InputError: a list is empty or repeats a value, or a value is out of range.
    """
    more = others or {}
    lists = {"lr": lr, "batch_size": batch_size, "layers": layers, **more}
    for key, values in lists.items():
        if not values:
            raise SettingError(key, "is empty. Give one or more values, such as 1,2,3.")
        for at, value in enumerate(values):
            if value in values[:at]:
                raise SettingError(key, f"names {shown(value)} twice. Name it once.")
    made = tuple(
        Configuration(*common, tuple(zip(more, rest, strict=True)))
        for common in product(lr, batch_size, layers)
        for rest in product(*more.values())
    )
    for each in made:
        each.applied(config)  # raises if a value is out of range
    return made


def own_grid(
    config: RunConfig, given: Mapping[str, Sequence[Setting]] | None = None
) -> tuple[Configuration, ...]:
    """The grid of the model's own paper; given lists replace its own.

    Settings in neither keep the value from the configuration. With snapshots nothing is chosen,
    and only given lists count.

    Raises:
        InputError: see `grid`.
    """
    lists: dict[str, Sequence[Any]] = {
        "lr": (config.training.lr,),
        "batch_size": (config.training.batch_size,),
        "layers": (config.model.layers,),
        **({} if config.training.snapshots else config.spec.grid),
        **(given or {}),
    }
    lr, batch_size, layers = (lists.pop(key) for key in COMMON)
    return grid(config, lr, batch_size, layers, lists)


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
        key = pairs[0][0]
        found[key] = tuple(_plain(value) for _, value in pairs)
    return found


def _plain(value: Any) -> Setting:
    plain: Setting = value.value if isinstance(value, StrEnum) else value
    return plain
