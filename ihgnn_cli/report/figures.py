"""Figures without a screen: made, and written whole."""

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import check_place, written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")


def check_figure_path(path: Path) -> None:
    """Refuse a file that no figure can be written to, before any work is done.

    Raises:
        InputError: the suffix is not one of a figure, or it is the name of a folder.
        IhgnnError: its folder cannot be made or written.
    """
    if path.suffix.lower() not in FIGURE_SUFFIXES:
        raise InputError(f"Cannot draw to {path}. Use a name in {', '.join(FIGURE_SUFFIXES)}.")
    check_place(path)


def new_figure(size: tuple[float, float]) -> "Figure":
    """An empty figure of this width and height in inches, which needs no window system."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def literal(text: str) -> str:
    """Text to be drawn as it stands: for matplotlib, dollar signs enclose a formula.

    (Its `parse_math=False` does not reach the wrapping of long lines, which then fails.)
    """
    return text.replace("$", r"\$")


def shortened(text: str, longest: int) -> str:
    """Cut the middle out of text that is too long."""
    if len(text) <= longest:
        return text
    end = (longest - 1) // 2
    return f"{text[: longest - 1 - end]}…{text[-end:]}"


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure in the format of its file's name, whole or not at all.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    check_figure_path(path)
    # Drawn in memory first: a full disk is then met by a plain write, which says so.
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name in letters that the font lacks
        figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=150)
    with written_whole(path) as temporary:
        temporary.write_bytes(drawn.getvalue())
