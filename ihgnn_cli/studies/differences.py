"""What two jobs differ in, in the words of the command line."""

from collections.abc import Iterator
from typing import Any

_MOST = 3
_LONGEST = 60  # of a value; longer ones say nothing to people
_ABSENT = object()
_OPTIONS = (
    "dataset",
    "features",
    "variant",
    "lr",
    "batch_size",
    "layers",
    "epochs",
    "patience",
    "seed",
    "runs",
    "folds",
    "inner_folds",
    "sampler",
    "pruner",
    "report_every",
)
"""Settings that are options of the same name."""
_HASHED = {
    "data_sha256": ("the content of the data set differs", {"dataset"}),
    "splits_sha256": ("the splits differ", {"dataset", "seed", "folds", "inner_folds"}),
}
"""Hashes: what to say instead of them, and the settings that another one follows from."""


def difference(before: Any, now: Any) -> str | None:
    """What two documents of settings differ in, for people; `None` where they are equal.

    Sections do not count: a setting has the same name wherever it stands. Up to three differences
    are told, with their values.
    """
    if before == now:
        return None
    was, has = (dict(_settings(each)) for each in (before, now))
    names = [
        name
        for name in {**was, **has}
        if was.get(name, _ABSENT) != has.get(name, _ABSENT)
        and not (name in _HASHED and _explained(name, was, has))
    ]
    told = [_told(name, was.get(name, _ABSENT), has.get(name, _ABSENT)) for name in names]
    if len(told) > _MOST:
        told[_MOST:] = [f"{len(told) - _MOST} more"]
    return "; ".join(told) or "its settings differ"


def _settings(document: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a document by their names, the lists of a grid and of a space among them."""
    match name, document:
        case "grid", [{}, *_] if all(isinstance(each, dict) for each in document):
            for key in document[0]:
                values = dict.fromkeys(str(each.get(key)) for each in document)
                yield key, ",".join(values)
        case _, {"values": [*values], **rest} if not rest:
            yield name, ",".join(map(str, values))
        case _, {"low": low, "high": high, "log": log, **rest} if not rest:
            yield name, f"{low} to {high}{', log scale' if log else ''}"
        case _, {}:
            for key, value in document.items():
                yield from _settings(value, str(key))
        case _ if name:
            yield name, document


def _explained(hashed: str, was: dict[str, Any], has: dict[str, Any]) -> bool:
    """Whether another hash follows from another setting, which is told."""
    causes = _HASHED[hashed][1]
    return any(was.get(cause, _ABSENT) != has.get(cause, _ABSENT) for cause in causes)


def _told(name: str, before: Any, now: Any) -> str:
    if name in _HASHED:
        return _HASHED[name][0]
    shown = f"--{name.replace('_', '-')}" if name in _OPTIONS else name
    was, has = ("not there" if each is _ABSENT else str(each) for each in (before, now))
    if max(len(was), len(has)) > _LONGEST:
        return f"{shown} differs"
    return f"{shown} was {was}, is {has}"
