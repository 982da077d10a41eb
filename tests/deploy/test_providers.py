"""Which onnxruntime providers really load."""

import onnxruntime
import pytest

from ihgnn_cli.deploy.providers import loadable_providers


def test_the_cpu_always_loads_and_every_listed_provider_is_told_about(
    capfd: pytest.CaptureFixture[str],
) -> None:
    found = loadable_providers()
    assert found["CPUExecutionProvider"] is True
    assert set(found) == set(onnxruntime.get_available_providers())
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(
    "CUDAExecutionProvider" not in onnxruntime.get_available_providers(),
    reason="this onnxruntime was built without CUDA",
)
def test_cuda_is_not_claimed_where_torch_finds_no_gpu() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert loadable_providers()["CUDAExecutionProvider"] is False
