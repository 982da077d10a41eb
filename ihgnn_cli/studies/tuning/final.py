"""The best settings of a search as an ordinary run: the one look at the test graphs."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.errors import InputError, InUseError
from ihgnn_cli.progress import NO_PROGRESS, Progress
from ihgnn_cli.training import folder as runs
from ihgnn_cli.training import run
from ihgnn_cli.training.config import RunConfig

# Where another process trains the same run, one looks this often whether it is done.
_PAUSE = 1.0


def run_folder(folder: Path, trial: int) -> Path:
    """Where the run of a trial's settings lies."""
    return folder / f"trial-{trial}"


def earlier_runs(folder: Path, trial: int) -> list[int]:
    """Other trials whose settings were tested before, as when a search was given more trials."""
    done = folder.glob(f"trial-*/{runs.RESULT}")
    found = [path.parent.name.removeprefix("trial-") for path in done]
    return sorted(int(each) for each in found if each.isdecimal() and int(each) != trial)


def train_best(
    config: RunConfig,
    folder: Path,
    watch: run.Watch = lambda _epoch, _best: None,
    *,
    dataset: GraphDataset | None = None,
    data_root: Path | None = None,
    offline: bool = False,
    progress: Progress = NO_PROGRESS,
    command: str = "",
) -> dict[str, Any]:
    """Train the settings in a run's folder, or go on with it, and give its result.

    Where another process is at it already, wait for that.

    Raises:
        InputError: the folder holds the run of other settings.
        IhgnnError: the training failed.
    """
    if (folder / runs.CONFIG).is_file() and not _alike(runs.config_of(folder), config):
        raise InputError(
            f"{folder} holds the run of other settings than those of this trial, perhaps of "
            "another study. Remove it, or choose another --out."
        )
    while (found := runs.finished(folder) if folder.is_dir() else None) is None:
        try:
            begun = (folder / runs.CONFIG).is_file()
            prepared = run.prepare(
                runs.config_of(folder) if begun else config,
                folder=folder if begun else None,
                dataset=dataset,
                data_root=data_root,
                offline=offline,
                progress=progress,
            )
            if not begun:
                prepared = run.start(prepared, folder)
            run.fit(prepared, folder, watch, command=command)
        except InUseError:
            time.sleep(_PAUSE)
    return found


def _alike(one: RunConfig, other: RunConfig) -> bool:
    """Whether two configurations are of the same training, wherever it runs and data lies."""
    trainings = [replace(each.training, device="") for each in (one, other)]
    features = [each.data.features for each in (one, other)]
    return (one.model, trainings[0], features[0]) == (other.model, trainings[1], features[1])
