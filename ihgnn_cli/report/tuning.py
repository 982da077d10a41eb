"""The trials of a search for settings: as a table, one after the other, and what mattered.

`tuning_settings` draws them against their settings, `tuning_page` puts all on one page.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.report.figures import literal, new_figure, save_figure
from ihgnn_cli.report.tables import write_rows
from ihgnn_cli.report.tuning_scales import Value, shortened

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"
STATES = (COMPLETE, PRUNED, FAILED, "running", "waiting")
BEST_COLOR, PLAIN_COLOR = "#dd8452", "#6b6b6b"
MANY = 100  # trials from which on marks are smaller and lines thinner
NO_ACCURACY = "No trial came to an accuracy"
TRAINED, GIVEN_UP = "trained to its end", "given up on the way"
_TRIAL, _FAILED = "#4c72b0", "#c44e52"
_BOTTOM = 0.04  # of the panel's height: where failed trials stand


@dataclass(frozen=True)
class TrialRow:
    """What became of one trial; `None` where there is nothing to tell."""

    number: int
    state: str
    """One of `STATES`."""
    accuracy: float | None
    """On validation, as a share; of a pruned trial the one at which it was given up."""
    loss: float | None
    params: dict[str, Value]
    curve: tuple[float, ...]
    """Accuracy on validation epoch by epoch, mean over the splits."""
    best_epoch: float | None
    seconds: float | None
    tries: int
    failure: str | None

    @property
    def percent(self) -> float:
        """The accuracy in percent, NaN where there is none."""
        return math.nan if self.accuracy is None else 100 * self.accuracy


def names_of(rows: Sequence[TrialRow]) -> list[str]:
    """The settings that were searched, in the order in which they appear."""
    return list(dict.fromkeys(name for row in rows for name in row.params))


def measured(rows: Sequence[TrialRow], *states: str) -> list[TrialRow]:
    """The trials in one of these states that have an accuracy, by number."""
    found = [row for row in rows if row.state in states and math.isfinite(row.percent)]
    return sorted(found, key=lambda row: row.number)


def best_row(rows: Sequence[TrialRow]) -> TrialRow | None:
    """The best of those that were trained to their end: by accuracy, loss, the earlier one."""
    return max(measured(rows, COMPLETE), key=_score, default=None)


def write_trials(path: Path, rows: Sequence[TrialRow]) -> None:
    """Write one row a trial, one column a setting; what is not known is empty."""
    names = names_of(rows)
    head = ["trial", "state", "validation_accuracy", "validation_loss", *names]
    head += ["best_epoch", "seconds", "tries", "failure"]
    cells = (
        [
            *(row.number, row.state, row.accuracy, row.loss),
            *(_cell(row.params.get(name)) for name in names),
            *(row.best_epoch, row.seconds, row.tries, row.failure),
        ]
        for row in rows
    )
    write_rows(path, head, cells)


def draw_history(rows: Sequence[TrialRow], path: Path) -> None:
    """Draw the accuracy of each trial by its number, and the best that there was so far.

    Only trials that were trained to their end compete for the best. Failed ones have no accuracy:
    they stand at the bottom.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    figure = new_figure((8.0, 4.4))
    panel = figure.subplots()
    size = 5.0 if len(rows) < MANY else 3.0
    legend: dict[str, Artist] = {}
    complete, pruned = measured(rows, COMPLETE), measured(rows, PRUNED)
    if complete:
        (legend[TRAINED],) = panel.plot(
            *_points(complete), "o", markersize=size, color=_TRIAL, alpha=0.75
        )
        numbers, heights = _best_so_far(complete, max(row.number for row in rows))
        best = max(complete, key=_score)
        told = f"the best so far, in the end {best.percent:.1f} % (trial {best.number})"
        (legend[told],) = panel.step(
            numbers, heights, where="post", color=BEST_COLOR, linewidth=1.6, zorder=1
        )
        panel.plot(*_points([best]), "*", markersize=14, color=BEST_COLOR, markeredgecolor="white")
    if pruned:
        (legend[GIVEN_UP],) = panel.plot(
            *_points(pruned), "v", markersize=size, color=PLAIN_COLOR, markerfacecolor="none"
        )
    failed = [row.number for row in rows if row.state == FAILED]
    if failed:
        (legend["failed"],) = panel.plot(
            failed,
            [_BOTTOM] * len(failed),
            "x",
            markersize=size + 1,
            color=_FAILED,
            transform=panel.get_xaxis_transform(),  # whatever the accuracies are
        )
    if rows:
        panel.set_xlim(min(row.number for row in rows) - 0.7, max(row.number for row in rows) + 0.7)
    panel.locator_params(axis="x", integer=True, min_n_ticks=1)
    panel.set_xlabel("trial")
    frame_accuracy(panel, [*complete, *pruned])
    if not (complete or pruned):
        panel.set_yticks([])
        say(panel, NO_ACCURACY)
    panel.set_title(_counts(rows))
    explain(figure, legend)
    save_figure(figure, path)


