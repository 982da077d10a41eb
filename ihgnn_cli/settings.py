"""Dataclasses that check and convert their values on creation.

A choice can be given as text (`variant="no-concat"`) or as an enum member, a number also as one of
NumPy or torch, and a float also as a whole number. Everything else is refused.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from types import NoneType
from typing import Any, get_args, get_type_hints

from ihgnn_cli.errors import SettingError

_LARGEST = 10**300  # fits in a float, and is short enough to display
_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


@dataclass(frozen=True)
class Settings:
    """Base class of settings: checks fields of type int, float, bool, str or StrEnum.

    A subclass checks its own ranges in `__post_init__`, after calling this one.

    Raises:
        InputError: a value is not of its field's type.
    """

    def __post_init__(self) -> None:
        for name, kind in field_types(type(self)).items():
            object.__setattr__(self, name, checked(name, getattr(self, name), kind))


def field_types(settings: type[Any]) -> dict[str, Any]:
    """The declared types of a dataclass, by field."""
    hints = get_type_hints(settings)
    return {each.name: hints[each.name] for each in fields(settings)}


def checked(name: str, value: Any, kind: type) -> Any:
    """Convert a value to the type of its setting.

    Raises:
        InputError: it has another type.
    """
    if NoneType in get_args(kind):
        if value is None:
            return None
        kind = next(each for each in get_args(kind) if each is not NoneType)
    if hasattr(value, "item") and not getattr(value, "shape", ()):
        value = value.item()  # a NumPy or torch scalar
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        try:
            return kind(value)
        except ValueError:
            raise SettingError(name, f"must be {described(kind)}, not {value!r}.") from None
    if kind not in _WORDS:
        return value
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise SettingError(name, "is too large a number.")
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise SettingError(name, f"must be {described(kind)}, not {value!r}.")
    return value


def described(kind: type) -> str:
    """A setting's type in words."""
    if issubclass(kind, StrEnum):
        return f"one of {', '.join(kind)}"
    return _WORDS[kind]
