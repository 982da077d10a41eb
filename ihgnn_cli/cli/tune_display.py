"""What `ihgnn tune` shows: progress, and at the end tables and figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ihgnn_cli.api.tune import states_in_words
from ihgnn_cli.api.tune import told as told_of
from ihgnn_cli.cli import console
from ihgnn_cli.models.registry import DEFAULT_MODEL, find_model
from ihgnn_cli.report.tuning_report import PAGE
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.studies.places import Places
    from ihgnn_cli.studies.tuning.conductor import Sight
    from ihgnn_cli.studies.tuning.search import Search
    from ihgnn_cli.studies.tuning.slots import Slot
    from ihgnn_cli.training.stack import Epoch

_SHOWN = 5
"""Trials in a table: the best ones, and the running ones that are furthest."""


def tell_begin(search: "Search", places: "Places", total: int, stack: int, folder: Path) -> None:
    """Say what the search will do."""
    space = "; ".join(f"{name} {part}" for name, part in search.space.parts.items())
    inner = len(search.inner)
    splits = "" if inner == 1 else f" × {inner} inner folds"
    config = search.config
    title = "" if config.model_name == DEFAULT_MODEL else f"{config.spec.title} on "
    console.note(
        f"{title}{search.dataset.name}: {counted(total, 'trial')}{splits}, "
        f"{search.config.training.epochs} epochs each ({search.sampler}, pruner {search.pruner}); "
        f"{counted(len(places.devices), 'worker')} on {places.first.type}, up to {stack} together; "
        f"in {folder}\nSearched: {space}"
    )


@contextmanager
def progress(epochs: int, *, quiet: bool) -> "Iterator[Callable[[Sight], None]]":
    """A live table in a terminal, otherwise a line per change, on standard error."""
    if quiet:
        yield _warn
    elif console.err.is_terminal and not console.err.is_dumb_terminal:
        with console.work_bar("trial-epochs") as update:

            def show_sight(sight: "Sight") -> None:
                _warn(sight)
                settled = sum(slot.settled for slot in sight.slots) * epochs
                done = min(settled + sum(sight.running.values()), sight.total * epochs)
                update(done, sight.total * epochs, _live_table(sight, epochs))

            yield show_sight
    else:
        reported = -1

        def tell(sight: "Sight") -> None:
            nonlocal reported
            _warn(sight)
            settled = sum(slot.settled for slot in sight.slots)
            if settled > reported:
                reported = settled
                console.note(f"{settled:,} of {sight.total:,} trials: {told_of(sight.slots)}")

        yield tell


def _warn(sight: "Sight") -> None:
    if sight.dead:
        console.warn("A worker was killed from outside. Its trials are trained again.")
    if sight.lost:
        console.note(f"{counted(sight.lost, 'trial')} of a dead process: tried again.")
    if sight.smaller:
        console.warn(
            f"Memory is too small for {counted(sight.smaller, 'trial')} together: smaller stacks."
        )


def _live_table(sight: "Sight", epochs: int) -> Table:
    """The best trials, and those that run in this process."""
    here = {slot.last.number: slot for slot in sight.slots}
    running = sorted(
        ((epoch, number) for number, epoch in sight.running.items() if number in here),
        key=lambda each: (-each[0], each[1]),
    )
    shown = _trial_table(told_of(sight.slots), sight.slots, "Epoch")
    for slot in _best_slots(sight.slots):
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
    """A bar in a terminal, otherwise a line, for the training of the best settings."""
    text = f"trial {trial} is best on validation; its settings are now trained and tested"
    if quiet:
        yield lambda _epoch, _best: None
    elif console.err.is_terminal and not console.err.is_dumb_terminal:
        with console.work_bar("epochs") as update:
            yield lambda epoch, _best: update(epoch.epoch, epochs, text)
    else:

        def tell(epoch: "Epoch", _best: "Epoch") -> None:
            if epoch.epoch == 1:  # a finished training is not repeated
                console.note(f"{text[0].upper()}{text[1:]}.")

        yield tell


def show(result: Mapping[str, Any], slots: "Sequence[Slot]", folder: Path) -> None:
    """The result as tables and sentences."""
    show_best(slots)
    final = result["final"]
    test, validation = final["test"], final["validation"]
    console.show(f"Test accuracy {test['accuracy']:.1%}", style="bold")
    console.show(
        f"One run of the best settings on {counted(test['graphs'], 'test graph')}; 95 % interval "
        f"{test['accuracy_low']:.1%} to {test['accuracy_high']:.1%}; majority class "
        f"{test['majority_share']:.1%}. Epoch {final['best_epoch']}, chosen on "
        f"{counted(validation['graphs'], 'validation graph')} ({validation['accuracy']:.1%}). "
        f"Trials are compared by {result['chosen_by']}; no trial saw the test graphs."
    )
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


def show_best(slots: "Sequence[Slot]") -> None:
    """Show the best trials."""
    shown = _trial_table("Best trials by validation accuracy in %", slots, "Seconds")
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
        return f"Trained     {epochs}, all by earlier commands"
    rate = result["trained_now"] / result["seconds"]
    now = (
        ""
        if result["trained_now"] == result["model_epochs"]
        else (f", {result['trained_now']:,} of them by this command")
    )
    return f"Trained     {epochs}{now}, in {_duration(result['seconds'])}: {rate:.0f} per second"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"
