"""Claims: processes that share a folder never take the same piece of work.

Each working process has a file in the folder that names its piece of work. The file of a dead
process does not count. Processes on the same machine notice a death at once; others treat a claim
as dead when its file has not been touched for a while. This module knows nothing about the work:
the caller decides whether a piece is done.
"""

import json
import os
import platform
import re
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

from ihgnn_cli.files import clock_of, exclusive, writing, written_whole
from ihgnn_cli.jobs.alive import Who, this_process, who_from_plain

HEARTBEAT = 10.0
"""Seconds between two touches of a claim's file."""
STALE = 60.0
"""Seconds after which an untouched claim counts as dead."""

LOCK = "lock"


class Claims:
    """What the processes that share a folder are working on.

    An object holds one piece at a time and belongs to one thread.

    Raises:
        IhgnnError: the folder cannot be created or written (any method but `release` and `lost`).
    """

    def __init__(self, folder: Path) -> None:
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._token = secrets.token_hex(4)
        self._mine: Path | None = None
        self._heartbeat: _Heartbeat | None = None

    def take(self, names: Iterable[str], done: Callable[[str], bool]) -> str | None:
        """Claim the first of these that is neither done nor claimed by a living process.

        Returns `None` if there is none. Finished work must stay finished: most names are checked
        before the folder is locked, to hold the lock for milliseconds only. The rest are checked
        under the lock, so `done` must not use claims of the same folder.

        Raises:
            ValueError: this object already holds a piece.
        """
        if self._mine is not None:
            raise ValueError("release what was taken before taking another piece")
        names = list(names)
        # Read claims before calling `done`, here and below. In the other order, a process that
        # finishes in between would show neither results nor a claim.
        held = self.held()
        free = (at for at, name in enumerate(names) if name not in held and not done(name))
        first = next(free, None)
        if first is None:
            return None
        with exclusive(self._folder / LOCK):
            held = self._living()
            for name in names[first:]:
                if name not in held and not done(name):
                    self._claim(name)
                    return name
        return None

    def release(self) -> None:
        """Release the claim, after the results were written."""
        if self._heartbeat is not None:
            self._heartbeat.end()
            self._heartbeat = None
        if self._mine is not None:
            with suppress(OSError):
                self._mine.unlink(missing_ok=True)
            self._mine = None

    def lost(self) -> bool:
        """Whether other processes removed this claim, for example after a suspend of a minute.

        Another process may have taken the work by now.
        """
        return self._mine is not None and not _touched(self._mine)

    def held(self) -> frozenset[str]:
        """The names that living processes hold, this one included."""
        with exclusive(self._folder / LOCK):
            return self._living()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _claim(self, name: str) -> None:
        who = this_process()
        host = re.sub(r"[^\w.-]", "_", platform.node())[:60]
        self._mine = self._folder / f"{host}-{who.pid}-{self._token}.json"
        try:
            with written_whole(self._mine) as temporary:
                temporary.write_text(json.dumps({"name": name, **asdict(who)}), encoding="utf-8")
            self._heartbeat = _Heartbeat(self._mine)
        except BaseException:
            self.release()
            raise

    def _living(self) -> frozenset[str]:
        """The names that are held; removes dead claims. Call only under the lock."""
        now = clock_of(self._folder)
        held = set()
        for path in self._folder.iterdir():
            if path.suffix not in (".json", ".part"):  # .part: left by a killed process
                continue
            with suppress(OSError):  # just released, or no permission
                if not path.is_file():
                    continue
                claim, touched = _read(path)
                young = now - touched < STALE
                if not (young if claim is None else claim.counts(young)):
                    path.unlink()
                elif claim is not None:
                    held.add(claim.name)
        return frozenset(held)


@dataclass(frozen=True)
class _Claim:
    """The content of a claim file."""

    name: str
    who: Who

    def counts(self, young: bool) -> bool:
        """Whether its process is alive; if unknown, whether the file was touched recently."""
        lives = self.who.lives()
        return young if lives is None else lives


class _Heartbeat:
    """A thread that touches a file as long as it exists, and never recreates it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ended = Event()
        self._thread = Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT) and _touched(self._path):
            pass

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


def _touched(path: Path) -> bool:
    """Touch a file; false if it is gone."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except OSError:  # a short network failure
        pass
    return True


def _read(path: Path) -> tuple[_Claim | None, float]:
    """The claim in a file, if it is valid, and the time of its last touch."""
    with path.open("rb") as stream:
        touched = os.fstat(stream.fileno()).st_mtime
        content = stream.read()
    try:
        return _claim_from_plain(json.loads(content)), touched
    except (ValueError, TypeError, KeyError, RecursionError):
        return None, touched


def _claim_from_plain(plain: dict[str, object]) -> _Claim:
    name = plain["name"]
    if not isinstance(name, str):
        raise TypeError("not a claim")
    return _Claim(name, who_from_plain(plain))
