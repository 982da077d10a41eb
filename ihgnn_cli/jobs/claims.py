"""Who works on what: processes that share a folder never take the same piece of work.

Each process that works on something has a file in the folder that says so. The file of a process
that died is worth nothing. On its own machine that is seen at once; elsewhere the file counts for
as long as it is touched every few seconds. Nothing here knows what the work is: a piece is done
when its results are there, and the caller can tell.
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

from ihgnn_cli.files import cannot_write, clock_of, exclusive, written_whole
from ihgnn_cli.jobs.alive import Who, this_process, who_from_plain

HEARTBEAT = 10.0
"""Seconds from one touch of a claim's file to the next."""
STALE = 60.0
"""Seconds after which a claim that was not touched is one of a dead process."""

LOCK = "lock"


class Claims:
    """What the processes that share a folder are working on.

    An object holds one piece at a time; it belongs to one thread.

    Raises:
        IhgnnError: the folder cannot be made or written (of any method but `release` and `lost`).
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        self._folder = folder
        self._token = secrets.token_hex(4)
        self._mine: Path | None = None
        self._heartbeat: _Heartbeat | None = None

    def take(self, names: Iterable[str], done: Callable[[str], bool]) -> str | None:
        """Claim the first of these that is neither done nor claimed by a living process.

        `None` where there is none. What is done must stay done, because most names are asked for
        before the folder is locked, so that others wait for milliseconds only. Some are asked for
        under the lock: `done` may not use claims of the same folder.

        Raises:
            ValueError: this object holds something already.
        """
        if self._mine is not None:
            raise ValueError("release what was taken before taking another piece")
        names = list(names)
        # Claims are read before `done` is asked, here and below. The other way round, a process
        # that finishes in between has no results at first and no claim afterwards.
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
        """Give back what was taken, after its results were written."""
        if self._heartbeat is not None:
            self._heartbeat.end()
            self._heartbeat = None
        if self._mine is not None:
            with suppress(OSError):
                self._mine.unlink(missing_ok=True)
            self._mine = None

    def lost(self) -> bool:
        """Whether others took this process for dead, as when it was suspended for a minute.

        What it works on may be another's by now.
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
        """The names that are held; files that hold nothing are removed. Only under the lock."""
        now = clock_of(self._folder)
        held = set()
        for path in self._folder.iterdir():
            if path.suffix not in (".json", ".part"):  # the second: what a killed process left
                continue
            with suppress(OSError):  # released just now, or not ours to read or to remove
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
    """What a file says."""

    name: str
    who: Who

    def counts(self, young: bool) -> bool:
        """Whether its process lives; where nobody can see that, whether it was touched lately."""
        lives = self.who.lives()
        return young if lives is None else lives


class _Heartbeat:
    """A thread that touches a file until it is gone, and never makes it again."""

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
    except OSError:  # a network that is away for a moment
        pass
    return True


def _read(path: Path) -> tuple[_Claim | None, float]:
    """What a file claims, if it is a claim, and when it was touched."""
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
        raise TypeError("no claim")
    return _Claim(name, who_from_plain(plain))
