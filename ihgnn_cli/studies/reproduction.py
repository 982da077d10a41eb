"""The cross-validations behind a table or figure of the paper, each in its own folder.

A cell is one model on one data set. One set of workers trains all of them: an interrupted
reproduction can be resumed, and several processes can share the work.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ihgnn_cli.data.access import Access
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.paths import file_name
from ihgnn_cli.progress import NO_PROGRESS
from ihgnn_cli.studies.budgets import Budget
from ihgnn_cli.studies.crossval.job import Data, Job, JobFolder
from ihgnn_cli.studies.crossval.protocol import Configuration, Protocol
from ihgnn_cli.studies.crossval.result import CrossvalResult
from ihgnn_cli.studies.crossval.run import Progress, Ran, run_jobs
from ihgnn_cli.studies.crossval.stacks import member_bytes
from ihgnn_cli.studies.crossval.study import Study, jobs_of, open_study, references_of, result_of
from ihgnn_cli.studies.crossval.train_stack import seconds_per_epoch
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.paper import model_config
from ihgnn_cli.studies.signal.references import Reference
from ihgnn_cli.studies.workers import Workers, local_workers
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.loading import load_data
from ihgnn_cli.training.needs import NoRoomError
from ihgnn_cli.words import file_size

SENSITIVITY_LAYERS = (1, 2, 4, 8, 16, 32, 64)
"""Values of K in the paper's sensitivity figure."""


@dataclass(frozen=True)
class Cell:
    """One model on one data set."""

    dataset: str
    """The name or path given by the user."""
    model: str
    """Its key: a name, or an IHGNN ablation such as `ihgnn:no-concat`."""
    layers: int | None = None
    """Overrides K of the budget."""

    def __str__(self) -> str:
        depth = "" if self.layers is None else f", K = {self.layers}"
        variant = "" if ":" not in self.model else f" {self.model.partition(':')[2]}"
        return f"{model_config(self.model).spec.title}{variant} on {self.dataset}{depth}"


