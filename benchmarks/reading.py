"""Reading a data set in TU format, against torch-geometric's TUDataset in the same run.

Every part is a fresh process that imports the same modules. It times its own work without the
imports, and reports the peak memory of the whole process, including imports. The parts take turns.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from statistics import median
from typing import Any

from _measure import (
    Claim,
    Timing,
    add_dataset,
    duration,
    find_zip,
    mebibytes,
    parser,
    peak_memory,
    prime,
    report,
    skip,
    table,
    warm,
)

TU_FIRST, TU_AGAIN = "TUDataset, first parse", "TUDataset, second load"
FOLDER_FIRST, FOLDER_AGAIN = "ihgnn, first parse of the folder", "ihgnn, cached load, folder"
ZIP_FIRST, ZIP_AGAIN = "ihgnn, first parse of the zip", "ihgnn, cached load, zip"

EXPLANATION = """\
Each part is a fresh process, {runs} of each in turn, medians. Times leave the imports out; the
peak memory (ru_maxrss) holds them, and both sides import the same: {before} before the work.
Before each part the raw files are read once, so that all start from a warm page cache, and
another process touches and frees more memory than any part takes, so that none profits alone.
CPU is user and system time; other work on the machine disturbs it less than the wall time.
TUDataset's first parse is its constructor, which also saves and reloads its processed file;
ihgnn's first parse also writes its cache. A cached load hashes the source and checks the cache.
"""


@dataclass(frozen=True)
class Part:
    """The measurements that a process reports."""

    seconds: float
    peak: int
    """Bytes, at the end."""
    before: int
    """Bytes, after the imports."""
    cpu: float
    """Seconds of processor time, user and system, of all threads."""
    graphs: int
    directed_edges: int


def main() -> None:
    options = parser("Time reading against torch-geometric's TUDataset.", runs=3)
    add_dataset(options)
    options.add_argument("--part", nargs=3, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.part:
        print(json.dumps(asdict(work(*given.part))))
        return
    if sys.platform == "win32":
        skip("reading", "peak memory is not measured on Windows.", as_json=given.json)
        return
    archive = find_zip("reading", given)
    if archive is None:
        return
    parts = measure(archive, given.dataset, given.runs)
    seen = {(each.graphs, each.directed_edges) for some in parts.values() for each in some}
    figures = {
        "dataset": given.dataset,
        "graphs_and_directed_edges": sorted(seen),
        "all_read_the_same": len(seen) == 1,
        "parts": {name: summary(each, parts[TU_FIRST]) for name, each in parts.items()},
    }
    report("reading", figures, as_text(figures), claims(figures["parts"]), as_json=given.json)


def work(who: str, path: str, name: str) -> Part:
    """Read once, in this process; both sides load the same modules."""
    from torch_geometric.datasets import TUDataset

    from ihgnn_cli.data.sources import load_dataset

    before = peak_memory()
    start, cpu_start = time.perf_counter(), time.process_time()
    read: Any = load_dataset(path, offline=True) if who == "ihgnn" else TUDataset(path, name)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    edges = 2 * read.num_edges if who == "ihgnn" else read._data.edge_index.size(1)
    return Part(seconds, peak_memory(), before, cpu, len(read), edges)


def measure(archive: Path, name: str, runs: int) -> dict[str, list[Part]]:
    """Run all parts in turn, `runs` times, each time from the raw files alone."""
    order = (TU_FIRST, FOLDER_FIRST, ZIP_FIRST, FOLDER_AGAIN, ZIP_AGAIN, TU_AGAIN)
    parts: dict[str, list[Part]] = {each: [] for each in order}
    with tempfile.TemporaryDirectory() as temporary:
        root, cache = Path(temporary, "root"), Path(temporary, "cache")
        folder = root / name
        extract(archive, folder / "raw")
        raw = list((folder / "raw").iterdir())
        for _ in range(runs):
            shutil.rmtree(folder / "processed", ignore_errors=True)
            shutil.rmtree(cache, ignore_errors=True)
            for part in order:
                warm(archive, *raw)
                prime(sum(file.stat().st_size for file in raw))
                who = "TUDataset" if part in {TU_FIRST, TU_AGAIN} else "ihgnn"
                path = archive if part in {ZIP_FIRST, ZIP_AGAIN} else folder
                path = root if who == "TUDataset" else path
                parts[part].append(in_process(who, path, name, cache))
            # The folder and the zip have different hashes. Any other number of entries means that
            # a part read a cache it should not have, or missed one it should have read.
            if len(list(cache.iterdir())) != 2:
                raise RuntimeError("The cache does not hold the folder and the zip, once each.")
    return parts


def in_process(who: str, path: Path, name: str, cache: Path) -> Part:
    """Run one part in its own process."""
    command = [sys.executable, __file__, "--part", who, str(path), name]
    environment = {**os.environ, "IHGNN_CACHE": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{who} failed:\n{done.stderr}")
    return Part(**json.loads(done.stdout.splitlines()[-1]))


def extract(archive: Path, folder: Path) -> None:
    """Extract the text files where TUDataset expects them."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(archive) as opened:
        for member in opened.namelist():
            if member.endswith(".txt"):
                target = folder / PurePosixPath(member).name
                with opened.open(member) as source, target.open("wb") as sink:
                    shutil.copyfileobj(source, sink)


def summary(parts: list[Part], reference: list[Part]) -> dict[str, Any]:
    """Medians of a part, and how it compares with TUDataset's first parse."""
    seconds = tuple(each.seconds for each in parts)
    peak = median(each.peak for each in parts)
    return {
        "median": median(seconds),
        "seconds": seconds,
        "cpu_seconds": median(each.cpu for each in parts),
        "peak_bytes": int(peak),
        "bytes_before": int(median(each.before for each in parts)),
        "times_faster": median(each.seconds for each in reference) / median(seconds),
        "times_smaller": median(each.peak for each in reference) / peak,
    }


def claims(figures: dict[str, Any]) -> list[Claim]:
    """The claims about COLLAB, checked on the measured data set."""
    first = figures[FOLDER_FIRST]
    return [
        Claim("first parse of the folder, faster", 5, first["times_faster"]),
        Claim("first parse of the folder, less peak memory", 3, first["times_smaller"]),
        Claim("cached load of the folder, faster", 100, figures[FOLDER_AGAIN]["times_faster"]),
        Claim("cached load of the zip, faster", 100, figures[ZIP_AGAIN]["times_faster"]),
    ]


def as_text(figures: dict[str, Any]) -> str:
    """The figures as a table; ratios are relative to TUDataset's first parse."""
    parts, seen = figures["parts"], figures["graphs_and_directed_edges"]
    rows = [
        (
            name,
            *Timing(each["seconds"]).cells(),
            duration(each["cpu_seconds"]),
            mebibytes(each["peak_bytes"]),
            f"{each['times_faster']:.1f}×",
            f"{each['times_smaller']:.1f}×",
        )
        for name, each in parts.items()
    ]
    before = mebibytes(median(each["bytes_before"] for each in parts.values()))
    read = f"{seen[0][0]:,} graphs, {seen[0][1]:,} directed edges in all parts alike."
    if not figures["all_read_the_same"]:
        read = f"THE READERS DISAGREE about graphs and directed edges: {seen}."
    return "\n".join(
        [
            f"Reading {figures['dataset']}: {read}",
            EXPLANATION.format(runs=len(parts[TU_FIRST]["seconds"]), before=before),
            table(("part", "time", "range", "CPU", "peak memory", "faster", "smaller"), rows),
        ]
    )


if __name__ == "__main__":
    main()
