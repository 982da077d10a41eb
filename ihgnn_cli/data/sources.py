"""Find a data set by name or path, and read it.

The sources are tried in this order:

1. `MUTAG` and `IMDB-BINARY` are bundled with the package.
2. `synthetic:FIELD=VALUE,...` is generated.
3. A path: a folder or zip in TU format, a `.jsonl` file, or a `.csv` file of molecules.
4. `NAME.zip`, `NAME/`, `NAME.jsonl` or `NAME.csv` in the data root.
5. A download of `NAME` from the TU server into the data root, unless offline. Names that are not in
   the catalogue are refused, except where `IHGNN_MIRROR` names another server, which is asked once.

A name may be written in any case; where two differ in case only, the exact one is meant.
"""

import errno
import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from ihgnn_cli.data import cache, jsonl, smiles
from ihgnn_cli.data.access import DEFAULT, Access
from ihgnn_cli.data.catalogue import catalogue, close_names
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.download import RETRIES, by_hand, download, mirror
from ihgnn_cli.data.json_graph import ignored_keys
from ihgnn_cli.data.synthetic import generate
from ihgnn_cli.data.synthetic_spec import is_synthetic, parse_synthetic
from ihgnn_cli.data.tu import is_tu_folder, open_tu, read_tu
from ihgnn_cli.errors import DownloadError, InputError, NotOnServerError
from ihgnn_cli.files import reading, sha256_of
from ihgnn_cli.masking import masked
from ihgnn_cli.paths import cache_root, expanded
from ihgnn_cli.paths import data_root as default_data_root
from ihgnn_cli.progress import NO_PROGRESS, Advance, Progress

BUNDLED = ("MUTAG", "IMDB-BINARY")
_READERS = {jsonl.SUFFIX: jsonl.read_jsonl, smiles.SUFFIX: smiles.read_molecules}
"""How a single file is read, by the end of its name."""
_log = logging.getLogger(__name__)
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
    """A data set on this machine."""

    name: str
    origin: Origin
    path: Path
    """For a synthetic data set, its name; there is no such file."""

    @property
    def has_files(self) -> bool:
        """Whether it is read from files of the user."""
        return self.origin not in (Origin.BUNDLED, Origin.SYNTHETIC)

    def __str__(self) -> str:
        return f"{self.origin}: {self.path}" if self.has_files else str(self.origin)

    @property
    def reference(self) -> str:
        """The name or path to `locate` the same data by, from any folder."""
        return str(self.path) if self.origin == Origin.PATH else self.name


def locate(given: str, where: Access = DEFAULT) -> Source:
    """Find a data set by name or path; download it if it is not on this machine.

    Raises:
        InputError: the path or the name does not exist, or the fields of a synthetic data set are
            invalid.
        DownloadError: it cannot be downloaded; says where to put the file.
    """
    path = None if is_own_name(given) else _existing(given)
    if path is None and not is_own_name(given) and not _is_name(given):
        raise _no_path(given)
    if path is None or (path.is_dir() and _is_name(given) and not is_tu_folder(path)):
        return locate_by_name(given, where)
    return Source(_stem(path), Origin.PATH, path.absolute())


def locate_file(given: str, *, data_root: Path | None = None) -> Source:
    """Find files to check: existing paths come first, and nothing is downloaded.

    Raises:
        InputError: there is no such path or name on this machine.
    """
    path = None if is_synthetic(given) else _existing(given)
    if path is not None:
        return Source(_stem(path), Origin.PATH, path.absolute())
    given = _spelled(given, data_root)
    found = find_in_root(default_data_root(data_root), given) if _is_name(given) else None
    if found is None and not is_own_name(given):
        raise _no_path(given)
    return locate_by_name(given, Access(data_root, offline=True))


def locate_by_name(given: str, where: Access = DEFAULT) -> Source:
    """`locate`, ignoring files and folders in the working directory.

    Raises:
        InputError: it is not a name, or no data set has it.
        DownloadError: it cannot be downloaded; says where to put the file.
    """
    given = _spelled(given, where.data_root)
    if given in BUNDLED:
        return Source(given, Origin.BUNDLED, bundled_path(given))
    if is_synthetic(given):
        name = str(parse_synthetic(given))
        return Source(name, Origin.SYNTHETIC, Path(name))
    if not _is_name(given):
        raise InputError(
            f"'{given}' is not the name of a data set. Give a name that 'ihgnn datasets --all' "
            "lists."
        )
    root = default_data_root(where.data_root)
    found = find_in_root(root, given)
    if found is not None:
        return Source(given, Origin.DATA_ROOT, found)
    known = given in catalogue()
    server = mirror()
    if not known and server is None:
        raise _unknown(given)
    if where.offline:
        raise DownloadError(
            f"{given} is not on this machine, and --offline forbids downloading it.\n"
            f"{by_hand(given, root)}"
        )
    retries = RETRIES if known else 0
    try:
        return Source(given, Origin.DOWNLOAD, download(given, root, where.progress, retries))
    except NotOnServerError as error:
        if known:
            raise
        raise _unknown(given, f", and {masked(server or '')} has none of that name") from error


