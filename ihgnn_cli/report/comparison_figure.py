"""A figure of the methods on one data set: our accuracies with their spread, and the paper's."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.errors import InputError
from ihgnn_cli.report.comparison_notes import best_reference, majority
from ihgnn_cli.report.figures import legend_below, literal, new_figure, save_figure, shortened
from ihgnn_cli.report.layout import spread
from ihgnn_cli.studies.comparison import Comparison, Entry
from ihgnn_cli.studies.paper import REFERENCE
from ihgnn_cli.studies.signal.references import MAJORITY

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Blue and red also differ in lightness, and the marks in shape, for colour-blind readers.
_OURS, _REFERENCE, _PAPER, _PLAIN = "#4c72b0", "#1f3a6e", "#c44e52", "#6b6b6b"
_WITHOUT_NETWORK = "#55a868"
_LONGEST = 60  # characters of the reason why a method was not run
_ROW, _FRAME = 0.36, 1.9  # inches


def draw_comparison(comparison: Comparison, dataset: str, path: Path, *, budget: str) -> None:
    """Draw the methods on a data set, the most accurate on top and IHGNN darker.

    A dot with error bars is our mean ± standard deviation over folds, a diamond the paper's mean.
    Lines are the majority class and the best classifier without a network.
    Methods that were not run are listed last, with the reason.

    Raises:
        InputError: there is no result on this data set, or the suffix is not one of a figure.
    """
    entries = sorted(comparison.on(dataset), key=_accuracy, reverse=True)
    if not entries:
        raise InputError(f"There is no result on {dataset} to draw.")
    figure = new_figure((7.6, _FRAME + _ROW * len(entries)))
    panel = figure.subplots()
    legend = _draw_rows(panel, entries)
    share = majority(comparison, dataset)
    if share is not None:
        legend[f"majority class: {100 * share:.1f} %"] = panel.axvline(
            100 * share, color=_PLAIN, linestyle=":", linewidth=1.4, zorder=1
        )
    best = best_reference(comparison, dataset)
    if best is not None and best.title != MAJORITY:
        legend[f"{best.title}: {100 * best.mean:.1f} %"] = panel.axvline(
            100 * best.mean, color=_WITHOUT_NETWORK, linestyle="-.", linewidth=1.2, zorder=1
        )
    panel.set_yticks(range(len(entries)), [literal(each.cell.title) for each in entries])
    for label, entry in zip(panel.get_yticklabels(), entries, strict=True):
        label.set_fontweight("bold" if entry.cell.model == REFERENCE else "normal")
    panel.set_ylim(len(entries) - 0.4, -0.6)  # the first on top
    panel.set_xlabel("test accuracy in %")
    panel.grid(axis="x", alpha=0.25)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_title(literal(f"{shortened(dataset, 37)} (budget {shortened(budget, 20)})"))
    legend_below(figure, legend, columns=2)
    save_figure(figure, path)


def _draw_rows(panel: "Axes", entries: Sequence[Entry]) -> "dict[str, Artist]":
    """Draw the results of each method, and return the entries of the legend."""
    legend: dict[str, Artist] = {}
    for place, entry in enumerate(entries):
        cell = entry.cell
        if cell.paper is not None and cell.paper.mean is not None:
            (legend["paper, mean"],) = panel.plot(
                100 * cell.paper.mean,
                place,
                "D",
                markersize=6,
                markerfacecolor="white",
                markeredgecolor=_PAPER,
                markeredgewidth=1.5,
                linestyle="none",
                zorder=3,
            )
        if cell.mean is not None and cell.std is not None:
            color = _REFERENCE if cell.model == REFERENCE else _OURS
            dot = panel.errorbar(
                100 * cell.mean,
                place,
                xerr=100 * cell.std,
                fmt="o",
                markersize=6,
                color=color,
                capsize=3,
                linewidth=2.2 if cell.model == REFERENCE else 1.4,
                zorder=2,
            )
            legend.setdefault("ours, mean ± std over folds", dot)  # type: ignore[arg-type]
            star = "*" if entry.against is not None and entry.against.significant else ""
            _say(panel, place, spread(cell.mean, cell.std) + star, color)
            if star:
                (mark,) = panel.plot([], [], linestyle="none", marker="$*$", color=color)
                legend.setdefault("differs from IHGNN (Holm's p < 0.05)", mark)
        else:
            _say(panel, place, shortened(cell.refused or "not run", _LONGEST), _PLAIN)
    return legend


def _say(panel: "Axes", place: int, words: str, color: str) -> None:
    """Write to the right of a row, outside the axes."""
    panel.annotate(
        literal(words),
        (1.0, place),
        (6, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=color,
        annotation_clip=False,
    )


def _accuracy(entry: Entry) -> float:
    return -1.0 if entry.cell.mean is None else entry.cell.mean
