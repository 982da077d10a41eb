"""The folder of a run: what it contains, and how it is created, checked and read.

At the start it holds `config.toml` and `splits.json`, which are enough to repeat the run. Training
adds `metrics.jsonl` (one line per epoch), `ckpt.pt` (the best epoch so far, by validation) and
`last.pt` (to resume from). At the end `result.json` and `curves.png` are added.
"""

import errno
import json
import math
import secrets
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ihgnn_cli.data.kinds import ALL
from ihgnn_cli.errors import InputError, InUseError
from ihgnn_cli.files import LOCK, cannot_write, read_text, writing, written_whole
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.models.registry import DEFAULT_MODEL
from ihgnn_cli.paths import file_name
from ihgnn_cli.training.config import RunConfig, read_config, write_config
from ihgnn_cli.training.unfinished import unfinished_job

if TYPE_CHECKING:  # an exported model is evaluated without torch, a wrong folder refused at once
    from ihgnn_cli.data.splits import Split
    from ihgnn_cli.training.epoch import Epoch

RUNS = Path("runs")
"""The parent of run folders that the user has not named."""
CONFIG, SPLITS, METRICS = "config.toml", "splits.json", "metrics.jsonl"
BEST, LAST, RESULT, CURVES = "ckpt.pt", "last.pt", "result.json", "curves.png"
BEST_CONFIG = "best.toml"
"""The settings that a cross-validation or search found, in its folder."""
MOST_BYTES = 100_000_000
"""Size of the largest file that is read: metrics of half a million epochs, or a result."""
_SHOWN = {"dataset", "best_epoch", "epochs", "stopped", "train", "validation", "test", "seeds"}
_SHOWN |= {"snapshots", "members_test", "split", "config", "seconds"}


def make(config: RunConfig, split: "Split", folder: Path) -> None:
    """Create a run's folder with everything needed to start.

    The folder appears in one step, complete. An existing folder that is not empty is not changed.

    Raises:
        InputError: the folder is in use.
        IhgnnError: the folder cannot be created.
    """
    from ihgnn_cli.data.splits import Fold, write_fold_file

    refuse_used(folder)
    made = folder if folder.is_dir() else folder.parent / f".{folder.name}-{secrets.token_hex(4)}"
    try:
        made.mkdir(parents=True, exist_ok=True)
        write_fold_file([Fold((split,))], made / SPLITS)
        write_config(config, made / CONFIG)
        if made != folder:
            made.replace(folder)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):  # another process was faster
            raise _holds_a_run(folder) from error
        raise cannot_write(folder, error) from error
    finally:
        if made != folder:
            shutil.rmtree(made, ignore_errors=True)


def refuse_used(folder: Path) -> None:
    """Make sure that a new run would not mix with other files.

    Raises:
        InputError: the folder is not empty.
    """
    with writing(folder):
        used = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
    if used and not folder.is_dir():
        raise InputError(f"{folder} is not a folder. Choose another --out.")
    if used and (folder / CONFIG).is_file():
        raise _holds_a_run(folder)
    if used:
        raise InputError(f"{folder} is not empty. Choose another --out.")


def run_name(dataset: str, config: RunConfig) -> str:
    """The default folder name: the data set, plus the model if it is not the default."""
    name = file_name(dataset)
    return name if config.model_name == DEFAULT_MODEL else f"{name}-{file_name(config.model_name)}"


def free_folder(parent: Path, name: str) -> Path:
    """`parent/name-1`, or the first number that is free."""
    number = 1
    while (parent / f"{name}-{number}").exists():
        number += 1
    return parent / f"{name}-{number}"


def config_of(folder: Path, *, epochs: int | None = None, patience: int | None = None) -> RunConfig:
    """The configuration of an existing run, optionally with more epochs or another patience.

    Raises:
        InputError: the folder holds no run, or the run already has more epochs.
    """
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder} holds no run ({CONFIG} is missing). Give a run's folder.")
    if not (folder / SPLITS).is_file():
        raise InputError(f"{folder} is not a complete run ({SPLITS} is missing). Start a new one.")
    config = read_config(folder / CONFIG)
    before = config.training
    if epochs not in (None, before.epochs) and before.snapshots:
        raise InputError(
            f"{folder} keeps snapshots that are spaced over its {before.epochs} epochs. Start a "
            "new run with more epochs."
        )
    if epochs is not None and epochs < before.epochs:
        raise InputError(
            f"{folder} is a run of {before.epochs} epochs. A run can be given more epochs, not "
            "fewer."
        )
    return replace(
        config,
        training=replace(
            before,
            epochs=before.epochs if epochs is None else epochs,
            patience=before.patience if patience is None else patience,
        ),
    )


def discard_unbegun(folder: Path) -> None:
    """Remove a run that failed before it saved anything."""
    if {each.name for each in folder.iterdir()} <= {CONFIG, SPLITS, METRICS, LOCK}:
        shutil.rmtree(folder, ignore_errors=True)


def settle(config: RunConfig, folder: Path) -> None:
    """Write the current configuration to the folder, and remove an old result."""
    if read_config(folder / CONFIG) != config:
        write_config(config, folder / CONFIG)
    with writing(folder / RESULT):
        (folder / RESULT).unlink(missing_ok=True)


