"""Provenance, which every result file records."""

import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from ihgnn_cli import __version__
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.versions import code_sha256, package_versions

_CPUINFO = Path("/proc/cpuinfo")


def provenance(card: ModelCard, device: torch.device, command: str) -> dict[str, Any]:
    """Versions, data and split hashes, device and command, as plain values."""
    return {
        **machine_facts(device),
        "dataset": card.dataset_name,
        "data_sha256": card.fingerprint,
        "split_sha256": card.split.digest,
        "threads": torch.get_num_threads(),
        "command": command,
    }


def machine_facts(device: torch.device) -> dict[str, Any]:
    """Versions, system and device, as plain values."""
    if device.type != "cuda":
        name = _processor()
    elif torch.cuda.is_available():
        name = torch.cuda.get_device_name(device)
    else:
        name = "on other machines"  # of a cluster
    return {
        "ihgnn": __version__,
        "code_sha256": code_sha256(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": package_versions(),
        "device": str(device),
        "device_name": name,
    }


def _processor() -> str:
    """The processor model, on which rounding depends, if the system reports it."""
    with suppress(OSError):  # only Linux has the file; `platform` does not read it
        for line in _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()
