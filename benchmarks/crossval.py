"""`ihgnn crossval` against plain torch-geometric loops: model-epochs per second on two cores.

A model-epoch is one pass of one model over the training graphs of a fold and one over its
validation graphs. The loops are timed after warm-up, so only the command pays for other work. Its
rate is measured from when its workers are ready, and a second rate covers its whole process. All
sides take turns, so that noise on the machine affects all of them. The benchmark also reports the
share of the machine's peak matrix multiplication rate, and how the cost grows with the data.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from _measure import Claim, duration, parser, report, skip, table
from _plain import BATCH_SIZE, LAYERS, at_hand, load_task, plain
from _stack import MEMBERS, PROFILED, growth, operations_of_an_epoch, profile
from _together import PROCESSES, at_once, take_cores

WARM_UP = 3  # epochs; 1 for large data sets
# Epochs per round: for each plain loop, and for each of the command's models.
EPOCHS = {
    "MUTAG": (120, 150),
    "BZR_MD": (60, 60),
    "IMDB-BINARY": (25, 30),
    "PROTEINS": (10, 20),
    "COLLAB": (1, 4),
    "DD": (1, 4),
}
# Target speedups over one loop with two threads, and over two loops with one thread.
TARGETS = {"MUTAG": (7, 3), "BZR_MD": (8, 4), "IMDB-BINARY": (8, 4), "PROTEINS": (5, 3)}
# Model-epochs per second of the authors' code, measured once on a machine of the same kind, with
# two threads. Their loop also evaluates the test graphs.
AUTHORS = {"MUTAG": 19.0, "IMDB-BINARY": 2.3, "PROTEINS": 0.9}
# With the three learning rates the command trains 40 models, with one 20.
LRS, ONE_LR = "0.01,0.001,0.0001", "0.001"
LARGE = ("COLLAB", "DD")
PEAK_SIZES = (1024, 1536, 2048)
PEAK_OPERATIONS = 2e11  # per process, size and turn
GROWN = "MUTAG"
GROWTH_EPOCHS = 6  # per run
GROWTH_TARGET = 0.8
PROFILE_EPOCHS = 5  # per run
ONE, TWO = "one loop, 2 threads", "two loops, 1 thread"
SPEEDS = ("", ONE, TWO, "ihgnn crossval", "with its start", "of one", "of two")


@dataclass(frozen=True)
class Command:
    """One run of `ihgnn crossval`."""

    model_epochs: int
    per_second: float
    """Measured from when the workers are ready."""
    per_second_whole: float
    """Including start-up, reading and writing."""
    workers: int


@dataclass(frozen=True)
class Rates:
    """Model-epochs per second on a data set, for each round."""

    one: tuple[float, ...]
    """One plain loop with as many threads as cores."""
    several: tuple[float, ...]
    """Plain loops with one thread on each core, summed."""
    commands: tuple[Command, ...]

    @property
    def ours(self) -> float:
        """The rate that the claims use."""
        return median(each.per_second for each in self.commands)

    @property
    def ratios(self) -> tuple[float, float]:
        """Our rate divided by that of one loop, and by that of several."""
        return self.ours / median(self.one), self.ours / median(self.several)


def main() -> None:
    options = parser("Time ihgnn crossval against plain torch-geometric loops.", runs=2)
    options.add_argument(
        "--profile", metavar="NAME", help="show where the time of a stack on this data set goes"
    )
    given = options.parse_args()
    if given.profile:
        show_profile(given.profile, given.runs, as_json=given.json)
        return
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None  # of the last minute
    cores = take_cores()
    here = []
    for name in EPOCHS:
        if at_hand(name):
            here.append(name)
        else:
            skip(f"crossval on {name}", f"there is no {name}.zip at hand.", as_json=given.json)
    peak = peak_operations(cores, given.runs)
    rates = {name: compare(name, cores, given.runs) for name in here}
    work = {name: operations_of_an_epoch(load_task(name)) for name in here if name not in LARGE}
    graphs = {name: len(load_task(name).splits[0].train) for name in here}
    grown = growth(GROWN, GROWTH_EPOCHS * given.runs)
    figures = {
        "batch_size": BATCH_SIZE,
        "layers": LAYERS,
        "load_before": load,
        "model_epochs_per_second": {name: as_figures(each) for name, each in rates.items()},
        "peak_operations_per_second": peak,
        "operations_of_a_model_epoch": work,
        "share_of_peak": {name: work[name] * rates[name].ours / peak for name in work},
        "training_graphs_per_second": {name: graphs[name] * rates[name].ours for name in here},
        "authors": AUTHORS,
        "growth": grown,
    }
    text = as_text(figures, rates, grown)
    report("crossval", figures, text, claims(rates, grown), as_json=given.json)


def claims(rates: dict[str, Rates], grown: Sequence[dict[str, float]]) -> list[Claim]:
    found = []
    for name, each in rates.items():
        targets = TARGETS.get(name, (1, 1))
        for target, ratio, peer in zip(targets, each.ratios, (ONE, TWO), strict=True):
            found.append(Claim(f"model-epochs a second on {name} ({peer})", target, ratio))
    first, *_, last = grown
    text = f"time a graph on {GROWN}, of that on {last['scale']} times as many"
    return [
        *found,
        Claim(text, GROWTH_TARGET, first["seconds_per_graph"] / last["seconds_per_graph"]),
    ]


def compare(name: str, cores: Sequence[set[int]], runs: int) -> Rates:
    """Time both kinds of plain loops and the command, in turns."""
    plain_epochs, epochs = EPOCHS[name]
    everywhere: set[int] = set().union(*cores)
    one: list[float] = []
    several: list[float] = []
    commands: list[Command] = []
    with (
        at_once([partial(plain_loop, name, 0)], [everywhere], threads=PROCESSES) as rate_of_one,
        at_once([partial(plain_loop, name, fold) for fold in range(PROCESSES)], cores) as rate,
    ):
        warm_up = 1 if name in LARGE else WARM_UP
        rate_of_one(warm_up)
        rate(warm_up)
        for _ in range(runs):
            one.append(rate_of_one(plain_epochs))
            several.append(rate(plain_epochs))
            commands.append(crossval(name, epochs))
    return Rates(tuple(one), tuple(several), tuple(commands))


def plain_loop(name: str, fold: int) -> Callable[[], Any]:
    return plain(load_task(name), fold)


def crossval(name: str, epochs: int) -> Command:
    """Run the installed command."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "x"))
        start = time.perf_counter()
        done = subprocess.run(
            crossval_command(name, epochs, out), check=True, stdout=subprocess.PIPE, text=True
        )
        return command_of(json.loads(done.stdout), time.perf_counter() - start)


