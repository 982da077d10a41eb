"""Runs a search in its folder: starts workers, watches the study, trains the best settings.

`tune.json` describes the search, `splits.json` holds the split of the final run, `study.db` the
trials if they are stored in SQLite, and `trial-N/` the run with the best settings. A finished
search also has `best.toml`, `trials.csv`, `result.json`, and the report.
"""

import math
import platform
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.kinds import is_drawn
from ihgnn_cli.data.splits import Fold, write_fold_file
from ihgnn_cli.errors import IhgnnError, InputError, InUseError
from ihgnn_cli.files import write_json
from ihgnn_cli.jobs.processes import Killed, Place, run_workers
from ihgnn_cli.jsonable import jsonable
from ihgnn_cli.signals import held, safe_point
from ihgnn_cli.studies.job_folder import SEARCH, open_job
from ihgnn_cli.studies.tuning.names import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.search import Search, make_search
from ihgnn_cli.studies.tuning.space import make_space
from ihgnn_cli.studies.tuning.storage import (
    Address,
    address,
    database_errors,
    quiet_optuna,
)
from ihgnn_cli.studies.tuning.trials import (
    Study,
    best_trials,
    earlier_deaths,
    is_finished,
    outcome_of,
    states_in_words,
)
from ihgnn_cli.studies.tuning.worker import Patience, WorkerPlan, work
from ihgnn_cli.studies.workers import Workers, local_workers
from ihgnn_cli.training import folder as runs
from ihgnn_cli.training import run
from ihgnn_cli.training.config import RunConfig, write_config
from ihgnn_cli.training.loading import load_data
from ihgnn_cli.training.needs import model_bytes, require_room
from ihgnn_cli.training.provenance import machine_facts

SPLITS, BEST, TRIALS, RESULT = "splits.json", "best.toml", "trials.csv", "result.json"
CHOSEN_BY = "validation accuracy, then validation loss, then the earlier trial"
_TRIALS = 50  # by default
_LOOK_SECONDS = 3.0  # between two looks at the study
_PAUSE = 1.0  # seconds between two looks at a final run that another process is training


@dataclass(frozen=True)
class TrialsRun:
    """The trials of a search, over all processes, and what this command has done."""

    trials: tuple[FrozenTrial, ...]
    """Those that count."""
    total: int
    """Number of requested trials."""
    model_epochs: int
    """Trained by this command."""
    seconds: float
    killed: int = 0
    """Workers of this command that have just been killed."""

    @property
    def finished(self) -> int:
        """Number of finished trials."""
        return sum(map(is_finished, self.trials))

    def epochs_done(self, epochs: int) -> int:
        """Trained epochs of running trials, and all epochs of finished ones."""
        running = (each for each in self.trials if each.state is TrialState.RUNNING)
        done = self.finished * epochs + sum(each.last_step or 0 for each in running)
        return min(done, self.total * epochs)


TuneCallback = Callable[[TrialsRun], None]