def is_own_name(given: str) -> bool:
    """Whether a name is a bundled or synthetic data set, whatever files exist."""
    return given in BUNDLED or is_synthetic(given)


def read(source: Source, progress: Progress = NO_PROGRESS, *, classes: bool = True) -> GraphDataset:
    """Read a data set through the cache of parsed data, or generate a synthetic one.

    With `classes=False`, graphs need no classes; without them, all classes are unknown (-1).

    Raises:
        InputError: the format is unknown, or the files contain mistakes (`DataError`).
    """
    if source.origin == Origin.SYNTHETIC:
        return replace(generate(parse_synthetic(source.name)), source=source.reference)
    with reading(source.path):
        dataset = replace(_read(source, progress, classes), source=source.reference)
    if dataset.notes.ignored_keys:
        _log.warning("%s", ignored_keys(source.path.name, dataset.notes.ignored_keys))
    return dataset


def load_dataset(
    given: str,
    *,
    data_root: Path | None = None,
    offline: bool = False,
    progress: Progress = NO_PROGRESS,
) -> GraphDataset:
    """Find and read a data set by name or path: `locate`, then `read`."""
    return read(locate(given, Access(data_root, offline, progress)), progress)


def refuse_overwriting(outputs: Sequence[Path], sources: Sequence[Source]) -> None:
    """Refuse to write to a file that is being read.

    Raises:
        InputError: an output is part of a source.
    """
    for output in outputs:
        place = output.resolve()
        for source in sources:
            if place == source.path.resolve() or source.path.resolve() in place.parents:
                raise InputError(f"{output} belongs to the data set. Write to another file.")


def bundled_path(name: str) -> Path:
    """The folder or zip of a bundled data set."""
    folder = Path(str(files("ihgnn_cli.data") / "bundled" / name))
    archive = folder / f"{name}.zip"
    return archive if archive.exists() else folder


def find_in_root(root: Path, name: str) -> Path | None:
    """Find the zip, folder, JSON-lines or CSV file of this name in a data root.

    Raises:
        InputError: the data root cannot be read.
    """
    with reading(root):
        for end in (".zip", "", *_READERS):
            path = root / f"{name}{end}"
            if is_tu_folder(path) if path.is_dir() else path.exists():
                return path
    return None


def _spelled(given: str, data_root: Path | None) -> str:
    """The name of a known data set as it is spelled, if `given` differs from it in case only."""
    if not _is_name(given) or given in (*BUNDLED, *catalogue()):
        return given
    root = default_data_root(data_root)
    if find_in_root(root, given) is not None:
        return given
    known = (*BUNDLED, *_names_in_root(root), *catalogue())
    return next((name for name in known if name.lower() == given.lower()), given)


def _names_in_root(root: Path) -> list[str]:
    with reading(root):
        paths = sorted(root.iterdir()) if root.is_dir() else []
    files = (".zip", *_READERS)
    names = [path.stem if path.suffix in files else path.name for path in paths]
    return [name for name in names if find_in_root(root, name) is not None]


def _is_name(given: str) -> bool:
    return bool(_NAME.fullmatch(given)) and not given.endswith((".zip", *_READERS))


def _no_path(given: str) -> InputError:
    return InputError(f"No file or folder '{given}'. Give a path that exists, or a name.")


def _unknown(given: str, but: str = "") -> InputError:
    similar = close_names(given)
    meant = f" Did you mean {' or '.join(similar)}?" if similar else ""
    return InputError(
        f"No data set '{given}' is known{but}.{meant}\nGive a name that 'ihgnn datasets --all' "
        "lists, or the path of a folder, a .zip, a .jsonl or a .csv file."
    )


def _existing(given: str) -> Path | None:
    """The path if it exists; an empty text does not mean the working directory."""
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
    return name.encode(errors="replace").decode()  # printable


def _read(source: Source, progress: Progress, classes: bool) -> GraphDataset:
    path = source.path
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path} is neither a file nor a folder. Give one of them.")
    suffix = path.suffix.lower() if path.is_file() else ""
    if suffix not in ("", ".zip", *_READERS):
        raise InputError(
            f"{path} is neither a folder, a .zip, a {jsonl.SUFFIX} nor a {smiles.SUFFIX} file. "
            "docs/data.md describes the formats."
        )
    if suffix in _READERS:
        size, name = path.stat().st_size, source.name
        # Another version of RDKit may read a molecule differently.
        version = smiles.require_rdkit() if suffix == smiles.SUFFIX else ""
        key = f"{suffix} {version} {sha256_of(path)}"

        def parsed(advance: Advance) -> GraphDataset:
            return replace(_READERS[suffix](path, advance, classes=classes), name=name)
    else:
        tu = open_tu(path)
        size, name = sum(tu.sizes.values()), tu.name
        key = f"{name} {tu.digest()}"  # a zip may hold several data sets
        classes = classes or "graph_labels" in tu

        def parsed(advance: Advance) -> GraphDataset:
            return read_tu(tu, advance, classes=classes)

    digest = hashlib.sha256(f"{key} {classes}".encode()).hexdigest()
    with progress.task(f"Reading {name}", size) as advance:
        return cache.load_or_read(cache_root(), digest, name, lambda: parsed(advance))
