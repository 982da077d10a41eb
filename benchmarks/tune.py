"""`ihgnn tune` against Optuna's plain sequential `optimize` of the same trials.

The command searches with TPE and no pruner. Then a study with the same settings trains them one
after the other in one process, with ihgnn's own training loop (a stack of one) and its trials in
SQLite, as a short script would. Times cover the search only, from before the workers start to the
last trial; the final training of the best settings is not counted on either side.
"""

import argparse
import json
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

# Epochs per trial: enough to make the start-up time negligible.
EPOCHS = {"MUTAG": 60, "IMDB-BINARY": 12}
TRIALS = 50


@dataclass(frozen=True)
class Times:
    """Seconds of the same trials."""

    ours: float
    sequential: float

    @property
    def ratio(self) -> float:
        """The command's speedup."""
        return self.sequential / self.ours


def main() -> None:
    options = parser("Time ihgnn tune against Optuna's sequential optimize.", runs=1)
    options.add_argument("--trials", type=int, default=TRIALS, help="of a search (%(default)s)")
    options.add_argument("--sequential", nargs=3, help=argparse.SUPPRESS)  # in its own process
    given = options.parse_args()
    if given.sequential:
        print(json.dumps(sequential(*given.sequential)))
        return
    found: dict[str, list[Times]] = {}
    for name in EPOCHS:
        if at_hand(name):
            found[name] = [compare(name, given.trials) for _ in range(given.runs)]
        else:
            skip(f"tune on {name}", f"there is no {name}.zip at hand.", as_json=given.json)
    figures = {
        "trials": given.trials,
        "epochs": EPOCHS,
        "seconds": {name: [asdict(each) for each in times] for name, times in found.items()},
    }
    report("tune", figures, as_text(found, given.trials), as_json=given.json)


def compare(name: str, trials: int) -> Times:
    """Run the search, then train the same trials one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "search"
        asked = ("--trials", str(trials), "--epochs", str(EPOCHS[name]), "--pruner", "none")
        how = ("--device", "cpu", "--offline", "--quiet", "--json", "--out", str(out))
        done = subprocess.run(
            [sys.executable, "-m", "ihgnn_cli", "tune", "--dataset", name, *asked, *how],
            check=True,
            capture_output=True,
            text=True,
        )
        ours = float(json.loads(done.stdout)["seconds"])
        plain = subprocess.run(
            [sys.executable, __file__, "--sequential", name, str(EPOCHS[name]), str(out)],
            check=True,
            capture_output=True,
            text=True,
        )
        return Times(ours, float(json.loads(plain.stdout)["seconds"]))


def sequential(name: str, epochs: str, folder: str) -> dict[str, Any]:
    """Train the trials of a finished search with Optuna's `optimize`."""
    import csv

    import optuna

    from ihgnn_cli.data.batching import GraphStore
    from ihgnn_cli.data.splits import load_split
    from ihgnn_cli.models.card import inputs_of
    from ihgnn_cli.studies.grid import PAPER_BATCH_SIZE, PAPER_LAYERS, PAPER_LR
    from ihgnn_cli.training.cohort import new_cohort
    from ihgnn_cli.training.config import configure
    from ihgnn_cli.training.devices import computing, resolve_device
    from ihgnn_cli.training.loading import load_data
    from ihgnn_cli.training.stack import Member

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    config, data = load_data(configure(overrides={"dataset": name, "epochs": int(epochs)}))
    split = load_split(config.data.split, data, config.training.seed)
    with (Path(folder) / "trials.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    device = resolve_device("cpu")
    inputs = inputs_of(data, config.data.features)

    def objective(trial: optuna.Trial) -> float:
        own = config.with_values(
            {
                "lr": trial.suggest_float("lr", min(PAPER_LR), max(PAPER_LR), log=True),
                "batch_size": trial.suggest_categorical("batch_size", PAPER_BATCH_SIZE),
                "layers": trial.suggest_categorical("layers", PAPER_LAYERS),
            }
        )
        features, layers = own.data.features, own.model.layers
        store = GraphStore(data, features, data.max_nodes, layers, device)
        member = Member(own.training.seed, own.training.lr, split.train, split.validation)
        cohort = new_cohort(own, inputs, store, [member], keep_weights=False)
        while not cohort.finished:
            cohort.advance()
        (course,) = cohort.courses
        return course.best.validation_accuracy if course.best else 0.0

    began = time.perf_counter()
    study = optuna.create_study(storage=f"sqlite:///{folder}/plain.db", direction="maximize")
    for row in rows:
        study.enqueue_trial(
            {
                "lr": float(row["lr"]),
                "batch_size": int(row["batch_size"]),
                "layers": int(row["layers"]),
            }
        )
    with computing(0):  # one thread is faster for data of this size
        study.optimize(objective, n_trials=len(rows))
    return {"seconds": time.perf_counter() - began, "trials": len(rows)}


def as_text(found: dict[str, list[Times]], trials: int) -> str:
    rows = [
        (
            name,
            str(EPOCHS[name]),
            duration(median(each.ours for each in times)),
            duration(median(each.sequential for each in times)),
            f"{median(each.ratio for each in times):.1f}×",
        )
        for name, times in found.items()
    ]
    return table((f"{trials} trials", "epochs", "ihgnn tune", "sequential", "faster"), rows)


if __name__ == "__main__":
    main()
