"""Compares finished cross-validations of several methods with each other and with the paper.

On each data set, the tests of all methods against IHGNN form one family, and Holm's method corrects
the p-values within it. The tests of all methods against the one with the highest mean form another
family, which decides what is highlighted. There is no correction across data sets: each is a
separate question.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.crossval.result import CrossvalResult
from ihgnn_cli.studies.paper import (
    REFERENCE,
    PaperCell,
    model_title,
    paper_datasets,
    printed,
    table1_models,
    table2_models,
)
from ihgnn_cli.studies.statistics import UNTESTED, Method, Paired, family, paired


class Place(StrEnum):
    """Where a method stands on a data set; a difference inside the noise decides nothing."""

    BEST = "best"
    """The highest mean, and significantly better than every other method."""
    TIED = "tied"
    """The highest mean or not significantly worse than it, if no method is `BEST`."""
    OTHER = ""
    """Significantly worse than the highest mean, not run, or the only method."""


@dataclass(frozen=True)
class ReferenceCell:
    """A classifier without a network on the folds of a data set."""

    title: str
    mean: float
    std: float
    balanced_accuracy: float | None = None
    roc_auc: float | None = None


@dataclass(frozen=True)
class Cell:
    """One method on one data set: a finished cross-validation, or the reason there is none."""

    dataset: str
    model: str
    """Its key in the registry."""
    title: str
    """Its name in the paper."""
    paper: PaperCell | None
    """`None` if the paper does not report this method on this data set."""
    refused: str | None = None
    """Why it was not run, such as "does not fit: about 96 GB"."""
    mean: float | None = None
    std: float | None = None
    """Over the folds, divided by n as in the protocol."""
    balanced_accuracy: float | None = None
    """This and `roc_auc` are means over folds and runs."""
    roc_auc: float | None = None
    accuracies: tuple[float, ...] = ()
    """Test accuracy of each fold: the mean over its runs."""
    folds: tuple[int, ...] = ()
    """The fold numbers."""
    test_graphs: tuple[int, ...] = ()
    """Number of test graphs in each fold."""
    graphs: int = 0
    """Number of graphs in the data set."""
    runs: int = 0
    """Final runs per fold."""
    repeats: int = 1
    """Partitions that the folds belong to."""
    epochs: int | None = None
    """Epochs per training."""
    majority_share: float | None = None
    chosen_by: str | None = None
    data_sha256: str | None = None
    splits_sha256: str | None = None
    graph_accuracies: tuple[float | None, ...] = ()
    """Of each graph, over runs and repeats; empty if only those of folds are known."""
    references: tuple[ReferenceCell, ...] = ()
    """Classifiers without a network on the same folds; empty if they were not tested."""
    best_reference: str | None = None
    """The title of the best one of those that read what networks read."""
    gap: Paired | None = None
    """The comparison with the best reference; `None` if there is none."""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's mean."""
        if self.mean is None or self.paper is None or self.paper.mean is None:
            return None
        return self.mean - self.paper.mean

    @property
    def method(self) -> Method:
        """Its accuracies, for comparisons."""
        return Method(self.accuracies, self.graph_accuracies)


@dataclass(frozen=True)
class Against:
    """A method's test against IHGNN on the same folds."""

    difference: float | None
    """The method's mean minus IHGNN's."""
    gap: Paired | None = None
    """Their comparison, corrected over all methods tested on this data set."""
    untested: str | None = None
    """Why there is no p-value."""

    @property
    def t(self) -> float | None:
        """The test statistic."""
        return None if self.gap is None else self.gap.t

    @property
    def p(self) -> float | None:
        """The uncorrected p-value."""
        return None if self.gap is None else self.gap.p

    @property
    def p_holm(self) -> float | None:
        """The corrected p-value."""
        return None if self.gap is None else self.gap.p_holm

    @property
    def significant(self) -> bool:
        """Whether the difference is significant (`paired`)."""
        return self.gap is not None and self.gap.significant


@dataclass(frozen=True)
class Entry:
    """A cell with its place and its test; no test for IHGNN itself and for methods not run."""

    cell: Cell
    place: Place
    against: Against | None


@dataclass(frozen=True)
class Comparison:
    """The cells of a table, which may be incomplete."""

    datasets: tuple[str, ...]
    models: tuple[str, ...]
    entries: tuple[Entry, ...]
    """By data set, then by method."""

    def of(self, dataset: str, model: str) -> Entry | None:
        """The entry of a method on a data set, if there is one."""
        for entry in self.entries:
            if (entry.cell.dataset, entry.cell.model) == (dataset, model):
                return entry
        return None

    def on(self, dataset: str) -> tuple[Entry, ...]:
        """The entries of a data set."""
        return tuple(entry for entry in self.entries if entry.cell.dataset == dataset)