def finished(folder: Path) -> dict[str, Any] | None:
    """The result of a finished run; `None` if the run is not finished.

    Raises:
        InputError: the result file is damaged.
    """
    path = folder / RESULT
    if not path.is_file():
        return None
    try:
        result: dict[str, Any] = json.loads(read_text(path, MOST_BYTES))
        missing = _SHOWN.difference(result)
        for part in () if missing or result["split"] == ALL else ("test", "validation"):
            float(result[part]["accuracy"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged. {_made_again(folder)}") from error
    if missing:
        raise InputError(f"{path} was made by another version of ihgnn. {_made_again(folder)}")
    return result


def _made_again(folder: Path) -> str:
    return f"Remove it, and 'ihgnn train --resume {folder}' finishes the run."


def write_result(result: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Write the result, the last step of a run; returns what `finished` would read."""
    plain: dict[str, Any] = jsonable(result)  # type: ignore[assignment]
    with written_whole(folder / RESULT) as temporary:
        temporary.write_text(json.dumps(plain, indent=2) + "\n", encoding="utf-8")
    return plain


def is_unfinished(folder: Path) -> bool:
    """Whether a folder holds a run that has no result yet."""
    there = all((folder / name).is_file() for name in (CONFIG, SPLITS))
    return there and not (folder / RESULT).is_file()


def best_of(path: Path, *, trained: bool = False) -> Path:
    """The checkpoint in the folder of a run or a search; a path that is no folder is unchanged.

    A finished search names the run of its best settings; an unfinished one may have one.

    Raises:
        InputError: the folder holds no checkpoint.
    """
    if not path.is_dir() or (path / BEST).is_file():
        return path / BEST if path.is_dir() else path
    found = sorted(path.glob(f"trial-*/{BEST}"))
    try:
        named = json.loads(read_text(path / RESULT, MOST_BYTES))["final"]["folder"]
        found = [each for each in found if each.parent.name == named] or found
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not the folder of a finished search
    if len(found) == 1:
        return found[0]
    accepted = "a run folder, its checkpoint or an exported .onnx file"
    if trained:
        accepted = "a run folder or its checkpoint"
    remedy = f"Give {accepted}; 'ihgnn runs' lists runs."
    if is_unfinished(path):
        remedy = f"Its training is not finished: ihgnn train --resume {shlex.quote(str(path))}"
    elif job := unfinished_job(path):
        remedy = job
    elif (path / BEST_CONFIG).is_file():
        config = shlex.quote(str(path / BEST_CONFIG))
        remedy = f"Train the settings that it found: ihgnn train --final --config {config}"
    raise InputError(f"{path} holds no checkpoint ({BEST}). {remedy}")


def checkpoint_of(path: Path) -> Path:
    """Like `best_of`, for work that an exported model does not allow.

    Raises:
        InputError: the path is an exported file, or its folder holds no checkpoint.
    """
    if path.suffix.lower() == ".onnx":
        raise InputError(f"{path} is an exported model. Give the checkpoint it was exported from.")
    return best_of(path, trained=True)


def refuse_own(outputs: Iterable[Path], model: Path) -> None:
    """Make sure that no file to write is the model, or another file of its run.

    Raises:
        InputError: a file belongs to the model, or the model's folder holds no checkpoint.
    """
    model = best_of(model)
    run = {CONFIG, SPLITS, METRICS, BEST, LAST, RESULT, CURVES}
    beside = {model.with_suffix(each).name for each in (".json", ".golden.json")}
    own = {model.name, *beside, *run}
    for path in outputs:
        if path.name in own and path.resolve().parent == model.resolve().parent:
            raise InputError(f"{path} belongs to the model. Write to another file.")


def is_model(path: Path) -> bool:
    """Whether a path looks like a model: a .onnx or .pt file, or a folder with a checkpoint."""
    try:
        return path.suffix.lower() in (".onnx", ".pt") or best_of(path) != path
    except (OSError, InputError):  # such as a name that is too long, or another folder
        return False


def read_metrics(folder: Path) -> "list[Epoch]":
    """The epochs recorded in a run's folder.

    Raises:
        InputError: the file is missing or damaged.
    """
    from ihgnn_cli.training.epoch import Epoch

    path = folder / METRICS
    try:
        lines = read_text(path, MOST_BYTES).splitlines()
        found: list[dict[str, Any]] = [json.loads(line) for line in lines]
        unknown = dict.fromkeys(("validation_loss", "validation_accuracy"), math.nan)
        return [
            Epoch(**each | (unknown if each["validation_loss"] is None else {})) for each in found
        ]
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} is damaged: {error}.") from error


def write_metrics(history: "Sequence[Epoch]", folder: Path) -> None:
    """Rewrite the file with the epochs to keep."""
    with written_whole(folder / METRICS) as temporary:
        temporary.write_text("".join(map(_line, history)), encoding="utf-8")


def append_metrics(epoch: "Epoch", folder: Path) -> None:
    """Add one epoch to the file."""
    path = folder / METRICS
    with writing(path), path.open("a", encoding="utf-8") as stream:
        stream.write(_line(epoch))


def _line(epoch: "Epoch") -> str:
    return json.dumps(jsonable(asdict(epoch))) + "\n"  # NaN, without validation, becomes null


def _holds_a_run(folder: Path) -> InUseError:
    return InUseError(
        f"{folder} already holds a run. Continue it with 'ihgnn train --resume {folder}', or "
        "choose another --out."
    )
