"""What `ihgnn tune` shows: progress, and at the end tables and figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ihgnn_cli.cli import console
from ihgnn_cli.models.registry import DEFAULT_MODEL, find_model
from ihgnn_cli.report.tuning_report import PAGE
from ihgnn_cli.studies.tuning.trials import (
    best_trial,
    best_trials,
    progress_line,
    states_in_words,
)
from ihgnn_cli.words import counted, duration

if TYPE_CHECKING:
    from ihgnn_cli.studies.tuning.trials import RequestedTrial
    from ihgnn_cli.studies.tuning.tune_job import TuneJob, TuneProgress
    from ihgnn_cli.training.epoch import Epoch

_SHOWN = 5
"""Trials in a table: the best ones, and the running ones that are furthest."""


def show_start(job: "TuneJob") -> None:
    """Say what the search will do."""
    from ihgnn_cli.training.snapshots import fewer_snapshots, snapshot_epochs

    search, places = job.search, job.places
    space = "; ".join(f"{name} {part}" for name, part in search.space.parts.items())
    inner = len(search.inner)
    splits = "" if inner == 1 else f" × {inner} inner folds"
    config = search.config
    title = "" if config.model_name == DEFAULT_MODEL else f"{config.spec.title} on "
    console.note(
        f"{title}{search.dataset.name}: {counted(job.total, 'trial')}{splits}, "
        f"{counted(config.training.epochs, 'epoch')} each "
        f"({search.sampler}, pruner {search.pruner}); "
        f"{counted(len(places.devices), 'worker')} on {places.first.type}, up to {job.stack} "
        f"together; in {job.folder}\nSearched: {space}"
    )
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
def progress(epochs: int, *, quiet: bool) -> "Iterator[Callable[[TuneProgress], None]]":
    """A live table in a terminal, otherwise a line per change, on standard error."""
    if quiet:
        yield _warn
    elif console.err.is_terminal and not console.err.is_dumb_terminal:
        with console.work_bar("trial-epochs") as update:

            def show_now(now: "TuneProgress") -> None:
                _warn(now)
                update(now.epochs_done(epochs), now.total * epochs, _live_table(now, epochs))

            yield show_now
    else:
        shown = -1

        def show_line(now: "TuneProgress") -> None:
            nonlocal shown
            _warn(now)
            finished = sum(each.finished for each in now.trials)
            if finished > shown:
                shown = finished
                line = progress_line(now.trials)
                console.note(f"{finished:,} of {now.total:,} trials: {line}")

        yield show_line


def _warn(now: "TuneProgress") -> None:
    if now.killed:
        console.warn("A worker was killed from outside. Its trials are trained again.")
    if now.retried:
        console.note(f"Retrying {counted(now.retried, 'trial')} whose process died.")
    if now.halved > 1:
        console.warn(
            f"Not enough memory for {counted(now.halved, 'trial')} together: smaller stacks."
        )


def _live_table(now: "TuneProgress", epochs: int) -> Table:
    """The best trials, and the running ones."""
    by_number = {each.last.number: each for each in now.trials}
    running = sorted(now.running.items(), key=lambda each: (-each[1], each[0]))
    shown = _trial_table(progress_line(now.trials), now.trials, "Epoch")
    for trial in best_trials(now.trials)[:_SHOWN]:
        shown.add_row(*_cells(trial), "done", style="bold" if shown.row_count == 0 else None)
    for number, epoch in running[:_SHOWN]:
        shown.add_row(*_cells(by_number[number]), f"{epoch}/{epochs}", style="dim")
    if len(running) > _SHOWN:
        shown.caption = f"{counted(len(running) - _SHOWN, 'more trial')} running"
    return shown


@contextmanager
def final_progress(
    job: "TuneJob", trials: "Sequence[RequestedTrial]", *, quiet: bool
) -> "Iterator[Callable[[Epoch, Epoch | None], None]]":
    """A bar in a terminal, otherwise a line, for the training of the best settings."""
    best = best_trial(trials)
    text = "" if best is None else f"Training and testing the settings of trial {best.number}"
    if quiet:
        yield lambda _epoch, _best: None
    elif console.err.is_terminal and not console.err.is_dumb_terminal:
        with console.work_bar("epochs") as update:
            epochs = job.search.config.training.epochs
            yield lambda epoch, _best: update(epoch.epoch, epochs, text)
    else:

        def show_line(epoch: "Epoch", _best: "Epoch | None") -> None:
            if epoch.epoch == 1:  # a finished training is not repeated
                console.note(f"{text}.")

        yield show_line


def show(result: Mapping[str, Any], trials: "Sequence[RequestedTrial]", folder: Path) -> None:
    """The result as tables and sentences."""
    show_best(trials)
    final = result["final"]
    test, validation = final["test"], final["validation"]
    console.show(f"Test accuracy {test['accuracy']:.1%}", style="bold")
    runs, snapshots = "One run", final.get("snapshots")  # missing in older results
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
    trial = result["best"]["validation_accuracy"]
    if f"{trial:.1%}" == f"{result['final']['validation']['accuracy']:.1%}":
        return ""
    inner = len(result["validation_graphs"])
    if inner > 1:
        return f" The {trial:.1%} of the trial is its mean over {inner} inner folds."
    return (
        f" The trial had {trial:.1%} with the same settings: in a stack, sums are rounded "
        "differently, which changes the training slightly."
    )


def show_best(trials: "Sequence[RequestedTrial]") -> None:
    """Show the best trials."""
    shown = _trial_table("Best trials by validation accuracy in %", trials, "Seconds")
    for trial in best_trials(trials)[:_SHOWN]:
        outcome = trial.outcome
        shown.add_row(*_cells(trial), "" if outcome is None else f"{outcome.seconds:.0f}")
    if shown.row_count:
        console.show(shown)
    console.show(f"Trials      {states_in_words(trials)}")


def _trial_table(title: str, trials: "Sequence[RequestedTrial]", last: str) -> Table:
    names = next((list(each.last.params) for each in trials if each.last.params), [])
    heads = [_HEADS.get(name, name) for name in names]
    return console.table(title, "Trial", "Accuracy", "Loss", *heads, last)


_HEADS = {"batch_size": "Batch", "layers": "K", "width": "Width", "hidden": "Hidden"}


def _cells(trial: "RequestedTrial") -> list[str]:
    values = trial.last.params.values()
    params = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in values]
    outcome = trial.outcome
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
