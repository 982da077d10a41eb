"""Nested cross-validation in a folder, from the configuration to the result."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import Graphs, access, configured, dataset_of, divided
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.kinds import HOLDOUT
from ihgnn_cli.display import Display, Update
from ihgnn_cli.errors import SettingError
from ihgnn_cli.jobs.cluster import cluster_executor
from ihgnn_cli.jobs.executor import Executor
from ihgnn_cli.jobs.queue import Step
from ihgnn_cli.models.conformal import check_alpha
from ihgnn_cli.studies import crossval as jobs
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.grid import COMMON, PAPER_RUNS, Setting, check_choices, own_grid
from ihgnn_cli.studies.places import local_executor
from ihgnn_cli.studies.plan import Protocol
from ihgnn_cli.studies.signal.references import Reference, repeated_references
from ihgnn_cli.studies.work import Job
from ihgnn_cli.training import folder as folders
from ihgnn_cli.training.config import RunConfig, recipe_grid
from ihgnn_cli.training.kinds import Recipe
from ihgnn_cli.training.loading import load_data


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """A finished nested cross-validation."""

    folder: Path
    test_mean: float
    """Mean test accuracy over the folds of all repeats."""
    test_std: float
    """Standard deviation over the folds of the mean test accuracy over each fold's runs."""
    test_error: float
    """Standard error of `test_mean`, corrected for folds that share training graphs."""
    config: RunConfig = field(repr=False)
    """The configuration that most folds chose, with the median of its best epochs: for
    `train(dataset, config=..., final=True)`. The folder has it as `best.toml`."""
    result: dict[str, Any] = field(repr=False)
    """The content of `result.json` in the folder; `result["folds"]` has one entry per fold,
    `result["repeats"]` one per partition."""


@in_python
def crossval(
    dataset: Graphs = "MUTAG",
    *,
    folds: int | None = None,
    inner_folds: int | None = None,
    runs: int | None = None,
    repeats: int = 1,
    split_file: Path | str | None = None,
    race: bool = False,
    rules: bool = False,
    conformal: float | None = None,
    references: bool = True,
    group_twins: bool = False,
    out: Path | str | None = None,
    workers: int | None = None,
    stack: int | None = None,
    cluster: str | None = None,
    model: str | None = None,
    recipe: str | None = None,
    config: RunConfig | Path | str | None = None,
    data_root: Path | str | None = None,
    offline: bool = False,
    progress: bool | None = None,
    **settings: Any,
) -> CrossValidation:
    """Nested cross-validation: choose epoch and configuration on validation, test once.

    Finished models stay in the folder. After an interruption, the same call resumes there.

    Args:
        dataset: as in `load_dataset`.
        folds: number of folds; 10 by default.
        inner_folds: number of inner folds that choose the configuration, instead of one hold-out.
        runs: final runs of the chosen configuration per fold, 3 by default; with snapshots, the
            seeds whose predictions are averaged.
        repeats: number of partitions, drawn from `seed`, `seed` + 1, and so on. A later call with
            more continues in the same folder; one with fewer returns all that are finished.
        split_file: JSON file with the folds, in the published format.
        race: choose the configuration by successive halving, with about a quarter of the epochs.
        rules: also compute the result under the other selection rules in the literature.
        conformal: calibrate prediction sets on validation graphs, and measure how often those of
            test graphs contain the true class; about this share, such as 0.1, misses it on average.
        references: also test classifiers without a network on the same folds.
        group_twins: draw folds that keep graphs with the same 1-WL colouring together.
        out: the folder; by default `runs/NAME-crossval-...`, the same for the same call.
        workers: number of processes; by default one per core, or one per GPU.
        stack: number of models that a process trains together.
        cluster: address of a Ray cluster.
        model: `"ihgnn"` (the default) or another model listed by `ihgnn models`.
        recipe: `"paper"` (the defaults), `"authors"` or `"robust"`.
        config: a TOML file or the `config` of a run, for settings not given here.
        data_root: folder that holds NAME.zip or NAME/ and receives downloads.
        offline: never download.
        progress: show a bar; by default in terminals and notebooks only.
        settings: as in `train`; a list gives candidate values (`lr=[0.01, 0.001]`). By default
            the candidates are the grid of the model's paper.

    Raises:
        InputError: a setting, the data or the folder is not valid.
        IhgnnError: a training or a worker failed.
    """
    base = configured({}, model=model, recipe=recipe, config=config)
    fixed, competing = divided(settings, base, (*COMMON, *base.spec.grid))
    chosen = configured(fixed, model=model, recipe=recipe, config=config, call=crossval)
    lists = {name: _several(value) for name, value in competing.items()}
    display = Display(progress)
    begun = begin(
        chosen,
        {**recipe_grid(None if recipe is None else Recipe(recipe)), **lists},
        dataset_of(dataset, access(data_root, offline, display)),
        runs=runs,
        folds=folds,
        inner_folds=inner_folds,
        repeats=repeats,
        split_file=None if split_file is None else Path(split_file),
        race=race,
        rules=rules,
        conformal=conformal,
        group_twins=group_twins,
        out=None if out is None else Path(out),
        workers=workers,
        stack=stack,
        cluster=cluster,
    )
    tested: tuple[Reference, ...] = ()
    if references:
        with display.work("fits") as update:
            tested = begun.references(update)
    with display.work("model-epochs") as update:

        def watch(now: jobs.Progress, _step: Step) -> None:
            line = f"{now.models:,} of {now.of_models:,} models finished"
            update(now.epochs, now.of_epochs, line)

        result = begun.finish(watch, tested).result
    return CrossValidation(
        folder=begun.folder,
        test_mean=result["test_mean"],
        test_std=result["test_std"],
        test_error=result["test_error"],
        config=jobs.best_config(begun.job, result),
        result=result,
    )


