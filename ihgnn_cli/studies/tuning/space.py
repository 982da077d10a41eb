"""The search space: for each setting a range or a list of values.

As text, `0.0001:0.01` is a range (`:log` or `:linear` may follow), `32,64,128` a list, and a single
value is fixed. Imports without torch.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.settings import described
from ihgnn_cli.studies.crossval.protocol import PAPER_LR
from ihgnn_cli.training.config import LOSS_AND_DECAY, RunConfig, setting_kinds

Value = float | int | str | bool
Params = dict[str, Value]
"""A point of the space: the settings of a trial."""
Range = FloatDistribution | IntDistribution

_LOG_BY_DEFAULT = ("lr",)
_LARGEST = 10**15  # of whole numbers


def kinds_of(config: RunConfig) -> dict[str, type]:
    """The settings that can be searched for the model of a configuration, with their types."""
    return {"lr": float, "batch_size": int, **setting_kinds(config), **LOSS_AND_DECAY}


@dataclass(frozen=True)
class SearchSpace:
    """The searched settings, each with its range or values."""

    parts: Mapping[str, BaseDistribution]

    def as_plain(self) -> dict[str, Any]:
        """As stored in a file."""
        return {name: _plain(part) for name, part in self.parts.items()}

    def __str__(self) -> str:
        return "; ".join(f"{name} {shown(part)}" for name, part in self.parts.items())

    def defaults(self, config: RunConfig) -> Params | None:
        """The configuration's own values as a point; `None` if it is outside the space."""
        plain = config.as_plain()
        flat = {**plain["model"], **plain["training"]}
        inside = all(_contains(part, flat[name]) for name, part in self.parts.items())
        return {name: flat[name] for name in self.parts} if inside else None

    def points(self) -> Iterator[Params]:
        """The points of a grid."""
        values = [_choices(part) for part in self.parts.values()]
        for point in product(*values):
            yield dict(zip(self.parts, point, strict=True))

    def size(self) -> int:
        """Number of points of a grid."""
        return math.prod(len(_choices(part)) for part in self.parts.values())

    def largest(self, config: RunConfig) -> list[RunConfig]:
        """The configuration with the largest numbers, once for each combination of words.

        One of them needs the most memory.
        """
        numbers: Params = {}
        words: list[Params] = [{}]
        for name, part in self.parts.items():
            if isinstance(part, Range):
                numbers[name] = part.high
            elif isinstance(_choices(part)[0], str):
                words = [{**each, name: value} for each in words for value in _choices(part)]
            else:
                numbers[name] = max(_choices(part))
        return [config.with_values({**numbers, **each}) for each in words]

    def smallest(self, config: RunConfig) -> RunConfig:
        """The configuration with the smallest numbers, which needs the least memory."""
        least: Params = {}
        for name, part in self.parts.items():
            if isinstance(part, Range):
                least[name] = part.low
            elif not isinstance(_choices(part)[0], str):
                least[name] = min(_choices(part))
        return config.with_values(least)


def make_space(
    config: RunConfig, given: Mapping[str, str | None], *, grid: bool
) -> tuple[SearchSpace, RunConfig]:
    """The space of the model's paper, changed by texts, and the configuration.

    Settings with a single value become part of the configuration.

    Args:
        config: values of the settings that are not searched.
        given: a text for each setting, in the form of the command line.
        grid: whether ranges are refused.

    Raises:
        InputError: a setting is unknown, a value has the wrong type or is out of range, nothing is
            left to search, or a grid has a range.
    """
    kinds = kinds_of(config)
    parts = _default_parts(config, grid=grid)
    for name, text in given.items():
        if text is None:
            continue
        if name not in kinds:
            raise InputError(
                f"The model {config.model_name} has no setting {name}. There are "
                f"{', '.join(kinds)}."
            )
        parts[name] = _part(name, text, kinds[name])
    fixed: Params = {}
    for name, part in parts.items():
        if grid and isinstance(part, Range):
            raise SettingError(
                name,
                f"is a range ({shown(part)}), and a grid needs lists. Give values with commas, or "
                "another --sampler.",
            )
        ends = (part.low, part.high) if isinstance(part, Range) else _choices(part)
        for value in ends:
            config.with_values({name: value})  # refuses what no training accepts
        if len(ends) == 1:
            fixed[name] = ends[0]
    # Always in the same order: processes of one search must agree on the points of a grid.
    left = {name: parts[name] for name in kinds if name in parts and name not in fixed}
    if not left:
        raise InputError(
            "Nothing is left to search: every setting has one value. Give ranges (0.0001:0.01) or "
            "lists (32,64), or use 'ihgnn train'."
        )
    return SearchSpace(left), config.with_values(fixed)


