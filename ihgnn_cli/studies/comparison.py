"""Compares finished cross-validations of several methods with each other and with the paper.

On each data set, the tests of all methods against IHGNN form one family, and Holm's method corrects
the p-values within it. There is no correction across data sets: each is a separate question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.fold_scores import Paired
from ihgnn_cli.studies.paper import (
    REFERENCE,
    PaperCell,
    model_title,
    paper_datasets,
    printed,
    table1_models,
    table2_models,
)
from ihgnn_cli.studies.significance import LEVEL, corrected_t_test, holm

_EQUAL = 1e-9  # means closer than this count as equal


class Place(StrEnum):
    """A method's rank by mean accuracy on a data set; equal means share a rank."""

    BEST = "best"
    SECOND = "second"
    """The next mean below the best, even if several methods share the best."""
    OTHER = ""


@dataclass(frozen=True)
class ReferenceCell:
    """A classifier without a network on the folds of a data set."""

    title: str
    mean: float
    std: float


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
    epochs: int | None = None
    """Epochs per training."""
    majority_share: float | None = None
    chosen_by: str | None = None
    data_sha256: str | None = None
    splits_sha256: str | None = None
    references: tuple[ReferenceCell, ...] = ()
    """Classifiers without a network on the same folds; none in older results."""
    gap: Paired | None = None
    """The difference from the best reference, paired over graphs."""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's mean."""
        if self.mean is None or self.paper is None or self.paper.mean is None:
            return None
        return self.mean - self.paper.mean


@dataclass(frozen=True)
class Against:
    """A method's test against IHGNN on the same folds."""

    difference: float | None
    """The method's mean minus IHGNN's."""
    t: float | None
    p: float | None
    p_holm: float | None
    """Corrected over all methods tested on this data set."""
    untested: str | None
    """Why there is no p-value."""

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is below the level."""
        return self.p_holm is not None and self.p_holm < LEVEL


@dataclass(frozen=True)
class Entry:
    """A cell with its rank and its test; no test for IHGNN itself and for methods not run."""

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


def cell_of(result: Mapping[str, Any], model: str) -> Cell:
    """The cell of a finished cross-validation.

    Args:
        result: the content of `result.json`.
        model: the method's key, such as `gin` or `ihgnn:no-concat`.

    Raises:
        InputError: the result is incomplete or damaged.
    """
    try:
        folds, job = result["folds"], result["job"]
        return Cell(
            dataset=result["dataset"],
            model=model,
            title=model_title(model),
            paper=printed(result["dataset"], model),
            mean=float(result["test_mean"]),
            std=float(result["test_std"]),
            accuracies=tuple(float(fold["test_mean"]) for fold in folds),
            folds=tuple(int(fold["fold"]) for fold in folds),
            test_graphs=tuple(int(fold["test_graphs"]) for fold in folds),
            graphs=int(result["graphs"]),
            runs=len(result["runs"]),
            epochs=int(job["protocol"]["training"]["epochs"]),
            majority_share=float(result["majority_share"]),
            chosen_by=result.get("chosen_by"),
            data_sha256=job["data_sha256"],
            splits_sha256=job["splits_sha256"],
            **_references(result.get("references")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"This is not a valid crossval result for {model}: {error!r}. Remove it, and the same "
            "command creates it again."
        ) from error


def _references(found: Mapping[str, Any] | None) -> dict[str, Any]:
    if found is None:
        return {}
    listed = (
        ReferenceCell(each["title"], float(each["accuracy"]), float(each["accuracy_std"]))
        for each in found["methods"]
    )
    gap = Paired(float(found["difference"]), float(found["error"]))
    return {"references": tuple(listed), "gap": gap}


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
        return Against(None, None, None, None, "one of the two was not run")
    difference = cell.mean - reference.mean
    untested = _obstacle(cell, reference)
    if untested is not None:
        return Against(difference, None, None, None, untested)
    tested = sum(cell.test_graphs) / len(cell.test_graphs)
    share = tested / (cell.graphs - tested)
    found = corrected_t_test(cell.accuracies, reference.accuracies, share)
    if found is None:
        why = "the difference is the same in all folds, so its spread is unknown"
        return Against(difference, None, None, None, why)
    return Against(difference, found.t, found.p, None, None)


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
    """The tests on one data set, one family for Holm's correction."""
    if reference is None or reference.mean is None:
        return {}
    found = {
        cell.model: against(cell, reference)
        for cell in cells
        if cell.model != REFERENCE and cell.mean is not None
    }
    family = {model: test.p for model, test in found.items() if test.p is not None}
    corrected = dict(zip(family, holm(list(family.values())), strict=True))
    return {model: replace(test, p_holm=corrected.get(model)) for model, test in found.items()}


def _places(cells: Sequence[Cell]) -> dict[str, Place]:
    """The rank of each method; a single method has none."""
    places = dict.fromkeys((cell.model for cell in cells), Place.OTHER)
    means = {cell.model: cell.mean for cell in cells if cell.mean is not None}
    if len(means) < 2:
        return places
    best = max(means.values())
    below = [mean for mean in means.values() if mean < best - _EQUAL]
    for model, mean in means.items():
        if mean >= best - _EQUAL:
            places[model] = Place.BEST
        elif mean >= max(below) - _EQUAL:
            places[model] = Place.SECOND
    return places


def _ordered(found: Sequence[str], known: Sequence[str]) -> list[str]:
    """Unique names: first the known ones in their order, then the others as given."""
    once = list(dict.fromkeys(found))
    return [
        *(each for each in known if each in once),
        *(each for each in once if each not in known),
    ]
