"""The search space: for each setting a range or a list of values.

As text, `0.0001:0.01` is a range (`:log` or `:linear` may follow), `32,64,128` a list, and a single
value is fixed. In a TOML file a setting is a table with `low` and `high` (and `log`), or with
`values`.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.settings import described
from ihgnn_cli.studies.crossval.protocol import PAPER_BATCH_SIZE, PAPER_LAYERS, PAPER_LR
from ihgnn_cli.training.config import LOSS_AND_DECAY, RunConfig, setting_kinds

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Value = float | int | str | bool
Params = dict[str, Value]
"""A point of the space: the settings of a trial."""

Kinds = Mapping[str, type]
"""The settings of a model that can be searched, as in a configuration file, with their types."""
_BY_SCALE = ("lr",)
"""Settings searched on a log scale by default."""


@dataclass(frozen=True)
class Range:
    """All numbers from `low` to `high`, including both."""

    low: float
    high: float
    log: bool = False

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float) and self.low <= value <= self.high

    def as_plain(self) -> dict[str, Any]:
        """As stored in a file."""
        return {"low": self.low, "high": self.high, "log": self.log}

    def __str__(self) -> str:
        return f"{_shown(self.low)} to {_shown(self.high)}{', log scale' if self.log else ''}"


@dataclass(frozen=True)
class Choice:
    """One of these values."""

    values: tuple[Value, ...]

    def __contains__(self, value: object) -> bool:
        return value in self.values

    def as_plain(self) -> dict[str, Any]:
        """As stored in a file."""
        return {"values": list(self.values)}

    def __str__(self) -> str:
        return ", ".join(_shown(each) for each in self.values)


Part = Range | Choice


def kinds_of(config: RunConfig) -> dict[str, type]:
    """The settings that can be searched for the model of a configuration, with their types."""
    return {
        "lr": float,
        "batch_size": int,
        **setting_kinds(config),
        **LOSS_AND_DECAY,
    }


def _members_own(config: RunConfig) -> tuple[str, ...]:
    """The settings in which the models of one stack may differ."""
    return ("lr", "dropout") if config.spec.stacked is not None else ("lr",)


@dataclass(frozen=True)
class SearchSpace:
    """The searched settings, each with its range or values."""

    parts: Mapping[str, Part]
    kinds: Kinds = field(default_factory=lambda: kinds_of(RunConfig()))
    members_own: tuple[str, ...] = field(default_factory=lambda: _members_own(RunConfig()))
    """The settings in which the models of one stack may differ."""

    def as_plain(self) -> dict[str, Any]:
        """As stored in a file."""
        return {name: part.as_plain() for name, part in self.parts.items()}

    def distributions(self) -> "dict[str, BaseDistribution]":
        """The space as Optuna's distributions."""
        return {name: _distribution(self.kinds[name], part) for name, part in self.parts.items()}

    def defaults(self, config: RunConfig) -> Params | None:
        """The configuration's own values as a point; `None` if it is outside the space."""
        plain = config.as_plain()
        flat = {**plain["model"], **plain["training"]}
        inside = all(flat[name] in part for name, part in self.parts.items())
        return {name: flat[name] for name in self.parts} if inside else None

    def shape(self, params: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
        """The settings that trials of one stack have in common."""
        return tuple((name, params[name]) for name in self.parts if name not in self.members_own)

    def size(self) -> int | None:
        """Number of points of the grid; `None` if a part is a range."""
        sizes = [len(part.values) for part in self.parts.values() if isinstance(part, Choice)]
        return math.prod(sizes) if len(sizes) == len(self.parts) else None

    def points(self) -> Iterator[Params]:
        """The points of the grid; consecutive ones have the same shape and make a stack."""
        names = sorted(self.parts, key=lambda name: name in self.members_own)
        values = [part.values for name in names if isinstance(part := self.parts[name], Choice)]
        for point in product(*values):
            found = dict(zip(names, point, strict=True))
            yield {name: found[name] for name in self.parts}

    def corners(self, config: RunConfig) -> list[RunConfig]:
        """The configuration with the largest numbers, once for each combination of words.

        One of them needs the most memory.
        """
        largest: Params = {}
        words: list[Params] = [{}]
        for name, part in self.parts.items():
            if isinstance(part, Range):
                largest[name] = self.kinds[name](part.high)
            elif issubclass(self.kinds[name], str):
                words = [{**each, name: value} for each in words for value in part.values]
            else:
                largest[name] = max(part.values)
        return [config.with_values({**largest, **each}) for each in words]

    def smallest(self, config: RunConfig) -> list[RunConfig]:
        """The configuration with the smallest numbers, which needs the least memory."""
        least: Params = {}
        for name, part in self.parts.items():
            if isinstance(part, Range):
                least[name] = self.kinds[name](part.low)
            elif not issubclass(self.kinds[name], str):
                least[name] = min(part.values)
        return [config.with_values(least)]


def default_space(config: RunConfig, *, grid: bool) -> dict[str, Part]:
    """The values of the model's own paper; IHGNN's learning rates if that has a single one."""
    found: dict[str, Part] = {"lr": paper_space(grid=grid)["lr"]}
    for name, values in config.spec.grid.items():
        if name != "lr":
            found[name] = Choice(tuple(values))
        elif len(values) > 1:
            found[name] = Choice(values) if grid else Range(min(values), max(values), log=True)
    return found


def paper_space(*, grid: bool = False) -> dict[str, Part]:
    """The values of IHGNN's paper; the learning rate is a range, except in a grid."""
    lr: Part = Choice(PAPER_LR) if grid else Range(min(PAPER_LR), max(PAPER_LR), log=True)
    return {"lr": lr, "batch_size": Choice(PAPER_BATCH_SIZE), "layers": Choice(PAPER_LAYERS)}


def make_space(
    config: RunConfig, given: Mapping[str, str | None], file: Path | None = None, *, grid: bool
) -> tuple[SearchSpace, RunConfig]:
    """The paper's space, changed by a file and then by texts, and the configuration.

    Settings with a single value become part of the configuration.

    Args:
        config: values of the settings that are not searched.
        given: a text for each setting, in the form of the command line.
        file: a TOML file.
        grid: whether ranges are refused.

    Raises:
        InputError: a setting is unknown, a value has the wrong type or is out of range, nothing is
            left to search, or a grid has a range.
    """
    kinds = kinds_of(config)
    parts = default_space(config, grid=grid)
    if file is not None:
        parts |= _from_file(file, kinds)
    for name, text in given.items():
        if text is not None:
            if name not in kinds:
                raise InputError(
                    f"The model {config.model_name} has no setting {name}. There are "
                    f"{', '.join(kinds)}."
                )
            parts[name] = _from_text(name, text, kinds)
    for name, part in parts.items():
        _check(config, name, part, kinds[name])
        if grid and isinstance(part, Range):
            raise SettingError(
                name,
                f"is a range ({part}), and a grid needs lists. Give values with commas, or another "
                "--sampler.",
            )
    fixed = {
        name: part.values[0]
        for name, part in parts.items()
        if isinstance(part, Choice) and len(part.values) == 1
    }
    # Always in the same order: processes of one search must agree on the points of a grid.
    left = {name: parts[name] for name in kinds if name in parts and name not in fixed}
    if not left:
        raise InputError(
            "Nothing is left to search: every setting has one value. Give ranges (0.0001:0.01) or "
            "lists (32,64), or use 'ihgnn train'."
        )
    return SearchSpace(left, kinds, _members_own(config)), config.with_values(fixed)


def _from_text(name: str, text: str, kinds: Kinds) -> Part:
    try:
        if ":" not in text:
            return Choice(tuple(_value(kinds[name], part.strip()) for part in text.split(",")))
        low, high, scale = [*text.split(":"), "log" if name in _BY_SCALE else "linear"][:3]
        log = {"log": True, "linear": False}[scale.strip() if text.count(":") < 3 else ""]
        return Range(_number(kinds[name], low), _number(kinds[name], high), log)
    except (ValueError, KeyError) as error:
        problem = f"must be {_form(name, kinds[name])}, not '{text}'."
        raise SettingError(name, problem) from error


def _from_file(path: Path, kinds: Kinds) -> dict[str, Part]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a TOML file: {error}.") from error
    found: dict[str, Part] = {}
    for name, table in content.items():
        if name not in kinds:
            raise InputError(f"{path}: no setting {name}. There are {', '.join(kinds)}.")
        try:
            found[name] = _from_table(name, table, kinds[name])
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"{path}: [{name}] needs low and high (and perhaps log = true), or values = "
                f"[...], each {described(kinds[name])}."
            ) from error
    return found


