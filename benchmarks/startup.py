"""Processor time until the command line answers, compared with its help and the import of torch.

Every run is a fresh process; the commands take turns, so that noise affects all of them. Processor
time (user and system) is steadier than wall time on a busy machine.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from _measure import Claim, Timing, parser, report, skip, table

TORCH = 'python -c "import torch, torch_geometric"'
HELP, MODELS = "ihgnn --help", "ihgnn models"
TRAIN = "ihgnn train --epochs 3 --quiet"
REFUSALS = (
    "ihgnn train --epochs 0",
    "ihgnn train --dataset nope.jsonl",
    "ihgnn train --model gin --set nope=1",
    "ihgnn tune --lr 0.1-0.2",
    "ihgnn crossval --layers x",
    "ihgnn reproduce table1 --models nope",
    "ihgnn evaluate nope",
    "ihgnn predict nope.onnx nope.jsonl",
)
"""Commands that end with exit code 2."""


def main() -> None:
    options = parser("Time ihgnn's answers against its help and torch.", runs=5).parse_args()
    ihgnn = find_command()
    if ihgnn is None:
        skip("startup", "the command ihgnn is not installed.", as_json=options.json)
        return
    commands = {
        TORCH: [sys.executable, "-c", "import torch, torch_geometric"],
        **{
            text: [ihgnn, *text.split()[1:]]
            for text in (HELP, MODELS, "ihgnn homophily MUTAG", *REFUSALS, TRAIN)
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        timings = measure(commands, options.runs, folder)
    of_help, of_torch = timings[HELP].median, timings[TORCH].median
    rows = [
        (
            name,
            *timing.cells(),
            f"{timing.median / of_help:.2f}×",
            f"{timing.median / of_torch:.2f}×",
        )
        for name, timing in timings.items()
    ]
    text = "\n".join(
        [
            f"Processor time of a fresh process, median of {options.runs} runs in turn after one",
            "that is not counted; MUTAG is bundled, and parsed in the run that is not counted.",
            "",
            table(("command", "median", "range", "of --help", "of importing torch"), rows),
        ]
    )
    slowest = max(timings[each].median for each in REFUSALS)
    claims = [
        Claim("slowest refusal, of --help", 1.5, slowest / of_help, at_most=True),
        Claim(f"{MODELS}, of --help", 2, timings[MODELS].median / of_help, at_most=True),
        Claim(
            f"{TRAIN}, of importing torch and torch_geometric",
            2.5,
            timings[TRAIN].median / of_torch,
            at_most=True,
        ),
    ]
    figures = {
        name: {"median": timing.median, "seconds": timing.seconds}
        for name, timing in timings.items()
    }
    report("startup", figures, text, claims, as_json=options.json)


def find_command() -> str | None:
    """The console script in this Python's environment, else the one on the path."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("ihgnn", path=beside) or shutil.which("ihgnn")


def measure(commands: dict[str, list[str]], runs: int, folder: str) -> dict[str, Timing]:
    """Processor times by command, in a folder that is removed afterwards."""
    environment = {**os.environ, "IHGNN_CACHE": str(Path(folder) / "cache")}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(runs + 1):
        for name, command in commands.items():
            before = spent()
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, check=False
            )
            if done.returncode != (2 if name in REFUSALS else 0):
                raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr!r}")
            if turn:
                seconds[name].append(spent() - before)
    return {name: Timing(tuple(each)) for name, each in seconds.items()}


def spent() -> float:
    """Processor time of all finished child processes, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