def draw_importance(importances: Mapping[str, float], path: Path) -> None:
    """Draw how much each setting mattered, the most important one on top.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    ranked = sorted(importances.items(), key=lambda item: item[1], reverse=True)
    figure = new_figure((7.2, 1.3 + 0.42 * max(1, len(ranked))))
    panel = figure.subplots()
    panel.set_title("Importance of each setting for validation accuracy")
    panel.spines[["top", "right"]].set_visible(False)
    if ranked:
        names = [literal(shortened(name, 30)) for name, _ in ranked]
        bars = panel.barh(range(len(ranked)), [share for _, share in ranked], 0.7, color=_TRIAL)
        panel.bar_label(bars, fmt="%.2f", padding=4, fontsize=9)
        panel.set_yticks(range(len(ranked)), names)
        panel.set_ylim(len(ranked) - 0.5, -0.5)  # the first on top
        panel.set_xlim(0, max(1.12 * ranked[0][1], 0.01))  # room for the numbers
        panel.set_xlabel("importance, as a share of all")
        panel.grid(axis="x", alpha=0.25)
        panel.set_axisbelow(True)
    else:
        panel.set_axis_off()
        say(panel, "Too few trials to tell")
    save_figure(figure, path)


def frame_accuracy(panel: "Axes", rows: Sequence[TrialRow]) -> None:
    """Give a panel its axis of accuracies, with room around them also where all are alike."""
    if rows:
        low, high = min(row.percent for row in rows), max(row.percent for row in rows)
        room = high - low
        panel.set_ylim(low - max(0.12 * room, 1.0), high + max(0.08 * room, 1.0))
    panel.set_ylabel("validation accuracy in %")
    panel.grid(axis="y", alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def explain(figure: "Figure", legend: "Mapping[str, Artist]") -> None:
    """Put the legend below the panels."""
    if legend:
        figure.legend(
            list(legend.values()),
            list(legend),
            loc="outside lower center",
            ncols=2,  # as many as fit
            frameon=False,
            fontsize=9,
        )


def say(panel: "Axes", words: str) -> None:
    """Write in the middle of a panel why there is nothing else in it."""
    panel.text(
        0.5, 0.5, words, transform=panel.transAxes, ha="center", va="center", color=PLAIN_COLOR
    )


def _best_so_far(complete: Sequence[TrialRow], end: int) -> tuple[list[int], list[float]]:
    """The corners of the line, which goes on to the last trial."""
    numbers, heights = [row.number for row in complete], []
    highest = -math.inf
    for row in complete:
        highest = max(highest, row.percent)
        heights.append(highest)
    return [*numbers, end], [*heights, highest]


def _score(row: TrialRow) -> tuple[float, float, int]:
    lossless = row.loss is None or math.isnan(row.loss)
    return row.percent, -math.inf if lossless else -(row.loss or 0.0), -row.number


def _points(rows: Sequence[TrialRow]) -> tuple[list[int], list[float]]:
    return [row.number for row in rows], [row.percent for row in rows]


def _counts(rows: Sequence[TrialRow]) -> str:
    counts = {state: sum(row.state == state for row in rows) for state in STATES}
    told = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    return f"Trials: {told}" if told else "No trials"


def _cell(value: Value | None) -> object:
    return str(value).lower() if isinstance(value, bool) else value