def _from_table(name: str, table: Any, kind: type) -> Part:
    if not isinstance(table, dict):
        raise TypeError("not a table")
    if set(table) == {"values"}:
        if not isinstance(table["values"], list):
            raise TypeError("not a list")
        return Choice(tuple(_plain_value(kind, each) for each in table["values"]))
    if not set(table) <= {"low", "high", "log"}:
        raise KeyError("unknown key")
    log = table.get("log", name in _BY_SCALE)
    if type(log) is not bool or kind not in (int, float):
        raise TypeError("not a range")
    low, high = (_plain_value(kind, table[key]) for key in ("low", "high"))
    return Range(float(low), float(high), log)


def _check(config: RunConfig, name: str, part: Part, kind: type) -> None:
    """Refuse values that no training accepts.

    Raises:
        InputError: a value is not valid.
    """
    if isinstance(part, Range):
        if not part.low < part.high:
            raise SettingError(name, f"must go from a smaller to a larger number, not {part}.")
        if part.log and part.low <= 0:
            problem = f"must start above 0 on a log scale, not at {_shown(part.low)}."
            raise SettingError(name, problem)
        ends: Sequence[Value] = [kind(part.low), kind(part.high)]
    else:
        if not part.values:
            raise SettingError(name, "is empty. Give one or several values.")
        for at, value in enumerate(part.values):
            if value in part.values[:at]:
                raise SettingError(name, f"names {_shown(value)} twice. Name it once.")
        ends = part.values
    for value in ends:
        config.with_values({name: value})


