"""Devices that torch can use, named auto, cpu, cuda or cuda:N."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ihgnn_cli.errors import InputError
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    import torch

AUTO = "auto"
_CUDA = re.compile(r"cuda(?::(\d{1,3}))?")
# Between PROTEINS (190,000 in a batch of 32) and COLLAB (750,000).
_WORTH_THREADS = 500_000
# Messages of out-of-memory errors that do not have their own exception type.
_FULL_MEMORY = ("allocate memory", "not enough memory", "ALLOC_FAILED", "out of memory")


@dataclass(frozen=True)
class CudaDevice:
    """A GPU that torch sees."""

    index: int
    name: str
    memory_bytes: int


def cuda_devices() -> list[CudaDevice]:
    """The GPUs that torch can use; none if it was built or started without CUDA.

    Raises:
        ImportError, OSError: torch is broken.
    """
    import torch

    if not torch.cuda.is_available():
        return []
    found = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        found.append(CudaDevice(index, properties.name, properties.total_memory))
    return found


@contextmanager
def computing(elements: int) -> Iterator[None]:
    """Set up torch for training inside the block, and restore its settings afterwards.

    Denormal numbers are flushed to 0: Adam's moments of rarely used weights decay to them, and they
    are slow. Small operations use one thread. A second thread gains little there, and if another
    program keeps a core busy, the run takes up to ten times as long, because threads wait for each
    other at every operation.

    Args:
        elements: how many numbers one operation works on.
    """
    import torch

    before = torch.get_num_threads()
    flushed = not (torch.tensor(1e-38) * 0.1).item()  # torch has no function that tells
    torch.set_flush_denormal(True)
    if elements < _WORTH_THREADS:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.set_flush_denormal(flushed)


def is_full_memory(error: Exception) -> bool:
    """Whether an exception means that the machine or the GPU is out of memory."""
    import torch

    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or any(words in str(error) for words in _FULL_MEMORY)


def check_device_name(given: str) -> None:
    """Check the form of a device's name, before torch is imported.

    Raises:
        InputError: the name is not a device.
    """
    if given not in (AUTO, "cpu") and not _CUDA.fullmatch(given):
        raise InputError(f"No device '{given}'. Use auto, cpu, cuda or cuda:N.")


def resolve_device(given: str) -> "torch.device":
    """The device that a name stands for; `auto` is the first GPU if there is one, else the CPU.

    Raises:
        InputError: the name is not a device, or this machine does not have it.
    """
    check_device_name(given)
    import torch

    if given == "cpu":
        return torch.device("cpu")
    match = _CUDA.fullmatch(given)
    present = len(cuda_devices())
    if match is None:
        return torch.device("cuda", 0) if present else torch.device("cpu")
    if not present:
        raise InputError(
            f"There is no GPU that torch {torch.__version__} can use, so not '{given}'. Use cpu, "
            "or install a build of torch for CUDA; 'ihgnn env' shows what is there."
        )
    index = int(match[1] or 0)
    if index >= present:
        raise InputError(
            f"No device '{given}': this machine has {counted(present, 'GPU')}, cuda:0 to "
            f"cuda:{present - 1}."
        )
    return torch.device("cuda", index)