@dataclass(frozen=True, eq=False)
class TuneJob:
    """A search, where it is stored, and who runs it."""

    search: Search
    study: str
    """Name of the study."""
    where: Address
    folder: Path
    workers: Workers
    total: int
    """Number of requested trials."""
    command: str = ""

    def open(self) -> None:
        """Create the folder and the study, or open them; a new folder is removed on failure.

        Raises:
            InputError: the folder or the study belongs to a different search.
            IhgnnError: the storage cannot be reached.
        """
        # A folder belongs to one study: trials of another one have other settings.
        own = {"study": self.study, "storage": self.where.seen_from(self.folder)}
        identity = {**self.search.identity, **own}
        _, new = open_job(self.folder, SEARCH, {"identity": identity, "command": self.command})
        try:
            if not (self.folder / SPLITS).is_file():
                write_fold_file([Fold((self.search.split,))], self.folder / SPLITS)
            with database_errors(self.where, "Cannot open the study's storage"), quiet_optuna():
                self._plan(None).open().close()
        except BaseException:
            if new:
                shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _plan(self, timeout: float | None) -> WorkerPlan:
        command = f"{platform.node()} {secrets.token_hex(4)}"
        search = self.search.without_test_classes()
        seconds = math.inf if timeout is None else timeout
        identity = self.search.identity
        return WorkerPlan(search, identity, self.where, self.study, self.total, seconds, command)

    def run_trials(self, callback: TuneCallback, timeout: float | None = None) -> TrialsRun:
        """Run workers until all trials are finished, by any command, or the time is up.

        Raises:
            IhgnnError: the storage or a worker failed, or the folder was removed.
        """
        with self._still_there(), database_errors(self.where), quiet_optuna():
            plan = self._plan(timeout)
            with closing(plan.open()) as study:
                watcher = _Watcher(plan, study, callback)
                if watcher.now().finished < self.total:
                    watcher.run(self.workers.places[: self.total])
                return watcher.now()

    def trials(self) -> tuple[FrozenTrial, ...]:
        """The trials as they are now.

        Raises:
            IhgnnError: the storage failed, or the folder was removed.
        """
        with self.study_now() as study:
            return tuple(study.requested())

    @contextmanager
    def study_now(self) -> Iterator[Study]:
        """The study, for reading.

        Raises:
            IhgnnError: the storage failed, or the folder was removed.
        """
        with (
            self._still_there(),
            database_errors(self.where),
            quiet_optuna(),
            closing(self._plan(None).open()) as study,
        ):
            yield study

    @contextmanager
    def _still_there(self) -> Iterator[None]:
        """Say so in one sentence if somebody has removed the folder meanwhile."""
        try:
            yield
        except Exception as error:
            if (self.folder / SEARCH.file).is_file():
                raise
            raise IhgnnError(
                f"{self.folder} was removed while the search was running. Its trials are lost "
                "unless they are in another --storage; the same command begins again."
            ) from error

    def best_config(self, best: FrozenTrial) -> RunConfig:
        """The configuration of a trial."""
        return self.search.config.with_values(best.params)

    def write_best(self, best: FrozenTrial) -> None:
        """Write the settings for `ihgnn train --config`; they refer to the split beside them.

        Raises:
            IhgnnError: the file cannot be written.
        """
        config = self.best_config(best)
        data = config.data
        if not is_drawn(data.split):
            data = replace(data, split=SPLITS, split_from=data.split)
        write_config(replace(config, data=data), self.folder / BEST)

    def train_best(self, done: TrialsRun, watch: run.Watch) -> dict[str, Any]:
        """Train and test the best settings; returns the content of `result.json`.

        Raises:
            IhgnnError: no trial is complete, or the training failed.
        """
        best = next(iter(best_trials(done.trials)), None)
        if best is None:
            raise IhgnnError(
                f"No trial finished training: {states_in_words(done.trials)}. "
                "See trials.csv in the folder; try more --trials, a longer --timeout, or other "
                f"ranges. ({self.folder})"
            )
        target = self.folder / f"trial-{best.number}"
        with self._still_there():
            config, data = self.best_config(best), self.search.dataset
            tested = _train(config, target, watch, dataset=data, command=self.command)
        final = {name: tested[name] for name in ("best_epoch", "validation", "test", "seeds")}
        final["snapshots"] = tested.get("snapshots", [])
        final["tested_before"] = self._tested_before(target)
        result = self._result(done, best)
        return {**result, "final": {"folder": target.name, **final}}

    def _tested_before(self, target: Path) -> list[int]:
        """Other trials whose settings were tested, for example before more were requested."""
        done = self.folder.glob(f"trial-*/{runs.RESULT}")
        found = [path.parent.name.removeprefix("trial-") for path in done if path.parent != target]
        return sorted(int(each) for each in found if each.isdecimal())

    def _result(self, done: TrialsRun, best: FrozenTrial) -> dict[str, Any]:
        search = self.search
        outcomes = [each for each in map(outcome_of, done.trials) if each is not None]
        own = outcome_of(best)
        states = [each.state for each in done.trials]
        unfinished = sum(not is_finished(each) for each in done.trials)
        result = {
            "dataset": search.dataset.name,
            "best": {
                "trial": best.number,
                "params": best.params,
                "validation_accuracy": best.value,
                "validation_loss": own and own.loss,
                "best_epochs": own and own.best_epochs,
            },
            "chosen_by": CHOSEN_BY,
            "trials": {
                "asked": done.total,
                "complete": states.count(TrialState.COMPLETE),
                "pruned": states.count(TrialState.PRUNED),
                "failed": states.count(TrialState.FAIL),
                # An earlier command may have requested more trials.
                "left": max(0, done.total - len(done.trials)) + unfinished,
                "retried": sum(len(earlier_deaths(each)) for each in done.trials),
            },
            "validation_graphs": [len(each.validation) for each in search.inner],
            "model_epochs": sum(each.model_epochs for each in outcomes),
            "worker_seconds": sum(each.seconds for each in outcomes),
            "trained_now": done.model_epochs,
            "seconds": done.seconds,
            "search": search.identity,
            "study": self.study,
            "storage": self.where.masked,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "provenance": {**machine_facts(self.workers.device), "command": self.command},
        }
        plain: dict[str, Any] = jsonable(result)  # type: ignore[assignment]
        return plain

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Write the result, the last step of a search."""
        write_json(self.folder / RESULT, result)


class _Watcher:
    """The process that started the workers: puts trials back, and reports progress."""

    def __init__(self, plan: WorkerPlan, study: Study, callback: TuneCallback) -> None:
        self._plan = plan
        self._study = study
        self._model_epochs = 0
        self._callback = callback
        self._began = time.monotonic()
        self._looked = -math.inf
        self._patience = Patience()

    def now(self, killed: int = 0) -> TrialsRun:
        """The state of the search."""
        seconds, trials = time.monotonic() - self._began, tuple(self._study.requested())
        return TrialsRun(trials, self._plan.total, self._model_epochs, seconds, killed)

    def run(self, places: tuple[Place, ...]) -> None:
        """Run the workers to their end."""
        self._look()
        try:
            run_workers(work, self._plan, places=places, on_message=self._hear, tick=self._tick)
        except BaseException:
            # The workers have been stopped. Not to be cut short by another Ctrl-C.
            with held(), suppress(Exception):
                self._study.give_back(f"{self._plan.command} ")
            raise
        self._look()

    def _hear(self, message: object) -> None:
        if isinstance(message, Killed):
            worker = f"{self._plan.command} {message.pid} "
            with held(), self._patience.for_a_call():
                self._study.fail_of(worker)
            self._look(killed=1)
        elif isinstance(message, int):
            self._model_epochs += message

    def _tick(self) -> None:
        safe_point()
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._look()

    def _look(self, killed: int = 0) -> None:
        self._looked = time.monotonic()
        # A call into the database that is cut short leaves it in an unknown state.
        with held(), self._patience.for_a_call():
            now = self.now(killed)
            self._callback(now)


def _train(
    config: RunConfig, folder: Path, watch: run.Watch, *, dataset: GraphDataset, command: str
) -> dict[str, Any]:
    """Train settings in a run folder, or resume the run, and return its result.

    If another process is training it, wait for that process.
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


