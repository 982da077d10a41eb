"""A cross-validation in its folder: one job per partition, and the result over all of them.

The first partition's job is in the folder itself, that of the next ones in `seed-N` inside, where N
is its seed. A later command with more repeats therefore continues where an earlier one stopped.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ihgnn_cli.data.splits import Fold
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.jobs.ray import Cluster
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.studies.crossval.job import Data, Job, JobFolder, open_folder
from ihgnn_cli.studies.crossval.protocol import Protocol, configuration
from ihgnn_cli.studies.crossval.result import CrossvalResult, Work, make_result
from ihgnn_cli.studies.crossval.run import Ran, Watch, clean_up, run_jobs
from ihgnn_cli.studies.crossval.stacks import Sizes, largest_stack, require_room_for
from ihgnn_cli.studies.folds import repeat_seed
from ihgnn_cli.studies.signal.references import Reference, repeated_references
from ihgnn_cli.studies.workers import Workers
from ihgnn_cli.training.config import RunConfig, write_config
from ihgnn_cli.training.final import LEAST_FINAL_EPOCHS
from ihgnn_cli.training.folder import BEST_CONFIG
from ihgnn_cli.training.provenance import machine_facts

_DIGEST = 8  # hexadecimal digits that distinguish the jobs of a data set


@dataclass(frozen=True)
class Finished:
    """The result of a cross-validation, and what the command did for it."""

    result: CrossvalResult
    trained: int | None
    """Model-epochs trained by this command; `None` if nothing was left to do."""


@dataclass(frozen=True, eq=False)
class Study:
    """A cross-validation whose folder exists."""

    path: Path
    folders: tuple[JobFolder, ...]
    """One per partition."""
    where: Workers | Cluster
    before: CrossvalResult | None
    """An earlier result of the same job, perhaps over another number of partitions."""
    changed: str | None
    """Text naming the versions that changed since the folder was made."""
    command: str

    @property
    def job(self) -> Job:
        """The job of the first partition."""
        return self.folders[0].job

    def references(
        self, report: Callable[[int, int, str], None] = lambda _done, _total, _text: None
    ) -> tuple[Reference, ...]:
        """Classifiers without a network on the folds of all partitions; the folder keeps them."""
        return references_of(self, self.path, report)

    def run(
        self,
        watch: Watch = lambda _progress: None,
        references: Sequence[Reference] = (),
        warn: Callable[[str], None] = lambda _text: None,
    ) -> Finished:
        """Train what is missing, and write the result.

        Raises:
            IhgnnError: a training or a worker failed.
        """
        ran = run_jobs(self.folders, self.where, watch, warn=warn)
        return Finished(self.finish(ran, references), ran.model_epochs)

    def finish(self, ran: Ran, references: Sequence[Reference] = ()) -> CrossvalResult:
        """Write the result of jobs whose stacks are all finished.

        That of a finished job is made again, too: references or rules may be new.

        Raises:
            IhgnnError: it cannot be written.
        """
        facts = {**machine_facts(self.where.device), "command": self.command}
        most = sum(folder.most_open() for folder in self.folders)
        work = Work(ran.model_epochs or 0, ran.seconds, min(self.where.count, most), facts)
        result = make_result(self.folders, work, self.before, references)
        same = result == self.before
        # A finished job can be shown where it cannot be written.
        with suppress(IhgnnError) if same else nullcontext():
            if self.before is None or self.before.best != result.best:
                (self.path / BEST_CONFIG).unlink(missing_ok=True)
            self._write_best(result)
            if not same:
                result.write(self.path)
                for folder in self.folders:
                    clean_up(folder)
        return result

    def _write_best(self, result: CrossvalResult) -> None:
        """Write the best configuration for `ihgnn train --config`, unless it is there."""
        if (self.path / BEST_CONFIG).is_file():
            return
        best, folds = result.best, len(result.folds)
        chosen = f"The configuration that most folds chose: {best.folds} of {folds}"
        if best.folds == 1 < folds:
            chosen = (
                f"Each of {folds} folds chose another configuration; this one has the best average "
                "on validation"
            )
        comment = (
            f"{chosen}{', in a race' * bool(result.race)}.\n"
            f"epochs: median of the best epochs of its final runs ({best.epochs}), but at least "
            f"{LEAST_FINAL_EPOCHS}, for 'ihgnn train --final'."
        )
        if not self.job.protocol.selects:
            comment = "The configuration of the cross-validation, for 'ihgnn train --final'."
        config = best_config(self.job.protocol, result)
        write_config(config, self.path / BEST_CONFIG, comment)


def best_config(protocol: Protocol, result: CrossvalResult) -> RunConfig:
    """The configuration that most folds chose, with the number of epochs for a final training."""
    best = result.best
    config = configuration(best.configuration).applied(protocol.config)
    if not protocol.selects:
        return config.with_values({"ensemble": protocol.runs, "epochs": best.epochs})
    return config.with_values({"epochs": max(best.epochs, LEAST_FINAL_EPOCHS)})


def references_of(
    study: Study,
    folder: Path,
    report: Callable[[int, int, str], None] = lambda _done, _total, _text: None,
) -> tuple[Reference, ...]:
    """The references of a study, kept in a folder."""
    folds = [fold for each in study.folders for fold in each.job.folds]
    return repeated_references(
        folder,
        study.job.dataset,
        folds,
        study.job.protocol.config.training.seed,
        repeats=len(study.folders),
        tell=report,
    )


def default_folder(parent: Path, job: Job, name: str) -> Path:
    """The default folder of a job; the same job always gets the same folder."""
    text = json.dumps(jsonable(job.identity), sort_keys=True)
    return parent / f"{name}-crossval-{hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]}"


def jobs_of(
    protocol: Protocol,
    data: Data,
    folds: Sequence[Fold],
    repeats: int,
    *,
    curves: bool = False,
    group_twins: bool = False,
) -> list[Job]:
    """One job per partition, with the seed, the seed + 1, and so on.

    Args:
        protocol: that of the first partition.
        data: the graphs.
        folds: of all partitions.
        repeats: the number of partitions.
        curves: as in `Job`.
        group_twins: as in `Job`.
    """
    each, jobs = len(folds) // repeats, []
    for repeat in range(repeats):
        training = protocol.config.training
        seeded = replace(training, seed=repeat_seed(training.seed, repeat))
        own = replace(protocol, config=replace(protocol.config, training=seeded))
        part = tuple(folds[repeat * each : (repeat + 1) * each])
        jobs.append(Job(own, data, part, curves, group_twins))
    return jobs


def result_of(path: Path, job: Job) -> CrossvalResult | None:
    """The result in a folder, if it is one of this job and whole."""
    try:
        found = CrossvalResult.read(path)
    except InputError:
        return None
    return found if found.job == jsonable(job.identity) else None


def open_study(
    path: Path,
    jobs: Sequence[Job],
    where: Workers | Cluster,
    *,
    stack: int | None = None,
    command: str = "",
) -> Study:
    """Create the folders of a cross-validation, or open them.

    The first command fixes the sizes of stacks, so that a resumed job ends with the same numbers.

    Args:
        path: the folder.
        jobs: one per partition.
        where: who works.
        stack: the size of stacks; by default as large as improves throughput, fits in memory and
            leaves a stack for every worker.
        command: the command line to record.

    Raises:
        InputError: the folder holds something else.
        NoRoomError: a model does not fit in a worker's memory.
    """
    job, before = jobs[0], result_of(path, jobs[0])
    protocol, dataset = job.protocol, job.dataset
    if before is None:
        splits = sum(len(fold.splits) for fold in job.folds)
        largest = max(protocol.runs * len(job.folds), len(protocol.grid) * splits)
        require_room_for(
            *(protocol, dataset, largest),
            device=where.device,
            memory=where.memory,
            workers=where.count,
        )
    facts = machine_facts(where.device)

    def new_sizes() -> Sizes:
        if stack is not None:
            return Sizes(stack)
        return Sizes(largest_stack(protocol, dataset, where.device, where.memory), where.count)

    now = datetime.now(UTC).isoformat(timespec="seconds")
    more = {"command": command, "begun": now, **facts}
    first, content = open_folder(path, job, new_sizes, more)
    others = [
        open_folder(
            path / f"seed-{each.protocol.config.training.seed}", each, lambda: first.sizes, more
        )[0]
        for each in jobs[1:]
    ]
    changed = _changed_versions(content, facts)
    return Study(path, (first, *others), where, before, changed, command)


def _changed_versions(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Version changes since a job started that may change the remaining numbers."""
    changed = []
    for name in ("ihgnn", "torch"):
        was, has = (
            str(facts.get(name) or facts.get("packages", {}).get(name)) for facts in (before, now)
        )
        if was != has:
            changed.append(f"{name} {was}, now {has}")
    return ", ".join(changed) or None
