"""The trials of a search epoch by epoch: what a pruner decides by."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.report.figures import new_figure, save_figure
from ihgnn_cli.report.tuning import (
    BEST_COLOR,
    COMPLETE,
    GIVEN_UP,
    MANY,
    NO_ACCURACY,
    PLAIN_COLOR,
    PRUNED,
    TRAINED,
    TrialRow,
    best_row,
    explain,
    frame_accuracy,
    measured,
    say,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist

_TRIAL = "#4c72b0"


def draw_curves(rows: Sequence[TrialRow], path: Path) -> None:
    """Draw the best validation accuracy up to each epoch, a line a trial.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    figure = new_figure((8.0, 4.4))
    panel = figure.subplots()
    best = best_row(rows)
    legend: dict[str, Artist] = {}
    shown = [row for row in measured(rows, PRUNED, COMPLETE) if row.curve]
    thin = 1.0 if len(shown) < MANY else 0.5
    for row in shown:
        chosen = best is not None and row.number == best.number
        color = PLAIN_COLOR if row.state == PRUNED else _TRIAL
        (line,) = panel.plot(
            range(1, len(row.curve) + 1),
            [100 * each for each in accumulate(row.curve, max)],
            color=BEST_COLOR if chosen else color,
            linewidth=2.4 if chosen else thin,
            alpha=1.0 if chosen else 0.45,
            zorder=3 if chosen else 2,
        )
        if row.state == PRUNED:
            panel.plot(
                len(row.curve), 100 * max(row.curve), "v", markersize=4, color=color, alpha=0.7
            )
        told = f"the best (trial {row.number})" if chosen else TRAINED
        legend.setdefault(GIVEN_UP if row.state == PRUNED else told, line)
    panel.locator_params(axis="x", integer=True, min_n_ticks=1)
    panel.set_xlabel("epoch")
    frame_accuracy(panel, [])
    if not shown:
        panel.set_yticks([])
        say(panel, NO_ACCURACY)
    panel.set_title("Best validation accuracy up to each epoch")
    explain(figure, legend)
    save_figure(figure, path)
