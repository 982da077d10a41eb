"""Hyper-parameter search in a folder: the trials, a training with the best settings, the report."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import Graphs, configured, dataset_of, divided, searchable
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.display import Display
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.progress import NO_PROGRESS, Progress
from ihgnn_cli.report.tuning import write_trials
from ihgnn_cli.report.tuning_report import write_report
from ihgnn_cli.settings import checked
from ihgnn_cli.studies.places import Places, local_places
from ihgnn_cli.studies.tuning import folder as folders
from ihgnn_cli.studies.tuning import search as searches
from ihgnn_cli.studies.tuning.conductor import Sight, Watch
from ihgnn_cli.studies.tuning.final import earlier_runs, run_folder, train_best
from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.rows import trial_rows
from ihgnn_cli.studies.tuning.slots import Slot, best_of
from ihgnn_cli.studies.tuning.space import make_space
from ihgnn_cli.studies.tuning.storage import Address, address
from ihgnn_cli.studies.tuning.study import open_study, slots_now
from ihgnn_cli.training import folder as runs
from ihgnn_cli.training import run
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.loading import load_data

if TYPE_CHECKING:
    from optuna import Study

_TRIALS = 50


@dataclass(frozen=True, eq=False)
class Tuning:
    """A finished search."""

    folder: Path
    best: dict[str, Any]
    """The settings with the best validation accuracy, by name."""
    validation_accuracy: float
    """Validation accuracy of these settings in the search."""
    test: dict[str, Any]
    """Test metrics of the run trained with these settings: `test["accuracy"]`, ..."""
    config: RunConfig = field(repr=False)
    """The full configuration with the best settings, for `train(dataset, config=...)`."""
    checkpoint: Path
    """Checkpoint of that run."""
    result: dict[str, Any] = field(repr=False)
    """The content of `result.json` in the folder."""


@contextmanager
def _optuna_as_before() -> Iterator[None]:
    """Restore Optuna's verbosity and the warning filters, which a search changes."""
    verbosity = optuna.logging.get_verbosity()
    try:
        with warnings.catch_warnings():
            yield
    finally:
        optuna.logging.set_verbosity(verbosity)


@in_python
@_optuna_as_before()
def tune(
    dataset: Graphs = "MUTAG",
    *,
    trials: int | None = None,
    timeout: float | None = None,
    sampler: SamplerName | str = SamplerName.TPE,
    pruner: PrunerName | str = PrunerName.MEDIAN,
    inner_folds: int = 1,
    report_every: int | None = None,
    search_space: Path | str | None = None,
    storage: str | None = None,
    study: str | None = None,
    out: Path | str | None = None,
    workers: int | None = None,
    stack: int | None = None,
    model: str | None = None,
    recipe: str | None = None,
    config: RunConfig | Path | str | None = None,
    data_root: Path | str | None = None,
    offline: bool = False,
    progress: bool | None = None,
    **settings: Any,
) -> Tuning:
    """Search for the settings with the best validation accuracy; train and test these once.

    Finished trials stay in the folder. After an interruption, the same call resumes there.

    Args:
        dataset: as in `load_dataset`.
        trials: total number, including earlier calls; 50 by default, or all points of a grid.
        timeout: seconds after which no new trial starts.
        sampler: `"tpe"`, `"gp"`, `"random"` or `"grid"`.
        pruner: `"median"`, `"hyperband"` or `"none"`.
        inner_folds: trainings per trial, each with a different validation part.
        report_every: epochs between reports to the pruner.
        search_space: a TOML file with ranges and values.
        storage: address of a database shared by several machines; by default SQLite in `out`.
        study: name of the study in the storage.
        out: the folder; by default `runs/NAME-tune-...`, the same for the same call.
        workers: number of processes; by default one per core, or one per GPU.
        stack: number of trials that a process trains together.
        model: `"ihgnn"` (the default) or another model listed by `ihgnn models`.
        recipe: `"paper"` (the defaults) or `"authors"`.
        config: a TOML file or the `config` of a run, for settings that are not searched.
        data_root: folder that holds NAME.zip or NAME/ and receives downloads.
        offline: never download.
        progress: show a bar; by default in terminals and notebooks only.
        settings: as in `train`. The model's settings, `lr`, `batch_size` and `weight_decay` also
            take a list (`layers=[3, 4]`) or a string with a range (`lr="0.0001:0.01"`) to search;
            a single value is fixed. By default the ranges of the model's paper are searched.

    Raises:
        InputError: a setting, the data or the folder is not valid.
        IhgnnError: no trial finished training, or a worker or the storage failed.
    """
    base = configured({}, model=model, recipe=recipe, config=config)
    fixed, competing = divided(settings, base, searchable(base))
    chosen = configured(fixed, model=model, recipe=recipe, config=config, call=tune)
    display = Display(progress)
    search = plan(
        chosen,
        {name: _as_text(value) for name, value in competing.items()},
        trials=trials,
        sampler=checked("sampler", sampler, SamplerName),
        pruner=checked("pruner", pruner, PrunerName),
        inner_folds=inner_folds,
        report_every=report_every,
        search_space=None if search_space is None else Path(search_space),
        storage=storage,
        study=study,
        out=None if out is None else Path(out),
        workers=workers,
        stack=stack,
        dataset=dataset_of(dataset, data_root, offline, display.reading),
    ).opened()
    epochs = chosen.training.epochs
    with display.work("trial-epochs") as update:

        def watch(sight: Sight) -> None:
            settled = sum(slot.settled for slot in sight.slots) * epochs
            done = min(settled + sum(sight.running.values()), sight.total * epochs)
            update(done, sight.total * epochs, told(sight.slots))

        done = search.conduct(watch, timeout)
    with display.work("epochs") as update:
        result = search.conclude(
            done, lambda now, _best: update(now.epoch, epochs, "training the best settings")
        )
    best = folders.best_config(search.search, done.slots) or chosen
    return Tuning(
        folder=search.folder,
        best=result["best"]["params"],
        validation_accuracy=result["best"]["validation_accuracy"],
        test=result["final"]["test"],
        config=best,
        checkpoint=search.folder / result["final"]["folder"] / runs.BEST,
        result=result,
    )


