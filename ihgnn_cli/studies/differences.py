"""Describes how two jobs differ, in terms of the command line."""

from collections.abc import Iterator
from typing import Any

_MOST = 3
_LONGEST = 60  # longer values are not shown
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
)
"""Settings with an option of the same name."""
_HASHED = {
    "data_sha256": ("the content of the data set differs", {"dataset"}),
    "splits_sha256": ("the splits differ", {"dataset", "seed", "folds", "inner_folds"}),
}
"""Hashes: the text to show instead, and the settings that explain a different hash."""


def difference(before: Any, now: Any) -> str | None:
    """Describe how two settings documents differ; `None` if they are equal.

    Sections are ignored, because setting names are unique. Shows up to three differences with their
    values.
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
    texts = [_described(name, was.get(name, _ABSENT), has.get(name, _ABSENT)) for name in names]
    if len(texts) > _MOST:
        texts[_MOST:] = [f"{len(texts) - _MOST} more"]
    return "; ".join(texts) or "its settings differ"


def _settings(document: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The settings of a document by name, including the lists of a grid or a search space."""
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
    """Whether a changed setting, which is shown anyway, explains a changed hash."""
    causes = _HASHED[hashed][1]
    return any(was.get(cause, _ABSENT) != has.get(cause, _ABSENT) for cause in causes)


def _described(name: str, before: Any, now: Any) -> str:
    if name in _HASHED:
        return _HASHED[name][0]
    if name == "calibration":
        return f"--conformal was {'not ' if before is _ABSENT else ''}given"
    shown = f"--{name.replace('_', '-')}" if name in _OPTIONS else name
    was, has = ("not set" if each is _ABSENT else str(each) for each in (before, now))
    if max(len(was), len(has)) > _LONGEST:
        return f"{shown} differs"
    return f"{shown} was {was}, is {has}"
