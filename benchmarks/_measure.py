"""Shared code of the benchmarks: options, machine facts, tables, claims.

This module imports nothing heavy. On Linux a child process starts with the peak memory of its
parent, so the measuring script must stay small.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

DATA_VARIABLE = "IHGNN_DATA"
# Bytes of memory per byte of text, a little above the 17 that TUDataset needs for COLLAB.
PRIMED = 20
_DISTRIBUTIONS = ("numpy", "torch", "torch-geometric", "ihgnn-cli")


@dataclass(frozen=True)
class Timing:
    """Wall times of the same work, in seconds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The value that ratios use."""
        return statistics.median(self.seconds)

    def cells(self) -> tuple[str, str]:
        """The median and the range, for a table; the range shows how noisy the runs were."""
        return duration(
            self.median
        ), f"{duration(min(self.seconds))} – {duration(max(self.seconds))}"


@dataclass(frozen=True)
class Claim:
    """A ratio that should be at least (or at most) `target`."""

    text: str
    target: float
    measured: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        """Whether this run confirms the claim."""
        return self.measured <= self.target if self.at_most else self.measured >= self.target

    def line(self) -> str:
        """The claim, what was measured, and the verdict."""
        verdict = "PASS" if self.met else "MISSED"
        bound = f"at {'most' if self.at_most else 'least'} {self.target:g}×"
        return f"{verdict:<6}  {self.text}: {bound}, measured {self.measured:.3g}×"


def parser(description: str, runs: int) -> argparse.ArgumentParser:
    """The options of all benchmarks, the same for each script."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--json", action="store_true", help="print one JSON document")
    options.add_argument(
        "--runs",
        type=positive,
        default=runs,
        help="repetitions, of which the median counts (%(default)s)",
    )
    return options


def positive(text: str) -> int:
    """A whole number from 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("has to be at least 1")
    return number


def add_dataset(options: argparse.ArgumentParser) -> None:
    """Add the option for benchmarks on real data."""
    options.add_argument(
        "--dataset",
        default="COLLAB",
        help=f"NAME of ${DATA_VARIABLE}/NAME.zip (%(default)s; DD is a smaller one)",
    )


def find_zip(benchmark: str, options: argparse.Namespace) -> Path | None:
    """The data set's zip in the data folder; reports a skip if it is missing."""
    folder = os.environ.get(DATA_VARIABLE)
    if folder:
        path = Path(folder).expanduser().absolute() / f"{options.dataset}.zip"
        if path.is_file():
            return path
        reason = f"there is no {options.dataset}.zip in the folder that {DATA_VARIABLE} names."
    else:
        reason = f"{DATA_VARIABLE} does not name a folder with {options.dataset}.zip."
    skip(benchmark, reason, as_json=options.json)
    return None


def skip(benchmark: str, reason: str, *, as_json: bool) -> None:
    """Report that nothing was measured; missing data is not a failure."""
    if as_json:
        print(json.dumps({"benchmark": benchmark, "skipped": reason}))
    else:
        print(f"{benchmark}: skipped, {reason}")


def machine() -> dict[str, Any]:
    """Cores that this process may use, system and versions."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS and Windows
    return {
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in _DISTRIBUTIONS},
    }


def peak_memory() -> int:
    """The largest resident memory of this process so far, in bytes."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def warm(*files: Path) -> None:
    """Read files into the page cache, in blocks to keep this process small."""
    for file in files:
        with file.open("rb") as stream:
            while stream.read(1 << 20):
                pass


def prime(raw_bytes: int) -> None:
    """Touch and free the same amount of memory in another process before each part.

    On a virtual machine, memory that another process has just freed is much cheaper to allocate
    than memory that the host has reclaimed. Without this, the part after TUDataset looks faster.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    size = min(PRIMED * raw_bytes, physical // 2)
    fill = f"import numpy; numpy.ones({size}, dtype=numpy.uint8)"
    subprocess.run([sys.executable, "-c", fill], check=True)


def report(
    benchmark: str,
    figures: dict[str, Any],
    text: str,
    claims: Sequence[Claim] = (),
    *,
    as_json: bool,
) -> None:
    """Print the figures for programs, or the text for people."""
    facts = machine()
    if as_json:
        verdicts = [{**asdict(claim), "met": claim.met} for claim in claims]
        document = {"benchmark": benchmark, "machine": facts, "figures": figures}
        print(json.dumps({**document, "claims": verdicts}, indent=2))
        return
    versions = ", ".join(f"{key} {facts[key]}" for key in ("python", *_DISTRIBUTIONS))
    print(f"{benchmark}: {facts['cores']} cores, {facts['platform']}, {versions}\n\n{text}")
    if claims:
        print("\nTargets:")
        print("\n".join(claim.line() for claim in claims))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain-text table: first column aligned left, the others right."""
    lines = [header, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def duration(seconds: float) -> str:
    """Seconds, or milliseconds below one second."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def mebibytes(size: float) -> str:
    """A size in MiB."""
    return f"{size / 2**20:,.0f} MiB"
