"""Runs a search in its folder: starts the workers, watches the study, trains the best settings."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from optuna.trial import TrialState

from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.jobs.local import run_workers
from ihgnn_cli.jobs.queue import NOTHING, Step
from ihgnn_cli.signals import safe_point
from ihgnn_cli.studies.places import Places
from ihgnn_cli.studies.tuning import tune_folder
from ihgnn_cli.studies.tuning.best_run import earlier_runs, run_folder, train_best
from ihgnn_cli.studies.tuning.search import Search
from ihgnn_cli.studies.tuning.storage import Address, database_calls
from ihgnn_cli.studies.tuning.study import find_study, open_study, open_trials
from ihgnn_cli.studies.tuning.trials import (
    RequestedTrial,
    TrialsRun,
    states_in_words,
)
from ihgnn_cli.studies.tuning.worker import WorkerPlan, work
from ihgnn_cli.training import run

# Seconds between two looks at the study.
_LOOK_SECONDS = 3.0


@dataclass(frozen=True)
class TuneProgress:
    """The state of a search, over all processes."""

    trials: Sequence[RequestedTrial]
    total: int
    """Number of requested trials."""
    running: Mapping[int, int]
    """The last reported epoch of each running trial."""
    retried: int = 0
    """Trials of dead processes that have just been queued again."""
    killed: int = 0
    """Workers of this command that have just been killed."""
    halved: int = 0
    """Trials in a stack that has just been halved because memory was full."""

    def epochs_done(self, epochs: int) -> int:
        """Trained epochs of running trials, and all epochs of finished ones."""
        finished = sum(each.finished for each in self.trials) * epochs
        return min(finished + sum(self.running.values()), self.total * epochs)


TuneCallback = Callable[[TuneProgress], None]


@dataclass(frozen=True, eq=False)
class TuneJob:
    """A search, where it is stored, and who runs it."""

    search: Search
    study: str
    """Name of the study."""
    where: Address
    folder: Path
    places: Places
    total: int
    """Number of requested trials."""
    stack: int
    """Maximum number of trials per stack."""
    command: str

    def open(self) -> None:
        """Create the folder and the study, or open them; a new folder is removed on failure.

        Raises:
            InputError: the folder or the study belongs to a different search.
            IhgnnError: the storage cannot be reached.
        """
        storage = self.where.seen_from(self.folder)
        about = {"study": self.study, "storage": storage, "command": self.command}
        new = tune_folder.begin(self.search, self.folder, **about)
        try:
            open_study(self.search, self.where, self.folder, self.study)
        except IhgnnError:
            if new:
                tune_folder.discard_new(self.folder)
            raise

    def trials(self) -> tuple[RequestedTrial, ...]:
        """The trials as they are now.

        Raises:
            IhgnnError: the storage failed.
        """
        return open_trials(find_study(self.where, self.study), self.where, self.total)

    def run_trials(self, callback: TuneCallback, timeout: float | None = None) -> TrialsRun:
        """Run workers until all trials are finished, by any command, or the time is up.

        Raises:
            IhgnnError: the storage or a worker failed.
        """
        search = self.search.without_test_classes()
        devices = self.places.devices[: self.total]
        plan = WorkerPlan(
            search, self.where, self.study, self.total, self.stack, timeout, len(devices)
        )
        began = time.monotonic()
        with database_calls(self.where):
            watcher = _Watcher(plan, callback)
            if not watcher.queue.finished():
                watcher.look()
                run_workers(devices, partial(work, plan), watcher.hear, watcher.tick)
                watcher.look()
            trials = tuple(watcher.queue.trials())
        return TrialsRun(trials, self.total, watcher.model_epochs, time.monotonic() - began)

    def train_best(self, done: TrialsRun, watch: run.Watch) -> dict[str, Any]:
        """Train and test the best settings; returns the content of `result.json`.

        Raises:
            IhgnnError: no trial is complete, or the training failed.
        """
        best = tune_folder.best_config(self.search, done.trials)
        if best is None:
            raise IhgnnError(
                f"No trial finished training: {states_in_words(done.trials)}. "
                "See trials.csv in the folder; try more --trials, a longer --timeout, or other "
                f"ranges. ({self.folder})"
            )
        result = tune_folder.make_result(
            self.search,
            done,
            self.places.first,
            study=self.study,
            storage=self.where.masked,
            command=self.command,
        )
        trial = result["best"]["trial"]
        target = run_folder(self.folder, trial)
        data = self.search.dataset
        tested = train_best(best, target, watch, dataset=data, command=self.command)
        result["final"] = {
            "folder": target.name,
            **{name: tested[name] for name in ("best_epoch", "validation", "test", "seeds")},
            "snapshots": tested.get("snapshots", []),  # missing in older runs
            "tested_before": earlier_runs(self.folder, trial),
        }
        return result


class _Watcher:
    """The process that started the workers: retries trials of dead ones, and reports progress."""

    def __init__(self, plan: WorkerPlan, callback: TuneCallback) -> None:
        self.queue = plan.queue()
        self.model_epochs = 0
        """Trained by the workers of this command."""
        self._callback = callback
        self._looked = 0.0

    def hear(self, step: Step) -> None:
        self.model_epochs += step.trained
        if step.dead or step.halved:
            self.look(step)

    def tick(self) -> None:
        safe_point()
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self.look()

    def look(self, step: Step = NOTHING) -> None:
        self._looked = time.monotonic()
        retried = self.queue.retry_dead()
        trials = self.queue.trials()
        running = {
            each.last.number: max(each.last.intermediate_values, default=0)
            for each in trials
            if each.last.state is TrialState.RUNNING
        }
        total = self.queue.total
        self._callback(TuneProgress(trials, total, running, retried, step.dead, step.halved))
