"""Training epochs against a plain torch-geometric loop of the same model, and peak memory.

The two sides alternate epoch by epoch, so that noise on the machine affects both. `_plain.py`
defines what they train.
"""

import subprocess
import sys
import time

from _measure import (
    Claim,
    Timing,
    duration,
    mebibytes,
    parser,
    peak_memory,
    report,
    skip,
    table,
)
from _plain import BATCH_SIZE, LAYERS, at_hand, load_task, plain, stack

WARM_UP = 3
# Epochs per side by data set: enough for a stable median, few enough to wait for.
EPOCHS = {"MUTAG": 60, "IMDB-BINARY": 20, "PROTEINS": 12}
TARGETS = {"MUTAG": 1.6, "IMDB-BINARY": 2.5, "PROTEINS": 3.0}
MEMORY = ("DD", "COLLAB")
MEMORY_TARGET = 3 * 2**30


def main() -> None:
    options = parser("Time training against a plain torch-geometric loop.", runs=1)
    options.add_argument("--threads", type=int, default=2, help="of torch, both sides (2)")
    options.add_argument("--memory-of", help="train one epoch of this data set, print the peak")
    given = options.parse_args()
    if given.memory_of:
        one_epoch(given.memory_of)
        return
    here = {name: at_hand(name) for name in (*EPOCHS, *MEMORY)}
    # Memory first: a child process starts with the peak of its parent, which is still small.
    peaks = {name: memory(name) for name in MEMORY if here[name]}
    times = {
        name: compare(name, epochs * given.runs, given.threads)
        for name, epochs in EPOCHS.items()
        if here[name]
    }
    for name, present in here.items():
        if not present:
            skip(f"training on {name}", f"there is no {name}.zip at hand.", as_json=given.json)
    claims = [
        Claim(f"epochs a second on {name}", TARGETS[name], peer.median / ours.median)
        for name, (ours, peer) in times.items()
    ]
    claims += [
        Claim(f"3 GB over the peak memory of an epoch on {name}", 1, MEMORY_TARGET / peak)
        for name, (_, peak) in peaks.items()
    ]
    figures = {
        "batch_size": BATCH_SIZE,
        "layers": LAYERS,
        "threads": given.threads,
        "seconds_an_epoch": {
            name: {"ihgnn": ours.seconds, "torch-geometric": peer.seconds}
            for name, (ours, peer) in times.items()
        },
        "one_epoch": {
            name: {"seconds": seconds, "peak_bytes": peak}
            for name, (seconds, peak) in peaks.items()
        },
    }
    report("training", figures, as_text(times, peaks, given.threads), claims, as_json=given.json)


def compare(name: str, epochs: int, threads: int) -> tuple[Timing, Timing]:
    """Seconds per epoch for ours and for the plain loop, in turns."""
    import torch

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)  # as in `ihgnn train`; the same for both sides
    task = load_task(name)
    sides = stack(task).train_epoch, plain(task)
    seconds: list[list[float]] = [[] for _ in sides]
    for epoch in range(WARM_UP + epochs):
        for side, epoch_of in enumerate(sides):
            start = time.perf_counter()
            epoch_of()
            if epoch >= WARM_UP:
                seconds[side].append(time.perf_counter() - start)
    ours, peer = (Timing(tuple(each)) for each in seconds)
    return ours, peer


def memory(name: str) -> tuple[float, int]:
    """Seconds and peak memory of reading a data set and training one epoch, in its own process."""
    done = subprocess.run(
        [sys.executable, __file__, "--memory-of", name], check=True, capture_output=True, text=True
    )
    seconds, peak = done.stdout.split()
    return float(seconds), int(peak)


def one_epoch(name: str) -> None:
    """What `ihgnn train --epochs 1` does, without its folder."""
    epoch = stack(load_task(name)).train_epoch
    start = time.perf_counter()
    epoch()
    print(time.perf_counter() - start, peak_memory())


def as_text(
    times: dict[str, tuple[Timing, Timing]], peaks: dict[str, tuple[float, int]], threads: int
) -> str:
    rows = [
        (name, *ours.cells(), *peer.cells(), f"{peer.median / ours.median:.2f}×")
        for name, (ours, peer) in times.items()
    ]
    memories = [
        (name, duration(seconds), mebibytes(peak)) for name, (seconds, peak) in peaks.items()
    ]
    head = ("an epoch", "ihgnn", "range", "torch-geometric", "range", "faster")
    return "\n".join(
        [
            f"K = {LAYERS}, batches of {BATCH_SIZE}, {threads} threads, medians, in turns.",
            "",
            table(head, rows),
            "",
            "One epoch in a process of its own (imports and reading included in the memory):",
            "",
            table(("", "epoch", "peak memory"), memories),
        ]
    )


if __name__ == "__main__":
    main()
