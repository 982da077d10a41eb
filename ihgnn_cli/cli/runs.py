"""`ihgnn runs`: list the run folders below a directory."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ihgnn_cli.cli.help import argument, examples, option
from ihgnn_cli.cli.options import AsJson
from ihgnn_cli.settings import checked

if TYPE_CHECKING:
    from rich.table import Table

    from ihgnn_cli.studies.runs import RunFolder

_SETTINGS_WIDTH = 16

EXAMPLES = examples(
    ("ihgnn runs", "The folders in runs, the newest first"),
    ("ihgnn runs experiments --sort accuracy", "Those of another folder, the best first"),
)


def runs(
    folder: Annotated[Path | None, argument("DIR", "Folder to search.", default="runs")] = None,
    sort: Annotated[
        str, option("Output", "date (newest first) or accuracy (highest first).", metavar="NAME")
    ] = "date",
    as_json: AsJson = False,
) -> None:
    """List trainings, searches and cross-validations with their accuracy.

    Settings are shown where they differ from the defaults of the model.
    """
    from ihgnn_cli.cli import console
    from ihgnn_cli.studies.runs import Kind, Order, State, find_runs
    from ihgnn_cli.training.folder import RUNS

    order = checked("sort", sort, Order)
    parent = folder or RUNS
    found = find_runs(parent, order) if folder is not None or parent.is_dir() else []
    if as_json:
        shown = [
            {**asdict(each), "date": each.date.isoformat(timespec="seconds")} for each in found
        ]
        console.show_json({"folder": parent, "runs": shown})
        return
    if not found:
        console.show(f"There are no runs in {parent}.")
        console.next_steps(("train",))
        return
    console.show(_table(found))
    for each in found:
        if each.state == State.DAMAGED:
            console.note(f"{each.folder} is damaged: {console.plain(each.problem)}.")
    # Of the folders with a model, those that kept graphs for a test.
    ready = [
        each
        for each in found
        if each.state == State.FINISHED and None not in (each.epoch, each.accuracy)
    ]
    left = [each for each in found if each.state == State.RESUMABLE and each.kind == Kind.TRAIN]
    console.next_steps(
        *(("evaluate", each.folder) for each in ready[:1]),
        *(("train", "--resume", each.folder) for each in left[:1]),
    )


def _table(found: "list[RunFolder]") -> "Table":
    from ihgnn_cli.cli import console

    heads = ("Folder", "Kind", "Data", "Model", "Accuracy", "Epoch", "Date", "State", "Settings")
    table = console.table(None, *heads)
    for column in table.columns:
        if column.header not in ("Accuracy", "Epoch"):
            column.justify = "left"
    table.columns[-1].no_wrap, table.columns[-1].min_width = False, _SETTINGS_WIDTH
    for each in found:
        table.add_row(
            console.plain(str(each.folder)),
            f"{each.kind}, {each.procedure}" if each.procedure else each.kind,
            console.plain(each.dataset),
            console.plain(each.model),
            _accuracy(each),
            "" if each.epoch is None else str(each.epoch),
            _date(each),
            each.state,
            console.plain(_settings(each)),
        )
    return table


def _accuracy(each: "RunFolder") -> str:
    if each.accuracy is None:
        return ""
    spread = "" if each.accuracy_std is None else f" ± {100 * each.accuracy_std:.1f}"
    return f"{100 * each.accuracy:.1f}{spread} %"


def _date(each: "RunFolder") -> str:
    return f"{each.date.astimezone():%Y-%m-%d %H:%M}"


def _settings(each: "RunFolder") -> str:
    from ihgnn_cli.studies.crossval.protocol import shown

    settings = {**each.differing, **each.found}
    return ", ".join(f"{key} {shown(value)}" for key, value in settings.items())
