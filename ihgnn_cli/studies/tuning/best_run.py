"""The final run of a search: trains the best settings and tests them once."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.errors import InputError, InUseError
from ihgnn_cli.training import folder as runs
from ihgnn_cli.training import run
from ihgnn_cli.training.config import RunConfig

# Seconds between two looks at a run that another process is training.
_PAUSE = 1.0


def run_folder(folder: Path, trial: int) -> Path:
    """The run folder for the settings of a trial."""
    return folder / f"trial-{trial}"


def earlier_runs(folder: Path, trial: int) -> list[int]:
    """Other trials whose settings were tested, for example before more trials were requested."""
    done = folder.glob(f"trial-*/{runs.RESULT}")
    found = [path.parent.name.removeprefix("trial-") for path in done]
    return sorted(int(each) for each in found if each.isdecimal() and int(each) != trial)


def train_best(
    config: RunConfig,
    folder: Path,
    watch: run.Watch = lambda _epoch, _best: None,
    *,
    dataset: GraphDataset | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Train the settings in a run folder, or resume the run, and return its result.

    If another process is training it, wait for that process.

    Raises:
        InputError: the folder holds a run with other settings.
        IhgnnError: the training failed.
    """
    if (folder / runs.CONFIG).is_file() and not _alike(runs.config_of(folder), config):
        raise InputError(
            f"{folder} holds a run with other settings than this trial, perhaps of another "
            "study. Remove it, or choose another --out."
        )
    while (found := runs.finished(folder) if folder.is_dir() else None) is None:
        try:
            exists = (folder / runs.CONFIG).is_file()
            prepared = run.prepare(
                runs.config_of(folder) if exists else config,
                folder=folder if exists else None,
                dataset=dataset,
            )
            if not exists:
                prepared = run.start(prepared, folder)
            run.fit(prepared, folder, watch, command=command)
        except InUseError:
            time.sleep(_PAUSE)
    return found


def _alike(one: RunConfig, other: RunConfig) -> bool:
    """Whether two configurations differ at most in the device and the location of the data."""
    trainings = [replace(each.training, device="") for each in (one, other)]
    data = [replace(each.data, dataset="", split="", split_from="") for each in (one, other)]
    return (one.model, trainings[0], data[0]) == (other.model, trainings[1], data[1])
