"""Cross-validation by the protocol of Errica et al. (ICLR 2020), as one resumable job.

Outer loop: folds, in which each graph is tested once. Inner loop: in each fold, every configuration
of the grid is trained, and validation alone chooses epoch and configuration. The chosen
configuration is trained several more times, and the test accuracies of these runs, each at its best
epoch by validation, are averaged.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ihgnn_cli import __version__
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.queue import NOTHING, Step
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies import folder as folders
from ihgnn_cli.studies.grid import configuration
from ihgnn_cli.studies.memory import require_room_for, stack_size
from ihgnn_cli.studies.plan import bundles, selection_units
from ihgnn_cli.studies.result import Work, identity, make_result
from ihgnn_cli.studies.schedule import Schedule
from ihgnn_cli.studies.signal.references import Reference
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training.config import RunConfig, write_config
from ihgnn_cli.training.final import LEAST_FINAL_EPOCHS
from ihgnn_cli.training.provenance import machine_facts

_DIGEST = 8  # hexadecimal digits that distinguish the jobs of a data set


@dataclass(frozen=True)
class Progress:
    """The progress of a job."""

    models: int
    """Finished models."""
    of_models: int
    epochs: int
    """Model-epochs that are done or no longer needed."""
    of_epochs: int


@dataclass(frozen=True)
class Finished:
    """A finished job."""

    result: dict[str, Any]
    """The content of `result.json`; times are those of the last command that trained."""
    trained: int | None
    """Model-epochs trained by this call; `None` if nothing was left to do."""


def default_folder(parent: Path, job: Job, name: str) -> Path:
    """The default folder of a job; the same job always gets the same folder."""
    text = json.dumps(jsonable(identity(job)), sort_keys=True)
    return parent / f"{name}-crossval-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]}"


def finished_repeats(job: Job, folder: Path) -> int:
    """The number of partitions in the folder's result, if it is one of this job; otherwise 0."""
    result = folders.read_result(folder)
    if result is None or result.get("job") != jsonable(identity(job)):
        return 0
    return repeats_of(result)


def repeats_of(result: Mapping[str, Any] | None) -> int:
    """The number of partitions in a result; 0 without one."""
    return 0 if result is None else len(result.get("repeats", (0,)))  # missing in older results


def begin(
    job: Job, folder: Path, executor: Executor, *, stack: int | None = None, command: str = ""
) -> int:
    """Create the job's folder, or open an existing one; returns its stack size.

    The first command fixes the size, so that a resumed job ends with the same numbers. It also
    fixes the stack size of final runs. As these are few, it is smaller by default, so that every
    worker gets some. Sizes do not depend on the number of repeats, so that it may grow later.

    Raises:
        InputError: the folder holds something else.
        NoRoomError: a model does not fit in a worker's memory.
    """
    if folders.read_result(folder) is None:
        require_room_for(job, executor)
    final_stack = stack
    if stack is None:
        final = job.protocol.runs * job.folds_each
        units = len(selection_units(job.protocol, job.first)) or final
        stack = stack_size(job, units, executor)
        final_stack = min(stack, math.ceil(final / executor.workers))
    content = {
        "identity": identity(job),
        "stack": stack,
        "final_stack": final_stack,
        "command": command,
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine_facts(executor.device),
    }
    folders.begin(folder, content, job.folds, job.repeats)
    found: int = folders.read_job(folder)["stack"]
    return found


def most_workers(job: Job, folder: Path) -> int:
    """How many workers can have a stack at a time, given the stack sizes stored in a folder."""
    begun = folders.read_job(folder)
    units = selection_units(job.protocol, job.folds)
    selected = bundles(units, begun["stack"], job.folds_each)
    # An upper bound, because folds that choose models of the same shape share stacks.
    final: int = len(job.folds) * math.ceil(job.protocol.runs / begun["final_stack"])
    return max(len(selected), final)


def other_versions(folder: Path, executor: Executor) -> str | None:
    """Version changes since a job started that may change the remaining numbers."""
    before, now = folders.read_job(folder), machine_facts(executor.device)
    changed = []
    for name in ("ihgnn", "torch"):
        versions = [
            str(facts.get(name) or facts.get("packages", {}).get(name)) for facts in (before, now)
        ]
        if versions[0] != versions[1]:
            changed.append(f"{name} {versions[0]}, now {versions[1]}")
    return ", ".join(changed) or None