@dataclass(frozen=True)
class Setup:
    """What all cells of a reproduction share."""

    budget: Budget
    root: Path
    """The parent of the cells' folders."""
    where: Access
    device: str = "auto"
    workers: int | None = None
    seed: int = 0
    folds: int | None = None
    """Overrides the folds of the budget."""
    runs: int | None = None
    repeats: int = 1
    """Partitions per data set."""
    splits: Path | None = None
    """A folder with published folds (NAME.json); folds of other data sets are drawn."""
    references: bool = False
    """Whether to test classifiers without a network on the same folds, once per data set."""
    command: str = ""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a cell."""

    cell: Cell
    dataset: str
    """The name of the data set."""
    result: CrossvalResult | None = None
    refused: str | None = None
    """Why there is no result."""
    failed: bool = False
    """Whether it failed for a reason other than memory."""


@dataclass(frozen=True)
class Estimate:
    """What is left to train."""

    model_epochs: int
    seconds: float
    """Rough: from one optimizer step of each cell."""


@dataclass
class Watcher:
    """Receives what happens; every method does nothing by default."""

    preparing: Callable[[int, int, str], None] = lambda _done, _total, _text: None
    """Cells that are prepared, out of how many, and the current one."""
    estimated: Callable[[Estimate], None] = lambda _estimate: None
    progress: Callable[[Progress], None] = lambda _progress: None
    finished: Callable[[Outcome], None] = lambda _outcome: None
    warn: Callable[[str], None] = lambda _text: None


def cells(
    datasets: Iterable[str], models: Sequence[str], layers: Sequence[int | None] = (None,)
) -> list[Cell]:
    """All combinations, data set by data set: a table grows column by column.

    Raises:
        InputError: a model does not support this K; checked here, before hours of work.
    """
    for model in models:
        for k in layers:
            if k is not None:
                model_config(model).with_values({"layers": k}, model)
    return [Cell(data, model, k) for data in datasets for model in models for k in layers]


def run_cells(given: Sequence[Cell], setup: Setup, watcher: Watcher) -> list[Outcome]:
    """Finish all cells; an outcome says if one did not fit or failed.

    Raises:
        InputError: data is not available, or a cell's folder holds something else.
        IhgnnError: all workers were killed.
    """
    return _Reproduction(given, setup, watcher).run()


@dataclass
class _Reproduction:
    given: Sequence[Cell]
    setup: Setup
    watcher: Watcher
    _data: dict[str, Data] = field(default_factory=dict)
    """By the name or path that the user gave."""
    _outcomes: dict[Cell, Outcome] = field(default_factory=dict)
    _references: dict[str, tuple[Reference, ...]] = field(default_factory=dict)

    def run(self) -> list[Outcome]:
        jobs = {cell: self._jobs(cell) for cell in self.given}
        workers = self._workers(jobs)
        studies = {}
        for number, (cell, of_cell) in enumerate(jobs.items()):
            self.watcher.preparing(number, len(jobs), str(cell))
            try:
                studies[cell] = self._open(cell, of_cell, workers)
            except NoRoomError as error:
                needed = f"does not fit: about {file_size(error.needed)}"
                self._end(Outcome(cell, of_cell[0].dataset.name, refused=needed))
        self.watcher.preparing(len(jobs), len(jobs), "")
        self._train(studies, workers)
        return [self._outcomes[cell] for cell in self.given]

    def _train(self, studies: dict[Cell, Study], workers: Workers) -> None:
        parts = [(cell, folder) for cell, study in studies.items() for folder in study.folders]
        folders = [folder for _, folder in parts]
        of_cell = {cell: _cost(study.folders, workers) for cell, study in studies.items()}
        costs = [of_cell[cell] for cell, _ in parts]
        left = list(map(_epochs_left, folders))
        if any(left):
            seconds = sum(cost * epochs for cost, epochs in zip(costs, left, strict=True))
            self.watcher.estimated(Estimate(sum(left), seconds / workers.count))
        open_parts = {cell: len(study.folders) for cell, study in studies.items()}
        ran: dict[Cell, list[Ran]] = {cell: [] for cell in studies}

        def finished(number: int, part: Ran) -> None:
            cell = parts[number][0]
            ran[cell].append(part)
            open_parts[cell] -= 1
            if not open_parts[cell] and cell not in self._outcomes:
                self._finish(cell, studies[cell], ran[cell])

        def failed(number: int, error: IhgnnError) -> None:
            cell, folder = parts[number]
            if cell not in self._outcomes:
                self._fail(cell, folder.job, error)

        run_jobs(
            folders,
            workers,
            self.watcher.progress,
            costs=costs,
            on_failure=failed,
            on_finished=finished,
            warn=self.watcher.warn,
        )

    def _finish(self, cell: Cell, study: Study, ran: Sequence[Ran]) -> None:
        trained = sum(each.model_epochs or 0 for each in ran)
        together = Ran(trained, sum(each.seconds for each in ran))
        try:
            result = study.finish(together, self._references.get(cell.dataset, ()))
        except IhgnnError as error:
            self._fail(cell, study.job, error)
        else:
            self._end(Outcome(cell, result.dataset, result))

    def _fail(self, cell: Cell, job: Job, error: IhgnnError) -> None:
        self._end(Outcome(cell, job.dataset.name, refused=f"failed: {error}", failed=True))

    def _end(self, outcome: Outcome) -> None:
        self._outcomes[outcome.cell] = outcome
        self.watcher.finished(outcome)

    def _open(self, cell: Cell, jobs: Sequence[Job], workers: Workers) -> Study:
        path = self._folder(cell, jobs[0])
        study = open_study(path, jobs, workers, command=self.setup.command)
        if self.setup.references and cell.dataset not in self._references:
            self._references[cell.dataset] = references_of(study, path.parent)
        return study

    def _workers(self, jobs: dict[Cell, list[Job]]) -> Workers:
        """As many workers as there is room for; on a GPU the largest model that fits decides."""
        device, count = self.setup.device, self.setup.workers
        workers = local_workers(device, count)
        if count is not None or workers.device.type != "cuda":
            return workers
        needs = [member_bytes(job.protocol, job.dataset) for job, *_ in jobs.values()]
        free = local_workers(device, 1).memory
        return local_workers(
            device, needed=max((each for each in needs if each <= free), default=0)
        )

    def _jobs(self, cell: Cell) -> list[Job]:
        """The cross-validations of a cell, one per partition.

        Raises:
            InputError: the data is not available, or the folds do not match it, or the folder has
                a result over more partitions.
        """
        setup, budget = self.setup, self.setup.budget
        values = {"dataset": cell.dataset, "epochs": budget.epochs, "seed": setup.seed}
        values |= {} if cell.layers is None else {"layers": cell.layers}
        config = model_config(cell.model).with_values({**values, "device": setup.device})
        if cell.dataset not in self._data:
            load = partial(_load, config, replace(setup.where, progress=NO_PROGRESS))
            self._data[cell.dataset] = Data(load_data(config, setup.where)[1], load)
        data = self._data[cell.dataset]
        config, dataset = load_data(config, setup.where, dataset=data.dataset)
        grid = budget.grid(config)
        if cell.layers is not None:
            grid = tuple(dict.fromkeys(_with_layers(each, cell.layers) for each in grid))
        protocol = Protocol(config, grid, setup.runs or budget.runs, budget.race)
        file = None if setup.splits is None else setup.splits / f"{dataset.name}.json"
        published = file is not None and file.is_file()
        try:
            folds = make_folds(
                dataset,
                setup.seed,
                file=file if published else None,
                folds=None if published else setup.folds or budget.folds,
                repeats=setup.repeats,
            )
        except InputError as error:
            raise InputError(f"{dataset.name}: {error}") from error
        jobs = jobs_of(protocol, data, folds, setup.repeats)
        path = self._folder(cell, jobs[0])
        before = result_of(path, jobs[0])
        if before is not None and len(before.repeats) > setup.repeats:
            there = len(before.repeats)
            raise InputError(
                f"{path} has {there} finished partitions, and --repeats {setup.repeats} would "
                f"replace their result. Use --repeats {there}, or choose another --out."
            )
        return jobs

    def _folder(self, cell: Cell, job: Job) -> Path:
        """The same cell with the same budget always gets the same folder."""
        model = file_name(cell.model.replace(":", "-"))
        if cell.layers is not None:
            model += f"-k{cell.layers}-runs{job.protocol.runs}"
        return self.setup.root / file_name(job.dataset.name) / model


def _load(config: RunConfig, where: Access) -> GraphDataset:
    return load_data(config, where)[1]


def _with_layers(configuration: Configuration, layers: int) -> Configuration:
    settings = {**configuration.as_plain(), "layers": layers}
    return Configuration(tuple(settings.items()))


def _cost(folders: Sequence[JobFolder], workers: Workers) -> float:
    """Roughly the seconds of a model-epoch, the same in all partitions of a cell; 0: unknown."""
    measured = (seconds_per_epoch(each, workers.device) for each in folders)
    return next(filter(None, measured), 0.0)


def _epochs_left(folder: JobFolder) -> int:
    """Model-epochs that are left to train, at most; 0 if the job cannot go on."""
    job = folder.job
    whole = job.protocol.config.training.epochs
    try:
        done = sum(each.epochs or whole for each in folder.finished_trainings())
    except IhgnnError:  # training will report it
        return 0
    return job.protocol.model_epochs(job.folds) - done
