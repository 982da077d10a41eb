"""The training loop of this checkout against that of another revision, in turns.

Both train a stack of the size that `ihgnn crossval --stack auto` would use in each version, on one
thread, as a worker of a two-core machine does. Model-epochs are counted per second of processor
time, so that other work on the machine matters less. Optimizer steps start at 300, as in most of a
training (the first 300 steps are plain Adam). Peak memory is that of the whole process.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import SUPPRESS
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from _measure import Claim, parser, peak_memory, report, skip, table
from _plain import BATCH_SIZE, LAYERS, at_hand, late, load_task, stack

DATASETS = ("MUTAG", "BZR_MD", "IMDB-BINARY", "PROTEINS", "COLLAB", "DD")
# Speedup over the revision before ranks were left out and batches aligned.
TARGETS = {"DD": 1.3, "PROTEINS": 1.05, "COLLAB": 1.05, "IMDB-BINARY": 1.05}
NOT_SLOWER = 0.95  # the noise of a run
REVISION = "2d22092"
WORKERS = 2
HERE = Path(__file__).parent


def main() -> None:
    options = parser("Time training epochs against another revision of this repository.", runs=3)
    options.add_argument("--against", default=REVISION, help="a revision (%(default)s)")
    options.add_argument("--dataset", action="append", help="one data set (repeatable); all")
    options.add_argument("--child", help=SUPPRESS)
    given = options.parse_args()
    if given.child:
        serve(given.child)
        return
    rows, datasets, claims = [], {}, []
    with other_checkout(given.against) as other:
        for name in given.dataset or DATASETS:
            if not at_hand(name):
                skip(f"versions on {name}", f"there is no {name}.zip at hand.", as_json=given.json)
                continue
            found = compare(name, other, given.runs)
            datasets[name] = found
            ratio = found["before"]["seconds"] / found["now"]["seconds"]
            rows.append((name, *cells(found["before"]), *cells(found["now"]), f"{ratio:.2f}×"))
            text = f"model-epochs per processor second on {name}"
            claims.append(Claim(text, TARGETS.get(name, NOT_SLOWER), ratio))
            if name == "DD":
                share = found["now"]["memory"] / found["before"]["memory"]
                claims.append(Claim("peak memory on DD", 1 / 3, share, at_most=True))
    head = ("", "stack", given.against, "memory", "stack", "now", "memory", "faster")
    text = (
        f"Processor time per model-epoch, K = {LAYERS}, batches of {BATCH_SIZE}, one thread, "
        "medians of epochs in turns; peak memory of the process.\n\n" + table(head, rows)
    )
    figures = {"against": given.against, "datasets": datasets}
    report("versions", figures, text, claims, as_json=given.json)


def cells(side: dict[str, Any]) -> tuple[str, str, str]:
    memory = f"{side['memory'] / 2**20:,.0f} MiB"
    return str(side["stack"]), f"{side['seconds'] * 1e3:.1f} ms", memory


@contextmanager
def other_checkout(revision: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "other")
        git = ["git", "-C", str(HERE.parent), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(place), revision], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def compare(name: str, other: Path, runs: int) -> dict[str, dict[str, Any]]:
    """Epochs of both versions in turns, after one each that does not count."""
    with ExitStack() as open_processes:
        sides = {
            side: open_processes.enter_context(child(name, checkout))
            for side, checkout in (("before", other), ("now", HERE.parent))
        }
        seconds: dict[str, list[float]] = {side: [] for side in sides}
        last: dict[str, dict[str, Any]] = {}
        for _ in range(runs + 1):
            for side, process in sides.items():
                process.stdin.write("epoch\n")
                process.stdin.flush()
                last[side] = json.loads(process.stdout.readline())
                seconds[side].append(last[side]["seconds"])
    return {
        side: {**last[side], "seconds": median(each[1:]), "all": each[1:]}
        for side, each in seconds.items()
    }


@contextmanager
def child(name: str, checkout: Path) -> Iterator[Any]:
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, __file__, "--child", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        yield process
    finally:
        process.stdin.close()
        process.wait()


def serve(name: str) -> None:
    """For each line read, train an epoch and print what it took."""
    import torch

    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    task = load_task(name)
    members = auto_stack(task.dataset)
    trained = late(stack(task, members))
    for _ in sys.stdin:
        began = time.process_time()
        trained.train_epoch()
        seconds = (time.process_time() - began) / members
        figures = {"stack": members, "seconds": seconds, "memory": peak_memory()}
        print(json.dumps(figures), flush=True)


def auto_stack(dataset: Any) -> int:
    """The stack size of `ihgnn crossval --stack auto` with one worker per core."""
    import torch

    from ihgnn_cli.data.splits.folds import draw_folds
    from ihgnn_cli.jobs.executor import Executor
    from ihgnn_cli.studies.grid import Configuration
    from ihgnn_cli.studies.memory import stack_size
    from ihgnn_cli.studies.plan import Protocol, selection_units
    from ihgnn_cli.studies.work import Job
    from ihgnn_cli.training.config import configure
    from ihgnn_cli.training.memory import free_memory

    device = torch.device("cpu")
    grid = tuple(Configuration(lr, BATCH_SIZE, LAYERS) for lr in (0.01, 0.001, 0.0001))
    folds = tuple(draw_folds(dataset.graph_class, 0))
    job = Job(Protocol(configure(), grid), dataset, folds)
    memory = free_memory(device) // WORKERS
    units = len(selection_units(job.protocol, job.folds))
    return stack_size(job, units, Executor(WORKERS, device, memory, lambda *_: None))


if __name__ == "__main__":
    main()
