"""The one place where the contract reaches into the package: how it selects among trainings.

Whoever rebuilds selection changes `select`, and neither the records nor the numbers.
"""

import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Finished:
    """A finished training of MUTAG's cross-validation, in a format of the contract's own."""

    final: bool
    """Whether it is a run of a fold's chosen configuration; otherwise one of the selection."""
    fold: int
    run: int
    configuration: tuple[float, int, int]
    """lr, batch_size, layers."""
    best: tuple[float, ...]
    """The best epoch by validation: its number, loss and accuracy in training, in validation."""
    validation_graphs: int
    hits: tuple[int, ...]
    """Correctly classified validation graphs, per epoch."""
    losses: tuple[float, ...]
    """Validation loss, per epoch."""
    test_graphs: int
    test_hits: tuple[int, ...]
    """Correctly classified test graphs, per epoch; only in the selection."""
    accuracy: float | None
    """Test accuracy at the best epoch; only of final runs."""


def read(path: Path) -> list[Finished]:
    """The trainings in a file of the contract."""
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        plain = [json.loads(line) for line in stream]
    return [
        Finished(**{k: tuple(v) if isinstance(v, list) else v for k, v in each.items()})
        for each in plain
    ]


def select(trainings: Sequence[Finished], folds: int) -> dict[str, Any]:
    """ADAPTER. The package's choice for each fold, and its rules; values as in the golden file."""
    from ihgnn_cli.studies.crossval.protocol import Stage, Training, configuration
    from ihgnn_cli.studies.crossval.records import Record, Tested, Validated
    from ihgnn_cli.studies.crossval.rules import rules
    from ihgnn_cli.studies.crossval.selection import choose
    from ihgnn_cli.training.epoch import Epoch

    names = ("lr", "batch_size", "layers")
    records = []
    for each in trainings:
        made = configuration(dict(zip(names, each.configuration, strict=True)))
        training = Training(Stage.SELECT, each.fold, 0, made, each.run)
        epoch = Epoch(int(each.best[0]), *each.best[1:])
        done = (len(each.losses), False, epoch, each.validation_graphs, each.hits, each.losses)
        validated = Validated(training, 0, "", *done, 1.0, 1, "cpu")
        records.append(Record(validated, Tested(each.test_graphs, hits=each.test_hits)))
    grid = [configuration(dict(zip(names, each, strict=True))) for each in GRID]
    chosen = choose([each.validated for each in records], grid, folds)

    def plain(made: Any) -> list[float] | None:
        return None if made is None else [made[name] for name in names]

    return {
        "chosen": [plain(chosen[fold]) for fold in range(folds)],
        "rules": [
            [each.key, each.honest, each.mean, each.std, plain(each.configuration), each.epoch]
            for each in rules(records, grid, folds)
        ],
    }


GRID = [
    (lr, batch, k) for lr in (0.01, 0.001, 0.0001) for batch in (32, 64, 128) for k in (3, 4, 5)
]
