"""Environments with a few packages, for tests of what runs without the others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Saved before tests lose access to the network.
_WITH_A_WAY_OUT = dict(os.environ)


def python_with(folder: Path, *packages: str) -> Path:
    """The Python of a new environment; without a network the test is skipped, but not in CI."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=120)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    install = [python, "-m", "pip", "install", "--quiet", *packages]
    done = subprocess.run(
        install, capture_output=True, text=True, timeout=600, check=False, env=_WITH_A_WAY_OUT
    )
    if done.returncode:
        reason = f"{', '.join(packages)} cannot be installed here: {done.stderr.strip()[-200:]}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return python
