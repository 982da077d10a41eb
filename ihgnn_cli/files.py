"""The one place that writes files: whole or not at all."""

import errno
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ihgnn_cli.errors import IhgnnError, InputError, InUseError

# What a write can meet half-way through, as opposed to errors of whatever is being written.
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}

# A lock file of this age, in seconds, was left behind: nobody works for that long under it.
_LEFT_BEHIND = 30


@contextmanager
def written_whole(target: Path, *, durable: bool = False) -> Iterator[Path]:
    """Give a temporary path beside `target` to write to, and move it to `target` at the end.

    The move is atomic, so a reader sees the old file or the new one and never a part; when the
    block fails, `target` is untouched and the temporary file is gone. Two writers may race: the
    last one wins. A link is followed, and an old file's permissions stay. What is no ordinary
    file (a pipe, a device) is written to as it is. A durable file is on the disk before it has its
    name, so that it outlives a power cut.

    Raises:
        InputError: the target is a folder.
        IhgnnError: the folder cannot be made or written, or the disk is full.
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
            if durable:
                with temporary.open("rb+") as stream:
                    os.fsync(stream.fileno())
            if target.exists():
                temporary.chmod(target.stat().st_mode)
            temporary.replace(target)
        except OSError as error:
            raise cannot_write(target, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def check_place(target: Path) -> None:
    """Refuse a place that `written_whole` could not write to, before the work that it is for.

    Nothing is made or written: that the disk is full shows only later.

    Raises:
        InputError: the target is a folder.
        IhgnnError: its folder cannot be made or written.
    """
    try:
        _refuse_folder(target)
        obstacle = _obstacle(target)
    except OSError as error:
        raise cannot_write(target, error) from error
    if obstacle is not None:
        raise cannot_write(target, OSError(obstacle, os.strerror(obstacle)))


def _obstacle(target: Path) -> int | None:
    """The system's number for what is in the way of a file, where something is."""
    if target.exists() and not target.is_file():
        return None  # a pipe or a device, which is written to as it is
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
        InUseError: another process has it.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(_flock(path, "rb", wait=False))
        except BlockingIOError as error:
            raise InUseError(
                f"Another process is at work in {path.parent}. Wait for it, or stop it."
            ) from error
        yield


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Wait until no other process or thread is in such a block of the same file, then enter it.

    The file is made where missing, and stays. Blocks are to be short: where the system or the
    file system has no locks, a file beside it stands for the lock, and one that is half a minute
    old counts as left behind by a process that was killed.

    Raises:
        IhgnnError: the folder cannot be written.
    """
    with ExitStack() as stack:
        try:
            # Open for writing, because NFS gives no exclusive lock otherwise.
            if not stack.enter_context(_flock(path, "ab", wait=True)):
                stack.enter_context(_lock_file(path))
        except OSError as error:
            raise cannot_write(path, error) from error
        yield


@contextmanager
def _flock(path: Path, mode: str, *, wait: bool) -> Iterator[bool]:
    """Hold the system's lock on a file, which goes with the process; false if it has none."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield False
        return
    with path.open(mode) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            given = True
        except BlockingIOError:
            raise
        except OSError:  # no locks on this file system
            given = False
        yield given


@contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    """Hold a lock that is a file beside `path`, which only one process can make."""
    lock = path.with_name(f"{path.name}.held")
    pause = 0.001
    while (mine := _made(lock)) is None:
        if _left_behind(lock):
            # One at a time, so that nobody removes the new lock of who was faster.
            with _lock_file(lock):
                if _left_behind(lock):
                    lock.unlink(missing_ok=True)
        else:
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
    try:
        yield
    finally:
        with suppress(OSError):
            if _identity(lock.stat()) == mine:  # else it took too long, and another has it
                lock.unlink()


def _made(lock: Path) -> tuple[int, int] | None:
    """The identity of the file if it was made just now, and nothing if it was there."""
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return None
    try:
        return _identity(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_mtime_ns  # the number alone is soon given to another file


def _left_behind(lock: Path) -> bool:
    try:
        touched = lock.stat().st_mtime
    except FileNotFoundError:
        return False
    return clock_of(lock.parent) - touched > _LEFT_BEHIND


def clock_of(folder: Path) -> float:
    """The time by the clock of a folder's file system, to compare with its files' times.

    The clocks of the machines that share the folder need not agree.

    Raises:
        IhgnnError: the folder cannot be written.
    """
    probe = folder / f".clock-{os.getpid()}-{secrets.token_hex(4)}.part"
    try:
        probe.touch()
        return probe.stat().st_mtime
    except OSError as error:
        raise cannot_write(probe, error) from error
    finally:
        with suppress(OSError):
            probe.unlink(missing_ok=True)


def cannot_write(target: Path, error: OSError) -> IhgnnError:
    """What to tell the user of a place that cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    remedy = "Make room, or choose another place." if full else "Choose another place."
    return IhgnnError(f"Cannot write {target}: {error.strerror or error}. {remedy}")
