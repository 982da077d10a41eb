"""What is free: of a machine, less where a container, SLURM or systemd sets a limit."""

import os
from pathlib import Path

import pytest
import torch

from ihgnn_cli.training import memory
from ihgnn_cli.training.memory import _free_of_container, _free_of_machine, free_memory

CPU = torch.device("cpu")
VERSION_2 = ("memory.max", "memory.current", "inactive_file")
VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
both = pytest.mark.parametrize("version", [VERSION_2, VERSION_1], ids=["v2", "v1"])


def group(
    folder: Path, limit: object, used: int, cache: int = 0, version: tuple[str, ...] = VERSION_2
) -> None:
    """A control group as the kernel shows it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / version[0]).write_text(f"{limit}\n")
    (folder / version[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{version[2]} {cache}\nactive_file 5\n")


def free_in(root: Path, membership: str) -> list[int]:
    path = root.parent / "membership"
    path.write_text(membership)
    return _free_of_container(root, path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cgroup"


def placed(root: Path, name: str, version: tuple[str, ...]) -> tuple[Path, str]:
    """Where a group of this name is, and the line that says that this process is in it."""
    if version is VERSION_2:
        return root / name, f"0::/{name}\n"
    return root / "memory" / name, f"5:cpuset,memory:/{name}\n"


# Limits of containers, SLURM and systemd


@both
def test_a_limit_leaves_what_is_not_used(root: Path, version: tuple[str, ...]) -> None:
    folder, membership = placed(root, "job", version)
    group(folder, 1000, 300, version=version)
    assert free_in(root, membership) == [700]


@both
def test_what_is_used_for_files_is_given_back(root: Path, version: tuple[str, ...]) -> None:
    folder, membership = placed(root, "job", version)
    group(folder, 1000, 900, cache=600, version=version)
    assert free_in(root, membership) == [700]


@both
def test_the_limit_of_a_group_binds_those_within_it(root: Path, version: tuple[str, ...]) -> None:
    folder, membership = placed(root, "user/job/step", version)
    group(folder, 1000, 300, version=version)
    group(folder.parent, 500, 300, version=version)
    group(folder.parent.parent, 10_000, 1000, version=version)
    assert free_in(root, membership) == [700, 200, 9000]


@both
def test_a_container_that_shows_its_group_as_the_root_is_found(
    root: Path, version: tuple[str, ...]
) -> None:
    """Its name is that outside the container, where no folder of it is seen."""
    folder, membership = placed(root, "docker/0123", version)
    group(folder.parent.parent, 1000, 300, version=version)
    assert free_in(root, membership) == [700]
    assert free_in(root, placed(root, "", version)[1]) == [700]


def test_a_group_without_a_limit_leaves_all(root: Path) -> None:
    group(root / "job", "max", 300)
    assert free_in(root, "0::/job\n") == []


def test_a_group_that_uses_more_than_its_limit_leaves_nothing(root: Path) -> None:
    group(root / "job", 1000, 1200)
    assert free_in(root, "0::/job\n") == [0]


def test_groups_of_other_things_do_not_count(root: Path) -> None:
    group(root / "memory" / "other", 1000, 300, version=VERSION_1)
    group(root / "other", 1000, 300)
    assert free_in(root, "3:cpu,cpuacct:/other\n1:name=systemd:/other\n") == []


def test_where_both_versions_are_both_count(root: Path) -> None:
    group(root / "memory" / "job", 1000, 300, version=VERSION_1)
    group(root / "unit", 500, 100)
    assert free_in(root, "4:memory:/job\n0::/unit\n") == [700, 400]


def test_a_name_may_hold_colons(root: Path) -> None:
    group(root / "a:b", 1000, 300)
    assert free_in(root, "0::/a:b\n") == [700]


@pytest.mark.parametrize("missing", [*VERSION_2[:2], "memory.stat"])
def test_a_group_that_does_not_tell_is_passed_by(root: Path, missing: str) -> None:
    group(root / "user" / "job", 1000, 300)
    group(root / "user", 500, 100)
    (root / "user" / "job" / missing).unlink()
    assert free_in(root, "0::/user/job\n") == [400]


def test_a_system_without_groups_has_no_limits(root: Path, tmp_path: Path) -> None:
    assert _free_of_container(root, tmp_path / "missing") == []


# The machine


def test_the_machine_tells_what_is_available(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:    5 kB\n")
    assert _free_of_machine(tmp_path / "meminfo") == 5 * 1024


@pytest.mark.parametrize("content", [None, "MemTotal: 9 kB\n", "MemAvailable: much kB\n"])
def test_a_machine_that_does_not_tell_has_half_of_its_memory_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "meminfo").write_text(content)
    known = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 10}
    monkeypatch.setattr(os, "sysconf", known.__getitem__, raising=False)
    assert _free_of_machine(tmp_path / "meminfo") == 5 * 4096


def test_a_machine_that_tells_nothing_is_a_small_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert _free_of_machine(tmp_path / "meminfo") == 4 * 2**30


# All together


@pytest.mark.parametrize(
    ("limits", "free"), [([], 5000), ([3000], 3000), ([7000, 2000], 2000), ([0], 0), ([7000], 5000)]
)
def test_the_tightest_limit_counts(
    monkeypatch: pytest.MonkeyPatch, limits: list[int], free: int
) -> None:
    monkeypatch.setattr(memory, "_free_of_machine", lambda _meminfo: 5000)
    monkeypatch.setattr(memory, "_free_of_container", lambda _root, _membership: limits)
    assert free_memory(CPU) == free


def test_a_gpu_has_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (700 + device.index, 1000))
    assert free_memory(torch.device("cuda", 1)) == 701


def test_there_is_memory_here() -> None:
    assert free_memory(CPU) > 2**20