def crossval_command(name: str, epochs: int, out: str) -> list[str]:
    options = {
        "dataset": name,
        "layers": LAYERS,
        "batch-size": BATCH_SIZE,
        "lr": ONE_LR if name in LARGE else LRS,
        "epochs": epochs,
        "runs": 1,
        "seed": 0,
        "device": "cpu",
        "out": out,
    }
    given = [text for option, value in options.items() for text in (f"--{option}", str(value))]
    alone = ("--no-references", "--json", "--quiet")  # the loops compute no references either
    return [sys.executable, "-m", "ihgnn_cli", "crossval", *given, *alone]


def command_of(document: dict[str, Any], seconds: float) -> Command:
    """The rates of a run of the command; `seconds` is its total wall time."""
    model_epochs = document["model_epochs"]
    return Command(
        model_epochs,
        document["model_epochs_per_second"],
        model_epochs / seconds,
        document["workers"],
    )


def peak_operations(cores: Sequence[set[int]], runs: int) -> float:
    """Operations per second in large matrix products, one thread per core: the best turn."""
    with ExitStack() as open_processes:
        rates = {
            size: open_processes.enter_context(
                at_once([partial(product, size)] * len(cores), cores)
            )
            for size in PEAK_SIZES
        }
        return max(
            2 * size**3 * rate(round(PEAK_OPERATIONS / (2 * size**3)))
            for _ in range(runs + 1)
            for size, rate in rates.items()
        )


