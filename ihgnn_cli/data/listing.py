"""List the data sets that are bundled, in the data root, or available for download."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ihgnn_cli.data import jsonl, smiles
from ihgnn_cli.data.catalogue import CatalogueEntry, catalogue
from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.data.sources import (
    BUNDLED,
    Origin,
    Source,
    bundled_path,
    find_in_root,
    read,
)
from ihgnn_cli.data.tu import TUFiles, is_tu_folder, open_tu, read_column
from ihgnn_cli.errors import DataError, IhgnnError
from ihgnn_cli.files import reading


@dataclass(frozen=True)
class Listed:
    """A data set, and what is known without reading its edges."""

    name: str
    where: Origin
    path: Path | None
    """`None` if it has to be downloaded."""
    size_bytes: int | None
    graphs: int | None
    classes: int | None
    has_node_labels: bool | None
    """If not, node degrees are used as labels."""
    node_labels: int | None
    """Number of distinct labels; `None` if the files are not on this machine."""
    node_attributes: int | None
    problem: str | None = None
    """Why a local data set cannot be read, if so."""
    shadowed: bool = False
    """Another data set of the same name takes precedence."""


def list_local(root: Path) -> list[Listed]:
    """List the bundled data sets and those in the data root.

    Raises:
        InputError: the data root cannot be read.
    """
    found = [_describe(Source(name, Origin.BUNDLED, bundled_path(name))) for name in BUNDLED]
    with reading(root):
        paths = sorted(root.iterdir(), key=lambda each: each.name.lower()) if root.is_dir() else []
    for path in paths:
        name = path.name if path.is_dir() else path.stem
        if _is_dataset(path):
            each = _describe(Source(name, Origin.DATA_ROOT, path))
            used = name not in BUNDLED and find_in_root(root, name) == path
            found.append(replace(each, shadowed=not used))
    return found


def list_downloadable(exclude: set[str]) -> list[Listed]:
    """List the catalogue without the given names."""
    return [_of_catalogue(entry) for name, entry in catalogue().items() if name not in exclude]


def _of_catalogue(entry: CatalogueEntry) -> Listed:
    return Listed(
        name=entry.name,
        where=Origin.DOWNLOAD,
        path=None,
        size_bytes=None,
        graphs=entry.graphs,
        classes=entry.classes,
        has_node_labels=entry.node_labels,
        node_labels=None,
        node_attributes=entry.node_attributes,
    )


def _is_dataset(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    try:
        if path.is_dir():
            return is_tu_folder(path)
        if path.suffix == smiles.SUFFIX:
            return path.is_file() and smiles.is_molecules(path)
        return path.is_file() and path.suffix in (".zip", jsonl.SUFFIX)
    except OSError:
        return False


def _describe(source: Source) -> Listed:
    try:
        if source.path.suffix in (jsonl.SUFFIX, smiles.SUFFIX):
            return _of_file(source)
        return _of_tu(source, open_tu(source.path))
    except DataError as error:
        return _unreadable(source, error.problems[0].message)
    except (IhgnnError, OSError) as error:
        return _unreadable(source, str(error))


def _unreadable(source: Source, reason: str) -> Listed:
    return Listed(
        source.name, source.origin, source.path, None, None, None, None, None, None, reason
    )


def _of_file(source: Source) -> Listed:
    dataset = read(source, classes=False)
    attributes = dataset.node_attributes
    labelled = dataset.label_source == LabelSource.LABELS
    return Listed(
        name=source.name,
        where=source.origin,
        path=source.path,
        size_bytes=source.path.stat().st_size,
        graphs=len(dataset),
        classes=len(dataset.class_values),
        has_node_labels=labelled,
        node_labels=len(dataset.label_values) if labelled else 0,
        node_attributes=0 if attributes is None else attributes.shape[1],
    )


def _of_tu(source: Source, files: TUFiles) -> Listed:
    """Count from the small files only; reading COLLAB's edges takes seconds."""
    classes = read_column(files, "graph_labels")
    labels = read_column(files, "node_labels") if "node_labels" in files else None
    attributes = 0
    if "node_attributes" in files:
        first = files.read("node_attributes").lstrip().partition(b"\n")[0]
        attributes = len(first.replace(b",", b" ").split())
    path = source.path
    return Listed(
        name=source.name,
        where=source.origin,
        path=path,
        size_bytes=path.stat().st_size if path.is_file() else sum(files.sizes.values()),
        graphs=len(classes),
        classes=len(np.unique(classes)),
        has_node_labels=labels is not None,
        node_labels=0 if labels is None else len(np.unique(labels, axis=0)),
        node_attributes=attributes,
    )
