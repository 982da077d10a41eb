"""The folder of a cross-validation job.

`crossval.json` describes the job, `splits.json` holds its folds (`splits-repeat1.json` those of the
second partition, and so on), `units/` has one small file per
finished unit, `claims/` records which processes are working, and `partial/` holds checkpoints of
unfinished stacks. A finished job also has `result.json`, and `best.toml` with the configuration
that most folds chose.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ihgnn_cli.data.splits import Fold, fold_file, write_fold_file
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import (
    exclusive,
    remove_parts,
    write_json,
    writing,
    written_whole,
)
from ihgnn_cli.jobs.claims import LOCK, Claims
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.differences import difference
from ihgnn_cli.studies.folds import of_repeat
from ihgnn_cli.studies.job_folder import CROSSVAL_JOB, refuse_other_content
from ihgnn_cli.studies.units import Record, Unit, Validated, parsed

JOB, SPLITS, RESULT, BEST = CROSSVAL_JOB.file, "splits.json", "result.json", "best.toml"
UNITS, PARTIAL = CROSSVAL_JOB.empty
(CLAIMS,) = CROSSVAL_JOB.locks
_RESULT_KEYS = {"test_mean", "folds", "runs", "paper", "model_epochs", "trained_now", "seconds"}


def begin(path: Path, job: Mapping[str, Any], folds: Sequence[Fold], repeats: int = 1) -> None:
    """Create the folder of a job; a folder with the same job is not changed.

    Only a damaged splits file is rewritten.

    Args:
        path: the folder.
        job: its `identity` must match an existing job; the other values stay as first written.
        folds: written for the record and for use elsewhere.
        repeats: the number of partitions in `folds`, each in a file of its own.

    Raises:
        InputError: the folder holds another job, or something else.
        IhgnnError: the folder cannot be created.
    """
    each = len(folds) // repeats
    if not (path / JOB).is_file():
        refuse_other_content(path, CROSSVAL_JOB, lambda file: _holds(file, folds[:each]))
        new = not path.exists()
        try:
            _make(path, job, folds[:each])
        except BaseException:
            if new:
                _unmake(path)
            raise
    before = read_job(path)["identity"]
    changed = difference(before, jsonable(job["identity"]))
    if changed is not None:
        raise InputError(
            f"{path} holds another job ({changed}). Choose another --out, or repeat its own "
            f"command: {command_of(path)}"
        )
    for repeat in range(repeats):
        file, part = path / of_repeat(SPLITS, repeat), folds[repeat * each : (repeat + 1) * each]
        if not _holds(file, part):
            write_fold_file(part, file)


def _make(path: Path, job: Mapping[str, Any], folds: Sequence[Fold]) -> None:
    """Fill the folder, with the job file last; only one of several processes does this."""
    with writing(path):
        for name in (UNITS, CLAIMS, PARTIAL):
            (path / name).mkdir(parents=True, exist_ok=True)
        with exclusive(path / CLAIMS / LOCK):
            if not (path / JOB).is_file():
                write_fold_file(folds, path / SPLITS)
                write_json(path / JOB, job)


def _unmake(path: Path) -> None:
    """Remove a folder that could not be filled, but no files of others."""
    with suppress(OSError, IhgnnError), exclusive(path / CLAIMS / LOCK):
        if not (path / JOB).is_file():
            (path / SPLITS).unlink(missing_ok=True)
            (path / CLAIMS / LOCK).unlink(missing_ok=True)
    for name in (UNITS, CLAIMS, PARTIAL, ""):  # all empty
        with suppress(OSError):
            (path / name).rmdir()


def read_job(path: Path) -> dict[str, Any]:
    """The description of a folder's job.

    Raises:
        InputError: the folder holds no job, or the file is damaged.
    """
    try:
        content: dict[str, Any] = json.loads((path / JOB).read_text(encoding="utf-8"))
        stack = int(content["stack"])
        content |= {
            "identity": dict(content["identity"]),
            "stack": stack,
            # Older folders have a single size, used for both.
            "final_stack": int(content.get("final_stack", stack)),
        }
    except OSError as error:
        raise InputError(f"Cannot read {path / JOB}: {error.strerror or error}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path / JOB} is damaged. Choose another --out.") from error
    return content


class Units:
    """The finished units of a folder.

    Args:
        folder: the job's folder.
        is_ours: checks that a record has the seed and split that the job gives its unit.
    """

    def __init__(self, folder: Path, is_ours: Callable[[Validated], bool]) -> None:
        self.folder = folder
        self._is_ours = is_ours
        self._known: dict[Unit, Record] = {}

    def write(self, record: Record) -> None:
        """Write a finished unit to disk.

        Raises:
            IhgnnError: the disk is full, or the folder is gone.
        """
        with written_whole(self._path(record.validated.unit), durable=True) as temporary:
            temporary.write_text(record.line(), encoding="utf-8")

    def read(self, unit: Unit) -> Record | None:
        """The record of a unit; `None` if it is not finished.

        Raises:
            InputError: its file is damaged.
        """
        if unit not in self._known:
            path = self._path(unit)
            try:
                record = parsed(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                return None
            except OSError as error:
                raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise _damaged(path) from error
            if record.validated.unit != unit or not self._is_ours(record.validated):
                raise InputError(
                    f"{path} belongs to another job. Remove it, or choose another --out."
                )
            self._known[unit] = record
        return self._known[unit]

    def has(self, unit: Unit, *, curves: bool, calibration: bool = False) -> bool:
        """Whether a unit is finished.

        With `curves`, including the test accuracy per epoch; with `calibration`, including the
        probabilities of the validation graphs.
        """
        record = self.read(unit)
        if record is None:
            return False
        missing = calibration and not record.validated.probabilities
        if missing or (curves and not record.has_curve):
            del self._known[unit]  # it may be written again
            return False
        return True

    def validated(self, units: Sequence[Unit]) -> list[Validated]:
        """Records of these units without test results; missing units are left out."""
        records = map(self.read, units)
        return [record.validated for record in records if record is not None]

    def _path(self, unit: Unit) -> Path:
        return self.folder / UNITS / f"{unit.name}.json"


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Write the result, the last step of a job, and remove the leftovers of killed processes.

    If another process is still working, for example to add data for the rules, nothing is removed.
    """
    write_json(folder / RESULT, result)
    if not Claims(folder / CLAIMS).held():
        remove_parts(folder / UNITS)
        shutil.rmtree(folder / PARTIAL, ignore_errors=True)


def read_result(folder: Path) -> dict[str, Any] | None:
    """The result of a finished job; `None` if it is missing, damaged or outdated."""
    try:
        content = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not content.keys() >= _RESULT_KEYS:
        return None
    paper = content["paper"]
    # In older files the paper's numbers are in percent and do not name the model.
    current = paper is None or (isinstance(paper, dict) and "variant" in paper)
    return content if current else None


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged. Remove it, and its stack is trained again.")


def _holds(path: Path, folds: Sequence[Fold]) -> bool:
    """Whether a fold file exists and holds these folds."""
    try:
        return path.read_bytes() == fold_file(folds).encode()
    except OSError:
        return False


def command_of(path: Path) -> str:
    """The command that started the job."""
    return str(read_job(path).get("command", "(unknown)"))
