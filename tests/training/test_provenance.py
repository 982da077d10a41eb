"""Where a result came from: the machine as far as the system tells."""

import platform
from pathlib import Path

import pytest
import torch

from ihgnn_cli.training import provenance
from ihgnn_cli.training.provenance import machine_facts

CPU = torch.device("cpu")
TWO_CORES = """\
processor\t: 0
vendor_id\t: GenuineIntel
model\t\t: 85
model name\t: Intel(R) Xeon(R) CPU: 2.20GHz

processor\t: 1
model name\t: another
"""


def device_name(monkeypatch: pytest.MonkeyPatch, cpuinfo: Path, told: str) -> str:
    """Where the system has this file, and tells Python this of the processor."""
    monkeypatch.setattr(provenance, "_CPUINFO", cpuinfo)
    monkeypatch.setattr(platform, "processor", lambda: told)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    name: str = machine_facts(CPU)["device_name"]
    return name


@pytest.mark.parametrize("told", ["", "x86_64"])
def test_linux_names_the_model_of_the_first_core(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(TWO_CORES)
    assert device_name(monkeypatch, file, told) == "Intel(R) Xeon(R) CPU: 2.20GHz"


@pytest.mark.parametrize("content", [b"", b"BogoMIPS : 48.00\n", b"model name\t:\n", b"\xff\xfe"])
def test_a_file_without_a_model_is_passed_by(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_bytes(content)
    assert device_name(monkeypatch, file, "arm") == "arm"
    assert device_name(monkeypatch, file, "") == "x86_64"


def test_other_systems_have_no_such_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert device_name(monkeypatch, tmp_path / "nowhere", "Intel64 Family 6") == "Intel64 Family 6"
    assert device_name(monkeypatch, tmp_path / "nowhere", "") == "x86_64"
