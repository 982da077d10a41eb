"""Hyper-parameter search in a folder: the trials, a training with the best settings, the report."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial

from ihgnn_cli.api.messages import in_python
from ihgnn_cli.api.settings import (
    Graphs,
    access,
    configured,
    dataset_of,
    divided,
    searchable,
    whole_numbers,
)
from ihgnn_cli.api.train import draw
from ihgnn_cli.display import Display
from ihgnn_cli.report.tuning import write_report, write_trials
from ihgnn_cli.report.tuning_figures import draw_study
from ihgnn_cli.settings import checked
from ihgnn_cli.studies.tuning import job as jobs
from ihgnn_cli.studies.tuning.job import TrialsRun, TuneCallback, TuneJob, plan_search
from ihgnn_cli.studies.tuning.names import PrunerName, SamplerName
from ihgnn_cli.studies.tuning.rows import TrialRow, trial_rows
from ihgnn_cli.studies.tuning.trials import best_trials, progress_line
from ihgnn_cli.training import folder as runs
from ihgnn_cli.training import run
from ihgnn_cli.training.config import RunConfig


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


@in_python
def tune(
    dataset: Graphs = "MUTAG",
    *,
    trials: int | None = None,
    timeout: float | None = None,
    sampler: SamplerName | str = SamplerName.TPE,
    pruner: PrunerName | str = PrunerName.MEDIAN,
    inner_folds: int = 1,
    storage: str | None = None,
    study: str | None = None,
    out: Path | str | None = None,
    workers: int | None = None,
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
        storage: address of a database shared by several machines; by default SQLite in `out`.
        study: name of the study in the storage.
        out: the folder; by default `runs/NAME-tune-...`, the same for the same call.
        workers: number of processes; by default one per core, or several per GPU.
        model: `"ihgnn"` (the default) or another model listed by `ihgnn models`.
        recipe: `"paper"` (the defaults), `"authors"` or `"robust"`.
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
    numbers = whole_numbers(trials=trials, inner_folds=inner_folds, workers=workers)
    base = configured({}, model=model, recipe=recipe, config=config)
    fixed, competing = divided(settings, base, searchable(base))
    chosen = configured(fixed, model=model, recipe=recipe, config=config, call=tune)
    display = Display(progress)
    job = plan_search(
        chosen,
        {name: _as_text(value) for name, value in competing.items()},
        dataset_of(dataset, access(data_root, offline, display)),
        sampler=checked("sampler", sampler, SamplerName),
        pruner=checked("pruner", pruner, PrunerName),
        storage=storage,
        study=study,
        out=None if out is None else Path(out),
        **numbers,
    )
    job.open()
    epochs = job.search.config.training.epochs
    with display.work("trial-epochs") as update:

        def show(now: TrialsRun) -> None:
            update(now.epochs_done(epochs), now.total * epochs, progress_line(now.trials))

        done = run_trials(job, show, timeout)
    with display.work("epochs") as update:
        result = finish(
            job, done, lambda now, _best: update(now.epoch, epochs, "training the best settings")
        )
    return Tuning(
        folder=job.folder,
        best=result["best"]["params"],
        validation_accuracy=result["best"]["validation_accuracy"],
        test=result["final"]["test"],
        config=job.best_config(best_trials(done.trials)[0]),
        checkpoint=job.folder / result["final"]["folder"] / runs.BEST,
        result=result,
    )


def _as_text(value: Any) -> str:
    """A setting's values in the form of the command line."""
    if isinstance(value, list | tuple):
        return ",".join(map(_as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def run_trials(job: TuneJob, callback: TuneCallback, timeout: float | None = None) -> TrialsRun:
    """Run the trials and write their table, also if interrupted.

    Raises:
        IhgnnError: the storage or a worker failed.
    """
    try:
        done = job.run_trials(callback, timeout)
    except (KeyboardInterrupt, SystemExit):
        _write(job, job.trials())
        raise
    _write(job, done.trials)
    return done


def finish(job: TuneJob, done: TrialsRun, watch: run.Watch) -> dict[str, Any]:
    """Train and test the best settings, and write the result and the report.

    Raises:
        IhgnnError: no trial finished training, or the training of the best settings failed.
    """
    result = job.train_best(done, watch)
    best_run = job.folder / result["final"]["folder"]
    if not (best_run / runs.CURVES).is_file():
        draw(best_run, {**result["final"], "dataset": result["dataset"]})
    with job.study_now() as study:
        figures = draw_study(study, job.folder)
    write_report(_rows(job, done.trials), result, figures, job.folder)
    job.write_result(result)
    return result


def _rows(job: TuneJob, trials: Sequence[FrozenTrial]) -> list[TrialRow]:
    return trial_rows(trials, chooses_epoch=not job.search.config.training.snapshots)


def _write(job: TuneJob, trials: Sequence[FrozenTrial]) -> None:
    """Write the table of trials, and the best settings if there are any."""
    write_trials(job.folder / jobs.TRIALS, _rows(job, trials))
    for best in best_trials(trials)[:1]:
        job.write_best(best)
