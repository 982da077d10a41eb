"""What `ihgnn tune` shows: progress, and at the end tables and figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ihgnn_cli.cli import console
from ihgnn_cli.models.registry import DEFAULT_MODEL, find_model
from ihgnn_cli.report.tuning import PAGE
from ihgnn_cli.studies.tuning.trials import (
    best_trials,
    outcome_of,
    params_of,
    progress_line,
    states_in_words,
)
from ihgnn_cli.words import counted, duration

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from ihgnn_cli.studies.tuning.job import TrialsRun, TuneJob

_SHOWN = 5
"""Trials in a table: the best ones, and the running ones that are furthest."""


def show_start(job: "TuneJob") -> None:
    """Say what the search will do."""
    from ihgnn_cli.training.snapshots import fewer_snapshots, snapshot_epochs

    search, workers = job.search, job.workers
    inner = len(search.inner)
    splits = "" if inner == 1 else f" × {inner} inner folds"
    config = search.config
    title = "" if config.model_name == DEFAULT_MODEL else f"{config.spec.title} on "
    console.note(
        f"{title}{search.dataset.name}: {counted(job.total, 'trial')}{splits}, "
        f"{counted(config.training.epochs, 'epoch')} each "
        f"({search.sampler}, pruner {search.pruner}); "
        f"{counted(len(workers.places), 'worker')} on {workers.device.type}; in {job.folder}\n"
        f"Searched: {search.space}"
    )
    if workers.note:
        console.note(workers.note)
    training = config.training
    if training.snapshots:
        kept = counted(len(snapshot_epochs(training.epochs, training.snapshots)), "epoch")
        console.note(
            f"A trial is judged by the mean prediction of {kept} of one model; the best settings "
            f"are trained with {counted(training.ensemble, 'seed')}."
        )
    fewer = fewer_snapshots(training)
    if fewer is not None:
        console.note(fewer)


@contextmanager
def progress(epochs: int, *, quiet: bool) -> "Iterator[Callable[[TrialsRun], None]]":
    """A live table in a terminal, otherwise a line per change, on standard error."""
    if quiet:
        yield _warn
    elif console.err.is_terminal and not console.err.is_dumb_terminal:
        with console.work_bar("trial-epochs") as update:

            def show_now(now: "TrialsRun") -> None:
                _warn(now)
                update(now.epochs_done(epochs), now.total * epochs, _live_table(now, epochs))

            yield show_now
    else:
        shown = -1

        def show_line(now: "TrialsRun") -> None:
            nonlocal shown
            _warn(now)
            finished = now.finished
            if finished > shown:
                shown = finished
                line = progress_line(now.trials)
                console.note(f"{finished:,} of {now.total:,} trials: {line}")

        yield show_line


def _warn(now: "TrialsRun") -> None:
    if now.killed:
        console.warn("A worker was killed from outside. Its trial is trained again.")


def _live_table(now: "TrialsRun", epochs: int) -> Table:
    """The best trials, and the running ones."""
    running = [each for each in now.trials if each.state.name == "RUNNING"]
    running.sort(key=lambda each: (-(each.last_step or 0), each.number))
    shown = _trial_table(progress_line(now.trials), now.trials, "Epoch")
    for trial in best_trials(now.trials)[:_SHOWN]:
        shown.add_row(*_cells(trial), "done", style="bold" if shown.row_count == 0 else None)
    for trial in running[:_SHOWN]:
        shown.add_row(*_cells(trial), f"{trial.last_step or 0}/{epochs}", style="dim")
    if len(running) > _SHOWN:
        shown.caption = f"{counted(len(running) - _SHOWN, 'more trial')} running"
    return shown


def show(result: Mapping[str, Any], trials: "Sequence[FrozenTrial]", folder: Path) -> None:
    """The result as tables and sentences."""
    show_best(trials)
    final = result["final"]
    test, validation = final["test"], final["validation"]
    console.show(f"Test accuracy {test['accuracy']:.1%}", style="bold")
    runs, snapshots = "One run", final["snapshots"]
    epoch = (
        f"Epoch {final['best_epoch']}, chosen on "
        f"{counted(validation['graphs'], 'validation graph')} ({validation['accuracy']:.1%})."
        f"{_why_validation_differs(result)}"
    )
    if snapshots:
        runs = f"The mean prediction of {len(final['seeds'])} seeds"
        epoch = f"{counted(len(snapshots), 'epoch')} of each averaged, none chosen."
    console.show(
        f"{runs} of the best settings on {counted(test['graphs'], 'test graph')}; 95 % interval "
        f"{test['accuracy_low']:.1%} to {test['accuracy_high']:.1%}; majority class "
        f"{test['majority_share']:.1%}. {epoch} Trials are compared by {result['chosen_by']}; no "
        "trial saw the test graphs."
    )
    console.show_scores(test)
    if final["tested_before"]:
        before = ", ".join(map(str, final["tested_before"]))
        console.warn(
            f"The test graphs were already used in this search, for trial {before}: the best of "
            "several tests is not an unbiased estimate."
        )
    console.show(f"\n{_timing(result)}")
    console.show(f"Best        {folder / 'best.toml'}")
    console.show(f"Report      {folder / PAGE}")
    checkpoint = folder / final["folder"] / "ckpt.pt"
    console.show(f"Checkpoint  {checkpoint}")
    exported = find_model(result["search"]["model"]["name"]).exportable
    console.next_steps(
        ("evaluate", folder),
        *([("export", folder)] if exported else []),
        ("train", "--final", "--config", folder / "best.toml"),
    )


def _why_validation_differs(result: Mapping[str, Any]) -> str:
    """Why the final run and the best trial have different validation accuracies, if so."""
    trial, inner = result["best"]["validation_accuracy"], len(result["validation_graphs"])
    if inner == 1 or f"{trial:.1%}" == f"{result['final']['validation']['accuracy']:.1%}":
        return ""
    return f" The {trial:.1%} of the trial is its mean over {inner} inner folds."


def show_best(trials: "Sequence[FrozenTrial]") -> None:
    """Show the best trials."""
    shown = _trial_table("Best trials by validation accuracy in %", trials, "Seconds")
    for trial in best_trials(trials)[:_SHOWN]:
        outcome = outcome_of(trial)
        shown.add_row(*_cells(trial), "" if outcome is None else f"{outcome.seconds:.0f}")
    if shown.row_count:
        console.show(shown)
    console.show(f"Trials      {states_in_words(trials)}")


def _trial_table(title: str, trials: "Sequence[FrozenTrial]", last: str) -> Table:
    names = next((list(params_of(each)) for each in trials if params_of(each)), [])
    heads = [_HEADS.get(name, name) for name in names]
    return console.table(title, "Trial", "Accuracy", "Loss", *heads, last)


_HEADS = {"batch_size": "Batch", "layers": "K", "width": "Width", "hidden": "Hidden"}


def _cells(trial: "FrozenTrial") -> list[str]:
    values = params_of(trial).values()
    params = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values]
    outcome = outcome_of(trial)
    result = (
        ["", ""] if outcome is None else [f"{100 * outcome.accuracy:.1f}", f"{outcome.loss:.3f}"]
    )
    return [str(trial.number), *result, *params]


def _timing(result: Mapping[str, Any]) -> str:
    epochs = f"{result['model_epochs']:,} model-epochs"
    if not result["trained_now"]:
        return f"Trained     {epochs}, all by earlier commands"
    rate = result["trained_now"] / result["seconds"]
    now = (
        ""
        if result["trained_now"] == result["model_epochs"]
        else f", {result['trained_now']:,} of them by this command"
    )
    return f"Trained     {epochs}{now}, in {duration(result['seconds'])}: {rate:.0f} per second"
