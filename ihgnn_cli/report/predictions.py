"""Predictions as JSON lines and as CSV, one line per graph."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ihgnn_cli.data.dataset import Value
from ihgnn_cli.files import written_whole
from ihgnn_cli.inference.prediction import Answer, Prediction, digits

Write = Callable[[Sequence[Prediction]], None]
"""Writes one batch of predictions."""


def json_line(answer: Answer) -> str:
    """`{"graph": 0, "class": "1", "probabilities": {"-1": 0.1, "1": 0.9}}` (`as_entry`)."""
    return json.dumps(answer.as_entry())


@contextmanager
def csv_file(
    path: Path, class_values: Sequence[Value], also: Sequence[str] = ()
) -> Iterator[Write]:
    """A CSV file to write predictions to; it appears when the block ends without an error."""
    with (
        written_whole(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        yield csv_rows(stream, class_values, also=also)


def csv_rows(
    stream: TextIO,
    class_values: Sequence[Value],
    line_end: str = "\r\n",
    also: Sequence[str] = (),
) -> Write:
    """Write the header, and return a function that writes rows.

    `also` names the last columns, those that only some models have.
    """
    writer = csv.writer(stream, lineterminator=line_end)
    probabilities = [f"p({value})" for value in class_values]
    head = ["graph", "id", "class", *probabilities, "unknown_nodes", "larger_than_m"]
    writer.writerow([*head, *also])

    def write(predictions: Sequence[Prediction]) -> None:
        writer.writerows(map(_row, predictions))

    return write


def id_text(given: object) -> str:
    """A graph's id as one cell, empty if it has none; lone surrogates are escaped."""
    if given is None:
        return ""
    if isinstance(given, str):
        return given.encode(errors="backslashreplace").decode()
    return json.dumps(given, default=str)


def _row(prediction: Prediction) -> list[object]:
    return [
        prediction.graph,
        id_text(prediction.id),
        prediction.class_value,
        *map(digits, prediction.probabilities.values()),
        prediction.unknown_nodes,
        "true" if prediction.larger_than_m else "false",
        *([] if prediction.uncertainty is None else [digits(prediction.uncertainty)]),
        *([] if prediction.prediction_set is None else [_set_text(prediction.prediction_set)]),
    ]


def _set_text(classes: Sequence[Value]) -> str:
    return json.dumps([str(each) for each in classes], ensure_ascii=False)
