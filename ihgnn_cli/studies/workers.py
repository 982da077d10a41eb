"""How many worker processes run on which devices, with how much memory each."""

import math
from dataclasses import dataclass

import torch

from ihgnn_cli.errors import SettingError
from ihgnn_cli.jobs.processes import Place, cores
from ihgnn_cli.training.devices import AUTO, cuda_devices, resolve_device
from ihgnn_cli.training.memory import free_memory

_MOST_PER_GPU = 8
# What a process takes on a GPU before its first model, with room for a small one; and on the host.
_GPU_PROCESS, _HOST_PROCESS = 5 * 2**28, 2**31
_CONTEXT = 2**29  # of the first of these: CUDA's own


@dataclass(frozen=True)
class Workers:
    """Worker processes on this machine."""

    places: tuple[Place, ...]
    """One per worker."""
    device: torch.device
    """The device of the first worker."""
    memory: int
    """Bytes that each worker may use."""
    note: str = ""
    """What `auto` decided, for the user; empty if it is the usual: one worker per core."""

    @property
    def count(self) -> int:
        """The number of workers."""
        return len(self.places)


def local_workers(device: str, count: int | None = None, *, needed: int = 0) -> Workers:
    """The workers of a command: `count` of them, or as many as this machine keeps busy.

    By default one per core; on GPUs several for each, as one small model leaves a GPU idle: as many
    as cores and memory allow, at most 8.

    Args:
        device: as the user named it.
        count: the number of workers; `None`: by default, see above.
        needed: bytes that the models of one worker take, if known.

    Raises:
        InputError: the device is not available, or there are no workers.
    """
    if count is not None and count < 1:
        raise SettingError("workers", f"must be at least 1, not {count}.")
    first = resolve_device(device)
    if first.type != "cuda":
        count = count or len(cores())
        # With a worker for every core each has its own; fewer go where there is room.
        pins = cores() if count == len(cores()) and first.type == "cpu" else [None] * count
        places = tuple(Place(str(first), core) for core in pins)
        return Workers(places, first, free_memory(first) // count)
    there = [first]
    if device in (AUTO, "cuda"):
        there = [torch.device("cuda", each.index) for each in cuda_devices()]
    free, note = min(map(free_memory, there)), ""
    if count is None:
        count = len(there) * _per_gpu(len(there), free, needed)
        if count > len(there):
            note = f"{count} worker processes on {len(there)} GPU{'s' * (len(there) > 1)}: a small "
            note += "model leaves a GPU idle. Set --workers to change it."
    places = tuple(Place(str(there[number % len(there)])) for number in range(count))
    return Workers(places, first, free // math.ceil(count / len(there)), note)


def _per_gpu(gpus: int, free: int, needed: int) -> int:
    """How many workers share each GPU."""
    each = max(_GPU_PROCESS, _CONTEXT + needed)
    host = free_memory(torch.device("cpu")) // _HOST_PROCESS
    return max(1, min(_MOST_PER_GPU, len(cores()) // gpus, free // each, host // gpus))
