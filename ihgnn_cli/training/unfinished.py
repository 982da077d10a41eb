"""Folders of cross-validations and searches that are not finished, and how to finish them."""

import json
import shlex
from pathlib import Path

CROSSVAL, TUNE = "crossval.json", "tune.json"
"""The files that mark the folders of a cross-validation and of a search."""
_TITLES = {CROSSVAL: "cross-validation", TUNE: "search"}
_RESULT = "result.json"


def unfinished_job(folder: Path) -> str:
    """What to say about a job that has no result yet; empty for any other folder."""
    if (folder / _RESULT).is_file():
        return ""
    for file, title in _TITLES.items():
        if (folder / file).is_file():
            return f"Its {title} is not finished. {continued(folder)}"
    return ""


def continued(folder: Path) -> str:
    """How to finish the job of a folder, which may have been moved."""
    file = next((each for each in _TITLES if (folder / each).is_file()), CROSSVAL)
    try:
        job = json.loads((folder / file).read_text(encoding="utf-8"))
        words = shlex.split(job.get("command", ""))
    except (OSError, ValueError, AttributeError):  # the job's own file is damaged
        return f"Run its {_TITLES[file]} again in another folder."
    if not words or words[0] != "ihgnn":  # of a Python program
        return "Repeat the call that made it."
    if words[1:2] not in (["crossval"], ["tune"]):  # a cell of another command
        return f"Repeat its command: {shlex.join(words)}"
    for option in ("--out", "-o"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    words = [each for each in words if not each.startswith("--out=")]
    return f"Continue it: {shlex.join([*words, '--out', str(folder)])}"
