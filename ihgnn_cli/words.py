"""Helpers for messages."""

import re

# A URL with name and password; one slash is enough, as pathlib merges them.
_CREDENTIALS = re.compile(r"(?i)(\b[a-z][a-z0-9+.-]*:/{1,2}[^:\s/]*):\S*@")
_QUERY = re.compile(r"(?i)([?&][^=&\s]*(?:pass|pwd|secret|token)[^=&\s]*=)[^&\s]+")


def counted(number: int, noun: str) -> str:
    """`1 line`, `2,000 lines`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def file_size(count: float) -> str:
    """`12 kB`, `3.4 MB`, `96.1 GB`."""
    if count >= 1e9:
        return f"{count / 1e9:,.1f} GB"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def without_passwords(text: str) -> str:
    """Hide passwords in URLs (`scheme://name:password@host`)."""
    return _QUERY.sub(r"\1***", _CREDENTIALS.sub(r"\1:***@", text))
