"""The one place that writes files: whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ihgnn_cli.errors import IhgnnError, InputError

# What a write can meet half-way through, as opposed to errors of whatever is being written.
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Give a temporary path beside `target` to write to, and move it to `target` at the end.

    The move is atomic, so a reader sees the old file or the new one and never a part; when the
    block fails, `target` is untouched and the temporary file is gone. Two writers may race: the
    last one wins. A link is followed, and an old file's permissions stay. What is no ordinary
    file (a pipe, a device) is written to as it is.

    Raises:
        InputError: the target is a folder.
        IhgnnError: the folder cannot be made or written, or the disk is full.
    """
    if target.is_dir():
        raise InputError(f"Cannot write {target}: it is a folder. Give the name of a file.")
    if target.exists() and not target.is_file():
        try:
            yield target
        except OSError as error:
            if error.errno not in _DISK_ERRORS:
                raise
            raise cannot_write(target, error) from error
        return
    target = target.resolve()
    # The suffix stays last, because writers such as matplotlib choose the format by it.
    unique = f".{target.stem[:100]}-{os.getpid()}-{secrets.token_hex(4)}.part{target.suffix}"
    temporary = target.parent / unique
    try:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch(exist_ok=False)
        except OSError as error:
            raise cannot_write(target, error) from error
        try:
            yield temporary
        except OSError as error:
            if error.errno not in _DISK_ERRORS:
                raise
            raise cannot_write(target, error) from error
        try:
            if target.exists():
                temporary.chmod(target.stat().st_mode)
            temporary.replace(target)
        except OSError as error:
            raise cannot_write(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_parts(folder: Path) -> None:
    """Remove what `written_whole` left in a folder when its process was killed."""
    for part in folder.glob(".*.part*"):
        with suppress(OSError):
            part.unlink()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes of this program out of what the file stands for, until the block ends.

    The lock goes with the process, however it ends. Where the system or the file system has no
    such locks, there is none.

    Raises:
        InputError: another process has it.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with path.open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"Another process is at work in {path.parent}. Wait for it, or stop it."
            ) from error
        except OSError:  # no locks here
            pass
        yield


def cannot_write(target: Path, error: OSError) -> IhgnnError:
    """What to tell the user of a place that cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "Make room, or choose another place." if full else "Choose another place."
    return IhgnnError(f"Cannot write {target}: {error.strerror or error}. {remedy}")
