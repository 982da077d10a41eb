"""The steps of `ihgnn tune`, and what it shows of them: the trials, the training of the best."""

from typing import Any

from ihgnn_cli.api.tune import TuneWork
from ihgnn_cli.cli import console, tune_display
from ihgnn_cli.studies.tuning.search import Conducted
from ihgnn_cli.studies.tuning.slots import best_of


def conduct(work: TuneWork, timeout: float | None, *, quiet: bool, silent: bool) -> Conducted:
    """Do the trials; interrupted, show what there is (unless `silent`)."""
    if not quiet:
        tune_display.tell_begin(work.search, work.places, work.total, work.stack, work.folder)
    epochs = work.search.config.training.epochs

    def kept() -> str:
        if not silent:
            tune_display.show_best(work.slots())
        return "Finished trials are kept: the same command continues with the rest."

    with console.keeping(kept), tune_display.progress(epochs, quiet=quiet) as watch:
        done = work.conduct(watch, timeout)
    if not done.finished:
        console.note("The time is up. The next command runs the remaining trials.")
    return done


def conclude(work: TuneWork, done: Conducted, *, quiet: bool) -> dict[str, Any]:
    """Train the best settings, test them, and write the results."""
    best = best_of(done.slots)
    epochs, trial = work.search.config.training.epochs, -1 if best is None else best.number
    kept = "All trials are kept: the same command continues with the last training."
    with (
        console.keeping(lambda: kept),
        tune_display.final_progress(epochs, trial, quiet=quiet) as watch,
    ):
        return work.conclude(done, watch)
