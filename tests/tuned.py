"""What the tests of `ihgnn tune` share: small searches, and what their folders tell."""

import csv
import sqlite3
from pathlib import Path

SMALL = ("--width", "4", "--hidden", "8", "--batch-size", "64,128", "--layers", "1,2")
TINY = (*SMALL, "--epochs", "4", "--workers", "1", "--device", "cpu")
SLOW = (*TINY[:-6], "--epochs", "150", "--workers", "1", "--device", "cpu", "--pruner", "none")


def states(folder: Path) -> dict[str, int]:
    """How many trials are in which state, as the study's own file says."""
    try:
        with sqlite3.connect(f"file:{folder / 'study.db'}?mode=ro", uri=True) as study:
            return dict(study.execute("select state, count(*) from trials group by state"))
    except sqlite3.Error:
        return {}


def finished(folder: Path) -> int:
    """The trials that are done."""
    return states(folder).get("COMPLETE", 0)


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "trials.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
