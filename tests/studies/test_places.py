"""Who works where; that they survive each other is told in tests/e2e/test_crossval.py."""

import os

import pytest
import torch

from ihgnn_cli.errors import InputError
from ihgnn_cli.jobs import old_processes
from ihgnn_cli.studies import places
from ihgnn_cli.training import devices


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    found = [devices.CudaDevice(number, "GPU", 2**30) for number in range(count)]
    monkeypatch.setattr(devices, "cuda_devices", lambda: found)
    monkeypatch.setattr(places, "cuda_devices", lambda: found)


def free(monkeypatch: pytest.MonkeyPatch, **by_device: int) -> None:
    """Let so much memory be free, by the kind and number of a device."""

    def free_memory(device: torch.device) -> int:
        return by_device[device.type if device.index is None else f"{device.type}{device.index}"]

    monkeypatch.setattr(places, "free_memory", free_memory)


def test_one_worker_a_core_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "cores", lambda: [0, 1, 2])
    executor = places.local_executor("cpu", None)
    assert executor.workers == 3
    assert executor.device == torch.device("cpu")
    assert places.local_places("cpu", None).devices == ("cpu",) * 3
    assert places.local_executor("cpu", 5).workers == 5


def test_one_worker_a_gpu_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    free(monkeypatch, cuda0=2**30, cuda1=2**30)
    for given in ("auto", "cuda"):
        assert places.local_places(given, None).devices == ("cuda:0", "cuda:1")
    assert places.local_places("cuda:1", None).devices == ("cuda:1",)
    assert places.local_places("auto", 3).devices == ("cuda:0", "cuda:1", "cuda:0")


def test_the_memory_of_a_machine_is_shared_by_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "cores", lambda: [0, 1, 2])
    free(monkeypatch, cpu=1000)
    assert places.local_executor("cpu", None).memory == 333
    assert places.local_executor("cpu", 1).memory == 1000
    assert places.local_executor("cpu", 5).memory == 200


def test_a_worker_has_a_gpu_or_its_share_of_one_and_the_smallest_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpus(monkeypatch, 2)
    free(monkeypatch, cuda0=900, cuda1=500)
    for given in ("auto", "cuda"):
        assert places.local_executor(given, None).memory == 500
    assert places.local_executor("auto", 3).memory == 250  # two share a GPU
    assert places.local_executor("cuda:0", None).memory == 900
    assert places.local_executor("cuda:0", 2).memory == 450


def test_no_workers_are_refused() -> None:
    with pytest.raises(InputError, match="workers must be at least 1"):
        places.local_executor("cpu", 0)


def test_children_start_with_one_thread_and_the_parent_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    with old_processes.one_thread_each():
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
