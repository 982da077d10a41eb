"""Tables as files."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from ihgnn_cli.files import written_whole


def write_rows(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table as CSV, whole or not at all."""
    with (
        written_whole(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as stream,
    ):
        writer = csv.writer(stream)
        writer.writerow(head)
        writer.writerows(rows)
