"""Sentences on what a comparison shows and does not show."""

from collections.abc import Sequence
from dataclasses import dataclass

from ihgnn_cli.report.layout import percent, signed
from ihgnn_cli.studies.comparison import (
    Against,
    Cell,
    Comparison,
    Entry,
    Place,
    ReferenceCell,
)
from ihgnn_cli.studies.paper import REFERENCE
from ihgnn_cli.words import counted

TEST_EXPLAINED = (
    "Each method is tested against IHGNN with the corrected resampled t-test of Nadeau and Bengio "
    "on the differences per fold. These are correlated because folds share training graphs, so "
    "the variance has the factor 1/n + n_test/n_train instead of 1/n (n folds, two-sided, n - 1 "
    "degrees of freedom). The p-values of one data set are corrected by Holm's method; there is no "
    "correction across data sets. A difference within two standard errors over graphs is never "
    "called significant. With few and small folds the test finds only large differences, "
    "so a large p does not mean that two methods are equally good."
)
_EQUAL = 1e-9  # means closer than this count as equal
MARKS_EXPLAINED = (
    "Bold: the highest mean, if it is significantly better than every other method on the data set "
    "(the test below against each of them, Holm's correction over these comparisons). Otherwise "
    "the highest mean and all methods that are not significantly worse are underlined; nothing is "
    "marked where that would be all of them."
)
PAPER_EXPLAINED = (
    "The paper's numbers are as printed. Its text describes nested selection, but the authors' "
    "published script for IHGNN chooses the configuration by mean test accuracy, which tends to "
    "overestimate accuracy. How the numbers of the other methods were chosen is not known."
)


def summary(comparison: Comparison) -> tuple[str, ...]:
    """Sentences for the terminal: how to read the table, who is best, what differs."""
    sentences = ["Test accuracy in %; below it the paper's, and ours minus the paper's."]
    sentences += _ahead_and_different(comparison)
    behind = [
        each
        for each in comparison.entries
        if each.cell.model == REFERENCE and each.cell.gap and not each.cell.gap.above
    ]
    if behind:
        names = ", ".join(each.cell.dataset for each in behind)
        sentences.append(
            "IHGNN is not significantly better than the best classifier without a network (last "
            f"rows) on {names}."
        )
    return tuple(sentences)


def findings(comparison: Comparison) -> tuple[str, ...]:
    """What the results show about IHGNN, in numbers."""
    sentences = _ahead_and_different(comparison)
    differences = [
        each.cell.difference for each in comparison.entries if each.cell.difference is not None
    ]
    if differences:
        below = sum(each < 0 for each in differences)
        sentences.append(
            f"The paper has {len(differences):,} of these numbers; ours is lower in "
            f"{below}. The mean difference is {signed(sum(differences) / len(differences))} points."
        )
    return tuple(sentences)


def _ahead_and_different(comparison: Comparison) -> list[str]:
    """On how many data sets IHGNN is ahead, and how many methods differ from it."""
    sentences = []
    best = _best(comparison)
    if best is not None:
        text = f"IHGNN has the highest mean on {best.highest} of {counted(best.of, 'data set')}"
        if best.in_paper:
            text += f" (by the paper's numbers: {best.in_paper[0]} of {best.in_paper[1]})"
        where = f"{best.separable} of them" if best.separable else "none"
        sentences.append(f"{text}. It is significantly better than all others on {where}.")
    tests = _tests(comparison)
    if tests:
        found, number = _significant(tests), counted(len(tests), "comparison")
        better, worse = (str(each) if each else "none" for each in found)
        sentences.append(
            f"Of {number} on the same folds, the other method is significantly better than IHGNN "
            f"in {better} and significantly worse in {worse} (marked *)."
            if any(found)
            else f"No method differs significantly from IHGNN in {number} on the same folds."
        )
    return sentences


@dataclass(frozen=True)
class _Ahead:
    """On how many data sets IHGNN is ahead."""

    highest: int
    """By its mean."""
    separable: int
    """Significantly better than every other method."""
    of: int
    in_paper: tuple[int, int] | None
    """The same by the paper's means, and of how many."""


def _best(comparison: Comparison) -> _Ahead | None:
    compared = [
        [each for each in comparison.on(dataset) if each.cell.mean is not None]
        for dataset in comparison.datasets
    ]
    full = [
        here
        for here in compared
        if len(here) > 1 and any(each.cell.model == REFERENCE for each in here)
    ]
    if not full:
        return None
    own = [(each, here) for here in full for each in here if each.cell.model == REFERENCE]
    highest = sum(
        (each.cell.mean or 0.0) >= max(other.cell.mean or 0.0 for other in here) - _EQUAL
        for each, here in own
    )
    separable = sum(each.place == Place.BEST for each, _ in own)
    known = [each for each in map(_ahead_in_paper, full) if each is not None]
    return _Ahead(highest, separable, len(full), (sum(known), len(known)) if known else None)


def _tests(comparison: Comparison) -> list[Against]:
    """The tests against IHGNN that have a p-value."""
    tests = [each.against for each in comparison.entries if each.against is not None]
    return [each for each in tests if each.p_holm is not None]


def _significant(tests: Sequence[Against]) -> tuple[int, int]:
    """In how many tests the other method is significantly better, and worse."""
    found = [each.difference or 0.0 for each in tests if each.significant]
    return sum(each > 0 for each in found), sum(each < 0 for each in found)


