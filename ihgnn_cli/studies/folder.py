"""The folder of a job: what was asked, the splits, and a small file for each finished unit.

`crossval.json` says what the job is, `splits.json` holds its folds; `units/` has a file a finished
unit; `claims/` tells which processes are at work, `partial/` holds stacks on their way; at the end
there is `result.json`.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ihgnn_cli.data.splits import Fold, fold_file, write_fold_file
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import cannot_write, exclusive, remove_parts, written_whole
from ihgnn_cli.jobs.claims import LOCK, Claims
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.differences import difference
from ihgnn_cli.studies.units import Record, Unit, Validated, parsed

JOB, SPLITS, RESULT = "crossval.json", "splits.json", "result.json"
UNITS, CLAIMS, PARTIAL = "units", "claims", "partial"
_RESULT_KEYS = {"test_mean", "folds", "runs", "paper", "model_epochs", "trained_now", "seconds"}


def begin(path: Path, job: Mapping[str, Any], folds: Sequence[Fold]) -> None:
    """Make the folder of a job; one that holds the same job stays as it is.

    Only its file of splits is written anew where somebody has damaged it.

    Args:
        path: the folder.
        job: `identity` is what has to be equal, the rest stays as it was when the job began.
        folds: written for the record, and to be used elsewhere.

    Raises:
        InputError: the folder holds another job, or something else.
        IhgnnError: it cannot be made.
    """
    if not (path / JOB).is_file():
        _refuse_other_content(path, folds)
        new = not path.exists()
        try:
            _make(path, job, folds)
        except BaseException:
            if new:
                _unmake(path)
            raise
    before = read_job(path)["identity"]
    changed = difference(before, jsonable(job["identity"]))
    if changed is not None:
        raise InputError(
            f"{path} holds another job ({changed}). Choose another --out, or repeat its own "
            f"command: {_command_of(path)}"
        )
    if not _holds(path / SPLITS, folds):
        write_fold_file(folds, path / SPLITS)


def _make(path: Path, job: Mapping[str, Any], folds: Sequence[Fold]) -> None:
    """Fill the folder, what makes it a job at last; of several processes one does it."""
    try:
        for name in (UNITS, CLAIMS, PARTIAL):
            (path / name).mkdir(parents=True, exist_ok=True)
        with exclusive(path / CLAIMS / LOCK):
            if not (path / JOB).is_file():
                write_fold_file(folds, path / SPLITS)
                _write_json(path / JOB, job)
    except OSError as error:
        raise cannot_write(path, error) from error


def _unmake(path: Path) -> None:
    """Take away a folder that could not be filled, but nothing that somebody has put there."""
    with suppress(OSError, IhgnnError), exclusive(path / CLAIMS / LOCK):
        if not (path / JOB).is_file():
            (path / SPLITS).unlink(missing_ok=True)
            (path / CLAIMS / LOCK).unlink(missing_ok=True)
    for name in (UNITS, CLAIMS, PARTIAL, ""):  # in which there is nothing
        with suppress(OSError):
            (path / name).rmdir()


def read_job(path: Path) -> dict[str, Any]:
    """What the job of a folder is.

    Raises:
        InputError: the folder holds none, or a damaged one.
    """
    try:
        content: dict[str, Any] = json.loads((path / JOB).read_text(encoding="utf-8"))
        stack = int(content["stack"])
        content |= {
            "identity": dict(content["identity"]),
            "stack": stack,
            # Folders of before final runs had a size of their own have one for both.
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
        folder: of the job.
        is_ours: whether a record has the seed and the split that the job gives its unit.
    """

    def __init__(self, folder: Path, is_ours: Callable[[Validated], bool]) -> None:
        self.folder = folder
        self._is_ours = is_ours
        self._known: dict[Unit, Record] = {}

    def write(self, record: Record) -> None:
        """Put a finished unit on disk.

        Raises:
            IhgnnError: the disk is full, or the place is gone.
        """
        with written_whole(self._path(record.validated.unit), durable=True) as temporary:
            temporary.write_text(record.line(), encoding="utf-8")

    def read(self, unit: Unit) -> Record | None:
        """What a unit came to; `None` while it is not finished.

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
                raise InputError(f"{path} is of another job. Remove it, or choose another --out.")
            self._known[unit] = record
        return self._known[unit]

    def has(self, unit: Unit, *, curves: bool) -> bool:
        """Whether a unit is finished, with its test accuracy epoch by epoch where that is asked."""
        record = self.read(unit)
        if record is None:
            return False
        if curves and not record.has_curve:
            del self._known[unit]  # somebody may write it anew
            return False
        return True

    def validated(self, units: Sequence[Unit]) -> list[Validated]:
        """What is known of these units without their test graphs; missing ones are left out."""
        records = map(self.read, units)
        return [record.validated for record in records if record is not None]

    def _path(self, unit: Unit) -> Path:
        return self.folder / UNITS / f"{unit.name}.json"


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """The last step of a job, which also clears away what killed processes left.

    Somebody may still be at work, adding what the rules need: then it is left to them.
    """
    _write_json(folder / RESULT, result)
    if not Claims(folder / CLAIMS).held():
        remove_parts(folder / UNITS)
        shutil.rmtree(folder / PARTIAL, ignore_errors=True)


def read_result(folder: Path) -> dict[str, Any] | None:
    """The result of a finished job, `None` where there is none, a damaged or an outdated one."""
    try:
        content = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not content.keys() >= _RESULT_KEYS:
        return None
    paper = content["paper"]
    # Once the paper's numbers were in percent, and did not tell of which model they are.
    current = paper is None or (isinstance(paper, dict) and "variant" in paper)
    return content if current else None


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged. Remove it, and its stack is trained again.")


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    with written_whole(path, durable=True) as temporary:
        temporary.write_text(json.dumps(jsonable(content), indent=2) + "\n", encoding="utf-8")


def _refuse_other_content(path: Path, folds: Sequence[Fold]) -> None:
    """Let a new job begin where nothing is, or where this very job was just about to."""
    try:
        used = path.exists() and not (path.is_dir() and _is_beginning(path, folds))
    except OSError as error:
        raise cannot_write(path, error) from error
    # Somebody may have finished the beginning while this was looking.
    if used and not (path / JOB).is_file():
        what = "is not empty and holds no job of crossval" if path.is_dir() else "is no folder"
        raise InputError(f"{path} {what}. Choose another --out.")


def _is_beginning(path: Path, folds: Sequence[Fold]) -> bool:
    """Whether a folder is empty, or holds no more than what `_make` writes before the job."""
    parts = (".splits-", ".crossval-")  # being written, or left by a process that was killed
    content = {each.name for each in path.iterdir() if not each.name.startswith(parts)}
    if not content <= {SPLITS, UNITS, CLAIMS, PARTIAL}:
        return False
    if any(any((path / name).iterdir()) for name in content & {UNITS, PARTIAL}):
        return False
    return SPLITS not in content or _holds(path / SPLITS, folds)


def _holds(path: Path, folds: Sequence[Fold]) -> bool:
    """Whether a file of folds is there, and holds these."""
    try:
        return path.read_bytes() == fold_file(folds).encode()
    except OSError:
        return False


def _command_of(path: Path) -> str:
    return str(read_job(path).get("command", "it is not known"))
