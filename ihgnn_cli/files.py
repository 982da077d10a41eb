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
        yield target
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
            raise _cannot_write(target, error) from error
        try:
            yield temporary
        except OSError as error:
            if error.errno not in _DISK_ERRORS:
                raise
            raise _cannot_write(target, error) from error
        try:
            if target.exists():
                temporary.chmod(target.stat().st_mode)
            temporary.replace(target)
        except OSError as error:
            raise _cannot_write(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _cannot_write(target: Path, error: OSError) -> IhgnnError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "Make room, or choose another place." if full else "Choose another place."
    return IhgnnError(f"Cannot write {target}: {error.strerror or error}. {remedy}")
