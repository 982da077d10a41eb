"""Response time of the command line, compared with importing torch alone.

Every run is a fresh process; the commands take turns, so that noise affects all of them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import Timing, parser, report, skip, table

TORCH = 'python -c "import torch"'


def main() -> None:
    options = parser("Time ihgnn's start against the import of torch.", runs=11).parse_args()
    ihgnn = find_command()
    if ihgnn is None:
        skip("startup", "the command ihgnn is not installed.", as_json=options.json)
        return
    commands = {
        'python -c "pass"': [sys.executable, "-c", "pass"],
        TORCH: [sys.executable, "-c", "import torch"],
        "ihgnn --help": [ihgnn, "--help"],
        "ihgnn homophily MUTAG --offline": [ihgnn, "homophily", "MUTAG", "--offline"],
    }
    with tempfile.TemporaryDirectory() as cache:
        timings = measure(commands, options.runs, {**os.environ, "IHGNN_CACHE": cache})
    torch = timings[TORCH].median
    rows = [
        (name, *timing.cells(), f"{torch / timing.median:.1f}×") for name, timing in timings.items()
    ]
    text = "\n".join(
        [
            f"Wall time of a fresh process, median of {options.runs} runs in turn after one",
            "that is not counted; MUTAG is bundled, and parsed in the run that is not counted.",
            "",
            table(("command", "median", "range", "faster than import torch"), rows),
        ]
    )
    figures = {
        name: {"median": timing.median, "seconds": timing.seconds, "ratio": torch / timing.median}
        for name, timing in timings.items()
    }
    report("startup", figures, text, as_json=options.json)


def find_command() -> str | None:
    """The console script in this Python's environment, else the one on the path."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("ihgnn", path=beside) or shutil.which("ihgnn")


def measure(
    commands: dict[str, list[str]], runs: int, environment: dict[str, str]
) -> dict[str, Timing]:
    """Wall times by command."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(each)) for name, each in seconds.items()}


if __name__ == "__main__":
    main()
