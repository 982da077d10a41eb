"""What commands show about conformal prediction sets."""

from typing import TYPE_CHECKING

from ihgnn_cli.cli import console
from ihgnn_cli.inference.conformal import too_few
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from ihgnn_cli.inference.conformal import Coverage, Covered
    from ihgnn_cli.models.conformal import Conformal


def show_coverage(found: "Coverage", also: str) -> None:
    """The coverage and size of prediction sets, overall and by homophily bin.

    `also` is what the calibration graphs have chosen (`api.evaluate.also_chosen`).
    """
    shown = console.table(
        f"Coverage of prediction sets at {found.threshold.alpha:g} by graph homophily β",
        *("", "Graphs", "Coverage", "95 % interval", "Classes"),
    )
    for each in found.bins:
        shown.add_row(f"{each.low:.1f} to {each.high:.1f}", *_cells(each.sets))
    shown.add_section()
    shown.add_row("all", *_cells(found.overall))
    console.show(shown)
    console.show(described(found.threshold, also))


def described(found: "Conformal", also: str) -> str:
    """What is in a set, and how far the thresholds can be relied on."""
    if not found.threshold:
        return "A set holds all classes."
    return (
        f"A set holds the classes with a probability of at least {found.threshold:.3f}, and always "
        f"the most probable one ({counted(found.graphs, 'calibration graph')})."
        f"{_selection(also)}"
    )


def warn_of_few(found: "Conformal") -> None:
    """Warn if there are too few calibration graphs."""
    few = too_few(found.graphs, found.alpha)
    if few:
        console.warn(few)


def _selection(also: str) -> str:
    """What a choice on the same graphs does to the guarantee."""
    if not also:
        return ""
    return f" The same graphs chose {also}, so coverage can be below what was asked for."


def _cells(found: "Covered") -> list[str]:
    return [
        f"{found.graphs:,}",
        f"{found.coverage:.1%}",
        f"{found.coverage_low:.1%} - {found.coverage_high:.1%}",
        f"{found.mean_size:.2f}",
    ]
