"""The trials of a search against their settings: as lines through all, and setting by setting."""

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ihgnn_cli.report.figures import literal, new_figure, save_figure
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
    names_of,
    say,
)
from ihgnn_cli.report.tuning_scales import Scale, accuracy_scale, make_scale, shortened

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

_COLORS = "viridis_r"  # from pale to dark, so that what is worse or earlier recedes
_GOLDEN = (math.sqrt(5) - 1) / 2
_LINES_APART, _POINTS_APART = 0.2, 0.5  # at one value of a list, where the next is 1 away
_AXIS_WIDTH, _PANEL_WIDTH, _LEAST_WIDTH = 1.35, 3.3, 6.4  # inches
_COLUMNS = 3
_MOST_LETTERS = 40  # below a panel, side by side


def draw_parallel(rows: Sequence[TrialRow], path: Path, log: Collection[str]) -> None:
    """Draw each trial as a line through its settings to its accuracy.

    Args:
        rows: the trials; those without an accuracy are left out.
        path: of the figure.
        log: settings whose axis is logarithmic.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    shown = measured(rows, COMPLETE, PRUNED)
    names = names_of(shown)
    figure = new_figure((max(_LEAST_WIDTH, 1.6 + _AXIS_WIDTH * (len(names) + 1)), 4.8))
    panel = figure.subplots()
    panel.set_axis_off()
    figure.suptitle("Settings and validation accuracy of each trial")
    if not shown:
        say(panel, NO_ACCURACY)
        save_figure(figure, path)
        return
    scales = [
        make_scale([row.params.get(name) for row in shown], log=name in log) for name in names
    ]
    scales.append(accuracy_scale([row.percent for row in shown]))
    colors = _colors(panel, [row.percent for row in shown])
    best = best_row(shown)
    legend: dict[str, Artist] = {}
    # What matters more is drawn later, above the rest.
    for row in sorted(shown, key=lambda row: (row is best, row.state == COMPLETE, row.percent)):
        values = [*(row.params.get(name) for name in names), row.percent]
        aside = _LINES_APART * _aside(row)
        heights = [
            scale.share(scale.place(value, aside))
            for scale, value in zip(scales, values, strict=True)
        ]
        told, width, alpha = TRAINED, *((1.4, 0.8) if len(shown) < MANY else (0.8, 0.5))
        if row is best:
            told = f"the best: {row.percent:.1f} % (trial {row.number})"
            width, alpha = 3.2, 1.0
        elif row.state == PRUNED:
            told, width, alpha = GIVEN_UP, 0.8, 0.7 if best is None else 0.3
        color = BEST_COLOR if row is best else colors.to_rgba(np.array(row.percent))
        panel.plot(range(len(heights)), heights, color=color, linewidth=width, alpha=alpha)
        if told not in legend:
            plain = BEST_COLOR if row is best else PLAIN_COLOR
            (legend[told],) = panel.plot([], [], color=plain, linewidth=width, alpha=alpha)
    for place, (name, scale) in enumerate(zip(names, scales, strict=False)):
        _draw_axis(panel, place, literal(shortened(name, 16)), scale)
    _draw_axis(panel, len(names), "validation\naccuracy in %", scales[-1])
    panel.set_xlim(-0.1, len(names) + 0.1)
    panel.set_ylim(-0.03, 1.03)
    figure.colorbar(colors, ax=panel, label="validation accuracy in %", fraction=0.05, pad=0.02)
    explain(figure, legend)
    save_figure(figure, path)


def draw_slices(rows: Sequence[TrialRow], path: Path, log: Collection[str]) -> None:
    """Draw the accuracy against each setting, a panel each, with later trials darker.

    Args:
        rows: the trials; those without an accuracy are left out.
        path: of the figure.
        log: settings whose axis is logarithmic.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    shown = measured(rows, COMPLETE, PRUNED)
    names = names_of(shown)
    columns = min(_COLUMNS, max(1, len(names)))
    lines = max(1, math.ceil(len(names) / columns))
    figure = new_figure((max(_LEAST_WIDTH, 1.2 + _PANEL_WIDTH * columns), 1.1 + 2.9 * lines))
    grid = figure.subplots(lines, columns, squeeze=False)
    panels = list(grid.ravel())
    figure.suptitle("Validation accuracy against each setting")
    legend: dict[str, Artist] = {}
    colors = _colors(panels[0], [row.number for row in shown])
    for panel, name in zip(panels, names, strict=False):
        scale = make_scale([row.params.get(name) for row in shown], log=name in log)
        for state, marker, told in ((PRUNED, "v", GIVEN_UP), (COMPLETE, "o", TRAINED)):
            some = [row for row in shown if row.state == state]
            if not some:
                continue
            (legend[told],) = panel.plot([], [], marker, markersize=5, color=PLAIN_COLOR)
            panel.scatter(
                [scale.place(row.params.get(name), _POINTS_APART * _aside(row)) for row in some],
                [row.percent for row in some],
                c=[row.number for row in some],
                cmap=colors.cmap,
                norm=colors.norm,
                marker=marker,
                s=24 if len(shown) < MANY else 12,
                alpha=0.9 if state == COMPLETE else 0.4,
                linewidths=0,
            )
        _draw_ticks(panel, scale)
        panel.set_xlabel(literal(shortened(name, 30)))
        frame_accuracy(panel, shown)
    for panel in grid[:, 1:].ravel():
        panel.set_ylabel("")
        panel.tick_params(labelleft=False)  # the same as on the left
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    if names:
        bar = figure.colorbar(colors, ax=panels, label="trial", pad=0.02)
        bar.ax.locator_params(axis="y", integer=True, min_n_ticks=1)
    else:
        say(panels[0], NO_ACCURACY)
    explain(figure, legend)
    save_figure(figure, path)


def _colors(panel: "Axes", values: Sequence[float]) -> "PathCollection":
    """What gives each of these values its colour, and a colour bar its scale."""
    low, high = min(values, default=0), max(values, default=0)
    around = 0.5 if low == high else 0.0
    return panel.scatter([], [], c=[], cmap=_COLORS, vmin=low - around, vmax=high + around)


def _draw_axis(panel: "Axes", place: int, name: str, scale: Scale) -> None:
    """Draw one of the upright axes, its words on a ground that keeps the lines off them."""
    panel.plot([place, place], [0, 1], color="black", linewidth=0.9, zorder=3)
    for tick, told in scale.ticks:
        height = scale.share(tick)
        panel.plot([place - 0.02, place], [height] * 2, color="black", linewidth=0.9, zorder=3)
        panel.text(
            place - 0.035,
            height,
            literal(told),
            ha="right",
            va="center",
            fontsize=8,
            zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
        )
    panel.text(place, -0.06, name, ha="center", va="top", fontsize=9)


def _draw_ticks(panel: "Axes", scale: Scale) -> None:
    if scale.log:
        panel.set_xscale("log")
    slanted = len(scale.ticks) * max(len(told) + 1 for _, told in scale.ticks) > _MOST_LETTERS
    panel.set_xticks(
        [place for place, _ in scale.ticks],
        [literal(told) for _, told in scale.ticks],
        rotation=30 if slanted else 0,
        ha="right" if slanted else "center",
        fontsize=8,
    )
    panel.set_xticks([], minor=True)
    panel.set_xlim(*scale.limits)


def _aside(row: TrialRow) -> float:
    """From -1/2 to 1/2, evenly spread over the trials and the same for a trial each time."""
    return (row.number * _GOLDEN + 0.5) % 1 - 0.5