def finish(
    job: Job,
    folder: Path,
    executor: Executor,
    stack: int,
    watch: Callable[[Progress, Step], None] = lambda _progress, _step: None,
    *,
    references: Sequence[Reference] = (),
    command: str = "",
) -> Finished:
    """Finish a job, write its result, beside the references if given, and return it.

    The result of a finished job is made again, too: references, rules or conformal sets may be new,
    and those of an older version may differ.

    Raises:
        IhgnnError: a training or a worker failed.
    """
    job = replace(job, final_stack=folders.read_job(folder)["final_stack"])
    schedule = Schedule(job, folder, stack)
    before = folders.read_result(folder)
    same = before is not None and len(before["folds"]) == len(job.folds)
    complete = schedule.finished()
    meter = _Meter(schedule, watch)
    if not complete:
        executor.run(schedule, meter.hear)
        meter.look()
    work = Work(executor, meter.trained, meter.seconds, command)
    result = make_result(job, schedule, work, before if same else None, references)
    if before is None or before.get("best") != result["best"]:
        (folder / folders.BEST).unlink(missing_ok=True)
    _write_best(job, folder, result)
    if result != before:
        if complete and before is not None:  # by another version, or with more in it
            now = datetime.now(UTC).isoformat(timespec="seconds")
            result["made_again"] = {"ihgnn": __version__, "command": command, "date": now}
        # What an older version left can be shown even where it cannot be replaced.
        same = same and before is not None and not _asks_for_more(job, references, before)
        with suppress(IhgnnError) if complete and same else nullcontext():
            folders.write_result(folder, result)
    return Finished(result, None if complete else meter.trained)


def _asks_for_more(job: Job, references: Sequence[Reference], before: Mapping[str, Any]) -> bool:
    """Whether a result lacks what this command asks for."""
    alpha = before["conformal"]["alpha"] if "conformal" in before else None
    return (
        (bool(references) and "references" not in before)
        or (job.curves and "rules" not in before)
        or (job.conformal is not None and job.conformal != alpha)
    )


def best_config(job: Job, result: Mapping[str, Any]) -> RunConfig:
    """The configuration that most folds chose, with the epochs for a final training."""
    best = result["best"]
    config = configuration(best["configuration"]).applied(job.protocol.config)
    if not job.protocol.selects:
        return config.with_values({"ensemble": job.protocol.runs, "epochs": best["epochs"]})
    return config.with_values({"epochs": max(best["epochs"], LEAST_FINAL_EPOCHS)})


def _write_best(job: Job, folder: Path, result: Mapping[str, Any]) -> None:
    """Write that configuration for `ihgnn train --config`, unless it is there."""
    if (folder / folders.BEST).is_file():
        return
    best, folds = result["best"], len(result["folds"])
    chosen = f"The configuration that most folds chose: {best['folds']} of {folds}"
    if best["folds"] == 1 < folds:
        chosen = (
            f"Each of {folds} folds chose another configuration; this one has the best average on "
            "validation"
        )
    comment = (
        f"{chosen}{', in a race' * bool(result.get('race'))}.\n"
        f"epochs: median of the best epochs of its final runs ({best['epochs']}), but at least "
        f"{LEAST_FINAL_EPOCHS}, for 'ihgnn train --final'."
    )
    if not job.protocol.selects:
        comment = "The configuration of the cross-validation, for 'ihgnn train --final'."
    write_config(best_config(job, result), folder / folders.BEST, comment)


class _Meter:
    """Adds up the progress of the workers and of other processes."""

    # Maximum pause between two looks; shorter if looking is fast.
    _LOOK_SECONDS, _LOOK_SHARE = 3.0, 20

    def __init__(self, schedule: Schedule, watch: Callable[[Progress, Step], None]) -> None:
        self._schedule = schedule
        self._watch = watch
        self._looked = self._pause = 0.0
        self._models = self._settled = 0
        self._count()
        self.trained = 0
        self._began: float | None = None
        self._last = 0.0

    def hear(self, step: Step) -> None:
        now = time.monotonic()
        if self._began is None:
            self._began = self._last = now
        if step.trained:
            self._last = now
        self.trained += step.trained
        self._settled += step.settled
        if now - self._looked >= self._pause:
            self.look(step)
        else:
            self._tell(step)

    def look(self, step: Step = NOTHING) -> None:
        """Count the units finished by any process."""
        began = time.monotonic()
        self._count()
        self._looked = time.monotonic()
        self._pause = min(self._LOOK_SECONDS, self._LOOK_SHARE * (self._looked - began))
        self._tell(step)

    def _count(self) -> None:
        finished = self._schedule.finished_units()
        whole = self._schedule.job.protocol.config.training.epochs
        self._models = len(finished)
        self._settled = max(self._settled, sum(unit.epochs or whole for unit in finished))

    def _tell(self, step: Step) -> None:
        total = self._schedule.total
        of_epochs = self._schedule.total_epochs
        # Report the last epoch only when all models are on disk, so that both counts end together.
        epochs = min(self._settled, of_epochs - (self._models < total))
        self._watch(Progress(self._models, total, epochs, of_epochs), step)

    @property
    def seconds(self) -> float:
        """Seconds from the first ready worker to the last trained epoch."""
        return 0.0 if self._began is None else self._last - self._began
