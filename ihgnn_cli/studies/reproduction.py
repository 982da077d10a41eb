"""The cross-validations behind a table or figure of the paper, each in its own folder.

A cell is one model on one data set. Its folder is a job folder of `studies.crossval`, so that an
interrupted reproduction can be resumed, and several processes can share the work.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.queue import Step
from ihgnn_cli.paths import file_name
from ihgnn_cli.studies import crossval as jobs
from ihgnn_cli.studies import folder as folders
from ihgnn_cli.studies.budgets import Budget
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.paper import model_config
from ihgnn_cli.studies.plan import Protocol
from ihgnn_cli.studies.signal.references import Reference, repeated_references
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.needs import NoRoomError
from ihgnn_cli.words import file_size

SENSITIVITY_LAYERS = (1, 2, 4, 8, 16, 32, 64)
"""Values of K in the paper's sensitivity figure."""

Callback = Callable[[jobs.Progress, Step], None]


@dataclass(frozen=True)
class CellPlan:
    """One model on one data set."""

    dataset: str
    """The name or path given by the user."""
    model: str
    """Its key: a name, or an IHGNN ablation such as `ihgnn:no-concat`."""
    layers: int | None = None
    """Overrides K of the budget."""

    def __str__(self) -> str:
        depth = "" if self.layers is None else f", K = {self.layers}"
        return f"{self.title} on {self.dataset}{depth}"

    @property
    def title(self) -> str:
        """The title to display."""
        return model_config(self.model).spec.title + (
            "" if ":" not in self.model else f" {self.model.partition(':')[2]}"
        )


@dataclass(frozen=True)
class Means:
    """What all cells of a reproduction share."""

    budget: Budget
    root: Path
    """The parent of the cells' folders."""
    load: Callable[[RunConfig], tuple[RunConfig, GraphDataset]]
    """Reads the data set that a configuration names."""
    executor: Callable[[int | None], Executor]
    """Creates workers: as many as there are devices, or at most the given number."""
    device: str | None = None
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
class Done:
    """The outcome of a cell."""

    plan: CellPlan
    dataset: str
    """The name of the data set."""
    result: dict[str, Any] | None = None
    """The content of `result.json`."""
    refused: str | None = None
    """Why there is no result."""
    failed: bool = False
    """Whether it failed for a reason other than memory."""


def cells(
    datasets: Iterable[str], models: Iterable[str], layers: Iterable[int | None] = (None,)
) -> list[CellPlan]:
    """All combinations, data set by data set: a table grows column by column.

    Raises:
        InputError: a model does not support this K; checked here, before hours of work.
    """
    kept = list(layers)
    chosen = list(models)
    for model in chosen:
        for k in kept:
            if k is not None:
                model_config(model).with_values({"layers": k}, model)
    return [CellPlan(data, model, k) for data in datasets for model in chosen for k in kept]


def job_of(plan: CellPlan, means: Means) -> Job:
    """The cross-validation of a cell.

    Raises:
        InputError: the data is not available, or the folds do not match it.
    """
    budget = means.budget
    config = model_config(plan.model).with_values(
        {
            "dataset": plan.dataset,
            "epochs": budget.epochs,
            "seed": means.seed,
            **({} if means.device is None else {"device": means.device}),
            **({} if plan.layers is None else {"layers": plan.layers}),
        }
    )
    config, dataset = means.load(config)
    grid = budget.grid(config)
    if plan.layers is not None:
        grid = tuple(dict.fromkeys(replace(each, layers=plan.layers) for each in grid))
    protocol = Protocol(config, grid, means.runs or budget.runs, budget.race)
    file = None if means.splits is None else means.splits / f"{dataset.name}.json"
    published = file is not None and file.is_file()
    try:
        made = make_folds(
            dataset,
            means.seed,
            file=file if published else None,
            folds=None if published else means.folds or budget.folds,
            repeats=means.repeats,
        )
    except InputError as error:
        raise InputError(f"{dataset.name}: {error}") from error
    return Job(protocol, dataset, made, repeats=means.repeats)


def refuse_fewer_repeats(plans: Iterable[CellPlan], means: Means) -> None:
    """Check, before any cell is trained, that none has a result of more partitions.

    Raises:
        InputError: one has, or its data is not available.
    """
    more = {
        path.parent
        for path in means.root.glob(f"*/*/{folders.RESULT}")
        if jobs.repeats_of(folders.read_result(path.parent)) > means.repeats
    }
    for plan in plans if more else ():
        job = job_of(plan, means)
        folder = folder_of(means.root, job.dataset.name, plan, job)
        finished = jobs.finished_repeats(job, folder)
        if finished > means.repeats:
            raise InputError(
                f"{folder} has {finished} finished partitions, and --repeats {means.repeats} "
                f"would replace their result. Use --repeats {finished}, or choose another --out."
            )


def run_cell(plan: CellPlan, means: Means, watch: Callback) -> Done:
    """Finish a cell; the outcome says if it did not fit or failed.

    Raises:
        InputError: the data is not available, or the cell's folder holds something else.
    """
    job = job_of(plan, means)
    name = job.dataset.name
    folder = folder_of(means.root, name, plan, job)
    executor = means.executor(None)
    try:
        size = jobs.begin(job, folder, executor, command=means.command)
    except NoRoomError as error:
        return Done(plan, name, refused=f"does not fit: about {file_size(error.needed)}")
    most = jobs.most_workers(job, folder)
    if executor.workers > most:
        executor = means.executor(most)
    beside: tuple[Reference, ...] = ()
    if means.references:
        beside = repeated_references(
            folder.parent, job.dataset, job.folds, means.seed, repeats=job.repeats
        )
    try:
        done = jobs.finish(
            job, folder, executor, size, watch, references=beside, command=means.command
        )
    except IhgnnError as error:
        return Done(plan, name, refused=f"failed: {error}", failed=True)
    return Done(plan, name, done.result)


def folder_of(root: Path, dataset: str, plan: CellPlan, job: Job) -> Path:
    """The folder of a cell; the same cell with the same budget always gets the same folder."""
    model = file_name(plan.model.replace(":", "-"))
    if plan.layers is not None:
        model += f"-k{plan.layers}-runs{job.protocol.runs}"
    return root / file_name(dataset) / model


def results(done: Iterable[Done]) -> Iterator[dict[str, Any]]:
    """The results that exist."""
    return (each.result for each in done if each.result is not None)