def _distribution(kind: type, part: Part) -> "BaseDistribution":
    from optuna import distributions

    if isinstance(part, Choice):
        return distributions.CategoricalDistribution(part.values)
    if kind is int:
        return distributions.IntDistribution(int(part.low), int(part.high), log=part.log)
    return distributions.FloatDistribution(part.low, part.high, log=part.log)


def _value(kind: type, text: str) -> Value:
    if kind is bool:
        return {"true": True, "false": False}[text]
    value = kind(text)
    found: Value = value.value if isinstance(value, StrEnum) else _finite(value)
    return found


def _number(kind: type, text: str) -> float:
    if kind not in (int, float):
        raise ValueError(text)
    number: float = kind(text)
    return float(_finite(number))


def _plain_value(kind: type, value: Any) -> Value:
    if kind is float and type(value) is int:
        value = float(_finite(value))
    if issubclass(kind, StrEnum):
        return str(kind(value).value)
    if type(value) is not kind:
        raise TypeError("wrong type")
    found: Value = _finite(value)
    return found


def _finite(value: Any) -> Any:
    # Ranges store whole numbers as floats, which are exact up to here.
    beyond = math.inf if isinstance(value, float) else 1e15
    if isinstance(value, int | float) and not abs(value) < beyond:  # also true of NaN
        raise ValueError("not finite, or too large")
    return value


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, int | float) else value


def _form(name: str, kind: type) -> str:
    """The expected form of a setting, in words."""
    if kind not in (int, float):
        return f"a list, each {described(kind)}"
    examples = {"lr": ("0.0001:0.01", "0.01,0.001"), "dropout": ("0:0.7", "0,0.5")}
    ends, values = examples.get(name, ("8:64", "32,64"))
    return f"a range as {ends} or a list as {values}"
