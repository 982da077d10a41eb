"""Whether the process that a file or a database names still lives."""

import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Who:
    """A process, as it introduces itself to others."""

    machine: str
    pid: int
    started: int | None
    """Ticks from the start of the machine, where that is known; a later process of the same number
    has another."""

    def lives(self) -> bool | None:
        """Whether it is there; `None` where that cannot be seen from here."""
        if self.machine != _machine():
            return None
        process = _process(self.pid)
        if process is not None:
            return process.running and process.started == self.started
        return False if _surely_gone(self.pid) else None


def this_process() -> Who:
    """The one that asks."""
    pid = os.getpid()
    process = _process(pid)
    return Who(_machine(), pid, process.started if process else None)


def who_from_plain(plain: dict[str, Any]) -> Who:
    """A process from its fields.

    Raises:
        ValueError, KeyError, TypeError: these are none.
    """
    match plain["machine"], plain["pid"], plain["started"]:
        case str(machine), int(pid), (int() | None) as started if 0 < pid < 2**31:
            return Who(machine, pid, started)
    raise ValueError("no process")


@dataclass(frozen=True)
class _Process:
    """A process as /proc shows it."""

    running: bool
    started: int


def _machine() -> str:
    """What tells the processes of this machine, since it started, from all others.

    Containers may have the same host name, and each counts its processes from 1.
    """
    boot = space = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    with suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    return f"{platform.node()} {boot} {space}"


def _process(pid: int) -> _Process | None:
    """The process, where /proc shows it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Its second field, the name in brackets, may hold anything; the third is the state.
    fields = text.rpartition(")")[2].split()
    return _Process(running=fields[0] not in "ZXx", started=int(fields[19]))


def _surely_gone(pid: int) -> bool:
    """Whether there is no such process, of this or any user."""
    if os.name == "nt":  # the signal 0 would end it there
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
