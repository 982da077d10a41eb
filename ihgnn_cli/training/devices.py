"""The devices that torch can compute on."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CudaDevice:
    """A GPU that torch sees."""

    index: int
    name: str
    memory_bytes: int


def cuda_devices() -> list[CudaDevice]:
    """The GPUs that torch can use, none where it was built or started without CUDA.

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
