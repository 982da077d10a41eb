"""Whether a folder may be used for a resumable job: a cross-validation or a search.

Needs no torch, so that a wrong folder is refused before torch is imported.
"""

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import cannot_write, exclusive, write_json, writing
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.training.unfinished import CROSSVAL, TUNE

LOCK = ".lock"

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


@dataclass(frozen=True)
class JobKind:
    """What marks the folder of a job."""

    file: str
    """The file that describes the job."""
    title: str


CROSSVAL_JOB = JobKind(CROSSVAL, "crossval job")
SEARCH = JobKind(TUNE, "search")


def open_job(folder: Path, kind: JobKind, job: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Create the folder of a job, or open it; returns the content of its file, and if it is new.

    Of several processes that do this at the same time, one writes the file.

    Args:
        folder: the folder.
        kind: of the job.
        job: the content of the file. Its `identity` must be that of a job that is there already;
            of the rest the first command's is kept.

    Raises:
        InputError: the folder holds another job, or something else.
        IhgnnError: the folder cannot be created.
    """
    content: dict[str, Any] = jsonable(job)  # type: ignore[assignment]
    path, new = folder / kind.file, False
    if not path.is_file():
        _refuse_other_content(folder, kind)
        missing = not folder.exists()
        try:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            with exclusive(folder / LOCK):
                if not path.is_file():
                    write_json(path, content)
                    new = True
        finally:
            if missing and not path.is_file():
                with suppress(OSError):
                    (folder / LOCK).unlink(missing_ok=True)
                    folder.rmdir()
    found = read_job(folder, kind)
    changed = difference(found["identity"], content["identity"])
    if changed is not None:
        command = found.get("command")
        own = f", or repeat its own command: {command}" if command else ""
        raise InputError(
            f"{folder} holds another {kind.title} ({changed}). Choose another --out{own}"
        )
    return found, new


def read_job(folder: Path, kind: JobKind) -> dict[str, Any]:
    """The content of a job's file.

    Raises:
        InputError: the folder holds no such job, or the file is damaged.
    """
    path = folder / kind.file
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        content["identity"] = dict(content["identity"])
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is damaged. Choose another --out.") from error
    return content


def refuse_unusable(folder: Path, kind: JobKind) -> None:
    """Check early that a job can be continued in a folder, or begin there.

    A job that is there already is not checked: a finished one is only read.

    Raises:
        InputError: the folder holds something else.
        IhgnnError: it cannot be written.
    """
    with writing(folder):
        if (folder / kind.file).is_file():
            return
        _refuse_other_content(folder, kind)
        place = folder.absolute()
        there = next(each for each in (place, *place.parents) if each.exists())
    for wrong, number in (
        (not there.is_dir(), errno.ENOTDIR),
        (not os.access(there, os.W_OK), errno.EACCES),
    ):
        if wrong:
            raise cannot_write(folder, OSError(number, os.strerror(number)))


def _refuse_other_content(folder: Path, kind: JobKind) -> None:
    """Allow a new job only in an empty folder, or where a command was killed as it began.

    Raises:
        InputError: the folder holds something else, or is a file.
        IhgnnError: it cannot be read.
    """
    what = None
    with writing(folder):
        if folder.exists() and not folder.is_dir():
            what = "is not a folder"
        elif folder.is_dir() and any(not _is_leftover(each.name) for each in folder.iterdir()):
            what = f"is not empty and holds no {kind.title}"
    # Another process may have created the job in the meantime.
    if what is not None and not (folder / kind.file).is_file():
        raise InputError(f"{folder} {what}. Choose another --out.")


def _is_leftover(name: str) -> bool:
    """Whether a file may be there before the job's own: the lock, or one that is being written."""
    return name == LOCK or (name.startswith(".") and ".part" in name)


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
    shown = f"--{name.replace('_', '-')}" if name in _OPTIONS else name
    was, has = ("not set" if each is _ABSENT else str(each) for each in (before, now))
    if max(len(was), len(has)) > _LONGEST:
        return f"{shown} differs"
    return f"{shown} was {was}, is {has}"