def shown(part: BaseDistribution) -> str:
    """A range or values in words."""
    if isinstance(part, Range):
        scale = ", log scale" if part.log else ""
        return f"{_shown(part.low)} to {_shown(part.high)}{scale}"
    return ", ".join(map(_shown, _choices(part)))


def _default_parts(config: RunConfig, *, grid: bool) -> dict[str, BaseDistribution]:
    """The values of the model's own paper; IHGNN's learning rates if that has a single one."""
    found: dict[str, BaseDistribution] = {}
    for name, values in {"lr": PAPER_LR, **config.spec.grid}.items():
        if name != "lr":
            found[name] = CategoricalDistribution(tuple(values))
            continue
        rates = values if len(values) > 1 else PAPER_LR
        found[name] = (
            CategoricalDistribution(tuple(rates))
            if grid
            else FloatDistribution(min(rates), max(rates), log=True)
        )
    return found


def _part(name: str, text: str, kind: type) -> BaseDistribution:
    """A range or values from a text."""
    try:
        if ":" not in text:
            values = tuple(_value(kind, each.strip()) for each in text.split(","))
        else:
            return _range(name, text, kind)
    except (ValueError, KeyError) as error:
        problem = f"must be {_form(name, kind)}, not '{text}'."
        raise SettingError(name, problem) from error
    for at, value in enumerate(values):
        if value in values[:at]:
            raise SettingError(name, f"names {_shown(value)} twice. Name it once.")
    return CategoricalDistribution(values)


def _range(name: str, text: str, kind: type) -> BaseDistribution:
    low_text, high_text, *scales = text.split(":")
    if kind not in (int, float) or len(scales) > 1:
        raise ValueError(text)
    scale = scales[0].strip() if scales else "log" if name in _LOG_BY_DEFAULT else "linear"
    log = {"log": True, "linear": False}[scale]
    low, high = (_value(kind, each.strip()) for each in (low_text, high_text))
    shape: Any = IntDistribution if kind is int else FloatDistribution
    if not low < high:  # type: ignore[operator]
        ends = f"{_shown(low)} to {_shown(high)}"
        raise SettingError(name, f"must go from a smaller to a larger number, not {ends}.")
    if log and low <= 0:  # type: ignore[operator]
        raise SettingError(name, f"must start above 0 on a log scale, not at {_shown(low)}.")
    found: BaseDistribution = shape(low, high, log=log)
    return found


def _value(kind: type, text: str) -> Value:
    if kind is bool:
        return {"true": True, "false": False}[text]
    value = kind(text)
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(text)
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise ValueError(text)
    found: Value = value
    return found


def _choices(part: BaseDistribution) -> tuple[Any, ...]:
    if not isinstance(part, CategoricalDistribution):
        raise TypeError(f"{part} is not a list")
    return tuple(part.choices)


def _contains(part: BaseDistribution, value: Value) -> bool:
    if isinstance(part, Range):
        return isinstance(value, int | float) and part.low <= value <= part.high
    return value in _choices(part)


def _plain(part: BaseDistribution) -> dict[str, Any]:
    if isinstance(part, Range):
        return {"low": part.low, "high": part.high, "log": part.log}
    return {"values": list(_choices(part))}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, int | float) else str(value)


def _form(name: str, kind: type) -> str:
    """The expected form of a setting, in words."""
    if kind not in (int, float):
        return f"a list, each {described(kind)}"
    examples = {"lr": ("0.0001:0.01", "0.01,0.001"), "dropout": ("0:0.7", "0,0.5")}
    ends, values = examples.get(name, ("8:64", "32,64"))
    return f"a range as {ends} or a list as {values}"
