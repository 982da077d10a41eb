"""Parsed data sets on disk: columns behind a JSON header, mapped into memory, never pickled.

    magic (8 bytes) | header length, header CRC-32 (4 + 4) | header | columns, each aligned

The header gives each column's type, shape and place, the vocabularies, the reading notes, and the
CRC-32 of everything behind it. A file that does not fit its header in any way is no file at all.
"""

import json
import logging
import mmap
import os
import struct
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import written_whole

# Part of the key: raised whenever the same raw data would be read differently or stored otherwise.
FORMAT = 1
_MAGIC = b"IHGNN-DS"
_PREFIX = struct.Struct("<8sII")
_ALIGNMENT = 64
_VOCABULARIES = ("label_values", "class_values", "edge_label_values")

_log = logging.getLogger(__name__)


def load_or_read(
    folder: Path, source_digest: str, name: str, read: Callable[[], GraphDataset]
) -> GraphDataset:
    """The data set of this digest from the cache, else from `read`, and then kept for next time.

    A cache that is damaged or cannot be written costs time and nothing else.
    """
    path = folder / f"{source_digest}-{FORMAT}.ihgnn"
    cached = load(path, name)
    if cached is not None:
        return cached
    dataset = read()
    try:
        save(path, dataset)
    except IhgnnError as error:
        # On Windows a file that another process has mapped cannot be replaced, nor need it be.
        if load(path, name) is None:
            _log.warning("The parsed data is not kept for the next time. %s", error)
    return dataset


def save(path: Path, dataset: GraphDataset) -> None:
    """Write the data set's columns (not its name), whole or not at all."""
    columns: dict[str, dict[str, object]] = {}
    position = checksum = 0
    arrays = {key: np.ascontiguousarray(column) for key, column in dataset.columns().items()}
    for key, column in arrays.items():
        columns[key] = {"dtype": column.dtype.str, "shape": column.shape, "at": position}
        position += _aligned(column.nbytes)
        checksum = zlib.crc32(bytes(_padding(column)), zlib.crc32(_buffer(column), checksum))
    header = {
        "columns": columns,
        "bytes": position,
        "crc32": checksum,
        "label_source": dataset.label_source,
        "notes": asdict(dataset.notes),
        **{key: getattr(dataset, key) for key in _VOCABULARIES},
    }
    encoded = json.dumps(header).encode()
    encoded += b" " * (-(_PREFIX.size + len(encoded)) % _ALIGNMENT)
    with written_whole(path) as temporary, temporary.open("wb") as stream:
        stream.write(_PREFIX.pack(_MAGIC, len(encoded), zlib.crc32(encoded)))
        stream.write(encoded)
        for column in arrays.values():
            stream.write(_buffer(column))
            stream.write(bytes(_padding(column)))


def load(path: Path, name: str) -> GraphDataset | None:
    """Map a file written by `save`; `None` if there is none, or not a whole one."""
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size < _PREFIX.size:
                return None
            memory = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return _decode(memory, name)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError) as error:
        _log.info("Ignoring the damaged cache file %s: %s", path, error)
        return None


def _decode(memory: mmap.mmap, name: str) -> GraphDataset:
    magic, length, header_crc = _PREFIX.unpack_from(memory)
    encoded = memory[_PREFIX.size : _PREFIX.size + length]
    if magic != _MAGIC or len(encoded) != length or zlib.crc32(encoded) != header_crc:
        raise ValueError("the header is damaged")
    header: dict[str, Any] = json.loads(encoded)
    start = _PREFIX.size + length
    content = memoryview(memory)[start:]
    if len(content) != header["bytes"] or zlib.crc32(content) != header["crc32"]:
        raise ValueError("the content is damaged")
    columns: dict[str, Any] = {
        key: np.frombuffer(
            content, dtype=each["dtype"], count=int(np.prod(each["shape"])), offset=each["at"]
        ).reshape(each["shape"])
        for key, each in header["columns"].items()
    }
    vocabularies: dict[str, Any] = {key: tuple(header[key]) for key in _VOCABULARIES}
    return GraphDataset(
        name=name,
        label_source=LabelSource(header["label_source"]),
        notes=ReadingNotes(**header["notes"]),
        **vocabularies,
        **columns,
    )


def _aligned(size: int) -> int:
    return size + -size % _ALIGNMENT


def _padding(column: NDArray[np.generic]) -> int:
    return -column.nbytes % _ALIGNMENT


def _buffer(column: NDArray[np.generic]) -> memoryview:
    return column.reshape(-1).view(np.uint8).data
