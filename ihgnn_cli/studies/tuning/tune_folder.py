"""The folder of a search.

`tune.json` describes the search, `splits.json` holds the split of the final run, `study.db` the
trials if they are stored in SQLite, and `trial-N/` the run with the best settings. A finished
search also has `best.toml`, `trials.csv`, `result.json`, and the report.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from optuna.trial import TrialState

from ihgnn_cli.data.kinds import is_drawn
from ihgnn_cli.data.splits import Fold, write_fold_file
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import cannot_write, write_json
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.differences import difference
from ihgnn_cli.studies.job_folder import SEARCH, refuse_other_content
from ihgnn_cli.studies.tuning.search import Search
from ihgnn_cli.studies.tuning.storage import DATABASE, LOCK
from ihgnn_cli.studies.tuning.trials import RequestedTrial, TrialsRun, best_trial
from ihgnn_cli.training.config import RunConfig, write_config
from ihgnn_cli.training.provenance import machine_facts

JOB, SPLITS, BEST = SEARCH.file, "splits.json", "best.toml"
TRIALS, RESULT = "trials.csv", "result.json"
CHOSEN_BY = "validation accuracy, then validation loss, then the earlier trial"


def begin(
    search: Search, folder: Path, *, study: str = "", storage: str = "", command: str = ""
) -> bool:
    """Create the folder of a search, or open it; returns whether it is new.

    Args:
        search: the search.
        folder: its folder.
        study: name of the study.
        storage: address of the storage as `Address.seen_from` gives it. A folder belongs to one
            study: trials of another study with the same number have other settings.
        command: command line to record.

    Raises:
        InputError: the folder holds something else.
        IhgnnError: the folder cannot be created.
    """
    path = folder / JOB
    new = False
    try:
        if not path.is_file():
            refuse_other_content(folder, SEARCH)
            folder.mkdir(parents=True, exist_ok=True)
            write_fold_file([Fold((search.split,))], folder / SPLITS)
            about = {"study": study, "storage": storage, "command": command}
            write_json(path, {"identity": search.identity, **about})
            new = True
        found = json.loads(path.read_text(encoding="utf-8"))
        identity, stored_in = found["identity"], (found["study"], _stored_in(found, folder))
    except OSError as error:
        raise cannot_write(folder, error) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is damaged. Choose another --out.") from error
    changed = difference(identity, search.identity)
    if changed is not None:
        raise InputError(f"{folder} holds another search ({changed}). Choose another --out.")
    if stored_in != (study, storage):
        raise InputError(
            f"{folder} holds the results of the study '{stored_in[0]}' in {stored_in[1]}. Choose "
            "another --out for another study or storage."
        )
    return new


def _stored_in(job: Mapping[str, Any], folder: Path) -> str:
    """The storage of a folder; earlier versions recorded the absolute path of its own file."""
    storage: str = job["storage"]
    kind, _, name = storage.partition(":///")
    there, own = Path(name), folder / DATABASE
    if kind == "sqlite" and there.name == DATABASE and (own.is_file() or there == own.absolute()):
        return DATABASE
    return storage


def discard_new(folder: Path) -> None:
    """Remove a new folder whose study could not be opened."""
    if {each.name for each in folder.iterdir()} <= {JOB, SPLITS, LOCK}:
        shutil.rmtree(folder, ignore_errors=True)


def best_config(search: Search, trials: Sequence[RequestedTrial]) -> RunConfig | None:
    """The configuration of the best trial; `None` if no trial is complete."""
    best = best_trial(trials)
    return None if best is None else search.config.with_values(best.last.params)


def write_best(config: RunConfig, folder: Path) -> Path:
    """Write the best settings for `ihgnn train --config`; they refer to the split beside them.

    Raises:
        IhgnnError: the file cannot be written.
    """
    data = config.data
    if not is_drawn(data.split):
        data = replace(data, split=SPLITS, split_from=data.split)
    path = folder / BEST
    write_config(replace(config, data=data), path)
    return path


def make_result(
    search: Search,
    done: TrialsRun,
    device: torch.device,
    *,
    study: str,
    storage: str,
    command: str,
) -> dict[str, Any]:
    """The content of `result.json` before the final run.

    Args:
        search: the search.
        done: its trials.
        device: the device of the workers.
        study: name of the study.
        storage: address of the storage, without secrets.
        command: command line to record.
    """
    best = best_trial(done.trials)
    states = [each.state for each in done.trials]
    unfinished = sum(not each.finished for each in done.trials)
    outcomes = [each.outcome for each in done.trials]
    result = {
        "dataset": search.dataset.name,
        "best": None if best is None else _plain_trial(best),
        "chosen_by": CHOSEN_BY,
        "trials": {
            "asked": done.total,
            "complete": states.count(TrialState.COMPLETE),
            "pruned": states.count(TrialState.PRUNED),
            "failed": states.count(TrialState.FAIL),
            # An earlier command may have requested more trials.
            "left": max(0, done.total - len(done.trials)) + unfinished,
            "retried": sum(len(each.attempts) - 1 for each in done.trials),
        },
        "validation_graphs": [len(each.validation) for each in search.inner],
        "model_epochs": sum(each.model_epochs for each in outcomes if each is not None),
        "worker_seconds": sum(each.seconds for each in outcomes if each is not None),
        "trained_now": done.model_epochs,
        "seconds": done.seconds,
        "search": search.identity,
        "study": study,
        "storage": storage,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "provenance": {**machine_facts(device), "command": command},
    }
    plain: dict[str, Any] = jsonable(result)  # type: ignore[assignment]
    return plain


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Write the result, the last step of a search."""
    write_json(folder / RESULT, result)


def _plain_trial(trial: RequestedTrial) -> dict[str, Any]:
    outcome = trial.outcome
    return {
        "trial": trial.number,
        "params": trial.last.params,
        "validation_accuracy": trial.last.value,
        "validation_loss": None if outcome is None else outcome.loss,
        "best_epochs": None if outcome is None else outcome.best_epochs,
    }
