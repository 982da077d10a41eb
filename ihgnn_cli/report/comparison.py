"""Comparisons of methods with each other and with the paper, as tables and CSV rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ihgnn_cli.report.comparison_notes import (
    MARKS_EXPLAINED,
    TEST_EXPLAINED,
    findings,
    majority,
    notes,
    references,
    summary,
    untested,
)
from ihgnn_cli.report.layout import (
    Box,
    Mark,
    Row,
    Table,
    auc_text,
    p_value,
    percent,
    signed,
    spread,
)
from ihgnn_cli.report.tables import write_rows
from ihgnn_cli.studies.comparison import (
    Against,
    Cell,
    Comparison,
    Entry,
    Place,
    ReferenceCell,
)
from ihgnn_cli.studies.paper import REFERENCE, PaperCell, model_title, printed
from ihgnn_cli.studies.ranks import Ranks
from ihgnn_cli.studies.signal.references import MAJORITY
from ihgnn_cli.studies.statistics import LEVEL

_NONE, _NOT_RUN = "–", "not run"
_SHORT = {"IMDB-BINARY": "IMDB-B", "IMDB-MULTI": "IMDB-M"}  # the paper's abbreviations
_MARKS = {Place.BEST: Mark.BEST, Place.TIED: Mark.TIED, Place.OTHER: Mark.PLAIN}
_LEGEND = (
    "Test accuracy in %, mean ± standard deviation over folds (dividing by n). Below it, the "
    "paper's number and, in brackets, ours minus the paper's in points. "
    f"{MARKS_EXPLAINED} * differs significantly from IHGNN (see below)."
)
_BESIDE = {
    "OOM": " OOM: out of memory in the paper.",
    "†": " † cited by the paper from Errica et al. (2020).",
}


def accuracy_table(comparison: Comparison, name: str, title: str) -> Table:
    """Methods in rows and data sets in columns, as in the paper; ours above the paper's number.

    Args:
        comparison: the results.
        name: for labels, such as `table1`.
        title: such as "Table 1: classification accuracy".
    """
    marked = {dataset: _separates(comparison.on(dataset)) for dataset in comparison.datasets}
    rows = _method_rows(
        comparison,
        lambda dataset, model: _box(
            comparison.of(dataset, model), dataset, model, marked=marked[dataset]
        ),
    )
    beside = " ".join(box.beside for row in rows for box in row.boxes)
    shares = [majority(comparison, dataset) for dataset in comparison.datasets]
    known = [references(comparison, dataset) for dataset in comparison.datasets]
    if any(known):
        rows += _reference_rows(known, _accuracy_box)
    elif any(share is not None for share in shares):  # no references were tested
        boxes = tuple(Box(_NONE if share is None else percent(share)) for share in shares)
        rows.append(Row(MAJORITY, boxes, apart=True))
    return Table(
        name=name,
        title=title,
        corner="method",
        heads=_heads(comparison),
        rows=tuple(rows),
        legend=_LEGEND + "".join(_BESIDE[each] for each in _BESIDE if each in beside),
        notes=(*findings(comparison), *notes(comparison)),
        summary=summary(comparison),
    )


def _heads(comparison: Comparison) -> tuple[str, ...]:
    """The titles of the columns."""
    return tuple(_SHORT.get(dataset, dataset) for dataset in comparison.datasets)


def _method_rows(comparison: Comparison, box: Callable[[str, str], Box]) -> list[Row]:
    """One row for each method, from the box of a data set and a model."""
    return [
        Row(
            model_title(model),
            tuple(box(dataset, model) for dataset in comparison.datasets),
            apart=model == REFERENCE,
        )
        for model in comparison.models
    ]


def _reference_rows(
    known: Sequence[dict[str, ReferenceCell]], box: Callable[[ReferenceCell | None], Box]
) -> list[Row]:
    """One row for each classifier without a network."""
    titles = dict.fromkeys(title for each in known for title in each)
    return [
        Row(title, tuple(box(each.get(title)) for each in known), apart=not place)
        for place, title in enumerate(titles)
    ]


def _accuracy_box(found: ReferenceCell | None) -> Box:
    return Box(_NONE if found is None else spread(found.mean, found.std))


def significance_table(comparison: Comparison, name: str) -> Table:
    """Each method minus IHGNN, and below it the p-values: Holm-corrected and uncorrected."""
    others = replace(
        comparison, models=tuple(each for each in comparison.models if each != REFERENCE)
    )
    rows = _method_rows(others, lambda dataset, model: _p_box(comparison.of(dataset, model)))
    return Table(
        name=f"{name}-significance",
        title="Significance of the difference from IHGNN",
        corner="method",
        heads=_heads(comparison),
        rows=tuple(rows),
        legend=(
            "Accuracy minus that of IHGNN in points, paired over graphs, ± standard error. Below "
            "it, the p-value after Holm's correction over the methods of a data set, and in "
            "brackets the uncorrected one. "
            f"* the corrected p-value is below {LEVEL:g}, and the difference is larger than two "
            f"standard errors. {TEST_EXPLAINED}"
        ),
        notes=untested(comparison),
    )


def auc_table(comparison: Comparison, name: str) -> Table | None:
    """ROC-AUC of methods and references, balanced accuracy below; `None` if no result has them."""
    rows = _method_rows(
        comparison, lambda dataset, model: _auc_box(_cell(comparison, dataset, model))
    )
    known = [references(comparison, dataset) for dataset in comparison.datasets]
    rows += _reference_rows(known, _auc_box)
    if all(box.text == _NONE for row in rows for box in row.boxes):
        return None
    return Table(
        name=f"{name}-auc",
        title="ROC-AUC and balanced accuracy",
        corner="method",
        heads=_heads(comparison),
        rows=tuple(rows),
        legend=(
            "ROC-AUC on the test graphs (0.5: no better than chance), mean over folds and runs. "
            "Below it, balanced accuracy in %: the mean recall of the classes."
        ),
    )


def _cell(comparison: Comparison, dataset: str, model: str) -> Cell | None:
    entry = comparison.of(dataset, model)
    return None if entry is None else entry.cell


def _auc_box(found: Cell | ReferenceCell | None) -> Box:
    if found is None or found.balanced_accuracy is None:
        return Box(_NONE)
    # Without a fold that tests two classes, ROC-AUC is not defined.
    return Box(auc_text(found.roc_auc), percent(found.balanced_accuracy))


def rank_table(ranks: Ranks, name: str) -> Table:
    """The average ranks, the best first."""
    rows = (
        Row(title, (Box(f"{rank:.2f}"),))
        for title, rank in zip(ranks.titles, ranks.average, strict=True)
    )
    return Table(
        name=f"{name}-ranks",
        title="Average ranks over the data sets",
        corner="method",
        heads=("average rank",),
        rows=tuple(rows),
        legend=(
            "1 is the highest mean accuracy on a data set; equal means share the average of their "
            "ranks."
        ),
        notes=(ranks.sentence,),
    )


def write_cells(path: Path, comparison: Comparison, *, budget: str) -> None:
    """Write a CSV file: a row per method and data set, shares in percent, ROC-AUC from 0 to 1.

    Raises:
        IhgnnError: the file cannot be written.
    """
    head = ["dataset", "model", "title", "mean", "std", "paper_mean", "paper_std"]
    head += ["paper_out_of_memory", "paper_taken_over", "difference", "difference_from_ihgnn"]
    head += ["paired_difference", "paired_error", "t", "p", "p_holm", "best", "tied_with_best"]
    head += ["balanced_accuracy", "roc_auc", "folds", "runs", "epochs", "graphs", "chosen_by"]
    head += ["majority", "budget", "not_run", "not_tested"]
    write_rows(path, head, _csv_rows(comparison, budget))


def _csv_rows(comparison: Comparison, budget: str) -> Iterator[list[object]]:
    for entry in comparison.entries:
        cell, test, paper = entry.cell, entry.against, entry.cell.paper
        run = cell.mean is not None
        yield [
            *(cell.dataset, cell.model, cell.title, _digits(cell.mean), _digits(cell.std)),
            _digits(paper.mean if paper else None),
            _digits(paper.std if paper else None),
            *((_flag(paper.out_of_memory), _flag(paper.taken_over)) if paper else ("", "")),
            _digits(cell.difference),
            *_test_values(test),
            *(_flag(entry.place == Place.BEST), _flag(entry.place == Place.TIED)),
            _digits(cell.balanced_accuracy),
            "" if cell.roc_auc is None else round(cell.roc_auc, 8),
            *((len(cell.folds), cell.runs, cell.epochs, cell.graphs) if run else [""] * 4),
            cell.chosen_by or "",
            *(_digits(cell.majority_share), budget, cell.refused or ""),
            (test.untested or "") if test else "",
        ]


def _test_values(test: Against | None) -> list[object]:
    if test is None:
        return [""] * 6
    gap = test.gap
    known = (None, None) if gap is None or gap.error is None else (gap.difference, gap.error)
    return [_digits(test.difference), *map(_digits, known), test.t, test.p, test.p_holm]


def _separates(entries: Sequence[Entry]) -> bool:
    """Whether a method is significantly worse than the highest mean."""
    return any(each.place == Place.OTHER for each in entries if each.cell.mean is not None)


def _box(entry: Entry | None, dataset: str, model: str, *, marked: bool) -> Box:
    paper = _paper_text(printed(dataset, model) if entry is None else entry.cell.paper)
    if entry is None:
        return Box(_NONE, paper)
    cell = entry.cell
    if cell.mean is None or cell.std is None:
        return Box(_NOT_RUN, paper)
    difference = "" if cell.difference is None else f" ({signed(cell.difference)})"
    return Box(
        spread(cell.mean, cell.std),
        paper + difference,
        _MARKS[entry.place] if marked else Mark.PLAIN,
        starred=entry.against is not None and entry.against.significant,
    )


def _paper_text(paper: PaperCell | None) -> str:
    if paper is None:
        return _NONE
    if paper.mean is None or paper.std is None:
        return "OOM"
    return spread(paper.mean, paper.std) + ("†" if paper.taken_over else "")


def _p_box(entry: Entry | None) -> Box:
    test = None if entry is None else entry.against
    if test is None or test.p is None or test.p_holm is None:
        return Box(_NONE)
    gap = test.gap
    text = signed(test.difference or 0.0)
    if gap is not None and gap.error is not None:
        text = f"{signed(gap.difference)} ± {percent(gap.error)}"
    beside = f"{p_value(test.p_holm)} ({p_value(test.p)})"
    return Box(text, beside, starred=test.significant)


def _digits(share: float | None) -> object:
    """In percent, without the noise of floating point."""
    return "" if share is None else round(100 * share, 6)


def _flag(value: bool) -> str:
    return "true" if value else "false"
