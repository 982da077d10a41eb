"""Checks whether a process named in a file or a database is still alive."""

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Who:
    """The identity of a process, across machines."""

    machine: str
    pid: int
    started: int | None
    """Start time in ticks since boot, if known; tells apart processes that reuse a pid."""

    def lives(self) -> bool | None:
        """Whether the process is alive; `None` if that cannot be determined from here."""
        if self.machine != _machine():
            return None
        process = _process(self.pid)
        if process is not None:
            return process.running and process.started == self.started
        return False if _surely_gone(self.pid) else None


def this_process() -> Who:
    """The identity of the current process."""
    pid = os.getpid()
    process = _process(pid)
    return Who(_machine(), pid, process.started if process else None)


def who_from_plain(plain: dict[str, Any]) -> Who:
    """A process identity from plain fields.

    Raises:
        ValueError, KeyError, TypeError: the fields are not valid.
    """
    match plain["machine"], plain["pid"], plain["started"]:
        case str(machine), int(pid), (int() | None) as started if 0 < pid < 2**31:
            return Who(machine, pid, started)
    raise ValueError("not a process")


@dataclass(frozen=True)
class _Process:
    """A process as /proc shows it."""

    running: bool
    started: int


def _machine() -> str:
    """Identifies this machine since its last boot.

    The host name is not enough: containers may share it, and each numbers its processes from 1.
    """
    boot = space = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    with suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    return f"{platform.node()} {boot} {space}"


def _process(pid: int) -> _Process | None:
    """The process, if /proc lists it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field, the name in brackets, may contain anything; the third is the state.
    fields = text.rpartition(")")[2].split()
    return _Process(running=fields[0] not in "ZXx", started=int(fields[19]))


def _surely_gone(pid: int) -> bool:
    """Whether no user has a process with this pid."""
    if os.name == "nt":  # signal 0 would kill the process
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
