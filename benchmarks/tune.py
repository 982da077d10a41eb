"""`ihgnn tune` against plain Optuna over a plain torch-geometric loop, and against other checkouts.

    python benchmarks/tune.py [--against PYTHON ...]

The command searches with TPE and no pruner, with two workers; `--against` names the Python of
another checkout's environment, whose `ihgnn tune` does the same. The peer is two processes that
call Optuna's `study.optimize` on one SQLite file and train the trials' settings with a DataLoader,
`to_dense_batch` and `torch.optim.Adam`. All sides start their processes and read the data; the
command also trains and tests the best settings once, and draws its figures. They take turns.
Processor time counts: wall time depends on what else the machine does.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from _measure import duration, parser, report, skip, table
from _plain import at_hand

# Epochs per trial: enough to make the start-up time small.
EPOCHS = {"MUTAG": 60, "IMDB-BINARY": 12}
TRIALS = 30
WORKERS = 2
OURS, PEER = "ihgnn tune", "plain loop"


def main() -> None:
    options = parser("Processor time of ihgnn tune and of plain Optuna.", runs=1)
    options.add_argument("--trials", type=int, default=TRIALS, help="per search (%(default)s)")
    options.add_argument(
        "--against", nargs="*", default=[], metavar="PYTHON", help="of other checkouts"
    )
    options.add_argument("--dataset", nargs="*", default=list(EPOCHS))
    options.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)  # in its own process
    given = options.parse_args()
    if given.peer:
        optimize(*given.peer)
        return
    found: dict[str, dict[str, list[float]]] = {}
    for name in given.dataset:
        if at_hand(name):
            found[name] = measure(name, given)
        else:
            skip(f"tune on {name}", f"there is no {name}.zip at hand.", as_json=given.json)
    figures = {"trials": given.trials, "epochs": EPOCHS, "processor_seconds": found}
    report("tune", figures, as_text(found, given.trials), as_json=given.json)


def measure(name: str, given: argparse.Namespace) -> dict[str, list[float]]:
    """Processor seconds of each side, in turns."""
    found: dict[str, list[float]] = {}
    for _ in range(given.runs):
        with tempfile.TemporaryDirectory() as folder:
            search = Path(folder) / "search"
            for python in (sys.executable, *given.against):
                command = [python, "-m", "ihgnn_cli", "tune", name]
                command += ["--trials", str(given.trials), "--epochs", str(EPOCHS[name])]
                command += ["--pruner", "none", "--workers", str(WORKERS), "--device", "cpu"]
                side = OURS if python == sys.executable else python
                out = search if side == OURS else Path(folder) / "other"
                found.setdefault(side, []).append(
                    processor_seconds([[*command, "-q", "--json", "--out", str(out)]])
                )
            peer = [
                sys.executable,
                str(Path(__file__).absolute()),
                "--peer",
                name,
                str(search / "trials.csv"),
            ]
            database = str(Path(folder) / "plain.db")
            found.setdefault(PEER, []).append(processor_seconds([[*peer, database]] * WORKERS))
    return found


def processor_seconds(commands: Sequence[Sequence[str]]) -> float:
    """Processor time of commands that run at the same time, and of their child processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as elsewhere:  # not in a checkout that Python would import
        running = [
            subprocess.Popen(each, stdout=subprocess.DEVNULL, cwd=elsewhere) for each in commands
        ]
        codes = [each.wait() for each in running]
    if any(codes):
        raise SystemExit(f"failed: {' '.join(commands[0])}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def optimize(name: str, trials: str, database: str) -> None:
    """The peer: train trials with Optuna's `optimize`, each with the settings of its number."""
    from dataclasses import replace

    import optuna
    import torch
    from _plain import load_task, plain
    from filelock import FileLock

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with Path(trials).open(encoding="utf-8", newline="") as stream:
        settings = list(csv.DictReader(stream))
    task = load_task(name)

    def objective(trial: optuna.Trial) -> float:
        if trial.number >= len(settings):
            study.stop()
            raise optuna.TrialPruned
        # Drawn and stored as in any search; the values of the other side are trained.
        trial.suggest_float("lr", 0.0001, 0.01, log=True)
        trial.suggest_categorical("batch_size", (32, 64, 128))
        trial.suggest_categorical("layers", (3, 4, 5))
        own = settings[trial.number]
        shaped = replace(task, settings=replace(task.settings, layers=int(own["layers"])))
        epoch = plain(shaped, lr=float(own["lr"]), batch_size=int(own["batch_size"]))
        return max(epoch() for _ in range(EPOCHS[name])) / len(task.splits[0].validation)

    with FileLock(f"{database}.lock"):  # two processes that create the tables disturb each other
        study = optuna.create_study(
            storage=f"sqlite:///{database}",
            study_name="plain",
            direction="maximize",
            load_if_exists=True,
        )
    study.optimize(objective)


def as_text(found: dict[str, dict[str, list[float]]], trials: int) -> str:
    rows = []
    for name, sides in found.items():
        ours = sides[OURS]
        for side, seconds in sides.items():
            ratio = median(own / other for own, other in zip(ours, seconds, strict=True))
            label = f"{name}, {EPOCHS[name]} epochs"
            rows.append((label, side, duration(median(seconds)), f"{ratio:.2f}×"))
    head = (f"{trials} trials", "", "processor time", "ihgnn tune takes")
    return f"{table(head, rows)}\n\nload average at the end {os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
