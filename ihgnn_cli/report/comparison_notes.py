"""What results beside each other say and do not say, in sentences."""

from collections.abc import Sequence

from ihgnn_cli.report.layout import percent, signed
from ihgnn_cli.studies.comparison import Cell, Comparison, Entry, Place
from ihgnn_cli.studies.paper import REFERENCE
from ihgnn_cli.words import counted

TEST_EXPLAINED = (
    "Each method is tested against IHGNN with the corrected resampled t-test of Nadeau and Bengio "
    "on their differences fold by fold, which are correlated because folds share training graphs: "
    "the variance has the factor 1/n + n_test/n_train instead of 1/n (n folds, two-sided, n - 1 "
    "degrees of freedom). The p-values of one data set are corrected by Holm's method, and nothing "
    "is corrected over data sets; with few and small folds only large differences are found, so a "
    "large p is no sign of equality."
)
PAPER_EXPLAINED = (
    "The paper's numbers are as printed. Its text describes nested selection, but the authors' "
    "published script for IHGNN chooses the configuration by mean test accuracy, which tends to "
    "give more than a user gets; how the numbers of the other methods were chosen is not known."
)


def findings(comparison: Comparison) -> tuple[str, ...]:
    """What the results say of IHGNN, in sentences that can be counted."""
    told = []
    compared = [
        (dataset, [each for each in comparison.on(dataset) if each.cell.mean is not None])
        for dataset in comparison.datasets
    ]
    full = [
        (dataset, here)
        for dataset, here in compared
        if len(here) > 1 and any(each.cell.model == REFERENCE for each in here)
    ]
    if full:
        ahead = sum(
            each.place == Place.BEST and each.cell.model == REFERENCE
            for _, here in full
            for each in here
        )
        papers = [_ahead_in_paper(here) for _, here in full]
        known = [each for each in papers if each is not None]
        told.append(
            f"IHGNN has the highest mean of the methods that were run, or shares it, on {ahead} of "
            f"{counted(len(full), 'data set')}"
            + (
                f"; by the paper's numbers for these on {sum(known)} of {len(known)}."
                if known
                else "."
            )
        )
    tests = [each.against for each in comparison.entries if each.against is not None]
    tested = [each for each in tests if each.p_holm is not None]
    if tested:
        found = [each.difference or 0.0 for each in tested if each.significant]
        told.append(
            f"Of {counted(len(tested), 'comparison')} with IHGNN on the same folds, a method is "
            f"significantly below it in {sum(each < 0 for each in found)} and above it in "
            f"{sum(each > 0 for each in found)}."
        )
    differences = [
        each.cell.difference for each in comparison.entries if each.cell.difference is not None
    ]
    if differences:
        below = sum(each < 0 for each in differences)
        told.append(
            f"Of {counted(len(differences), 'number')} that the paper has too, ours "
            f"{'is' if below == 1 else 'are'} below it in {below}; the mean difference is "
            f"{signed(sum(differences) / len(differences))} points."
        )
    return tuple(told)


def notes(comparison: Comparison) -> tuple[str, ...]:
    """How the numbers came about, and what they do not show."""
    cells = [entry.cell for entry in comparison.entries if entry.cell.mean is not None]
    told = []
    if cells:
        told.append(_protocol(cells))
        told.append(_splits(comparison))
        told.append(PAPER_EXPLAINED)
    below = _below_majority(comparison)
    if below:
        told.append(f"No better than always naming the commonest class: {below}.")
    refused = [entry.cell for entry in comparison.entries if entry.cell.refused is not None]
    if refused:
        told.append(
            "Not run: "
            + "; ".join(f"{each.title} on {each.dataset} ({each.refused})" for each in refused)
            + "."
        )
    missing = len(comparison.datasets) * len(comparison.models) - len(cells) - len(refused)
    if missing:
        told.append(
            f"{counted(missing, 'place')} of the table {'has' if missing == 1 else 'have'} no "
            "result."
        )
    return tuple(told)


def _protocol(cells: Sequence[Cell]) -> str:
    epochs = [cell.epochs for cell in cells if cell.epochs is not None]
    chosen = sorted({cell.chosen_by for cell in cells if cell.chosen_by})
    rule = f", epoch and configuration by {' or '.join(chosen)}" if chosen else ""
    return (
        f"Ours is nested cross-validation: {_range([len(cell.folds) for cell in cells], 'fold')}, "
        f"{_range([cell.runs for cell in cells], 'final run')} a fold averaged, "
        f"{_range(epochs, 'epoch')} a training{rule}; test graphs choose nothing."
    )


def _splits(comparison: Comparison) -> str:
    several = [
        dataset
        for dataset in comparison.datasets
        if len({e.cell.splits_sha256 for e in comparison.on(dataset) if e.cell.mean is not None})
        > 1
    ]
    told = (
        f"Methods have different folds on {', '.join(several)}"
        if several
        else "All methods of a data set have the same folds"
    )
    return f"{told}. Unless they were read from a file of splits, they are not those of the paper."


def _below_majority(comparison: Comparison) -> str:
    told = []
    for dataset in comparison.datasets:
        share = majority(comparison, dataset)
        low = [
            each.cell.title
            for each in comparison.on(dataset)
            if share is not None and each.cell.mean is not None and each.cell.mean <= share
        ]
        if low and share is not None:
            told.append(f"on {dataset} ({percent(share)} %) {', '.join(low)}")
    return "; ".join(told)


def untested(comparison: Comparison) -> tuple[str, ...]:
    """Which methods have no p-value, and why."""
    return tuple(
        f"{each.cell.title} on {each.cell.dataset} has no p-value: {each.against.untested}."
        for each in comparison.entries
        if each.against is not None and each.against.untested is not None
    )


def _ahead_in_paper(here: Sequence[Entry]) -> bool | None:
    """Whether IHGNN has the highest number of these in the paper; `None` if it has none."""
    cells = {each.cell.model: each.cell.paper for each in here}
    means = {key: cell.mean for key, cell in cells.items() if cell and cell.mean is not None}
    if REFERENCE not in means or len(means) < 2:
        return None
    return means[REFERENCE] == max(means.values())


def majority(comparison: Comparison, dataset: str) -> float | None:
    """The share of the commonest class of a data set, if a result tells it."""
    shares = (entry.cell.majority_share for entry in comparison.on(dataset))
    return next((share for share in shares if share is not None), None)


def _range(numbers: Sequence[int], noun: str) -> str:
    if not numbers:
        return f"an unknown number of {noun}s"
    low, high = min(numbers), max(numbers)
    return counted(low, noun) if low == high else f"{low:,} to {counted(high, noun)}"
