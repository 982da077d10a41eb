"""Helpers for messages."""

import difflib
from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """`1 line`, `2,000 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """`90 s`, `12 min`, `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def file_size(count: float) -> str:
    """`12 kB`, `3.4 MB`, `96.1 GB`."""
    if count >= 1e9:
        return f"{count / 1e9:,.1f} GB"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def hint(name: str, known: Sequence[str]) -> str:
    """Suggest a known name for an unknown one."""
    close = difflib.get_close_matches(name, known, 1)
    return f"Did you mean {close[0]}?" if close else f"There are {', '.join(known)}."
