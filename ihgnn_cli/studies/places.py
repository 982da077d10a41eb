"""Assigns the devices of this machine to worker processes."""

import math
from dataclasses import dataclass

import torch

from ihgnn_cli.errors import SettingError
from ihgnn_cli.jobs.processes import cores
from ihgnn_cli.training.devices import AUTO, cuda_devices, resolve_device
from ihgnn_cli.training.memory import free_memory


@dataclass(frozen=True)
class Places:
    """The devices of the workers."""

    devices: tuple[str, ...]
    """One per worker, as torch names it."""
    first: torch.device
    memory: int
    """Bytes that each worker may use."""


def local_places(device: str, workers: int | None) -> Places:
    """Devices for this many workers; by default one per core, or one per GPU.

    Raises:
        InputError: the device is not available, or there are no workers.
    """
    if workers is not None and workers < 1:
        raise SettingError("workers", f"must be at least 1, not {workers}.")
    first = resolve_device(device)
    there = [first]
    if first.type == "cuda" and device in (AUTO, "cuda"):
        there = [torch.device("cuda", each.index) for each in cuda_devices()]
    count = workers or (len(there) if first.type == "cuda" else len(cores()))
    devices = tuple(str(there[number % len(there)]) for number in range(count))
    sharing = count if first.type == "cpu" else math.ceil(count / len(there))
    return Places(devices, first, min(map(free_memory, there)) // sharing)
