"""Available memory on a GPU or on this machine, inside or outside a container."""

import os
from pathlib import Path
from typing import NamedTuple

import torch

# Assumed where the system does not report it: a small machine.
_UNKNOWN = 4 * 2**30


def free_memory(device: torch.device) -> int:
    """Bytes that are available on the device now."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    of_container = _free_of_container(Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"))
    return min([_free_of_machine(Path("/proc/meminfo")), *of_container])


def _free_of_machine(meminfo: Path) -> int:
    try:
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # Windows
        return _UNKNOWN


class _Files(NamedTuple):
    """File names under which a control group reports its memory."""

    limit: str
    used: str
    cache: str
    """The line of memory.stat with the memory in use that the system can reclaim."""


_VERSION_2 = _Files("memory.max", "memory.current", "inactive_file")
_VERSION_1 = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _free_of_container(root: Path, membership: Path) -> list[int]:
    """Bytes left under each limit that a container, SLURM or systemd sets."""
    try:
        lines = membership.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    groups: list[tuple[Path, _Files]] = []
    for line in lines:
        _, controllers, name = line.split(":", 2)
        if not controllers:
            groups += [(root / part, _VERSION_2) for part in _upwards(name)]
        elif "memory" in controllers.split(","):
            groups += [(root / "memory" / part, _VERSION_1) for part in _upwards(name)]
    found = [_free_of_group(*group) for group in groups]
    return [each for each in found if each is not None]


def _upwards(name: str) -> list[str]:
    """A group and its ancestors up to the root."""
    parts = [part for part in name.split("/") if part]
    return ["/".join(parts[:end]) for end in range(len(parts), -1, -1)]


def _free_of_group(group: Path, files: _Files) -> int | None:
    try:
        limit = int((group / files.limit).read_text(encoding="ascii"))  # "max" raises ValueError
        used = int((group / files.used).read_text(encoding="ascii"))
        stat = dict(
            line.split(" ", 1)
            for line in (group / "memory.stat").read_text(encoding="ascii").splitlines()
        )
        return max(0, limit - used + int(stat.get(files.cache, 0)))
    except (OSError, ValueError):
        return None
