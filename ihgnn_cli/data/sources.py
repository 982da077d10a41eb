"""Where a data set comes from, in a fixed order.

1. `MUTAG` is bundled with the package.
2. `synthetic:FIELD=VALUE,...` is made on the spot.
3. A path: a folder or zip in TU format, or a `.jsonl` file.
4. `NAME.zip`, `NAME/` or `NAME.jsonl` in the data root.
5. A download of `NAME` from the TU server into the data root, unless offline.
"""

import errno
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from ihgnn_cli.data import cache, jsonl
from ihgnn_cli.data.archive import file_digest, is_tu_folder, open_tu
from ihgnn_cli.data.catalogue import catalogue, close_names
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.download import download
from ihgnn_cli.data.synthetic import generate
from ihgnn_cli.data.synthetic_text import is_synthetic, parse_synthetic
from ihgnn_cli.data.tu import read_tu
from ihgnn_cli.errors import DownloadError, InputError
from ihgnn_cli.paths import cache_root, expanded
from ihgnn_cli.paths import data_root as default_data_root
from ihgnn_cli.progress import NO_PROGRESS, Progress

BUNDLED = ("MUTAG",)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}")


class Origin(StrEnum):
    """How a data set was found."""

    BUNDLED = "bundled"
    SYNTHETIC = "generated"
    PATH = "path"
    DATA_ROOT = "data root"
    DOWNLOAD = "download"


@dataclass(frozen=True)
class Source:
    """A data set that is on this machine."""

    name: str
    origin: Origin
    path: Path
    """Of a synthetic data set its name, which is no file."""

    @property
    def has_files(self) -> bool:
        """Whether there are files of the user's that it is read from."""
        return self.origin not in (Origin.BUNDLED, Origin.SYNTHETIC)

    def __str__(self) -> str:
        return f"{self.origin}: {self.path}" if self.has_files else str(self.origin)

    @property
    def reference(self) -> str:
        """The name or path to `locate` the same data by, from any folder."""
        return str(self.path) if self.origin == Origin.PATH else self.name


def locate(
    given: str,
    *,
    data_root: Path | None = None,
    offline: bool = False,
    progress: Progress = NO_PROGRESS,
) -> Source:
    """Find a data set by name or path, downloading it if it is nowhere else.

    Raises:
        InputError: there is no such path, or the name cannot be one, or is close to a known one,
            or a synthetic data set cannot be made as it is asked for.
        DownloadError: it is not here and cannot be fetched; says where to put the file.
    """
    path = None if is_own_name(given) else _existing(given)
    if path is None or _hides_a_name(path, given, data_root):
        return locate_by_name(given, data_root=data_root, offline=offline, progress=progress)
    return Source(_stem(path), Origin.PATH, path.absolute())


def locate_file(given: str, *, data_root: Path | None = None) -> Source:
    """Find files to check: an existing path comes first, and nothing is downloaded.

    Raises:
        InputError: there is no such path and no such name on this machine.
    """
    path = None if is_synthetic(given) else _existing(given)
    if path is not None:
        return Source(_stem(path), Origin.PATH, path.absolute())
    found = find_in_root(default_data_root(data_root), given) if _is_name(given) else None
    if found is None and not is_own_name(given):
        raise _no_path(given)
    return locate_by_name(given, data_root=data_root, offline=True)


def locate_by_name(
    given: str,
    *,
    data_root: Path | None = None,
    offline: bool = False,
    progress: Progress = NO_PROGRESS,
) -> Source:
    """`locate` without the files and folders of the working directory."""
    if given in BUNDLED:
        return Source(given, Origin.BUNDLED, bundled_folder(given))
    if is_synthetic(given):
        name = str(parse_synthetic(given))
        return Source(name, Origin.SYNTHETIC, Path(name))
    if not _is_name(given):
        raise _no_path(given)
    root = default_data_root(data_root)
    found = find_in_root(root, given)
    if found is not None:
        return Source(given, Origin.DATA_ROOT, found)
    similar = close_names(given)
    if given not in catalogue() and similar:
        raise InputError(f"No data set {given} here. Did you mean {' or '.join(similar)}?")
    if offline:
        raise DownloadError(
            f"{given} is not on this machine, and --offline forbids to download it.\n"
            f"Put the file at {root / given}.zip"
        )
    try:
        return Source(given, Origin.DOWNLOAD, download(given, root, progress))
    except DownloadError as error:
        if given in catalogue():
            raise
        here = f"No file or folder '{given}', and no data set of that name is known."
        raise DownloadError(f"{here} {error}") from error