def cell_of(result: CrossvalResult, model: str) -> Cell:
    """The cell of a finished cross-validation.

    Args:
        result: the result.
        model: the method's key, such as `gin` or `ihgnn:no-concat`.
    """
    references = result.references
    found: dict[str, Any] = {}
    if references is not None:
        best = references.best_method
        found = {
            "references": tuple(
                ReferenceCell(
                    each.title,
                    each.accuracy,
                    each.accuracy_std,
                    each.balanced_accuracy,
                    each.roc_auc,
                )
                for each in references.methods
            ),
            "best_reference": best.title,
            "gap": Paired(best.difference, best.error, best.p, best.p_holm, references.comparisons),
        }
    return Cell(
        dataset=result.dataset,
        model=model,
        title=model_title(model),
        paper=printed(result.dataset, model),
        mean=result.test_mean,
        std=result.test_std,
        balanced_accuracy=result.balanced_accuracy,
        roc_auc=result.roc_auc,
        accuracies=tuple(fold.test_mean for fold in result.folds),
        folds=tuple(fold.fold for fold in result.folds),
        test_graphs=tuple(fold.test_graphs for fold in result.folds),
        graphs=result.graphs,
        runs=len(result.runs),
        repeats=len(result.repeats),
        epochs=int(result.job["protocol"]["training"]["epochs"]),
        majority_share=result.majority_share,
        chosen_by=result.chosen_by,
        data_sha256=result.job["data_sha256"],
        splits_sha256=result.job["splits_sha256"],
        graph_accuracies=result.graph_accuracies,
        **found,
    )


def refused_cell(dataset: str, model: str, why: str) -> Cell:
    """The cell of a method that was not run on a data set."""
    return Cell(dataset, model, model_title(model), printed(dataset, model), refused=why)


def compare(
    cells: Sequence[Cell],
    *,
    datasets: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
) -> Comparison:
    """Rank the methods on each data set, and test them against IHGNN.

    Args:
        cells: at most one per method and data set; some may be missing.
        datasets: the columns, including those without a cell; default: those of the cells, in the
            paper's order.
        models: the rows, with the same default.

    Raises:
        InputError: two cells have the same method and data set.
    """
    by_place = {(cell.dataset, cell.model): cell for cell in cells}
    if len(by_place) < len(cells):
        twice = [each for each in by_place if [(c.dataset, c.model) for c in cells].count(each) > 1]
        raise InputError(f"There are two results for {twice[0][1]} on {twice[0][0]}. Give one.")
    if datasets is None:
        datasets = _ordered([cell.dataset for cell in cells], paper_datasets())
    if models is None:
        known = [*table1_models()[:-1], *table2_models()]  # IHGNN is the last of both
        models = _ordered([cell.model for cell in cells], known)
    entries: list[Entry] = []
    for dataset in datasets:
        here = [by_place[dataset, model] for model in models if (dataset, model) in by_place]
        places = _places(here)
        tests = _tests(here, by_place.get((dataset, REFERENCE)))
        entries += [Entry(cell, places[cell.model], tests.get(cell.model)) for cell in here]
    return Comparison(tuple(datasets), tuple(models), tuple(entries))


def against(cell: Cell, reference: Cell) -> Against:
    """Test a method against IHGNN, if both have the same folds of the same data.

    The p-value is not corrected for other comparisons.
    """
    if cell.mean is None or reference.mean is None:
        return Against(None, untested="one of the two was not run")
    difference = cell.mean - reference.mean
    untested = _obstacle(cell, reference)
    if untested is not None:
        return Against(difference, untested=untested)
    tested = sum(cell.test_graphs) / len(cell.test_graphs)
    gap = paired(cell.method, reference.method, tested / (cell.graphs - tested))
    if gap.p is None:
        return Against(difference, gap, UNTESTED)
    return Against(difference, gap)


def _obstacle(cell: Cell, reference: Cell) -> str | None:
    """Why two results cannot be compared fold by fold."""
    for what, one, other in (
        ("data", cell.data_sha256, reference.data_sha256),
        ("splits", cell.splits_sha256, reference.splits_sha256),
    ):
        if one is None or other is None:
            return f"the {what} of one of the two are unknown"
        if one != other:
            return f"its {what} differ from IHGNN's, so the folds are not the same graphs"
    if (cell.folds, cell.test_graphs) != (reference.folds, reference.test_graphs):
        return "its folds differ from IHGNN's"
    if len(cell.folds) < 2:
        return "there are fewer than two folds"
    if not 0 < sum(cell.test_graphs) / len(cell.test_graphs) < cell.graphs:
        return "the numbers of training and test graphs are unknown"
    return None


def _tests(cells: Sequence[Cell], reference: Cell | None) -> dict[str, Against]:
    """The tests of the other methods on one data set, one family for Holm's correction."""
    if reference is None or reference.mean is None:
        return {}
    found = {
        cell.model: against(cell, reference)
        for cell in cells
        if cell.model != reference.model and cell.mean is not None
    }
    gaps = {model: test.gap for model, test in found.items() if test.gap is not None}
    corrected = dict(zip(gaps, family(list(gaps.values())), strict=True))
    return {model: replace(test, gap=corrected.get(model)) for model, test in found.items()}


def _places(cells: Sequence[Cell]) -> dict[str, Place]:
    """Where each method stands; a single method has no place."""
    places = dict.fromkeys((cell.model for cell in cells), Place.OTHER)
    means = {cell.model: cell.mean for cell in cells if cell.mean is not None}
    if len(means) < 2:
        return places
    best = max(means, key=lambda model: means[model])
    (highest,) = (cell for cell in cells if cell.model == best)
    tests = _tests(cells, highest)
    tied = [model for model, test in tests.items() if not test.significant]
    places[best] = Place.TIED if tied else Place.BEST
    return places | dict.fromkeys(tied, Place.TIED)


def _ordered(found: Sequence[str], known: Sequence[str]) -> list[str]:
    """Unique names: first the known ones in their order, then the others as given."""
    once = list(dict.fromkeys(found))
    return [
        *(each for each in known if each in once),
        *(each for each in once if each not in known),
    ]
