"""`ihgnn tune` against plain Optuna: as many processes that run `study.optimize` on one study.

The search runs with TPE and no pruner, one worker per core. Then the same trials are trained again
by one process per core. Each runs Optuna's `optimize` on a study in one SQLite file and trains one
model at a time with ihgnn's own training loop, as a short script would. Both sides include starting
the processes and reading the data, and neither includes the final training of the best settings.
Wall time depends on what else the machine does; processor time much less.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from _measure import duration, parser, report, skip, table
from _plain import at_hand

# Epochs per trial: enough to make the start-up time small.
EPOCHS = {"MUTAG": 60, "IMDB-BINARY": 12}
TRIALS = 30


@dataclass(frozen=True)
class Cost:
    """Seconds of the same trials."""

    wall: float
    processor: float


@dataclass(frozen=True)
class Costs:
    """The same trials in `ihgnn tune` and in plain Optuna processes."""

    ours: Cost
    plain: Cost

    @property
    def wall(self) -> float:
        """The command's speedup in wall time."""
        return self.plain.wall / self.ours.wall

    @property
    def processor(self) -> float:
        """The command's saving of processor time."""
        return self.plain.processor / self.ours.processor


def main() -> None:
    options = parser("Time ihgnn tune against plain Optuna processes.", runs=1)
    options.add_argument("--trials", type=int, default=TRIALS, help="per search (%(default)s)")
    options.add_argument("--search", nargs=3, help=argparse.SUPPRESS)  # in its own process
    options.add_argument("--optimize", nargs=3, help=argparse.SUPPRESS)  # likewise
    given = options.parse_args()
    if given.search:
        print(json.dumps(search(*given.search)))
        return
    if given.optimize:
        optimize(*given.optimize)
        return
    found: dict[str, list[Costs]] = {}
    for name in EPOCHS:
        if at_hand(name):
            found[name] = [compare(name, given.trials) for _ in range(given.runs)]
        else:
            skip(f"tune on {name}", f"there is no {name}.zip at hand.", as_json=given.json)
    figures = {
        "trials": given.trials,
        "epochs": EPOCHS,
        "load": os.getloadavg()[0],
        "seconds": {name: [asdict(each) for each in costs] for name, costs in found.items()},
    }
    report("tune", figures, as_text(found, given.trials), as_json=given.json)


def compare(name: str, trials: int) -> Costs:
    """Run the search, then train the same trials in plain Optuna processes."""
    with tempfile.TemporaryDirectory() as folder:
        script = [sys.executable, __file__]
        done = subprocess.run(
            [*script, "--search", name, str(trials), folder],
            check=True,
            capture_output=True,
            text=True,
        )
        ours = json.loads(done.stdout)
        trials_file = Path(folder) / "trials.json"
        trials_file.write_text(json.dumps(ours["trials"]))
        before, began = processor_seconds(), time.perf_counter()
        one = [*script, "--optimize", name, str(trials_file), str(Path(folder) / "plain.db")]
        peers = [subprocess.Popen(one) for _ in range(ours["workers"])]
        codes = [peer.wait() for peer in peers]
        if any(codes):
            raise SystemExit("a plain process failed")
        plain = Cost(time.perf_counter() - began, processor_seconds() - before)
        return Costs(Cost(ours["wall"], ours["processor"]), plain)


def processor_seconds() -> float:
    """Processor time of this process and of its child processes that have ended."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def search(name: str, trials: str, folder: str) -> dict[str, Any]:
    """Run the trials of a search, as the command does."""
    from ihgnn_cli.studies.tuning.kinds import PrunerName
    from ihgnn_cli.studies.tuning.planning import plan_search

    from ihgnn_cli.data import load_dataset
    from ihgnn_cli.training.config import configure

    config = configure(
        overrides={"dataset": name, "epochs": EPOCHS[name], "device": "cpu", "seed": 0}
    )
    job = plan_search(
        config,
        {},
        load_dataset(name, offline=True),
        trials=int(trials),
        pruner=PrunerName.NONE,
        out=Path(folder) / "search",
    )
    job.open()
    done = job.run_trials(lambda _now: None)
    return {
        "wall": done.seconds,
        "processor": processor_seconds(),
        "workers": len(job.places.devices),
        "trials": [each.params for each in done.trials],
    }


def optimize(name: str, trials_file: str, database: str) -> None:
    """Train trials with Optuna's `optimize`, each with the settings of its number."""
    import optuna

    from ihgnn_cli.data.batching.store import GraphStore
    from ihgnn_cli.data.splits import load_split
    from ihgnn_cli.models.card import inputs_of
    from ihgnn_cli.studies.grid import PAPER_BATCH_SIZE, PAPER_LAYERS, PAPER_LR
    from ihgnn_cli.training.cohort import new_cohort
    from ihgnn_cli.training.config import configure
    from ihgnn_cli.training.devices import computing, resolve_device
    from ihgnn_cli.training.loading import load_data
    from ihgnn_cli.training.stack import Member

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    config, data = load_data(configure(overrides={"dataset": name, "epochs": EPOCHS[name]}))
    split = load_split(config.data.split, data, config.training.seed)
    settings = json.loads(Path(trials_file).read_text())
    device = resolve_device("cpu")
    inputs = inputs_of(data, config.data.features)

    def objective(trial: optuna.Trial) -> float:
        if trial.number >= len(settings):
            study.stop()
            raise optuna.TrialPruned
        # Drawn and stored as in any search; the values of the other side are trained.
        trial.suggest_float("lr", min(PAPER_LR), max(PAPER_LR), log=True)
        trial.suggest_categorical("batch_size", PAPER_BATCH_SIZE)
        trial.suggest_categorical("layers", PAPER_LAYERS)
        own = config.with_values(settings[trial.number])
        store = GraphStore(data, own.data.features, data.max_nodes, own.model.layers, device)
        member = Member(own.training.seed, own.training.lr, split.train, split.validation)
        cohort = new_cohort(own, inputs, store, [member], keep_weights=False)
        while not cohort.finished:
            cohort.advance()
        (course,) = cohort.courses
        return course.best.validation_accuracy if course.best else 0.0

    storage = optuna.storages.RDBStorage(
        f"sqlite:///{database}", engine_kwargs={"connect_args": {"timeout": 60}}
    )
    study = optuna.create_study(
        storage=storage, study_name="plain", direction="maximize", load_if_exists=True
    )
    with computing(0):  # one thread per process
        study.optimize(objective)


def as_text(found: dict[str, list[Costs]], trials: int) -> str:
    rows = []
    for name, costs in found.items():
        for what in ("wall", "processor"):
            ours, plain = (
                median(getattr(getattr(each, side), what) for each in costs)
                for side in ("ours", "plain")
            )
            ratio = f"{median(getattr(each, what) for each in costs):.2f}×"
            label = f"{name}, {EPOCHS[name]} epochs, {what}"
            rows.append((label, duration(ours), duration(plain), ratio))
    head = (f"{trials} trials", "ihgnn tune", "plain Optuna", "ratio")
    return f"{table(head, rows)}\n\nload average at the end {os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
