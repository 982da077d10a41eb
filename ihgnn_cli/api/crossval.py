"""Nested cross-validation in a folder, from the configuration to the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import Graphs, access, configured, dataset_of, divided, whole_numbers
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.kinds import HOLDOUT
from ihgnn_cli.display import Display
from ihgnn_cli.errors import SettingError
from ihgnn_cli.jobs.ray import Cluster, ray_cluster
from ihgnn_cli.studies.crossval.job import Data
from ihgnn_cli.studies.crossval.protocol import (
    COMMON,
    PAPER_RUNS,
    Protocol,
    Setting,
    check_choices,
    own_grid,
)
from ihgnn_cli.studies.crossval.result import CrossvalResult
from ihgnn_cli.studies.crossval.run import Progress
from ihgnn_cli.studies.crossval.stacks import member_bytes
from ihgnn_cli.studies.crossval.study import (
    Study,
    best_config,
    default_folder,
    jobs_of,
    open_study,
    result_of,
)
from ihgnn_cli.studies.folds import make_folds
from ihgnn_cli.studies.signal.references import Reference
from ihgnn_cli.studies.workers import Workers, local_workers
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
    test_error: float | None
    """Standard error of `test_mean`, corrected for folds that share training graphs."""
    config: RunConfig = field(repr=False)
    """The configuration that most folds chose, with the median of its best epochs, at least 20: for
    `train(dataset, config=..., final=True)`. The folder has it as `best.toml`."""
    result: CrossvalResult = field(repr=False)
    """Everything in `result.json` in the folder: `result.folds` has one entry per fold,
    `result.repeats` one per partition."""


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
        references: also test classifiers without a network on the same folds.
        group_twins: draw folds that keep graphs with the same 1-WL colouring together.
        out: the folder; by default `runs/NAME-crossval-...`, the same for the same call.
        workers: number of processes; by default one per core, or several per GPU.
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
    numbers = whole_numbers(
        runs=runs,
        folds=folds,
        inner_folds=inner_folds,
        repeats=repeats,
        workers=workers,
        stack=stack,
    )
    base = configured({}, model=model, recipe=recipe, config=config)
    fixed, competing = divided(settings, base, (*COMMON, *base.spec.grid))
    chosen = configured(fixed, model=model, recipe=recipe, config=config, call=crossval)
    lists = {name: _several(value) for name, value in competing.items()}
    display = Display(progress)
    study = begin(
        chosen,
        {**recipe_grid(None if recipe is None else Recipe(recipe)), **lists},
        dataset_of(dataset, access(data_root, offline, display)),
        split_file=None if split_file is None else Path(split_file),
        race=race,
        rules=rules,
        group_twins=group_twins,
        out=None if out is None else Path(out),
        cluster=cluster,
        **numbers,
    )
    tested: tuple[Reference, ...] = ()
    if references:
        with display.work("fits") as update:
            tested = study.references(update)
    with display.work("model-epochs") as update:

        def watch(now: Progress) -> None:
            line = f"{now.models:,} of {now.of_models:,} models finished"
            update(now.epochs, now.of_epochs, line)

        result = study.run(watch, tested).result
    return CrossValidation(
        folder=study.path,
        test_mean=result.test_mean,
        test_std=result.test_std,
        test_error=result.test_error,
        config=best_config(study.job.protocol, result),
        result=result,
    )


def _several(value: Any) -> tuple[Setting, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


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
    group_twins: bool = False,
    out: Path | None = None,
    workers: int | None = None,
    stack: int | None = None,
    cluster: str | None = None,
    command: str = "",
) -> Study:
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
        group_twins: keep graphs with the same 1-WL colouring in one part.
        out: the folder.
        workers: number of processes.
        stack: number of models that a process trains together.
        cluster: address of a Ray cluster.
        command: command line to record.

    Raises:
        InputError: a value, the data or the folder is not valid.
    """
    if stack is not None and stack < 1:
        raise SettingError("stack", f"must be at least 1, not {stack}.")
    config = replace(config, data=replace(config.data, split=HOLDOUT, split_from=""))  # not used
    protocol = planned(config, lists, runs=runs, race=race)
    check_choices(config, protocol.grid, race=race, rules=rules, inner_folds=inner_folds)
    where = _where(cluster, config.training.device, workers)
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
    graphs = max(len(data) - len(fold.test) for fold in made)
    protocol = replace(
        protocol, config=replace(config, training=protocol.config.training).with_epochs(graphs)
    )
    jobs = partial(jobs_of, protocol, Data(data), curves=rules, group_twins=group_twins)
    first = jobs(made, repeats)[0]
    path = out or default_folder(folders.RUNS, first, folders.run_name(data.name, config))
    before = result_of(path, first)
    if before is not None and len(before.repeats) > repeats:  # a result of fewer would replace it
        repeats = len(before.repeats)
        made = draw(repeats=repeats)
    if workers is None and where.device.type == "cuda" and isinstance(where, Workers):
        needed = member_bytes(protocol, data)
        where = local_workers(config.training.device, needed=needed)
    return open_study(path, jobs(made, repeats), where, stack=stack, command=command)


def _where(cluster: str | None, device: str, workers: int | None) -> Workers | Cluster:
    if cluster is not None:
        return ray_cluster(cluster, device, workers)
    return local_workers(device, workers)
