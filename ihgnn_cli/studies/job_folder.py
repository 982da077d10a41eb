"""Whether a folder may be used for a resumable job: a cross-validation or a search.

Needs no torch, so that a wrong folder is refused before torch is imported.
"""

import errno
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import cannot_write, exclusive, write_json, writing
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.differences import difference
from ihgnn_cli.training.folder import SPLITS
from ihgnn_cli.training.unfinished import CROSSVAL, TUNE

LOCK = ".lock"


@dataclass(frozen=True)
class JobKind:
    """What marks the folder of a job."""

    file: str
    """The file that describes the job, the last one written when it begins."""
    title: str
    empty: tuple[str, ...] = ()
    """Folders that are made before that file, and are empty until it is there."""
    locks: tuple[str, ...] = ()
    """Folders that are made before that file, and may hold a lock."""


CROSSVAL_JOB = JobKind(CROSSVAL, "crossval job", ("units", "partial"), ("claims",))
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
        refuse_other_content(folder, kind)
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
        refuse_other_content(folder, kind)
        place = folder.absolute()
        there = next(each for each in (place, *place.parents) if each.exists())
    for wrong, number in (
        (not there.is_dir(), errno.ENOTDIR),
        (not os.access(there, os.W_OK), errno.EACCES),
    ):
        if wrong:
            raise cannot_write(folder, OSError(number, os.strerror(number)))


def refuse_other_content(
    folder: Path, kind: JobKind, has_our_folds: Callable[[Path], bool] = lambda _: True
) -> None:
    """Allow a new job only in an empty folder, or in one where the same job was being created.

    Args:
        folder: where the job is to begin.
        kind: of the job.
        has_our_folds: whether a fold file in the folder has the folds of the job.

    Raises:
        InputError: the folder holds something else, or is a file.
        IhgnnError: it cannot be read.
    """
    what = None
    with writing(folder):
        # In this order: another process may be creating the folder.
        if folder.exists() and not folder.is_dir():
            what = "is not a folder"
        elif folder.is_dir() and not _is_beginning(folder, kind, has_our_folds):
            what = f"is not empty and holds no {kind.title}"
    # Another process may have created the job in the meantime.
    if what is not None and not (folder / kind.file).is_file():
        raise InputError(f"{folder} {what}. Choose another --out.")


def _is_beginning(folder: Path, kind: JobKind, has_our_folds: Callable[[Path], bool]) -> bool:
    """Whether a folder is empty, or holds only what is written before the job's file."""
    # Being written, or left by a process that was killed.
    parts = tuple(f".{Path(name).stem}-" for name in (SPLITS, kind.file))
    content = {each.name for each in folder.iterdir() if not each.name.startswith(parts)}
    if not content <= {LOCK, SPLITS, *kind.empty, *kind.locks}:
        return False
    if any(any((folder / name).iterdir()) for name in content & set(kind.empty)):
        return False
    return SPLITS not in content or has_our_folds(folder / SPLITS)
