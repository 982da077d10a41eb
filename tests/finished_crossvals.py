"""Folders of finished cross-validations of four graphs, made by hand."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ihgnn_cli.data.splits import Fold, Split, write_fold_file


def fold(train: Sequence[int], validation: Sequence[int], test: Sequence[int]) -> Fold:
    return Fold((Split(*map(np.array, (train, validation, test))),))


FOLDS = (fold([2], [3], [0, 1]), fold([0], [1], [2, 3]))
RIGHT = {"graphs": [1, 1, 1, 1], "folds": [1, 1]}
SOME = {"graphs": [1, 0.5, 1, 0], "folds": [0.75, 0.5]}
PROTOCOL = {
    "data": {"dataset": "FOUR"},
    "model": {"name": "gin"},
    "training": {"epochs": 3},
    "runs": 1,
    "grid": [{"lr": 0.01, "batch_size": 32, "layers": 3}],
}


def finished(
    folder: Path,
    hits: dict[str, list[float]],
    *,
    folds: Sequence[Fold] = FOLDS,
    protocol: dict[str, Any] | None = None,
    data: str = "a",
    **changes: object,
) -> Path:
    """The folder of a finished cross-validation; `None` as a change removes a key."""
    folder.mkdir()
    means, repeats = hits["folds"], len(changes.get("repeats", (0,)))  # type: ignore[arg-type]
    identity = {
        "protocol": {**PROTOCOL, **(protocol or {})},
        "data_sha256": data,
        "splits_sha256": "s",
        "folds": len(folds) // repeats,
        "inner_folds": 1,
    }
    result = {
        "dataset": "FOUR",
        "graphs": 4,
        "model": "gin",
        "majority_share": 0.5,
        "test_mean": float(np.mean(means)),
        "test_std": float(np.std(means)),
        "balanced_accuracy": 0.5,
        "roc_auc": 0.75,
        "folds": [
            {"fold": at, "test_mean": each, "test_graphs": len(folds[at].test)}
            for at, each in enumerate(means)
        ],
        "runs": [float(np.mean(means))],
        "graph_accuracies": hits["graphs"],
        "finished": "2026-01-01T00:00:00+00:00",
        "job": identity,
        "paper": None,
        "model_epochs": 9,
        "trained_now": 9,
        "seconds": 1.0,
    }
    kept = {
        key: each for key, each in (result | changes).items() if changes.get(key, 0) is not None
    }
    (folder / "crossval.json").write_text(
        json.dumps({"command": "ihgnn crossval FOUR", "stack": 1, "identity": identity})
    )
    (folder / "result.json").write_text(json.dumps(kept | {"paper": None}))
    each = len(folds) // repeats
    for repeat in range(repeats):
        name = "splits.json" if repeat == 0 else f"splits-repeat{repeat}.json"
        write_fold_file(folds[repeat * each : (repeat + 1) * each], folder / name)
    return folder