def notes(comparison: Comparison) -> tuple[str, ...]:
    """How the numbers were obtained, and their limits."""
    cells = [entry.cell for entry in comparison.entries if entry.cell.mean is not None]
    sentences = []
    if cells:
        sentences.append(_protocol(cells))
        sentences.append(_splits(comparison))
        sentences.append(PAPER_EXPLAINED)
    below = _below_majority(comparison)
    if below:
        sentences.append(f"No better than always predicting the majority class: {below}.")
    behind = _no_better_than_references(comparison)
    if behind:
        sentences.append(
            "Not significantly better than the best classifier without a network (the same test, "
            "Holm's correction over these classifiers; differences in points, paired over graphs, "
            f"± standard error): {behind}."
        )
    refused = [entry.cell for entry in comparison.entries if entry.cell.refused is not None]
    if refused:
        sentences.append(
            "Not run: "
            + "; ".join(f"{each.title} on {each.dataset} ({each.refused})" for each in refused)
            + "."
        )
    missing = len(comparison.datasets) * len(comparison.models) - len(cells) - len(refused)
    if missing:
        sentences.append(
            f"{counted(missing, 'cell')} of the table {'has' if missing == 1 else 'have'} no "
            "result."
        )
    return tuple(sentences)


def _protocol(cells: Sequence[Cell]) -> str:
    epochs = [cell.epochs for cell in cells if cell.epochs is not None]
    chosen = sorted({cell.chosen_by for cell in cells if cell.chosen_by})
    rule = f", epoch and configuration chosen by {' or '.join(chosen)}" if chosen else ""
    partitions = _range([cell.repeats for cell in cells], "partition")
    of = "" if all(cell.repeats == 1 for cell in cells) else f"{partitions} of "
    folds = _range([len(cell.folds) // cell.repeats for cell in cells], "fold")
    return (
        f"Our numbers come from nested cross-validation: {of}{folds}, the mean of "
        f"{_range([cell.runs for cell in cells], 'final run')} per fold, "
        f"{_range(epochs, 'epoch')} per run{rule}. No choice uses test graphs."
    )


def _splits(comparison: Comparison) -> str:
    several = [
        dataset
        for dataset in comparison.datasets
        if len({e.cell.splits_sha256 for e in comparison.on(dataset) if e.cell.mean is not None})
        > 1
    ]
    folds = (
        f"Methods use different folds on {', '.join(several)}"
        if several
        else "On each data set, all methods use the same folds"
    )
    return f"{folds}. Unless read from a file of splits, they are not the paper's folds."


def _below_majority(comparison: Comparison) -> str:
    sentences = []
    for dataset in comparison.datasets:
        share = majority(comparison, dataset)
        low = [
            each.cell.title
            for each in comparison.on(dataset)
            if share is not None and each.cell.mean is not None and each.cell.mean <= share
        ]
        if low and share is not None:
            sentences.append(f"on {dataset} ({percent(share)} %) {', '.join(low)}")
    return "; ".join(sentences)


def _no_better_than_references(comparison: Comparison) -> str:
    sentences = []
    for dataset in comparison.datasets:
        behind: dict[str, list[str]] = {}
        for each in (entry.cell for entry in comparison.on(dataset)):
            if each.gap is None or each.gap.above:
                continue
            error = "" if each.gap.error is None else f" ± {percent(each.gap.error)}"
            text = f"{each.title} ({signed(each.gap.difference)}{error})"
            # Results of different versions may have different references.
            best = next(of for of in each.references if of.title == each.best_reference)
            behind.setdefault(f"{best.title}, {percent(best.mean)} %", []).append(text)
        sentences += [f"on {dataset} ({best}) {', '.join(of)}" for best, of in behind.items()]
    return "; ".join(sentences)


def best_reference(comparison: Comparison, dataset: str) -> ReferenceCell | None:
    """The best classifier without a network on a data set, if a result has it."""
    listed = references(comparison, dataset)
    titles = (entry.cell.best_reference for entry in comparison.on(dataset))
    return next((listed[each] for each in titles if each in listed), None)


def references(comparison: Comparison, dataset: str) -> dict[str, ReferenceCell]:
    """The classifiers without a network of a data set by title, if a result has them."""
    found = (entry.cell.references for entry in comparison.on(dataset))
    return {each.title: each for each in next((each for each in found if each), ())}


def untested(comparison: Comparison) -> tuple[str, ...]:
    """The methods without a p-value, and why."""
    return tuple(
        f"{each.cell.title} on {each.cell.dataset} has no p-value: {each.against.untested}."
        for each in comparison.entries
        if each.against is not None and each.against.untested is not None
    )


def _ahead_in_paper(here: Sequence[Entry]) -> bool | None:
    """Whether IHGNN has the highest of these numbers in the paper; `None` if it has none."""
    cells = {each.cell.model: each.cell.paper for each in here}
    means = {key: cell.mean for key, cell in cells.items() if cell and cell.mean is not None}
    if REFERENCE not in means or len(means) < 2:
        return None
    return means[REFERENCE] == max(means.values())


def majority(comparison: Comparison, dataset: str) -> float | None:
    """The share of the majority class of a data set, if a result has it."""
    shares = (entry.cell.majority_share for entry in comparison.on(dataset))
    return next((share for share in shares if share is not None), None)


def _range(numbers: Sequence[int], noun: str) -> str:
    if not numbers:
        return f"an unknown number of {noun}s"
    low, high = min(numbers), max(numbers)
    return counted(low, noun) if low == high else f"{low:,} to {counted(high, noun)}"
