"""Predictions as lines for machines: JSON, one object a graph, and CSV, one row a graph."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ihgnn_cli.data.dataset import Value
from ihgnn_cli.files import written_whole
from ihgnn_cli.inference.prediction import Prediction

Write = Callable[[Sequence[Prediction]], None]
"""Takes the answers batch by batch."""


def json_line(prediction: Prediction) -> str:
    """`{"graph": 0, "class": "1", "probabilities": {"-1": 0.1, "1": 0.9}}`.

    Then, only where there is something to say, the graph's own `id`, `unknown_nodes` and
    `larger_than_m`.
    """
    entry: dict[str, object] = {
        "graph": prediction.graph,
        "class": str(prediction.class_value),
        "probabilities": {
            str(value): float(_digits(p)) for value, p in prediction.probabilities.items()
        },
    }
    if prediction.id is not None:
        entry["id"] = prediction.id
    if prediction.unknown_nodes:
        entry["unknown_nodes"] = prediction.unknown_nodes
    if prediction.larger_than_m:
        entry["larger_than_m"] = True
    return json.dumps(entry)


@contextmanager
def csv_file(path: Path, class_values: Sequence[Value]) -> Iterator[Write]:
    """A CSV file to write answers to, which is there at the end of the block, whole."""
    with (
        written_whole(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        yield csv_rows(stream, class_values)


def csv_rows(stream: TextIO, class_values: Sequence[Value], line_end: str = "\r\n") -> Write:
    """Write the head of a table at once, and give what writes rows."""
    writer = csv.writer(stream, lineterminator=line_end)
    probabilities = [f"p({value})" for value in class_values]
    writer.writerow(["graph", "id", "class", *probabilities, "unknown_nodes", "larger_than_m"])

    def write(predictions: Sequence[Prediction]) -> None:
        writer.writerows(map(_row, predictions))

    return write


def id_text(given: object) -> str:
    """A graph's own id in one cell; nothing where it has none.

    Half a character, which no file can hold, is written as its number.
    """
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
        *map(_digits, prediction.probabilities.values()),
        prediction.unknown_nodes,
        "true" if prediction.larger_than_m else "false",
    ]


def _digits(probability: float) -> str:
    """As many digits as the model's 32-bit numbers have."""
    return f"{probability:.7g}"