def _as_text(value: Any) -> str:
    """A setting's values in the form of the command line."""
    if isinstance(value, list | tuple):
        return ",".join(map(_as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, eq=False)
class Plan:
    """A search with nothing on disk yet."""

    search: searches.Search
    study: str
    """Name of the study."""
    where: Address
    folder: Path
    places: Places
    total: int
    """Total number of trials."""
    stack: int | None
    command: str

    def opened(self) -> "TuneWork":
        """Make the folder and the study, or open them; a new folder is removed on failure.

        Raises:
            InputError: the folder or the study belongs to a different search.
            IhgnnError: the storage cannot be reached.
        """
        size = self.stack or searches.trials_together(self.search, self.places)
        new = folders.begin(
            self.search,
            self.folder,
            study=self.study,
            storage=self.where.masked,
            command=self.command,
        )
        try:
            study = open_study(self.search, self.where, self.folder, self.study)
        except IhgnnError:
            if new:
                folders.discard_unbegun(self.folder)
            raise
        return TuneWork(
            self.search,
            study,
            self.where,
            self.folder,
            self.places,
            self.total,
            size,
            self.command,
        )


def plan(
    config: RunConfig,
    texts: Mapping[str, str | None],
    *,
    trials: int | None = None,
    sampler: SamplerName = SamplerName.TPE,
    pruner: PrunerName = PrunerName.MEDIAN,
    inner_folds: int = 1,
    report_every: int | None = None,
    search_space: Path | None = None,
    storage: str | None = None,
    study: str | None = None,
    out: Path | None = None,
    workers: int | None = None,
    stack: int | None = None,
    dataset: GraphDataset | None = None,
    data_root: Path | None = None,
    offline: bool = False,
    progress: Progress = NO_PROGRESS,
    command: str = "",
) -> Plan:
    """Define a search and read its data.

    Args:
        config: configuration of every trial, except for the searched settings.
        texts: what to search, by setting, in the form of the command line.
        trials: total number. This and the following are explained in `tune`.
        sampler: chooses the settings to try.
        pruner: stops unpromising trials early.
        inner_folds: trainings per trial.
        report_every: epochs between reports to the pruner.
        search_space: a TOML file.
        storage: address of the database.
        study: name of the study.
        out: the folder.
        workers: number of processes.
        stack: number of trials that a process trains together.
        dataset: the data; by default the data set named in the configuration is loaded.
        data_root: folder to load it from.
        offline: never download it.
        progress: shows the loading.
        command: command line to record, without secrets.

    Raises:
        InputError: an argument or the data is not valid.
    """
    if stack is not None and stack < 1:
        raise InputError(f"stack must be at least 1, not {stack}.")
    grid = sampler == SamplerName.GRID
    space, config = make_space(config, texts, search_space, grid=grid)
    total = _total(trials, space.size() if grid else None)
    places = local_places(config.training.device, workers)
    config, data = load_data(
        config, dataset=dataset, data_root=data_root, offline=offline, progress=progress
    )
    search = searches.prepare(
        config,
        space,
        data,
        sampler=sampler,
        pruner=pruner,
        inner=inner_folds,
        interval=report_every,
    )
    name = f"{runs.run_name(data.name, config)}-tune-{search.digest}"
    folder = out or runs.RUNS / name
    where = address(storage, folder)
    return Plan(search, study or name, where, folder, places, total, stack, command)


def _total(trials: int | None, points: int | None) -> int:
    """Total number of trials; a grid limits it."""
    if trials is not None and not 1 <= trials <= 10**6:
        raise InputError(f"--trials must be from 1 to 1,000,000, not {trials}.")
    if points is None:
        return trials or _TRIALS
    return min(trials or points, points)


@dataclass(frozen=True, eq=False)
class TuneWork:
    """A search whose folder and study exist."""

    search: searches.Search
    study: "Study"
    where: Address
    folder: Path
    places: Places
    total: int
    stack: int
    command: str

    def conduct(self, watch: Watch, timeout: float | None = None) -> searches.Conducted:
        """Run the trials; if interrupted, write the table of trials so far.

        Raises:
            IhgnnError: the storage or a worker failed.
        """
        try:
            return searches.conduct(
                self.search,
                self.study,
                self.where,
                self.places,
                trials=self.total,
                stack=self.stack,
                timeout=timeout,
                watch=watch,
            )
        except (KeyboardInterrupt, SystemExit):
            self._write(self.slots())
            raise

    def slots(self) -> tuple[Slot, ...]:
        """The trials as they are now."""
        return slots_now(self.study, self.where, self.total)

    def best(self, slots: Sequence[Slot]) -> RunConfig:
        """The configuration of the best trial.

        Raises:
            IhgnnError: no trial finished training.
        """
        best = folders.best_config(self.search, slots)
        if best is None:
            raise IhgnnError(
                f"No trial finished training: {states_in_words(slots)}. "
                "See trials.csv in the folder; try more --trials, a longer --timeout, or other "
                f"ranges. ({self.folder})"
            )
        return best

    def conclude(self, done: searches.Conducted, watch: run.Watch) -> dict[str, Any]:
        """Train and test the best settings, and write the result and the report.

        Raises:
            IhgnnError: no trial finished training, or the training of the best settings failed.
        """
        about = {
            "study": self.study.study_name,
            "storage": self.where.masked,
            "command": self.command,
        }
        result = folders.make_result(self.search, done, self.places.first, about)
        self._write(done.slots)
        best = self.best(done.slots)
        trial = result["best"]["trial"]
        target = run_folder(self.folder, trial)
        data = self.search.dataset
        tested = train_best(best, target, watch, dataset=data, command=self.command)
        result["final"] = {
            "folder": target.name,
            **{name: tested[name] for name in ("best_epoch", "validation", "test", "seeds")},
            "tested_before": earlier_runs(self.folder, trial),
        }
        write_report(trial_rows(done.slots), result, self.folder)
        folders.write_result(self.folder, result)
        return result

    def _write(self, slots: Sequence[Slot]) -> None:
        """Write the table of trials, and the best settings if there are any."""
        write_trials(self.folder / folders.TRIALS, trial_rows(slots))
        best = folders.best_config(self.search, slots)
        if best is not None:
            folders.write_best(best, self.folder)


def told(slots: Sequence[Slot]) -> str:
    """One line about the progress of a search."""
    best = best_of(slots)
    line = states_in_words(slots)
    if best is not None and best.last.value is not None:
        line += f"; best {100 * best.last.value:.1f} % (trial {best.number})"
    return line


def states_in_words(slots: Sequence[Slot]) -> str:
    """Trials by state, such as `12 complete, 3 pruned, 1 failed, 4 running`."""
    states = [slot.state.name.lower().replace("fail", "failed") for slot in slots]
    names = ("complete", "pruned", "failed", "running", "waiting")
    found = [f"{states.count(name):,} {name}" for name in names if name in states]
    return ", ".join(found) or "none so far"
