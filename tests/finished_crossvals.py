"""Results of cross-validations of four graphs, made by hand, and folders that hold them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ihgnn_cli.data.splits import Fold, Split, write_fold_file
from ihgnn_cli.studies.crossval.result import BestConfiguration, CrossvalResult, RepeatResult
from ihgnn_cli.studies.crossval.summary import FinalRun, FoldResult


def fold(train: Sequence[int], validation: Sequence[int], test: Sequence[int]) -> Fold:
    return Fold((Split(*map(np.array, (train, validation, test))),))


FOLDS = (fold([2], [3], [0, 1]), fold([0], [1], [2, 3]))
RIGHT = {"graphs": [1, 1, 1, 1], "folds": [1, 1]}
SOME = {"graphs": [1, 0.5, 1, 0], "folds": [0.75, 0.5]}
CONFIGURATION = {"lr": 0.01, "batch_size": 32, "layers": 3}
PROTOCOL = {
    "data": {"dataset": "FOUR"},
    "model": {"name": "gin"},
    "training": {"epochs": 3},
    "runs": 1,
    "grid": [CONFIGURATION],
}


def fold_result(number: int, *tests: float, validation: float | None = 0.9) -> FoldResult:
    """A fold with these test accuracies of its runs."""
    runs = tuple(
        FinalRun(run, 1, "", 2, 3, validation, accuracy) for run, accuracy in enumerate(tests)
    )
    mean, std = float(np.mean(tests)), float(np.std(tests))
    loss = None if validation is None else 0.5
    return FoldResult(number, CONFIGURATION, validation, loss, 2, runs, mean, std)


def result(**changes: Any) -> CrossvalResult:
    """A result; unless they are given, numbers follow from the folds."""
    folds = changes.get("folds", (fold_result(0, 0.5, 0.7), fold_result(1, 0.8, 0.8)))
    means = [each.test_mean for each in folds]
    runs = tuple(
        float(np.mean([each.runs[run].test_accuracy for each in folds]))
        for run in range(len(folds[0].runs))
    )
    values: dict[str, Any] = {
        "dataset": "FOUR",
        "model": "gin",
        "variant": None,
        "graphs": 4,
        "majority_share": 0.5,
        "partial": None,
        "group_twins": False,
        "folds": folds,
        "repeats": (RepeatResult(0, float(np.mean(means)), float(np.std(means))),),
        "test_mean": float(np.mean(means)),
        "test_std": float(np.std(means)),
        "test_error": 0.031,
        "runs": runs,
        "runs_std": float(np.std(runs)),
        "balanced_accuracy": 0.5,
        "roc_auc": 0.75,
        "graph_accuracies": (1.0, 0.5, 1.0, 0.0),
        "chosen_by": "validation accuracy",
        "snapshots": 0,
        "race": None,
        "best": BestConfiguration(CONFIGURATION, 2, 2),
        "paper": None,
        "references": None,
        "rules": None,
        "job": {
            "protocol": PROTOCOL,
            "data_sha256": "a",
            "splits_sha256": "s",
            "folds": len(folds),
            "inner_folds": 1,
        },
        "models": 300,
        "diverged": 0,
        "stack": 3,
        "model_epochs": 9,
        "worker_seconds": 1800.0,
        "trained_now": 9,
        "seconds": 1.0,
        "workers": 2,
        "finished": "2026-01-01T00:00:00+00:00",
        "provenance": {"command": "ihgnn crossval FOUR"},
    }
    return CrossvalResult(**(values | changes))


def finished(
    folder: Path,
    hits: dict[str, list[float]],
    *,
    folds: Sequence[Fold] = FOLDS,
    protocol: dict[str, Any] | None = None,
    data: str = "a",
    seeds: Sequence[int] = (0,),
    **changes: Any,
) -> Path:
    """The folder of a finished cross-validation, over one partition per seed."""
    folder.mkdir()
    each = len(folds) // len(seeds)
    identity = {
        "protocol": {**PROTOCOL, **(protocol or {})},
        "data_sha256": data,
        "splits_sha256": "s",
        "folds": each,
        "inner_folds": 1,
    }
    made = result(
        folds=tuple(fold_result(at, mean) for at, mean in enumerate(hits["folds"])),
        graph_accuracies=tuple(hits["graphs"]),
        repeats=tuple(RepeatResult(seed, 0.5, 0.1) for seed in seeds),
        job=identity,
        **changes,
    )
    made.write(folder)
    job = {"command": "ihgnn crossval FOUR", "identity": identity}
    (folder / "crossval.json").write_text(json.dumps(job))
    for number, seed in enumerate(seeds):
        part = folder if number == 0 else folder / f"seed-{seed}"
        part.mkdir(exist_ok=True)
        write_fold_file(folds[number * each : (number + 1) * each], part / "splits.json")
    return folder