def _several(value: Any) -> tuple[Setting, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


@dataclass(frozen=True, eq=False)
class Begun:
    """A job whose folder exists."""

    job: Job
    folder: Path
    executor: Executor
    stack: int
    """Number of models that a worker trains together, as stored in the folder."""
    changed: str | None
    """Text naming the versions that changed since the folder was made."""
    command: str

    def references(self, tell: Update) -> tuple[Reference, ...]:
        """Classifiers without a network on the same folds; the folder keeps them."""
        job = self.job
        seed = job.protocol.config.training.seed
        return repeated_references(
            self.folder, job.dataset, job.folds, seed, repeats=job.repeats, tell=tell
        )

    def finish(
        self,
        watch: Callable[[jobs.Progress, Step], None],
        references: Sequence[Reference] = (),
    ) -> jobs.Finished:
        """Do the rest of the job; see `studies.crossval.finish`."""
        return jobs.finish(
            *(self.job, self.folder, self.executor, self.stack, watch),
            references=references,
            command=self.command,
        )


def planned(
    config: RunConfig,
    lists: Mapping[str, Sequence[Setting]],
    *,
    runs: int | None = None,
    race: bool = False,
) -> Protocol:
    """The protocol of a call; an ensemble is trained as runs of a fold.

    Raises:
        InputError: a value is not valid.
    """
    training, made = config.training, own_grid(config, lists)
    if not training.snapshots:
        return Protocol(config, made, PAPER_RUNS if runs is None else runs, race)
    single = replace(config, training=replace(training, ensemble=1))
    return Protocol(single, made, training.ensemble if runs is None else runs, race)


def begin(
    config: RunConfig,
    lists: Mapping[str, Sequence[Setting]],
    dataset: GraphDataset,
    *,
    runs: int | None = None,
    folds: int | None = None,
    inner_folds: int | None = None,
    repeats: int = 1,
    split_file: Path | None = None,
    race: bool = False,
    rules: bool = False,
    conformal: float | None = None,
    group_twins: bool = False,
    out: Path | None = None,
    workers: int | None = None,
    stack: int | None = None,
    cluster: str | None = None,
    command: str = "",
) -> Begun:
    """Make a job and its folder, or open the folder if it exists.

    Args:
        config: configuration of every training, except for the searched settings.
        lists: candidate values that replace those of the model's own grid.
        dataset: the graphs.
        runs: final runs per fold. This and the following are explained in `crossval`.
        folds: number of folds.
        inner_folds: number of inner folds.
        repeats: number of partitions; the job has those that its folder has finished, if more.
        split_file: JSON file with the folds.
        race: choose by successive halving.
        rules: also compute the other selection rules.
        conformal: measure the coverage of prediction sets.
        group_twins: keep graphs with the same 1-WL colouring in one part.
        out: the folder.
        workers: number of processes.
        stack: number of models that a process trains together.
        cluster: address of a Ray cluster.
        command: command line to record.

    Raises:
        InputError: a value, the data or the folder is not valid.
    """
    if conformal is not None:
        check_alpha(conformal)
    if stack is not None and stack < 1:
        raise SettingError("stack", f"must be at least 1, not {stack}.")
    config = replace(config, data=replace(config.data, split=HOLDOUT, split_from=""))  # not used
    protocol = planned(config, lists, runs=runs, race=race)
    check_choices(config, protocol.grid, race=race, rules=rules, inner_folds=inner_folds)
    executor = _executor(cluster, config.training.device, workers)
    config, data = load_data(config, dataset=dataset)
    draw = partial(
        make_folds,
        data,
        config.training.seed,
        file=split_file,
        folds=folds,
        inner=inner_folds,
        group_twins=group_twins,
    )
    made = draw(repeats=repeats)
    most_inner = max(len(fold.splits) for fold in made)  # of a file, too
    check_choices(config, protocol.grid, race=race, rules=rules, inner_folds=most_inner)
    held_out = conformal is not None and not protocol.selects
    kept = len(made[0].splits[0].validation) if held_out else 0
    graphs = max(len(data) - len(fold.test) for fold in made) - kept
    config = replace(config, training=protocol.config.training).with_epochs(graphs)
    job = Job(
        protocol.on(config),
        data,
        made,
        curves=rules,
        repeats=repeats,
        conformal=conformal,
        group_twins=group_twins,
    )
    name = folders.run_name(data.name, config)
    folder = out or jobs.default_folder(folders.RUNS, job, name)
    finished = jobs.finished_repeats(job, folder)
    if finished > repeats:  # a result of fewer would replace theirs
        job = replace(job, folds=draw(repeats=finished), repeats=finished)
    size = jobs.begin(job, folder, executor, stack=stack, command=command)
    most = jobs.most_workers(job, folder)
    changed = jobs.other_versions(folder, executor)
    if cluster is None and executor.workers > most:
        executor = local_executor(config.training.device, most)
    return Begun(job, folder, executor, size, changed, command)


def _executor(cluster: str | None, device: str, workers: int | None) -> Executor:
    if cluster is not None:
        return cluster_executor(cluster, device, workers)
    return local_executor(device, workers)
