"""From the arguments of `ihgnn tune` to a search."""

from collections.abc import Mapping
from pathlib import Path

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.places import local_places
from ihgnn_cli.studies.tuning.kinds import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.search import prepare, trials_together
from ihgnn_cli.studies.tuning.space import make_space
from ihgnn_cli.studies.tuning.storage import address
from ihgnn_cli.studies.tuning.tune_job import TuneJob
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.folder import RUNS, run_name
from ihgnn_cli.training.loading import load_data

_TRIALS = 50


def plan_search(
    config: RunConfig,
    texts: Mapping[str, str | None],
    dataset: GraphDataset,
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
        report_every: epochs between reports to the pruner.
        search_space: a TOML file.
        storage: address of the database.
        study: name of the study.
        out: the folder.
        workers: number of processes.
        stack: number of trials that a process trains together.
        command: command line to record, without secrets.

    Raises:
        InputError: an argument or the data is not valid.
        NoRoomError: no configuration of the space fits in memory.
    """
    if stack is not None and stack < 1:
        raise InputError(f"stack must be at least 1, not {stack}.")
    grid = sampler == SamplerName.GRID
    space, config = make_space(config, texts, search_space, grid=grid)
    total = _total(trials, space.size() if grid else None)
    places = local_places(config.training.device, workers)
    config, data = load_data(config, dataset=dataset)
    search = prepare(
        config,
        space,
        data,
        sampler=sampler,
        pruner=pruner,
        inner=inner_folds,
        interval=report_every,
    )
    name = f"{run_name(data.name, config)}-tune-{search.digest}"
    folder = out or RUNS / name
    where = address(storage, folder)
    stack = stack or trials_together(search, places)
    return TuneJob(search, study or name, where, folder, places, total, stack, command)


def _total(trials: int | None, points: int | None) -> int:
    """Total number of trials; a grid limits it."""
    if trials is not None and not 1 <= trials <= 10**6:
        raise InputError(f"--trials must be from 1 to 1,000,000, not {trials}.")
    if points is None:
        return trials or _TRIALS
    return min(trials or points, points)