def is_own_name(given: str) -> bool:
    """Whether a name means what this package brings with it or makes, whatever files there are."""
    return given in BUNDLED or is_synthetic(given)


def read(source: Source, progress: Progress = NO_PROGRESS, *, classes: bool = True) -> GraphDataset:
    """Read a located data set, through the cache of parsed data, or make a synthetic one.

    Without classes, a TU data set needs no file of them: where it has none, the class of each
    graph is unknown (-1).

    Raises:
        InputError: the files are not in a format that is read, or wrong (`DataError`).
    """
    if source.origin == Origin.SYNTHETIC:
        return replace(generate(parse_synthetic(source.name)), source=source.reference)
    try:
        return replace(_read(source, progress, classes), source=source.reference)
    except OSError as error:
        raise InputError(f"Cannot read {source.path}: {error.strerror or error}.") from error


def load_dataset(
    given: str,
    *,
    data_root: Path | None = None,
    offline: bool = False,
    progress: Progress = NO_PROGRESS,
) -> GraphDataset:
    """Find and read a data set by name or path: `locate`, then `read`."""
    return read(locate(given, data_root=data_root, offline=offline, progress=progress), progress)


def refuse_overwriting(outputs: Sequence[Path], sources: Sequence[Source]) -> None:
    """Make sure that no output is one of the files that are read.

    Raises:
        InputError: one is.
    """
    for output in outputs:
        place = output.resolve()
        for source in sources:
            if place == source.path.resolve() or source.path.resolve() in place.parents:
                raise InputError(f"{output} belongs to the data set. Write to another file.")


def bundled_folder(name: str) -> Path:
    """Where a bundled data set's files are."""
    return Path(str(files("ihgnn_cli.data") / "bundled" / name))


def find_in_root(root: Path, name: str) -> Path | None:
    """The zip, folder or JSON-lines file of this name in a data root.

    Raises:
        InputError: the data root cannot be read.
    """
    try:
        for path in (root / f"{name}.zip", root / name, root / f"{name}{jsonl.SUFFIX}"):
            if is_tu_folder(path) if path.is_dir() else path.exists():
                return path
    except OSError as error:
        raise InputError(f"Cannot read {root}: {error.strerror or error}.") from error
    return None


def _is_name(given: str) -> bool:
    return bool(_NAME.fullmatch(given)) and not given.endswith((".zip", jsonl.SUFFIX))


def _no_path(given: str) -> InputError:
    return InputError(f"No file or folder '{given}'. Give a path that exists, or a name.")


def _hides_a_name(path: Path, given: str, data_root: Path | None) -> bool:
    """Whether a folder without a TU data set only happens to be called like a known one."""
    if not _is_name(given) or not path.is_dir() or is_tu_folder(path):
        return False
    return given in catalogue() or find_in_root(default_data_root(data_root), given) is not None


def _existing(given: str) -> Path | None:
    """The path if there is one; an empty text is none, and not the working directory."""
    try:
        path = expanded(Path(given))
        return path if given and path.exists() else None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise InputError(f"Cannot read {given}: {error.strerror or error}.") from error


def _stem(path: Path) -> str:
    path = path.resolve()
    name = path.name if path.is_dir() else path.stem
    return name.encode(errors="replace").decode()  # a name that can be printed


def _read(source: Source, progress: Progress, classes: bool) -> GraphDataset:
    path = source.path
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is neither a file nor a folder. Give one of them.")
    if path.suffix.lower() == jsonl.SUFFIX and path.is_file():
        with progress.task(f"Reading {source.name}", path.stat().st_size) as advance:
            return cache.load_or_read(
                cache_root(),
                file_digest(path),
                source.name,
                lambda: replace(jsonl.read_jsonl(path, advance), name=source.name),
            )
    if path.is_file() and path.suffix.lower() != ".zip":
        raise InputError(
            f"{path} is neither a folder, a .zip nor a {jsonl.SUFFIX} file. docs/data.md "
            "describes the formats."
        )
    tu = open_tu(path)
    with progress.task(f"Reading {tu.name}", sum(tu.parts.values())) as advance:
        if not classes and "graph_labels" not in tu:  # never where others would find it
            return read_tu(tu, advance, classes=False)
        # A zip may hold several data sets, and its name says which is meant.
        key = hashlib.sha256(f"{tu.name}\n{tu.digest()}".encode()).hexdigest()
        return cache.load_or_read(cache_root(), key, tu.name, lambda: read_tu(tu, advance))
