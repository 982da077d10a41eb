"""The steps of `ihgnn reproduce`: run the cells with a display, then write the files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ihgnn_cli.cli import console, reproduce_display
from ihgnn_cli.cli.reproduce_request import Request
from ihgnn_cli.files import writing
from ihgnn_cli.report.reproduction import (
    Written,
    write_chart,
    write_comparison,
    write_homophily,
)
from ihgnn_cli.report.reproduction_charts import sensitivity_chart, sweep_chart
from ihgnn_cli.studies import reproduction
from ihgnn_cli.studies.comparison import cell_of, compare, refused_cell
from ihgnn_cli.studies.crossval.result import CrossvalResult
from ihgnn_cli.studies.reproduction import Cell, Outcome, Setup, run_cells
from ihgnn_cli.studies.subjects import Subject
from ihgnn_cli.studies.workers import local_workers
from ihgnn_cli.training.config import RunConfig
from ihgnn_cli.training.loading import load_data
from ihgnn_cli.words import counted

_TITLES = {
    Subject.TABLE1: "Classification accuracy of IHGNN and other methods (the paper's Table 1)",
    Subject.TABLE2: "Classification accuracy of IHGNN and its ablations (the paper's Table 2)",
}


@dataclass(frozen=True)
class Made:
    """The outcome of the command."""

    request: Request
    written: Written
    done: tuple[Outcome, ...]
    statement: str

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """Cells that failed for another reason than memory."""
        return tuple(each for each in self.done if each.failed)

    def as_plain(self) -> dict[str, Any]:
        """The outcome for JSON."""
        ranks = self.written.ranks
        return {
            "subject": self.request.subject,
            "budget": self.request.budget.name,
            "statement": self.statement,
            "ranks": ranks if isinstance(ranks, str | None) else asdict(ranks),
            "tables": [asdict(table) for table in self.written.tables],
            "cells": [
                {
                    "dataset": each.dataset,
                    "model": each.cell.model,
                    "layers": each.cell.layers,
                    "refused": each.refused,
                    "result": None if each.result is None else each.result.as_plain(),
                }
                for each in self.done
            ],
            "files": [str(path) for path in self.written.files],
        }


def run(request: Request, *, quiet: bool) -> Made:
    """Run what is missing, and write the files.

    Raises:
        InputError: a model or data set is not known.
        IhgnnError: a file cannot be written.
    """
    match request.subject:
        case Subject.TABLE1 | Subject.TABLE2:
            return _comparison(request, quiet)
        case Subject.FIGURE1:
            return _figure1(request)
        case Subject.SENSITIVITY:
            return _sensitivity(request, quiet)
        case Subject.SWEEP:
            return _sweep(request, quiet)


def show(made: Made) -> None:
    """Show the paths of the files, which have all details, and last the table."""
    console.show(f"Budget {made.request.budget.name}: {made.statement}")
    console.show("Files with all details")
    for path in made.written.files:
        console.show(f"  {path}")
    for each in made.failures:
        console.warn(f"{each.cell} {each.refused}")
    if made.done:
        console.next_steps(("runs", made.request.folder))
    console.show("")
    reproduce_display.show_table(made.written.tables[0])


def _comparison(request: Request, quiet: bool) -> Made:
    models, setup = request.models, replace(_setup(request), references=True)
    done = _run(reproduction.cells(request.datasets, models), setup, quiet)
    cells = [
        refused_cell(each.dataset, each.cell.model, each.refused or "")
        if each.result is None
        else cell_of(each.result, each.cell.model)
        for each in done
    ]
    names = tuple(dict.fromkeys(each.dataset for each in done))
    statement = request.budget.statement(folds=_folds(done), repeats=request.repeats)
    written = write_comparison(
        compare(cells, datasets=names, models=models),
        _results(done),
        request.folder,
        name=request.subject,
        title=_TITLES[request.subject],
        budget=request.budget.name,
        statement=statement,
    )
    return Made(request, written, tuple(done), statement)


def _sensitivity(request: Request, quiet: bool) -> Made:
    models, budget = request.models, request.budget
    setup = replace(_setup(request), runs=budget.seeds)
    layers = reproduction.SENSITIVITY_LAYERS
    done = _run(reproduction.cells(request.datasets, models, layers), setup, quiet)
    statement = budget.statement(folds=_folds(done), runs=budget.seeds, repeats=request.repeats)
    chart = sensitivity_chart(done, models, budget, statement)
    written = write_chart(chart, _results(done), request.folder)
    return Made(request, written, tuple(done), statement)


def _sweep(request: Request, quiet: bool) -> Made:
    models, budget = request.models, request.budget
    setup = replace(_setup(request), folds=budget.sweep_folds, runs=1)
    betas = {
        f"synthetic:homophily={beta:g},graphs={budget.sweep_graphs},seed={request.seed}": beta
        for beta in budget.sweep_betas
    }
    done = _run(reproduction.cells(betas, models), setup, quiet)
    statement = budget.statement(folds=budget.sweep_folds, runs=1, repeats=request.repeats)
    caption = (
        f"{statement} {counted(budget.sweep_graphs, 'synthetic graph')} at each homophily "
        f"(docs/synthetic.md), seed {request.seed}."
    )
    chart = sweep_chart(done, models, betas, budget, caption)
    written = write_chart(chart, _results(done), request.folder)
    return Made(request, written, tuple(done), statement)


def _figure1(request: Request) -> Made:
    statement = "nothing is trained, so the budget does not matter."
    datasets = [
        load_data(RunConfig().with_values({"dataset": each}), request.where)[1]
        for each in request.datasets
    ]
    written = write_homophily(
        datasets, request.folder, budget=request.budget.name, statement=statement
    )
    return Made(request, written, (), statement)


def _setup(request: Request) -> Setup:
    device = request.device or "auto"
    # Report an unavailable device or an invalid seed at once.
    local_workers(device, request.workers)
    RunConfig().with_values({"seed": request.seed})
    return Setup(
        budget=request.budget,
        root=request.folder / "cells",
        where=request.where,
        device=device,
        workers=request.workers,
        seed=request.seed,
        repeats=request.repeats,
        splits=request.splits,
        command=request.command,
    )


def _run(cells: Sequence[Cell], setup: Setup, quiet: bool) -> list[Outcome]:
    """Run all cells with a display."""
    with writing(setup.root):  # before the first training
        setup.root.mkdir(parents=True, exist_ok=True)
    if not quiet:
        console.note(
            f"{counted(len(cells), 'cell')} with the budget {setup.budget.name}; in {setup.root}"
        )
    with reproduce_display.watching(len(cells), quiet=quiet) as watcher:
        return run_cells(cells, setup, watcher)


def _results(done: Sequence[Outcome]) -> list[CrossvalResult]:
    """The results that exist."""
    return [each.result for each in done if each.result is not None]


def _folds(done: Sequence[Outcome]) -> int | str | None:
    """The number of outer folds of a partition: `--splits` may have more or fewer."""
    found = sorted({len(each.folds) // len(each.repeats) for each in _results(done)})
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else next(iter(found), None)
