"""Snapshots: weights of several epochs of one training, kept as members of an ensemble.

They are spaced evenly over all but the first tenth of the epochs, and end with the last one.
BatchNorm statistics are recomputed before each of them (`Stack.refresh_statistics`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.checkpoint import read_content, write_content
from ihgnn_cli.training.config import TrainingSettings
from ihgnn_cli.words import counted

FOLDER = "snapshots"
"""Folder of a run that keeps them until all are there."""
START = 0.1
"""Share of the epochs before the first snapshot."""

Weights = dict[str, Tensor]
"""By name, each with the member axis first."""


def snapshot_epochs(epochs: int, count: int) -> tuple[int, ...]:
    """The epochs to keep, counted from 1; fewer than `count` if there are not as many."""
    if not count:
        return ()
    first = min(epochs, int(START * epochs) + 1)
    count = min(count, epochs - first + 1)
    gaps = max(1, count - 1)
    spaced = (epochs - round((epochs - first) * place / gaps) for place in range(count))
    return tuple(sorted(spaced))


def fewer_snapshots(training: TrainingSettings) -> str | None:
    """A sentence if a training has too few epochs for its snapshots."""
    kept = len(snapshot_epochs(training.epochs, training.snapshots))
    if kept == training.snapshots:
        return None
    epochs = counted(training.epochs, "epoch")
    return f"{training.snapshots} snapshots do not fit in {epochs}: {kept} are averaged."


def joined(parts: Sequence[Mapping[str, Tensor]]) -> Weights:
    """Several stacks of weights as one."""
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def write_snapshot(weights: Mapping[str, Tensor], folder: Path, epoch: int) -> None:
    """Keep the weights of an epoch in a run's folder.

    Raises:
        IhgnnError: the folder cannot be written.
    """
    write_content({"weights": dict(weights)}, _path(folder, epoch))


def read_snapshot(folder: Path, epoch: int) -> Weights:
    """The weights of an epoch.

    Raises:
        InputError: the file is missing or damaged.
    """
    path = _path(folder, epoch)
    try:
        weights: Weights = read_content(path)["weights"]
    except InputError as error:
        raise InputError(f"{path} is missing or damaged. Start a new run.") from error
    return weights


def missing_snapshot(folder: Path, epochs: Sequence[int]) -> Path | None:
    """The first of these snapshots that is not there."""
    return next((each for each in (_path(folder, e) for e in epochs) if not each.is_file()), None)


def _path(folder: Path, epoch: int) -> Path:
    return folder / FOLDER / f"epoch-{epoch}.pt"
