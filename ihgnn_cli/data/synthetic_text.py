"""Synthetic data sets as text: `synthetic:homophily=0.3,graphs=500`.

The text is the data set's name, and equal data sets have equal names: `str` of a `SyntheticSpec`
has the fields in one order, writes numbers one way, and leaves out what has its default (but for
the homophily).
"""

import re
from difflib import get_close_matches

from ihgnn_cli.data.synthetic_spec import PREFIX, SyntheticSpec
from ihgnn_cli.errors import InputError

EXAMPLE = "synthetic:homophily=0.3,graphs=500"
_WHOLE = re.compile(r"[0-9]{1,19}")
_DECIMAL = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


def is_synthetic(given: str) -> bool:
    """Whether a text names a synthetic data set."""
    return given.startswith(PREFIX)


def parse_synthetic(text: str) -> SyntheticSpec:
    """The fields of `synthetic:FIELD=VALUE,...`, in any order.

    Raises:
        InputError: a field is unknown, named twice, malformed or out of range.
    """
    values: dict[str, object] = {}
    body = text.removeprefix(PREFIX)
    for part in body.split(",") if body.strip() else []:
        name, equals, value = (each.strip() for each in part.partition("="))
        if name not in _PARSERS:
            raise InputError(f"{PREFIX} no field '{name}'. {_hint(name)} Example: {EXAMPLE}")
        if not equals or not value:
            raise InputError(f"{PREFIX} {name} has no value. Example: {EXAMPLE}")
        if name in values:
            raise InputError(f"{PREFIX} {name} is named twice. Name it once.")
        values[name] = _PARSERS[name](name, value)
    return SyntheticSpec(**values)  # type: ignore[arg-type]


def _whole(name: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise InputError(f"{PREFIX} {name} is a whole number, not '{text}'. Example: {EXAMPLE}")
    return int(text)


def _decimal(name: str, text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise InputError(f"{PREFIX} {name} is a number, not '{text}'. Example: {EXAMPLE}")
    return float(text)


def _wholes(name: str, text: str) -> tuple[int, int]:
    low, _, high = text.partition("..") if ".." in text else (text, "", text)
    return _whole(name, low.strip()), _whole(name, high.strip())


def _decimals(name: str, text: str) -> tuple[float, float]:
    low, _, high = text.partition("..") if ".." in text else (text, "", text)
    return _decimal(name, low.strip()), _decimal(name, high.strip())


_PARSERS = {
    "homophily": _decimals,
    "graphs": _whole,
    "nodes": _wholes,
    "labels": _whole,
    "classes": _whole,
    "degree": _decimal,
    "signal": _decimal,
    "noise": _decimal,
    "seed": _whole,
}


def _hint(name: str) -> str:
    close = get_close_matches(name.lower(), _PARSERS, 1)
    return f"Did you mean {close[0]}?" if close else f"There are {', '.join(_PARSERS)}."
