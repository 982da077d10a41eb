"""How many workers there are, on which devices, with how much memory."""

import pytest
import torch

from ihgnn_cli.errors import InputError
from ihgnn_cli.studies import workers
from ihgnn_cli.studies.workers import local_workers
from ihgnn_cli.training import devices

GB = 2**30


def machine(monkeypatch: pytest.MonkeyPatch, *, cores: int, host: int, gpus: list[int]) -> None:
    """A machine with this many cores, and free memory on the host and on each GPU."""
    found = [devices.CudaDevice(number, "GPU", free) for number, free in enumerate(gpus)]
    monkeypatch.setattr(devices, "cuda_devices", lambda: found)
    monkeypatch.setattr(workers, "cuda_devices", lambda: found)
    monkeypatch.setattr(workers, "cores", lambda: list(range(cores)))

    def free_memory(device: torch.device) -> int:
        return host if device.type == "cpu" else gpus[device.index]

    monkeypatch.setattr(workers, "free_memory", free_memory)


def test_without_a_gpu_there_is_a_pinned_worker_per_core(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, cores=3, host=999, gpus=[])
    auto = local_workers("cpu")
    assert [(place.device, place.core) for place in auto.places] == [("cpu", at) for at in range(3)]
    assert (auto.device, auto.memory, auto.note) == (torch.device("cpu"), 333, "")
    five = local_workers("cpu", 5)
    assert [place.core for place in five.places] == [None] * 5
    assert five.memory == 199


@pytest.mark.parametrize(
    ("cores", "gigabytes", "expected"),
    [
        (32, (64, 80, 0), 8),  # never more than 8
        (4, (64, 80, 0), 4),  # cores
        (32, (6, 80, 0), 3),  # memory of the machine
        (32, (64, 6, 0), 4),  # memory of the GPU
        (32, (64, 6, 2), 2),  # which models need
        (32, (64, 1, 2), 1),  # at least one
    ],
)
def test_by_default_several_workers_share_a_gpu_and_say_so(
    monkeypatch: pytest.MonkeyPatch, cores: int, gigabytes: tuple[int, int, int], expected: int
) -> None:
    host, free, needed = (each * GB for each in gigabytes)
    machine(monkeypatch, cores=cores, host=host, gpus=[free])
    auto = local_workers("auto", needed=needed)
    assert [place.device for place in auto.places] == ["cuda:0"] * expected
    assert auto.memory == free // expected
    said = f"{expected} worker processes on 1 GPU: "
    assert auto.note.startswith(said) if expected > 1 else not auto.note


def test_workers_are_divided_among_gpus_and_a_number_is_taken_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine(monkeypatch, cores=4, host=64 * GB, gpus=[9 * GB, 5 * GB])
    auto = local_workers("cuda")
    assert [place.device for place in auto.places] == ["cuda:0", "cuda:1"] * 2
    assert auto.memory == 5 * GB // 2  # the smaller one's
    nine = local_workers("cuda:1", 9)
    assert [place.device for place in nine.places] == ["cuda:1"] * 9
    assert nine.memory == 5 * GB // 9
    assert not nine.note


def test_no_workers_are_refused() -> None:
    with pytest.raises(InputError, match="workers must be at least 1, not 0"):
        local_workers("cpu", 0)
