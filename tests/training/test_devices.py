"""Names of devices, on machines with and without GPUs."""

import pytest
import torch

from ihgnn_cli.errors import InputError
from ihgnn_cli.training import devices
from ihgnn_cli.training.devices import CudaDevice, computing, cuda_devices, resolve_device


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cuda_devices", list)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [CudaDevice(index, "GPU", 2**33) for index in range(2)]
    monkeypatch.setattr(devices, "cuda_devices", lambda: found)


WRONG = ["", "CPU", "gpu", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:1000", "cuda 1", "cpu\n"]


@pytest.mark.parametrize("given", WRONG)
def test_wrong_names_are_refused_with_the_right_ones(given: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_device(given)
    assert str(caught.value) == f"No device '{given}'. Use auto, cpu, cuda or cuda:N."


def test_the_settings_of_torch_are_as_before_after_training() -> None:
    def denormal() -> float:
        return (torch.tensor(1e-38) * 0.1).item()

    threads = torch.get_num_threads()
    assert denormal() > 0
    with computing(10):
        with computing(10):
            assert (denormal(), torch.get_num_threads()) == (0, 1)
        assert (denormal(), torch.get_num_threads()) == (0, 1)
    assert denormal() > 0
    assert torch.get_num_threads() == threads


# Without a GPU


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("given", ["cpu", "auto"])
def test_without_a_gpu_the_cpu_is_used(given: str) -> None:
    assert resolve_device(given) == torch.device("cpu")


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("given", ["cuda", "cuda:0", "cuda:7"])
def test_a_gpu_that_is_not_there_is_refused_and_not_replaced(given: str) -> None:
    with pytest.raises(
        InputError, match=f"There is no GPU that torch .* so not '{given}'. Use cpu"
    ):
        resolve_device(given)


def test_torch_without_cuda_has_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert cuda_devices() == []


# With two


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("given", "expected"),
    [("auto", "cuda:0"), ("cuda", "cuda:0"), ("cuda:0", "cuda:0"), ("cuda:1", "cuda:1")],
)
def test_gpus_are_named_by_number_and_the_first_is_the_default(given: str, expected: str) -> None:
    assert resolve_device(given) == torch.device(expected)
    assert str(resolve_device(given)) == expected


@pytest.mark.usefixtures("two_gpus")
def test_the_cpu_is_used_if_asked_for() -> None:
    assert resolve_device("cpu") == torch.device("cpu")


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("given", ["cuda:2", "cuda:7"])
def test_a_number_beyond_the_last_gpu_is_refused(given: str) -> None:
    with pytest.raises(InputError) as caught:
        resolve_device(given)
    assert str(caught.value) == f"No device '{given}': this machine has 2 GPUs, cuda:0 to cuda:1."


def test_gpus_are_told_with_their_names_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Properties:
        name = "Tesla T4"
        total_memory = 16 * 2**30

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: Properties)
    expected = [CudaDevice(index, "Tesla T4", 16 * 2**30) for index in (0, 1)]
    assert cuda_devices() == expected


def test_few_numbers_are_computed_with_one_thread_and_many_with_all() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with computing(1000):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with computing(10**9):
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
