"""Folders of data sets and parsed data on this machine."""

import os
from pathlib import Path

DATA_VARIABLE = "IHGNN_DATA"
CACHE_VARIABLE = "IHGNN_CACHE"


def data_root(given: Path | None = None) -> Path:
    """The folder of raw data: the given one, or `$IHGNN_DATA`, or the platform's cache folder."""
    return _first(given, DATA_VARIABLE, "datasets")


def cache_root() -> Path:
    """The folder of parsed data: `$IHGNN_CACHE`, or the platform's cache folder."""
    return _first(None, CACHE_VARIABLE, "parsed")


def expanded(path: Path) -> Path:
    """Expand `~`; unchanged if there is no such user."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def file_name(name: str) -> str:
    """The name of a data set or model as a valid file name."""
    kept = "".join(each if each.isalnum() or each in "-_.+" else "_" for each in name)
    return kept.strip(".") or "run"


def _first(given: Path | None, variable: str, folder: str) -> Path:
    if given is not None:
        return expanded(given).absolute()
    value = os.environ.get(variable)
    if value:
        return expanded(Path(value)).absolute()
    import platformdirs  # not installed where the package only runs exported models

    return platformdirs.user_cache_path("ihgnn", appauthor=False) / folder
