"""What a race costs in accuracy, read off the stored curves of finished protocols.

    python benchmarks/race.py [results/MUTAG ...]

Each folder holds `units.jsonl` of a full selection whose test accuracy was recorded in every epoch.
A race trains from the start in every rung with the same seed, so that the first epochs of these
curves are what its rungs would have seen: nothing is trained here. For each schedule the script
prints the model-epochs per fold (with three final runs), how often the race chooses the
configuration of the full selection, and the difference in test accuracy between the two choices,
each at its best epoch by validation, with the standard error over folds.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from statistics import fmean, stdev

from ihgnn_cli.studies.units import Record, Stage, parsed

EPOCHS, RUNS = 350, 3
DEFAULT = ("MUTAG", "BZR_MD", "DHFR_MD", "KKI")
# Rungs: epochs, and how many configurations are left after them.
SCHEDULES = {
    "all to the end": [(350, 1)],
    "13, 39, 117, 350 (the default)": [(13, 9), (39, 3), (117, 1), (350, 1)],
    "39, 117, 350": [(39, 9), (117, 3), (350, 1)],
    "13, 39, 117, last of 3 at 350": [(13, 9), (39, 3), (117, 3), (350, 1)],
    "50, 150, 350": [(50, 9), (150, 3), (350, 1)],
    "117, 350": [(117, 9), (350, 1)],
    "117 only": [(117, 1)],
    "39 only": [(39, 1)],
}
# Races with --epochs, whose last rung and final runs are shorter too.
SHORTER = {
    "4, 13, 39, 117 (--epochs 117)": [(4, 9), (13, 3), (39, 1), (117, 1)],
    "3, 9, 27, 81 (--epochs 81)": [(3, 9), (9, 3), (27, 1), (81, 1)],
    "1, 3, 9, 27 (--epochs 27)": [(1, 9), (3, 3), (9, 1), (27, 1)],
}

Score = tuple[Fraction, float, int]


def best(record: Record, epochs: int) -> Score:
    """Accuracy, minus loss and minus epoch of the best of the first epochs by validation."""
    found = record.validated
    return max(
        (Fraction(hits, found.validation_graphs), -loss, -epoch)
        for epoch, (hits, loss) in enumerate(zip(found.hits, found.losses, strict=True))
        if epoch < epochs
    )


def tested(record: Record, epochs: int) -> float:
    """Test accuracy at the best of the first epochs by validation."""
    assert record.tested is not None
    return record.tested.hits[-best(record, epochs)[2]] / record.tested.graphs


def raced(fold: Sequence[Record], rungs: Sequence[tuple[int, int]]) -> tuple[Record, int]:
    """The winner, and the model-epochs that finding it took."""
    left, trained = list(fold), 0
    for epochs, count in rungs:
        trained += len(left) * epochs
        left = sorted(left, key=lambda each: best(each, epochs)[:2], reverse=True)[:count]
    return left[0], trained


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    results = Path(__file__).parents[1] / "results"
    parser.add_argument("folders", nargs="*", default=[results / name for name in DEFAULT])
    folds: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for folder in map(Path, parser.parse_args().folders):
        for line in (folder / "units.jsonl").read_text(encoding="utf-8").splitlines():
            record = parsed(line)
            if record.validated.unit.stage == Stage.SELECT:
                folds[folder.name, record.validated.unit.fold].append(record)
    print(f"{len(folds)} folds of {', '.join(dict.fromkeys(name for name, _ in folds))}")
    print(
        f"{'rungs in epochs':32} {'epochs per fold':>15} {'same choice':>12} {'test accuracy':>15}"
    )
    for name, rungs in (SCHEDULES | SHORTER).items():
        last = rungs[-1][0] if name in SHORTER else EPOCHS
        same, trained, differences = 0, [], []
        for fold in folds.values():
            winner, epochs = raced(fold, rungs)
            whole, _ = raced(fold, SCHEDULES["all to the end"])
            same += winner is whole
            trained.append(epochs + RUNS * last)
            differences.append(100 * (tested(winner, last) - tested(whole, EPOCHS)))
        error = stdev(differences) / math.sqrt(len(differences))
        print(
            f"{name:32} {fmean(trained):15,.0f} {same:>6} of {len(folds):2} "
            f"{fmean(differences):+8.2f} ± {error:.2f}"
        )


if __name__ == "__main__":
    main()
