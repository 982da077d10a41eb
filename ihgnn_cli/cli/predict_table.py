"""Predictions as a table that grows row by row and is never held in memory."""

import sys
from collections.abc import Sequence

from rich.cells import cell_len

from ihgnn_cli.cli import console
from ihgnn_cli.data.dataset import Value
from ihgnn_cli.inference.prediction import Prediction
from ihgnn_cli.report.predictions import id_text
from ihgnn_cli.words import counted

_GRAPH_WIDTH = 6
_NUMBER_WIDTH = len("0.123")
_LONGEST_ID = 24
# With more classes than this, or in a narrow terminal, a row shows only the probability of the
# predicted one.
_MOST_CLASSES = 6


class PredictionTable:
    """Rows under a header; classes and first predictions determine the column widths.

    A wider cell in a later row shifts the rest of that row and is never cut.
    """

    def __init__(self, class_values: Sequence[Value]) -> None:
        self._classes = [console.plain(str(value)) for value in class_values]
        self._all = len(class_values) <= _MOST_CLASSES
        self._ids = False
        self._several = self._sets = False
        self._widths: list[int] = []

    def write(self, predictions: Sequence[Prediction]) -> None:
        """Add rows."""
        if not predictions:
            return
        if not self._widths:
            self._begin(predictions)
        sys.stdout.writelines(self._line(self._cells(each)) for each in predictions)

    def _begin(self, first: Sequence[Prediction]) -> None:
        self._ids = any(each.id is not None for each in first)
        self._several = first[0].uncertainty is not None
        self._sets = first[0].prediction_set is not None
        heads = self._layout(first)
        if console.has_width() and self._width > console.out.width:
            self._all = False
            heads = self._layout(first)
        rule = "─" if console.out.encoding.lower().startswith("utf") else "-"
        console.out.print(self._line([*heads, ""]), style="bold", end="", soft_wrap=True)
        console.out.print(f" {rule * (self._width - 1)}", soft_wrap=True)

    def _layout(self, first: Sequence[Prediction]) -> list[str]:
        """Set the widths; returns the headers."""
        shown = [f"p({name})" for name in self._classes] if self._all else ["Probability"]
        if self._several:
            shown.append("±")
        heads = ["Graph", *(["Id"] if self._ids else []), "Class", *shown]
        heads += ["Set"] if self._sets else []
        widths = [
            _GRAPH_WIDTH,
            *([min(_LONGEST_ID, max(map(_id_width, first)))] if self._ids else []),
            max(map(cell_len, self._classes)),
            *[_NUMBER_WIDTH] * len(shown),
            *([max(cell_len(_set_text(each)) for each in first)] if self._sets else []),
        ]
        self._widths = [
            max(width, cell_len(head)) for width, head in zip(widths, heads, strict=True)
        ]
        return heads

    @property
    def _width(self) -> int:
        """The width of a line without remarks."""
        return 1 + sum(self._widths) + 2 * (len(self._widths) - 1)

    def _cells(self, prediction: Prediction) -> list[str]:
        chosen = prediction.probabilities[prediction.class_value]
        shown = prediction.probabilities.values() if self._all else [chosen]
        remarks = []
        if prediction.unknown_nodes:
            remarks.append(counted(prediction.unknown_nodes, "unknown label"))
        if prediction.larger_than_m:
            remarks.append("larger than m")
        return [
            str(prediction.graph),
            *([console.plain(id_text(prediction.id))] if self._ids else []),
            console.plain(str(prediction.class_value)),
            *(f"{each:.3f}" for each in shown),
            *([] if prediction.uncertainty is None else [f"{prediction.uncertainty:.3f}"]),
            *([_set_text(prediction)] if self._sets else []),
            ", ".join(remarks),
        ]

    def _line(self, cells: Sequence[str]) -> str:
        """Numbers to the right, words (the id, the class and the set) to the left."""
        words = [1, *([2] if self._ids else []), *([len(self._widths) - 1] if self._sets else [])]
        padded = []
        for place, (cell, width) in enumerate(zip(cells, self._widths, strict=False)):
            space = " " * (width - cell_len(cell))
            padded.append(cell + space if place in words else space + cell)
        return " " + "  ".join([*padded, cells[-1]]).rstrip() + "\n"


def _id_width(prediction: Prediction) -> int:
    return cell_len(id_text(prediction.id))


def _set_text(prediction: Prediction) -> str:
    return ", ".join(console.plain(str(each)) for each in prediction.prediction_set or ())
