"""Where the values of a setting lie on an axis, and what its ticks say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Value = float | int | str | bool

_FEW = 6  # numbers, up to which those that come again count as a list
_MOST_TICKS = 12  # of a list; with more values, not each has its own
_LONGEST = 16  # word beside a tick


@dataclass(frozen=True)
class Scale:
    """An axis for the values of one setting."""

    values: tuple[Value, ...]
    """All that there are, once each and in order."""
    listed: bool
    """Whether they stand side by side whatever they are, rather than by their size."""
    log: bool

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The places of the ticks, and the words beside them."""
        if self.listed:
            step = math.ceil(len(self.values) / _MOST_TICKS)
            return [(float(at), shown(self.values[at])) for at in range(0, len(self.values), step)]
        low, high = float(self.values[0]), float(self.values[-1])
        whole = all(isinstance(value, int) for value in self.values)
        found = _log_ticks(low, high) if self.log else _round_ticks(low, high, whole)
        return [(tick, shown(tick)) for tick in found]

    @property
    def limits(self) -> tuple[float, float]:
        """Of the axis, with some room at both ends."""
        if self.listed:
            return -0.6, len(self.values) - 0.4
        low, high = float(self.values[0]), float(self.values[-1])
        if self.log:
            factor = (high / low) ** 0.06 if high > low else 2.0
            return low / factor, high * factor
        room = 0.06 * (high - low) or 0.5
        return low - room, high + room

    def place(self, value: Value | None, aside: float = 0.0) -> float:
        """In the units of the axis, NaN where there is no value.

        Args:
            value: one of the values.
            aside: how far from its place in a list, where several trials would hide each other.
        """
        if value is None:
            return math.nan
        return self.values.index(value) + aside if self.listed else float(value)

    def share(self, place: float) -> float:
        """How far along the axis a place is: numbers from 0 to 1, lists with room at both ends."""
        if self.listed:
            return (place + 0.5) / len(self.values)
        if len(self.values) == 1:
            return 0.5
        low, high = float(self.values[0]), float(self.values[-1])
        if self.log:
            return math.log(place / low) / math.log(high / low)
        return (place - low) / (high - low)


def make_scale(found: Sequence[Value | None], *, log: bool) -> Scale:
    """The axis for what the trials have of a setting.

    Words stand side by side, and so do a few numbers that come again: they were given as a list.

    Args:
        found: a value a trial; `None` where it has none.
        log: whether the axis is logarithmic, if all are numbers above 0.
    """
    given = [value for value in found if value is not None]
    distinct = set(given)
    if not all(_is_number(value) for value in distinct):
        return Scale(tuple(sorted(distinct, key=str)), listed=True, log=False)
    values = tuple(sorted(distinct, key=float))
    if log and float(values[0]) > 0:
        return Scale(values, listed=False, log=True)
    again = len(distinct) < len(given) or len(given) == 1
    return Scale(values, listed=again and len(distinct) <= _FEW, log=False)


def accuracy_scale(percents: Sequence[float]) -> Scale:
    """The axis for accuracies, which are measured and never a list."""
    return Scale(tuple(sorted(set(percents))), listed=False, log=False)


def shown(value: Value) -> str:
    """A value for people: short enough for a tick, and numbers with the digits that matter."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4g}"
    return shortened(str(value), _LONGEST)


def shortened(text: str, longest: int) -> str:
    """Text that keeps its beginning and its end where it is too long."""
    if len(text) <= longest:
        return text
    end = (longest - 1) // 2
    return f"{text[: longest - 1 - end]}…{text[-end:]}"


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _round_ticks(low: float, high: float, whole: bool) -> list[float]:
    """Some five round numbers."""
    if low == high:
        return [low]
    size = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(size * by for by in (1, 2, 5, 10) if (high - low) / (size * by) <= 7)
    if whole:
        step = max(1.0, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, or between few of them also their double and their fivefold."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 2, 5)):
        ticks = [float(f"{by}e{power}") for power in powers for by in factors]
        inside = [tick for tick in ticks if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(inside) >= 3:
            return inside[:: math.ceil(len(inside) / 6)]
    return [low] if low == high else [low, high]
