"""The folder of a search: what was asked, the split, and at the end the best settings.

`tune.json` says what the search is, `splits.json` holds the split of the final run, `study.db` the
trials where they are kept in SQLite, `trial-N/` the run of the best settings. At the end there are
`best.toml`, `trials.csv`, `result.json`, and the figures.
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

from ihgnn_cli.data.splits import Fold, is_drawn, write_fold_file
from ihgnn_cli.errors import InputError
from ihgnn_cli.files import cannot_write, written_whole
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.differences import difference
from ihgnn_cli.studies.tuning.search import Conducted, Search
from ihgnn_cli.studies.tuning.slots import Slot, best_of
from ihgnn_cli.studies.tuning.storage import LOCK
from ihgnn_cli.training.config import RunConfig, write_config
from ihgnn_cli.training.provenance import machine_facts

JOB, SPLITS, BEST = "tune.json", "splits.json", "best.toml"
TRIALS, RESULT = "trials.csv", "result.json"
CHOSEN_BY = "validation accuracy, then validation loss, then the earlier trial"


def begin(
    search: Search, folder: Path, *, study: str = "", storage: str = "", command: str = ""
) -> bool:
    """Make the search's folder, or find it begun; says whether it was made.

    Args:
        search: what is asked.
        folder: of the search.
        study: its name.
        storage: where it is kept, for people: the same trial of another study has other settings.
        command: for the record.

    Raises:
        InputError: the folder holds something else.
        IhgnnError: it cannot be made.
    """
    path = folder / JOB
    made = False
    try:
        if not path.is_file():
            _refuse_other_content(folder)
            folder.mkdir(parents=True, exist_ok=True)
            write_fold_file([Fold((search.split,))], folder / SPLITS)
            new = {"identity": search.identity, "study": study, "storage": storage}
            _write_json(path, {**new, "command": command})
            made = True
        begun = json.loads(path.read_text(encoding="utf-8"))
        before, kept = begun["identity"], (begun["study"], begun["storage"])
    except OSError as error:
        raise cannot_write(folder, error) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is damaged. Choose another --out.") from error
    changed = difference(before, search.identity)
    if changed is not None:
        raise InputError(f"{folder} holds another search ({changed}). Choose another --out.")
    if kept != (study, storage):
        raise InputError(
            f"{folder} holds the results of the study '{kept[0]}' in {kept[1]}. Choose another "
            "--out for another study or storage."
        )
    return made


def discard_unbegun(folder: Path) -> None:
    """Remove a new folder whose study could not be opened."""
    if {each.name for each in folder.iterdir()} <= {JOB, SPLITS, LOCK}:
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_other_content(folder: Path) -> None:
    """Let a search begin where nothing is, or where somebody was just about to begin one."""
    what = None
    if folder.is_dir():
        names = {each.name for each in folder.iterdir()}
        begun = all(name == SPLITS or name.startswith((".splits-", ".tune-")) for name in names)
        what = None if begun else "is not empty and holds no search"
    elif folder.exists():
        what = "is not a folder"
    # Somebody may have finished the beginning while this was looking.
    if what is not None and not (folder / JOB).is_file():
        raise InputError(f"{folder} {what}. Choose another --out.")


def best_config(search: Search, slots: Sequence[Slot]) -> RunConfig | None:
    """The configuration of the best trial; `None` while none was trained to its end."""
    best = best_of(slots)
    return None if best is None else search.space.applied(search.config, best.last.params)


def write_best(config: RunConfig, folder: Path) -> Path:
    """Write a configuration that `ihgnn train --config` takes, with the split beside it.

    Raises:
        IhgnnError: it cannot be written.
    """
    data = config.data
    if not is_drawn(data.split):
        data = replace(data, split=SPLITS, split_from=data.split)
    path = folder / BEST
    write_config(replace(config, data=data), path)
    return path


def make_result(
    search: Search,
    done: Conducted,
    device: torch.device,
    about: Mapping[str, str],
) -> dict[str, Any]:
    """All that is known of a search but the test, as `result.json` holds it.

    Args:
        search: what was asked.
        done: what was done.
        device: of the workers.
        about: `study`, `storage` (for people) and `command`.
    """
    best = best_of(done.slots)
    states = [slot.state for slot in done.slots]
    unsettled = sum(not slot.settled for slot in done.slots)
    outcomes = [slot.outcome for slot in done.slots]
    result = {
        "dataset": search.dataset.name,
        "best": None if best is None else _plain_slot(best),
        "chosen_by": CHOSEN_BY,
        "trials": {
            "asked": done.total,
            "complete": states.count(TrialState.COMPLETE),
            "pruned": states.count(TrialState.PRUNED),
            "failed": states.count(TrialState.FAIL),
            # There may be more slots than were asked for now.
            "left": max(0, done.total - len(done.slots)) + unsettled,
            "retried": sum(len(slot.tries) - 1 for slot in done.slots),
        },
        "validation_graphs": [len(each.validation) for each in search.inner],
        "model_epochs": sum(each.model_epochs for each in outcomes if each is not None),
        "worker_seconds": sum(each.seconds for each in outcomes if each is not None),
        "trained_now": done.model_epochs,
        "seconds": done.seconds,
        "search": search.identity,
        "study": about["study"],
        "storage": about["storage"],
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "provenance": {**machine_facts(device), "command": about["command"]},
    }
    plain: dict[str, Any] = jsonable(result)  # type: ignore[assignment]
    return plain


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """The last step of a search."""
    _write_json(folder / RESULT, result)


def _plain_slot(slot: Slot) -> dict[str, Any]:
    outcome = slot.outcome
    return {
        "trial": slot.number,
        "params": slot.last.params,
        "validation_accuracy": slot.last.value,
        "validation_loss": None if outcome is None else outcome.loss,
        "best_epochs": None if outcome is None else outcome.best_epochs,
    }


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    with written_whole(path, durable=True) as temporary:
        temporary.write_text(json.dumps(jsonable(content), indent=2) + "\n", encoding="utf-8")
