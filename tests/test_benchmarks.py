"""What the benchmarks measure and the tests can hold: memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
GIGABYTE = 2**30


@pytest.mark.long
@pytest.mark.parametrize("name", ["DD", "COLLAB"])
def test_an_epoch_of_the_largest_data_sets_takes_less_than_3_gb(name: str, real_data: Path) -> None:
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "training.py", "--memory-of", name],
        env={**os.environ, "IHGNN_DATA": str(real_data)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout.split()[1]) < 3 * GIGABYTE