def plan_search(
    config: RunConfig,
    texts: Mapping[str, str | None],
    dataset: GraphDataset,
    *,
    trials: int | None = None,
    sampler: SamplerName = SamplerName.TPE,
    pruner: PrunerName = PrunerName.MEDIAN,
    inner_folds: int = 1,
    storage: str | None = None,
    study: str | None = None,
    out: Path | None = None,
    workers: int | None = None,
    command: str = "",
) -> TuneJob:
    """Define a search; `ihgnn_cli.tune` explains the arguments.

    Args:
        config: configuration of every trial, except for the searched settings.
        texts: what to search, by setting, in the form of the command line.
        dataset: the graphs.
        trials: total number.
        sampler: chooses the settings to try.
        pruner: stops unpromising trials early.
        inner_folds: trainings per trial.
        storage: address of the database.
        study: name of the study.
        out: the folder.
        workers: number of processes.
        command: command line to record, without secrets.

    Raises:
        InputError: an argument or the data is not valid.
        NoRoomError: no configuration of the space fits in memory.
    """
    if trials is not None and not 1 <= trials <= 10**6:
        raise InputError(f"--trials must be from 1 to 1,000,000, not {trials}.")
    grid = sampler == SamplerName.GRID
    space, config = make_space(config, texts, grid=grid)
    total = min(trials or space.size(), space.size()) if grid else trials or _TRIALS
    config, data = load_data(config, dataset=dataset)
    search = make_search(config, space, data, sampler=sampler, pruner=pruner, inner=inner_folds)
    largest = max(model_bytes(data, each) for each in space.largest(search.config))
    places = local_workers(config.training.device, workers, needed=largest * len(search.inner))
    require_room(space.smallest(search.config), data, places.device, places.memory)
    name = f"{runs.run_name(data.name, config)}-tune-{search.digest}"
    folder = out or runs.RUNS / name
    where = address(storage, folder)
    return TuneJob(search, study or name, where, folder, places, total, command)
