"""Cache of parsed data sets as `.npz` files; nothing is pickled.

A file is found by the hash of the raw data. The files are never removed: delete the folder to free
its space.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.files import written_whole
from ihgnn_cli.paths import CACHE_VARIABLE

# Part of the key. Raise it whenever the same raw data would be parsed or stored differently.
FORMAT = 4
_HEADER = "header"
_VOCABULARIES = ("label_values", "class_values", "edge_label_values")

_log = logging.getLogger(__name__)


def load_or_read(
    folder: Path, source_digest: str, name: str, read: Callable[[], GraphDataset]
) -> GraphDataset:
    """Load the data set of this digest from the cache; if it is not there, read and cache it.

    If the cache is damaged or cannot be written, only time is lost.
    """
    path = folder / f"{source_digest}-{FORMAT}.npz"
    cached = load(path, name)
    if cached is not None:
        return cached
    dataset = read()
    try:
        save(path, dataset)
    except (IhgnnError, OSError) as error:
        # Windows cannot replace a file that another process is reading.
        if load(path, name) is None:
            reason = getattr(error.__cause__, "strerror", None) or error
            _log.warning(
                "Going on without the cache of parsed data in %s: %s. Set %s to another folder.",
                folder,
                reason,
                CACHE_VARIABLE,
            )
    return dataset


def save(path: Path, dataset: GraphDataset) -> None:
    """Write the data set, without its name, atomically."""
    header = {
        "label_source": dataset.label_source,
        "notes": asdict(dataset.notes),
        "ids": dataset.ids,
        **{key: getattr(dataset, key) for key in _VOCABULARIES},
    }
    columns: dict[str, Any] = dataset.columns()
    columns[_HEADER] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with written_whole(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, **columns)


def load(path: Path, name: str) -> GraphDataset | None:
    """Load a file written by `save`; `None` if it is missing or damaged."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            columns: dict[str, Any] = {key: stored[key] for key in stored.files}  # checks the CRC
        header: dict[str, Any] = json.loads(columns.pop(_HEADER).tobytes())
        notes = header["notes"] | {"ignored_keys": tuple(header["notes"]["ignored_keys"])}
        columns |= {key: tuple(header[key]) for key in _VOCABULARIES}
        return GraphDataset(
            name=name,
            label_source=LabelSource(header["label_source"]),
            notes=ReadingNotes(**notes),
            ids=tuple(header["ids"]),
            **columns,
        )
    except FileNotFoundError:
        return None
    except Exception as error:  # noqa: BLE001 - damage can surface anywhere in NumPy
        _log.debug("Ignoring the damaged cache file %s: %s", path, error)
        return None
