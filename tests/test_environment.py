"""The bug report's block, also on a broken installation."""

import pytest

from ihgnn_cli import environment
from ihgnn_cli.cli.env import env


def broken() -> dict[str, bool]:
    raise ImportError("libcuda.so: cannot open shared object file\nmore")


def test_a_library_that_does_not_start_is_reported_and_the_rest_stays(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "cuda_devices", broken)
    monkeypatch.setattr(environment, "loadable_providers", broken)
    found = environment.describe_environment()
    assert found.cuda_devices == "ImportError: libcuda.so: cannot open shared object file"
    env()
    shown = capsys.readouterr().out
    assert "torch starts" in shown
    assert "libcuda.so" in shown
    assert "data root" in shown
