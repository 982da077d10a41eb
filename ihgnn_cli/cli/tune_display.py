"""What `ihgnn tune` shows: how far it is, and in the end the tables and figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ihgnn_cli.cli import console
from ihgnn_cli.models.registry import IHGNN
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.report.tuning import TrialRow
    from ihgnn_cli.studies.places import Places
    from ihgnn_cli.studies.tuning.run import TuneProgress
    from ihgnn_cli.studies.tuning.search import Search
    from ihgnn_cli.studies.tuning.slots import Slot
    from ihgnn_cli.training.stack import Epoch

PAGE = "report.html"
_SHOWN = 5
"""Trials in a table: the best, and of those that run the furthest."""


def tell_begin(search: "Search", places: "Places", total: int, stack: int, folder: Path) -> None:
    """What is going to be done."""
    space = "; ".join(f"{name} {part}" for name, part in search.space.parts.items())
    inner = len(search.inner)
    splits = "" if inner == 1 else f" × {inner} inner folds"
    config = search.config
    title = "" if config.model_name == IHGNN else f"{config.spec.title} on "
    console.note(
        f"{title}{search.dataset.name}: {counted(total, 'trial')}{splits} of "
        f"{search.config.training.epochs} epochs ({search.sampler}, pruner {search.pruner}); "
        f"{counted(len(places.devices), 'worker')} on {places.first.type}, up to {stack} together; "
        f"in {folder}\nSearched: {space}"
    )


@contextmanager
def progress(epochs: int, *, quiet: bool) -> "Iterator[Callable[[TuneProgress], None]]":
    """A live table in a terminal, else a line for what is new, on standard error."""
    if quiet:
        yield _warn
    elif console.err.is_terminal and not console.err.is_dumb_terminal:
        with console.work_bar("trial-epochs") as update:

            def show_now(now: "TuneProgress") -> None:
                _warn(now)
                settled = sum(slot.settled for slot in now.slots) * epochs
                done = min(settled + sum(now.running.values()), now.total * epochs)
                update(done, now.total * epochs, _live_table(now, epochs))

            yield show_now
    else:
        told = -1

        def tell(now: "TuneProgress") -> None:
            nonlocal told
            _warn(now)
            settled = sum(slot.settled for slot in now.slots)
            if settled > told:
                told = settled
                console.note(f"{settled:,} of {now.total:,} trials: {_line(now)}")

        yield tell


def _warn(now: "TuneProgress") -> None:
    if now.dead:
        console.warn("A worker was killed from outside. Its trials are trained again.")
    if now.lost:
        console.note(f"{counted(now.lost, 'trial')} of a dead process: tried again.")
    if now.smaller:
        console.warn(
            f"Memory is too small for {counted(now.smaller, 'trial')} together: smaller stacks."
        )


def _line(now: "TuneProgress") -> str:
    from ihgnn_cli.studies.tuning.slots import best_of

    best = best_of(now.slots)
    told = states_in_words(now.slots)
    if best is not None:
        told += f"; best {_percent(best.last.value)} % (trial {best.number})"
    return told


def states_in_words(slots: "Sequence[Slot]") -> str:
    """`12 complete, 3 pruned, 1 failed, 4 running`."""
    states = [slot.state.name.lower().replace("fail", "failed") for slot in slots]
    names = ("complete", "pruned", "failed", "running", "waiting")
    found = [f"{states.count(name):,} {name}" for name in names if name in states]
    return ", ".join(found) or "none as yet"


def _live_table(now: "TuneProgress", epochs: int) -> Table:
    """The best trials, and those that are trained here."""
    here = {slot.last.number: slot for slot in now.slots}
    running = sorted(
        ((epoch, number) for number, epoch in now.running.items() if number in here),
        key=lambda each: (-each[0], each[1]),
    )
    shown = _trial_table(_line(now), now.slots, "Epoch")
    for slot in _best_slots(now.slots):
        shown.add_row(*_cells(slot), "done", style="bold" if shown.row_count == 0 else None)
    for epoch, number in running[:_SHOWN]:
        shown.add_row(*_cells(here[number]), f"{epoch}/{epochs}", style="dim")
    if len(running) > _SHOWN:
        shown.caption = f"{counted(len(running) - _SHOWN, 'more trial')} running here"
    return shown


@contextmanager
def final_progress(
    epochs: int, trial: int, *, quiet: bool
) -> "Iterator[Callable[[Epoch, Epoch], None]]":
    """A bar for the training of the best settings in a terminal, a line elsewhere."""
    told = f"trial {trial} is the best on validation; its settings are trained and tested"
    if quiet:
        yield lambda _epoch, _best: None
    elif console.err.is_terminal and not console.err.is_dumb_terminal:
        with console.work_bar("epochs") as update:
            yield lambda epoch, _best: update(epoch.epoch, epochs, told)
    else:

        def tell(epoch: "Epoch", _best: "Epoch") -> None:
            if epoch.epoch == 1:  # where it was trained before, there is nothing to tell
                console.note(f"{told[0].upper()}{told[1:]}.")

        yield tell


def show(result: Mapping[str, Any], slots: "Sequence[Slot]", folder: Path) -> None:
    """The result as tables and sentences."""
    show_best(slots)
    final = result["final"]
    test, validation = final["test"], final["validation"]
    console.show(f"Test accuracy {test['accuracy']:.1%}", style="bold")
    console.show(
        f"of one run of the best settings on {counted(test['graphs'], 'graph')} (95 % interval "
        f"{test['accuracy_low']:.1%} to {test['accuracy_high']:.1%}; the commonest class alone "
        f"{test['majority_share']:.1%}), at epoch {final['best_epoch']}, which was chosen on "
        f"{counted(validation['graphs'], 'validation graph')} ({validation['accuracy']:.1%}). "
        f"Trials by {result['chosen_by']}; no trial saw test."
    )
    if final["tested_before"]:
        before = ", ".join(map(str, final["tested_before"]))
        console.warn(
            f"Test graphs were looked at before in this search, for trial {before}: of several "
            "looks, the best is no estimate."
        )
    console.show(f"\n{_timing(result)}")
    console.show(f"Best        {folder / 'best.toml'}")
    console.show(f"Report      {folder / PAGE}")
    checkpoint = folder / final["folder"] / "ckpt.pt"
    console.show(f"Checkpoint  {checkpoint}")
    console.show(f"Next        ihgnn evaluate {console.quoted(checkpoint)}")


def show_best(slots: "Sequence[Slot]") -> None:
    """The best trials."""
    shown = _trial_table("Best trials by validation, accuracy in %", slots, "Seconds")
    for slot in _best_slots(slots):
        outcome = slot.outcome
        shown.add_row(*_cells(slot), "" if outcome is None else f"{outcome.seconds:.0f}")
    if shown.row_count:
        console.show(shown)
    console.show(f"Trials      {states_in_words(slots)}")


def _trial_table(title: str, slots: "Sequence[Slot]", last: str) -> Table:
    names = next((list(slot.last.params) for slot in slots if slot.last.params), [])
    heads = [_HEADS.get(name, name) for name in names]
    return console.table(title, "Trial", "Accuracy", "Loss", *heads, last)


_HEADS = {"batch_size": "Batch", "layers": "K", "width": "Width", "hidden": "Hidden"}


def _cells(slot: "Slot") -> list[str]:
    outcome = slot.outcome
    params = [f"{value:.3g}" if isinstance(value, float) else str(value) for value in _values(slot)]
    if outcome is None:
        return [str(slot.number), "", "", *params]
    return [str(slot.number), _percent(outcome.accuracy), f"{outcome.loss:.3f}", *params]


def _values(slot: "Slot") -> list[object]:
    return list(slot.last.params.values())


def _best_slots(slots: "Sequence[Slot]") -> "list[Slot]":
    from optuna.trial import TrialState

    complete = [slot for slot in slots if slot.last.state is TrialState.COMPLETE and slot.outcome]
    return sorted(complete, key=lambda slot: slot.score, reverse=True)[:_SHOWN]


def _timing(result: Mapping[str, Any]) -> str:
    epochs = f"{result['model_epochs']:,} model-epochs"
    if not result["trained_now"]:
        return f"Trained     {epochs}, all there already"
    rate = result["trained_now"] / result["seconds"]
    now = (
        ""
        if result["trained_now"] == result["model_epochs"]
        else (f", {result['trained_now']:,} of them now and here")
    )
    return f"Trained     {epochs}{now}, in {_duration(result['seconds'])}: {rate:.0f} a second"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def draw(
    rows: "Sequence[TrialRow]",
    importances: Mapping[str, float],
    result: Mapping[str, Any],
    folder: Path,
    log: Sequence[str],
) -> None:
    """The figures and the page."""
    from ihgnn_cli.report.tuning import draw_history, draw_importance
    from ihgnn_cli.report.tuning_curves import draw_curves
    from ihgnn_cli.report.tuning_page import write_page
    from ihgnn_cli.report.tuning_settings import draw_parallel, draw_slices

    figures = {
        "History": folder / "history.png",
        "Epoch by epoch": folder / "curves.png",
        "Parallel coordinates": folder / "parallel.png",
        "Slices": folder / "slices.png",
        "Importance": folder / "importance.png",
    }
    draw_history(rows, figures["History"])
    draw_curves(rows, figures["Epoch by epoch"])
    draw_parallel(rows, figures["Parallel coordinates"], log)
    draw_slices(rows, figures["Slices"], log)
    draw_importance(importances, figures["Importance"])
    final, best = result["final"], result["best"]
    test = final["test"]
    params = ", ".join(f"{name} {_shown(value)}" for name, value in best["params"].items())
    facts = [
        ("Data set", result["dataset"]),
        ("Best trial", f"{best['trial']}: {params}"),
        ("Its validation accuracy", f"{best['validation_accuracy']:.1%}"),
        (
            "Test accuracy of these settings",
            f"{test['accuracy']:.1%} of {counted(test['graphs'], 'graph')}, one run at epoch "
            f"{final['best_epoch']}, chosen on validation",
        ),
        ("Trials", ", ".join(f"{count:,} {name}" for name, count in result["trials"].items())),
        ("Chosen by", result["chosen_by"]),
        ("Search", f"{result['search']['sampler']}, pruner {result['search']['pruner']}"),
        ("Storage", result["storage"]),
        ("Data SHA-256", result["search"]["data_sha256"]),
        ("Command", result["provenance"]["command"]),
        ("Finished", result["finished"]),
    ]
    title = f"Search on {result['dataset']}"
    write_page(folder / PAGE, title, facts, rows, best=best["trial"], figures=figures)


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
