"""The protocol of Errica et al. (ICLR 2020) as one job: prepared, begun in a folder, finished.

Outer loop: folds, each graph tested once. Inner loop: of each fold, every configuration of the
grid is trained on train, and epoch and configuration are chosen on validation alone. The chosen
configuration is trained again several times, and the test accuracies of these runs, each at its
best epoch by validation, are averaged.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import PROTOCOL_FOLDS, Fold, draw_folds, read_fold_file
from ihgnn_cli.errors import InputError
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.queue import NOTHING, Step
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.paths import expanded
from ihgnn_cli.studies import folder as folders
from ihgnn_cli.studies.memory import require_room_for, stack_size
from ihgnn_cli.studies.plan import bundles, selection_units
from ihgnn_cli.studies.result import Work, identity, make_result
from ihgnn_cli.studies.schedule import Schedule
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training.provenance import machine_facts
from ihgnn_cli.words import counted

_DIGEST = 8  # hexadecimal digits that tell jobs of a data set apart


@dataclass(frozen=True)
class Progress:
    """How far a job is."""

    models: int
    """Finished."""
    of_models: int
    epochs: int
    """Model-epochs that need not be run any more."""
    of_epochs: int


@dataclass(frozen=True)
class Finished:
    """A job that is done."""

    result: dict[str, Any]
    """As `result.json` holds it: its times are those of the command that trained last."""
    trained: int | None
    """Model-epochs that were trained now; `None` where nothing was left to do."""


def make_folds(
    dataset: GraphDataset,
    seed: int,
    *,
    file: Path | None = None,
    folds: int | None = None,
    inner: int | None = None,
) -> tuple[Fold, ...]:
    """The folds of a file, or drawn from the seed; by default ten with one hold-out each.

    Of a file with more folds than are asked for the first are taken.

    Raises:
        InputError: the file does not fit the data, or holds fewer folds or another number of inner
            folds than are asked for.
    """
    if file is None:
        count = PROTOCOL_FOLDS if folds is None else folds
        drawn = draw_folds(dataset.graph_class, seed, count, 1 if inner is None else inner)
        return tuple(drawn)
    found = read_fold_file(expanded(file), len(dataset), whole=folds is None)
    if len(found) < 2:
        raise InputError(f"{file} holds one fold. Cross-validation needs at least 2.")
    counts = {len(fold.splits) for fold in found}
    if len(counts) > 1:
        raise InputError(f"{file} has folds with different numbers of inner splits.")
    there = counts.pop()
    if inner not in (None, there):
        raise InputError(
            f"{file} has {counted(there, 'inner fold')}, and --inner-folds asks for {inner}."
        )
    if folds is not None and not 2 <= folds <= len(found):
        raise InputError(
            f"{file} has {len(found)} folds, and --folds asks for {folds}. Use 2 to {len(found)}."
        )
    return tuple(found[:folds])


def default_folder(parent: Path, job: Job, name: str) -> Path:
    """The folder of a job that was given none: the same job has the same."""
    text = json.dumps(jsonable(identity(job)), sort_keys=True)
    return parent / f"{name}-crossval-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]}"


def begin(
    job: Job, folder: Path, executor: Executor, *, stack: int | None = None, command: str = ""
) -> int:
    """Make the job's folder, or find it begun, and give the size of stacks that it has.

    The size is the first command's, so that those who go on end with the same numbers. So is that
    of final runs, which are few: unless a size is given, it is smaller where else some workers
    would have none.

    Raises:
        InputError: the folder holds something else.
        NoRoomError: a model does not fit in a worker's memory.
    """
    if folders.read_result(folder) is None:
        require_room_for(job, executor)
    final_stack = stack
    if stack is None:
        units = len(selection_units(job.protocol, job.folds))
        stack = stack_size(job, units, executor)
        final_stack = min(stack, math.ceil(job.final_count / executor.workers))
    content = {
        "identity": identity(job),
        "stack": stack,
        "final_stack": final_stack,
        "command": command,
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        **machine_facts(executor.device),
    }
    folders.begin(folder, content, job.folds)
    found: int = folders.read_job(folder)["stack"]
    return found


def most_workers(job: Job, folder: Path) -> int:
    """How many workers can have a stack at a time, with the sizes that a folder was begun with."""
    begun = folders.read_job(folder)
    selected = bundles(selection_units(job.protocol, job.folds), begun["stack"])
    # At most, because folds that choose models of the same shape share stacks.
    final: int = len(job.folds) * math.ceil(job.protocol.runs / begun["final_stack"])
    return max(len(selected), final)


def other_versions(folder: Path, executor: Executor) -> str | None:
    """What has changed since a job began, where the rest may then end with other numbers."""
    before, now = folders.read_job(folder), machine_facts(executor.device)
    told = []
    for name in ("ihgnn", "torch"):
        versions = [
            str(facts.get(name) or facts.get("packages", {}).get(name)) for facts in (before, now)
        ]
        if versions[0] != versions[1]:
            told.append(f"{name} {versions[0]}, now {versions[1]}")
    return ", ".join(told) or None


def finish(
    job: Job,
    folder: Path,
    executor: Executor,
    stack: int,
    watch: Callable[[Progress, Step], None] = lambda _progress, _step: None,
    *,
    command: str = "",
) -> Finished:
    """Do what is left of a job, and write and give its result.

    Raises:
        IhgnnError: a training failed, or a worker did.
    """
    job = replace(job, final_stack=folders.read_job(folder)["final_stack"])
    schedule = Schedule(job, folder, stack)
    before = folders.read_result(folder)
    complete = schedule.finished()
    if complete and before is not None and ("rules" in before or not job.curves):
        return Finished(before, None)
    meter = _Meter(schedule, watch)
    if not complete:
        executor.run(schedule, meter.hear)
        meter.look()
    work = Work(executor, meter.trained, meter.seconds, command)
    result = make_result(job, schedule, work, before)
    folders.write_result(folder, result)
    return Finished(result, None if complete else meter.trained)


class _Meter:
    """Adds up the progress of the workers, and sees what other processes finished."""

    # At most so long from one look to the next, and less where looking takes next to no time.
    _LOOK_SECONDS, _LOOK_SHARE = 3.0, 20

    def __init__(self, schedule: Schedule, watch: Callable[[Progress, Step], None]) -> None:
        self._schedule = schedule
        self._watch = watch
        self._epochs = schedule.job.protocol.config.training.epochs
        self._looked = self._pause = 0.0
        self._models = schedule.finished_units()
        self._settled = self._models * self._epochs
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
        """See what is finished, by whomever."""
        began = time.monotonic()
        self._models = self._schedule.finished_units()
        self._looked = time.monotonic()
        self._pause = min(self._LOOK_SECONDS, self._LOOK_SHARE * (self._looked - began))
        self._settled = max(self._settled, self._models * self._epochs)
        self._tell(step)

    def _tell(self, step: Step) -> None:
        total = self._schedule.total
        of_epochs = total * self._epochs
        # The last is told when all models are on disk, so that no line has one without the other.
        epochs = min(self._settled, of_epochs - (self._models < total))
        self._watch(Progress(self._models, total, epochs, of_epochs), step)

    @property
    def seconds(self) -> float:
        """From when the first worker was ready to the last that was heard."""
        return 0.0 if self._began is None else self._last - self._began
