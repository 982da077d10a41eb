"""Cache of parsed data sets.

A file holds `.npy` arrays one after the other: a JSON header, the columns, and a CRC-32 of these.
(`.npz` would save a few lines, but takes 1.7 times as long to load COLLAB.) Nothing is pickled.
"""

import json
import logging
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.errors import IhgnnError
from ihgnn_cli.files import written_whole

# Part of the key. Raise it whenever the same raw data would be parsed or stored differently.
FORMAT = 3
_VOCABULARIES = ("label_values", "class_values", "edge_label_values")

_log = logging.getLogger(__name__)


def load_or_read(
    folder: Path, source_digest: str, name: str, read: Callable[[], GraphDataset]
) -> GraphDataset:
    """Load the data set of this digest from the cache; if it is not there, read and cache it.

    If the cache is damaged or cannot be written, only time is lost.
    """
    path = folder / f"{source_digest}-{FORMAT}.npy"
    cached = load(path, name)
    if cached is not None:
        return cached
    dataset = read()
    try:
        save(path, dataset)
    except IhgnnError as error:
        # Windows cannot replace a file that another process is reading.
        if load(path, name) is None:
            _log.warning("The parsed data was not cached. %s", error)
    return dataset


def save(path: Path, dataset: GraphDataset) -> None:
    """Write the data set, without its name, atomically."""
    columns = dataset.columns()
    header = {
        "columns": list(columns),
        "label_source": dataset.label_source,
        "notes": asdict(dataset.notes),
        "ids": dataset.ids,
        **{key: getattr(dataset, key) for key in _VOCABULARIES},
    }
    arrays = [np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), *columns.values()]
    with written_whole(path) as temporary, temporary.open("wb") as stream:
        for array in (*arrays, _checksum(arrays)):
            np.save(stream, array, allow_pickle=False)


def load(path: Path, name: str) -> GraphDataset | None:
    """Load a file written by `save`; `None` if it is missing or damaged."""
    try:
        with path.open("rb") as stream:
            encoded = np.load(stream)
            header: dict[str, Any] = json.loads(encoded.tobytes())
            columns: dict[str, Any] = {key: np.load(stream) for key in header["columns"]}
            if np.load(stream) != _checksum([encoded, *columns.values()]) or stream.read(1):
                raise ValueError("wrong checksum")  # noqa: TRY301
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
        _log.info("Ignoring the damaged cache file %s: %s", path, error)
        return None


def _checksum(arrays: Iterable[NDArray[np.generic]]) -> NDArray[np.int64]:
    total = 0
    for array in arrays:
        total = zlib.crc32(f"{array.dtype.str} {array.shape}".encode(), total)
        total = zlib.crc32(np.ascontiguousarray(array).data, total)
    return np.array(total, dtype=np.int64)
