"""The critical-difference diagram: average ranks on a line, with a bar over methods that tie."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.report.figures import literal, new_figure, save_figure, shortened
from ihgnn_cli.studies.paper import REFERENCE
from ihgnn_cli.studies.ranks import Ranks
from ihgnn_cli.studies.statistics import LEVEL, p_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE, _BAR, _PLAIN = "#4c72b0", "#c44e52", "#6b6b6b"
_LONGEST = 30  # characters of a method's name
# In inches: the row of a method and of a group's bar, the frame, and the scale of critical
# differences above the axis.
_ROW, _GROUP, _FRAME, _ABOVE = 0.27, 0.14, 0.55, 0.5


def draw_ranks(ranks: Ranks, path: Path) -> None:
    """Draw the average ranks, the best on the left.

    A bar joins methods that do not differ significantly. The scale above the axis shows the
    critical difference, unless Friedman's test rejects nothing.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    count = len(ranks.models)
    half = (count + 1) // 2
    bars = _GROUP * (len(ranks.groups) + 1)
    height = _ABOVE + bars + _ROW * half
    figure = new_figure((7.6, height + _FRAME))
    panel = figure.subplots()
    panel.axis("off")
    panel.set_ylim(-bars - _ROW * half, _ABOVE)
    panel.set_xlim(1 - 0.02 * count, count + 0.02 * count)
    _draw_axis(panel, count)
    if ranks.p < LEVEL:
        _draw_distance(panel, ranks.critical_difference)
    for number, group in enumerate(ranks.groups):
        _draw_group(panel, ranks, group, -_GROUP * (number + 0.8))
    for place in range(count):
        left = place < half
        row = place if left else count - 1 - place  # so that no lines cross
        _draw_method(panel, ranks, place, -bars - _ROW * (row + 0.4), left=left)
    figure.suptitle(
        f"Average rank over {len(ranks.datasets)} data sets (Friedman's test: {p_text(ranks.p)})",
        fontsize=10,
    )
    save_figure(figure, path)


def _draw_axis(panel: "Axes", count: int) -> None:
    panel.plot([1, count], [0, 0], color="black", linewidth=1.2)
    for rank in range(1, count + 1):
        panel.plot([rank, rank], [0, 0.06], color="black", linewidth=1.2)
        panel.text(rank, 0.09, str(rank), ha="center", va="bottom", fontsize=8.5)


def _draw_distance(panel: "Axes", distance: float) -> None:
    top = _ABOVE - 0.1
    panel.plot([1, 1 + distance], [top, top], color=_BAR, linewidth=1.6)
    for end in (1, 1 + distance):
        panel.plot([end, end], [top - 0.04, top + 0.04], color=_BAR, linewidth=1.6)
    text = f"critical difference {distance:.2f}"
    panel.annotate(
        text,
        (1 + distance, top),
        (6, 0),
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=_BAR,
        annotation_clip=False,
    )


def _draw_group(panel: "Axes", ranks: Ranks, group: Sequence[str], height: float) -> None:
    ends = [ranks.average[ranks.models.index(model)] for model in (group[0], group[-1])]
    beyond = 0.004 * len(ranks.models)
    panel.plot(
        [ends[0] - beyond, ends[1] + beyond],
        [height, height],
        color=_BAR,
        linewidth=3.2,
        solid_capstyle="butt",
        zorder=3,
    )


def _draw_method(panel: "Axes", ranks: Ranks, place: int, height: float, *, left: bool) -> None:
    """A line from the axis down to a row, then to the side, with the name at its end."""
    count, rank = len(ranks.models), ranks.average[place]
    side = 1 - 0.01 * count if left else count + 0.01 * count
    own = ranks.models[place] == REFERENCE
    panel.plot(
        [rank, rank, side],
        [0, height, height],
        color=_LINE if own else _PLAIN,
        linewidth=1.6 if own else 0.9,
        zorder=2,
    )
    name = shortened(ranks.titles[place], _LONGEST)
    panel.annotate(
        literal(f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"),
        (side, height),
        (-4 if left else 4, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=9,
        fontweight="bold" if own else "normal",
        annotation_clip=False,
    )