def product(size: int) -> Callable[[], Any]:
    import torch

    one, other, out = (torch.rand(size, size) for _ in range(3))
    return partial(torch.mm, one, other, out=out)


def show_profile(name: str, runs: int, *, as_json: bool) -> None:
    if not at_hand(name):
        skip("crossval, profile", f"there is no {name}.zip at hand.", as_json=as_json)
        return
    shares, seconds = profile(name, PROFILE_EPOCHS * runs)
    rows = [(phase, f"{share:.1%}", duration(share * seconds)) for phase, share in shares.items()]
    text = f"An epoch of {PROFILED} models on {name}, one thread: {duration(seconds)} a model.\n\n"
    head = ("phase", "share", "a model-epoch")
    figures = {"dataset": name, "seconds_a_model_epoch": seconds, "shares": shares}
    report("crossval, profile", figures, text + table(head, rows), as_json=as_json)


def as_figures(rates: Rates) -> dict[str, Any]:
    return {
        "one_loop_2_threads": rates.one,
        "two_loops_1_thread": rates.several,
        "ihgnn_crossval": [each.per_second for each in rates.commands],
        "ihgnn_crossval_with_start": [each.per_second_whole for each in rates.commands],
        "workers": rates.commands[-1].workers,
        "model_epochs": rates.commands[-1].model_epochs,
    }


def as_text(
    figures: dict[str, Any], rates: dict[str, Rates], grown: Sequence[dict[str, float]]
) -> str:
    speeds, shares, others = [], [], []
    for name, each in rates.items():
        alone, together = each.ratios
        whole = [command.per_second_whole for command in each.commands]
        ours = [command.per_second for command in each.commands]
        speeds.append(
            (
                name,
                *(spread(values) for values in (each.one, each.several, ours, whole)),
                f"{alone:.1f}×",
                f"{together:.1f}×",
            )
        )
        authors = f"{each.ours / AUTHORS[name]:.1f}×" if name in AUTHORS else "–"
        per_second = figures["training_graphs_per_second"][name]
        others.append((name, f"{per_second:,.0f}", str(AUTHORS.get(name, "–")), authors))
        if name not in figures["share_of_peak"]:
            continue
        work = figures["operations_of_a_model_epoch"][name]
        share = figures["share_of_peak"][name]
        shares.append((name, f"{work / 1e9:.2f}", f"{work * each.ours / 1e9:.1f}", f"{share:.0%}"))
    first = grown[0]["seconds_per_graph"]
    sizes = [
        (
            f"{each['scale']}×",
            f"{each['graphs']:,}",
            duration(each["seconds"]),
            f"{each['seconds_per_graph'] * 1e6:.1f} µs",
            f"{each['seconds_per_graph'] / first:.2f}",
        )
        for each in grown
    ]
    return "\n".join(
        [
            f"Model-epochs a second, K = {LAYERS}, batches of {BATCH_SIZE}, two cores; medians and "
            "ranges of rounds in turns.",
            "The last two columns: ihgnn crossval, workers ready, over the first and the second.",
            f"Load of the machine before: {figures['load_before']}; beside other work, a loop with "
            "two threads is many times slower.",
            "",
            table(SPEEDS, speeds),
            "",
            "Training graphs per second of ihgnn crossval, and the authors' code (measured once on "
            "a machine of the same kind, with two threads):",
            "",
            table(("", "graphs per second", "authors' model-epochs", "ihgnn crossval"), others),
            "",
            "Matrix products of ihgnn crossval, against the best of large torch.mm on both cores: "
            f"{figures['peak_operations_per_second'] / 1e9:.0f} Gflop/s.",
            "",
            table(("", "Gflop a model-epoch", "Gflop/s", "of the peak"), shares),
            "",
            f"Growth on {GROWN} (its graphs repeated), a stack of {MEMBERS}, one thread:",
            "",
            table(("graphs", "", "a model-epoch", "a graph", "of 1×"), sizes),
        ]
    )


def spread(values: Sequence[float]) -> str:
    """The median and the range."""
    return f"{median(values):.1f} ({min(values):.1f} – {max(values):.1f})"


if __name__ == "__main__":
    main()
