"""Accuracy as a function of a number (K, homophily), with one line per data set or model."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from ihgnn_cli.errors import InputError
from ihgnn_cli.report.figures import literal, new_figure, save_figure, shortened
from ihgnn_cli.report.layout import Box, Row, Table, percent
from ihgnn_cli.report.tables import write_rows
from ihgnn_cli.studies.paper import REFERENCE, model_title

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Okabe and Ito's colours for colour-blind readers, without the yellow, which is too pale for lines,
# and with two darker ones. Markers, and dashes from the tenth line on, distinguish lines too.
_COLORS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#000000",
    "#e69f00",
    "#7a5195",
    "#7f3f10",
)
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
_DASHES = ("-", "--", "-.")
_PLAIN = "#6b6b6b"


class Spread(StrEnum):
    """What the band around a line shows."""

    STD = "std"
    RANGE = "range"

    def describe(self, over: str) -> str:
        """A description for the legend, such as over `seeds` or `folds`."""
        if self == Spread.STD:
            return f"mean ± standard deviation over {over} (dividing by n)"
        return f"mean, lowest and highest over {over}"


@dataclass(frozen=True)
class Curve:
    """One line; accuracies are shares of 1."""

    label: str
    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    """The lower end of the band."""
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if len({len(each) for each in (self.x, self.mean, self.low, self.high)}) > 1:
            raise ValueError(f"the sequences of the curve {self.label} differ in length")


@dataclass(frozen=True)
class Chart:
    """Lines in one panel, with their description."""

    name: str
    """For labels and files, such as `sensitivity`."""
    title: str
    x_name: str
    """Name of the number on the x axis, such as K."""
    lines: str
    """What each line stands for, such as `data set`."""
    band: str
    """What low and high mean, from `Spread.describe`."""
    curves: tuple[Curve, ...]
    budget: str
    statement: str
    log2: bool = False
    """Whether the x axis is logarithmic with base 2."""
    chance: float | None = None
    """Accuracy of random guessing, as a share."""
    notes: tuple[str, ...] = ()


def make_curve(
    label: str, points: Sequence[tuple[float, Sequence[float]]], spread: Spread
) -> Curve:
    """A line through the means of samples, such as one accuracy per seed.

    Args:
        label: the name of the line.
        points: each x with its accuracies, as shares of 1.
        spread: what the band shows.

    Raises:
        InputError: a point has no accuracies.
    """
    points = sorted(points, key=lambda point: point[0])
    empty = [x for x, samples in points if not samples]
    if empty:
        raise InputError(f"{label} has no accuracy at {empty[0]:g}. Run it there, or leave it out.")
    means = [fmean(samples) for _, samples in points]
    if spread == Spread.STD:
        away = [pstdev(samples) for _, samples in points]
        low = [mean - each for mean, each in zip(means, away, strict=True)]
        high = [mean + each for mean, each in zip(means, away, strict=True)]
    else:
        low, high = ([f(samples) for _, samples in points] for f in (min, max))
    return Curve(label, tuple(x for x, _ in points), tuple(means), tuple(low), tuple(high))


def curve_table(chart: Chart) -> Table:
    """One row per line and one column per value of x; the highest mean of a row is bold."""
    values = sorted({x for curve in chart.curves for x in curve.x})
    rows = tuple(
        Row(curve.label, tuple(_box(curve, value) for value in values)) for curve in chart.curves
    )
    chance = "" if chart.chance is None else f" Random guessing gives {percent(chart.chance)} %."
    return Table(
        name=chart.name,
        title=chart.title,
        corner=f"{chart.lines} / {chart.x_name}",
        heads=tuple(f"{value:.4g}" for value in values),
        rows=rows,
        budget=chart.budget,
        statement=chart.statement,
        legend=f"Test accuracy in %, {chart.band}; the highest mean of a row is bold.{chance}",
        notes=chart.notes,
    )


def write_points(path: Path, chart: Chart) -> None:
    """Write a CSV file with one row per point; accuracies are in percent.

    Raises:
        IhgnnError: the file cannot be written.
    """
    head = [chart.lines.replace(" ", "_"), chart.x_name.replace(" ", "_")]
    head += ["mean", "low", "high", "band", "budget"]
    rows = (
        [curve.label, x, *(round(100 * each, 6) for each in band), chart.band, chart.budget]
        for curve in chart.curves
        for x, *band in zip(curve.x, curve.mean, curve.low, curve.high, strict=True)
    )
    write_rows(path, head, rows)


def draw_chart(chart: Chart, path: Path) -> None:
    """Draw the lines with their bands; the legend is sorted by the last mean.

    Raises:
        InputError: there is no line, or the suffix is not one of a figure.
    """
    if not any(curve.x for curve in chart.curves):
        raise InputError("There is no result to draw.")
    figure = new_figure((8.6, 4.8))
    panel = figure.subplots()
    legend = [(curve, _draw(panel, place, curve)) for place, curve in enumerate(chart.curves)]
    legend.sort(key=lambda each: each[0].mean[-1] if each[0].mean else -1.0, reverse=True)
    handles: list[Artist] = [line for _, line in legend]
    labels = [literal(shortened(curve.label, 24)) for curve, _ in legend]
    if chart.chance is not None:
        handles.append(
            panel.axhline(100 * chart.chance, color=_PLAIN, linestyle=":", linewidth=1.4, zorder=1)
        )
        labels.append(f"random guessing: {percent(chart.chance)} %")
    if chart.log2:
        _double(panel, chart.curves)
    panel.set_xlabel(literal(chart.x_name))
    panel.set_ylabel("test accuracy in %")
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(literal(chart.title))
    panel.set_title(literal(f"{chart.band}; budget {shortened(chart.budget, 20)}"), fontsize=9)
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=9)
    save_figure(figure, path)


def _draw(panel: "Axes", place: int, curve: Curve) -> "Artist":
    color = _COLORS[place % len(_COLORS)]
    (line,) = panel.plot(
        curve.x,
        [100 * each for each in curve.mean],
        marker=_MARKS[place % len(_MARKS)],
        markersize=5,
        linestyle=_DASHES[place // len(_COLORS) % len(_DASHES)],
        linewidth=2.6 if curve.label == model_title(REFERENCE) else 1.6,
        color=color,
        zorder=3,
    )
    panel.fill_between(
        curve.x,
        [100 * each for each in curve.low],
        [100 * each for each in curve.high],
        color=color,
        alpha=0.12,
        linewidth=0,
        zorder=2,
    )
    return line


def _double(panel: "Axes", curves: Sequence[Curve]) -> None:
    values = sorted({x for curve in curves for x in curve.x})
    panel.set_xscale("log", base=2)
    panel.set_xticks(values, [f"{value:.4g}" for value in values])
    panel.minorticks_off()


def _box(curve: Curve, value: float) -> Box:
    if value not in curve.x:
        return Box("–")
    place = curve.x.index(value)
    mean, low, high = curve.mean[place], curve.low[place], curve.high[place]
    return Box(percent(mean), f"{percent(low)} to {percent(high)}")
