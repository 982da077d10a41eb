"""Making and saving figures without a display."""

import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import check_place, written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def check_figure_path(path: Path) -> None:
    """Check that a figure can be written to a path, before any work is done.

    Raises:
        InputError: the suffix is not one of a figure, or the path is a folder.
        IhgnnError: the folder cannot be created or written.
    """
    if path.suffix.lower() not in FIGURE_SUFFIXES:
        raise InputError(f"Cannot draw to {path}. Use a name in {', '.join(FIGURE_SUFFIXES)}.")
    check_place(path)


def new_figure(size: tuple[float, float]) -> "Figure":
    """An empty figure with this width and height in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def legend_below(figure: "Figure", legend: Mapping[str, Any], columns: int) -> None:
    """A legend below the panels, from what was drawn, by its name."""
    figure.legend(
        list(legend.values()),
        list(legend),
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=9,
    )


def literal(text: str) -> str:
    """Escape dollar signs, which matplotlib reads as the start of a formula.

    (With `parse_math=False`, matplotlib fails to wrap long lines.)
    """
    return text.replace("$", r"\$")


def shortened(text: str, longest: int) -> str:
    """Cut the middle out of text that is too long."""
    if len(text) <= longest:
        return text
    end = (longest - 1) // 2
    return f"{text[: longest - 1 - end]}…{text[-end:]}"


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of its suffix; a failed write leaves no partial file.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    check_figure_path(path)
    # Drawn in memory first, so that a full disk gives a plain write error.
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # characters that the font lacks
        figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=150)
    with written_whole(path) as temporary:
        temporary.write_bytes(drawn.getvalue())
