"""Folders of cross-validations and searches that are not finished, and how to finish them."""

import json
from pathlib import Path

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import read_text

CROSSVAL, TUNE = "crossval.json", "tune.json"
"""The files that mark the folders of a cross-validation and of a search."""
_RESULT = "result.json"
_MOST_BYTES = 100_000_000


def unfinished_job(folder: Path) -> str:
    """What to say about a job that has no result yet; empty for any other folder."""
    if (folder / _RESULT).is_file():
        return ""
    for file, title in ((CROSSVAL, "cross-validation"), (TUNE, "search")):
        if (folder / file).is_file():
            return f"Its {title} is not finished. {continued(folder)}"
    return ""


def continued(folder: Path) -> str:
    """How to finish the job of a folder."""
    file = folder / (TUNE if (folder / TUNE).is_file() else CROSSVAL)
    try:
        command = json.loads(read_text(file, _MOST_BYTES))["command"]
    except (OSError, ValueError, KeyError, TypeError, InputError):
        command = ""
    if not isinstance(command, str) or not command:
        return "Run the command or the call that made it again."
    return f"Continue it: {command}"
