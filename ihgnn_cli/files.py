"""Atomic file writes, locks, hashes and errors of files."""

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ihgnn_cli.errors import IhgnnError, InputError, InUseError, NoLocksError
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.words import file_size

LOCK = ".lock"
"""The file in a run's folder that a process locks while it trains there."""
# Errors of the disk during a write, as opposed to errors of the code that writes.
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}

_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}


@contextmanager
def written_whole(target: Path, *, durable: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `target`, and move it to `target` at the end.

    The move is atomic: a reader sees the old file or the new one, never a part. If the block fails,
    `target` is unchanged and the temporary file is removed. If two processes write, the last one
    wins. Links are followed, and the permissions of an old file are kept. Anything that is not an
    ordinary file (a pipe, a device) is written to directly. `durable` flushes the file to disk
    before the move, so that it survives a power failure.

    Raises:
        InputError: the target is a folder.
        IhgnnError: the folder cannot be created or written, or the disk is full.
    """
    _refuse_folder(target)
    if target.exists() and not target.is_file():
        try:
            yield target
        except OSError as error:
            if error.errno not in _DISK_ERRORS:
                raise
            raise cannot_write(target, error) from error
        return
    target = target.resolve()
    # Keep the suffix last: matplotlib and others choose the format by it.
    unique = f".{target.stem[:100]}-{os.getpid()}-{secrets.token_hex(4)}.part{target.suffix}"
    temporary = target.parent / unique
    try:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch(exist_ok=False)
        try:
            yield temporary
        except OSError as error:
            if error.errno not in _DISK_ERRORS:
                raise
            raise cannot_write(target, error) from error
        with writing(target):
            if durable:
                with temporary.open("rb+") as stream:
                    os.fsync(stream.fileno())
            if target.exists():
                temporary.chmod(target.stat().st_mode)
            temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read_text(path: Path, most: int) -> str:
    """The text of a file of at most `most` bytes; a device, a pipe or a huge file may never end.

    Raises:
        OSError, UnicodeDecodeError: it cannot be read, or is not text.
        InputError: it is larger.
    """
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise InputError(f"{path} is larger than {file_size(most)}. Give a file of another kind.")
    return content.decode("utf-8-sig")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file that survives a power failure.

    Raises:
        InputError: the path is a folder.
        IhgnnError: it cannot be written.
    """
    with written_whole(path, durable=True) as temporary:
        temporary.write_text(json.dumps(jsonable(content), indent=2) + "\n", encoding="utf-8")


def check_place(target: Path) -> None:
    """Check before long work that `written_whole` can write to a path; writes nothing.

    Raises:
        InputError: the target is a folder.
        IhgnnError: its folder cannot be created or written.
    """
    with writing(target):
        _refuse_folder(target)
        obstacle = _obstacle(target)
    if obstacle is not None:
        raise cannot_write(target, OSError(obstacle, os.strerror(obstacle)))


def _obstacle(target: Path) -> int | None:
    """The error number of what prevents writing a file, if anything."""
    if target.exists() and not target.is_file():
        return None  # a pipe or a device
    folder = target.resolve().parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        return errno.ENOTDIR
    return None if os.access(folder, os.W_OK | os.X_OK) else errno.EACCES


def _refuse_folder(target: Path) -> None:
    if target.is_dir():
        raise InputError(f"Cannot write {target}: it is a folder. Give the name of a file.")


def remove_parts(folder: Path) -> None:
    """Remove temporary files that killed processes left in a folder."""
    for part in folder.glob(".*.part*"):
        with suppress(OSError):
            part.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder during the block, without waiting for it.

    The lock ends with the process. File systems without locks are not protected.

    Raises:
        InUseError: another process holds the lock.
        IhgnnError: the folder cannot be written.
    """
    with ExitStack() as stack:
        held = True
        with suppress(NoLocksError):
            held = stack.enter_context(try_lock(folder / LOCK))
        if not held:
            raise InUseError(f"Another process is using {folder}. Wait until it ends, or stop it.")
        yield


@contextmanager
def exclusive(path: Path) -> Iterator[bool]:
    """Hold a lock on a file during the block; wait for other processes and threads.

    The file is created if missing, and kept. Yields false if the file system has no locks.

    Raises:
        IhgnnError: the folder cannot be written.
    """
    with ExitStack() as stack:
        try:
            with writing(path):
                held = stack.enter_context(_file_lock(path, wait=True))
        except NoLocksError:
            held = False
        yield held


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a lock on a file during the block, unless another process or thread does: yields which.

    The system frees the lock when the process dies, however that happens. The file is created if
    missing, and kept.

    Raises:
        NoLocksError: the file system has no locks.
        IhgnnError: the folder cannot be written.
    """
    with ExitStack() as stack:
        with writing(path):
            path.parent.mkdir(exist_ok=True)
            held = stack.enter_context(_file_lock(path, wait=False))
        yield held


@contextmanager
def _file_lock(path: Path, *, wait: bool) -> Iterator[bool]:
    # Never a soft lock: a file as a mark outlives a process that was killed on another machine.
    if not path.parent.is_dir():  # FileLock would make it, also where somebody has removed it
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    # Predicting with an exported model takes NumPy and onnxruntime only.
    from filelock import FileLock, Timeout

    lock = FileLock(path, fallback_to_soft=False, poll_interval=0.02)
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        yield False
        return
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise NoLocksError(f"The file system of {path.parent} has no locks.") from error
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Raise errors of the system in the block as an `InputError`: the path cannot be read."""
    try:
        yield
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Raise errors of the system in the block as those of a path that cannot be written."""
    try:
        yield
    except OSError as error:
        raise cannot_write(target, error) from error


def cannot_write(target: Path, error: OSError) -> IhgnnError:
    """The error for a path that cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "Free some space, or choose another path." if full else "Choose another path."
    return IhgnnError(f"Cannot write {target}: {error.strerror or error}. {remedy}")
