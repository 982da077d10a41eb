"""The raw files of a TU data set, in a folder or a zip (which is never unpacked to disk)."""

import errno
import hashlib
import lzma
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from ihgnn_cli.errors import DataError, Problem
from ihgnn_cli.files import sha256_of

EDGE_LIST = "_A.txt"
# Numbers as text compress by a factor of 6 (COLLAB) to 50; a zip bomb by 1000 and more.
MAX_COMPRESSION = 200
# A zip with less content than this cannot exhaust disk or memory, whatever its compression.
HARMLESS_BYTES = 64 << 20
_MISSPELT = 0.9  # similarity above which a file name counts as misspelt
# What zipfile and its decompressors raise for a damaged file.
DAMAGE = (
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    UnicodeDecodeError,
    zlib.error,
    lzma.LZMAError,
    OSError,
)
PARTS = (
    "A",
    "graph_indicator",
    "graph_labels",
    "graph_attributes",
    "node_labels",
    "node_attributes",
    "edge_labels",
    "edge_attributes",
)


class TUFiles(ABC):
    """The files `NAME_<part>.txt` of one TU data set."""

    def __init__(self, path: Path, name: str, parts: dict[str, int]) -> None:
        self.path = path
        self.name = name
        self.parts = parts
        """Size in bytes of each part: `A`, `graph_indicator`, `graph_labels`, …"""

    def __contains__(self, part: str) -> bool:
        return part in self.parts

    def file_name(self, part: str) -> str:
        """The file name to show to the user."""
        return f"{self.name}_{part}.txt"

    @abstractmethod
    @contextmanager
    def open(self, part: str) -> Iterator[BinaryIO]:
        """Open a part for reading; it must exist."""

    @abstractmethod
    def digest(self) -> str:
        """SHA-256 of the raw content."""


class _Folder(TUFiles):
    @contextmanager
    def open(self, part: str) -> Iterator[BinaryIO]:
        with (self.path / self.file_name(part)).open("rb") as stream:
            yield stream

    def digest(self) -> str:
        digest = hashlib.sha256()
        for part, size in sorted(self.parts.items()):
            digest.update(f"{part} {size}\n".encode())
            with (self.path / self.file_name(part)).open("rb") as stream:
                hashlib.file_digest(stream, lambda: digest)
        return digest.hexdigest()


class _Zip(TUFiles):
    def __init__(self, path: Path, name: str, members: dict[str, zipfile.ZipInfo]) -> None:
        super().__init__(path, name, {part: info.file_size for part, info in members.items()})
        self._members = members

    @contextmanager
    def open(self, part: str) -> Iterator[BinaryIO]:
        try:
            with (
                zipfile.ZipFile(self.path) as archive,
                archive.open(self._members[part]) as stream,
            ):
                yield cast(BinaryIO, stream)
        except DAMAGE as error:
            raise _damaged(self.path, error) from error

    def digest(self) -> str:
        return sha256_of(self.path)


def open_tu(path: Path) -> TUFiles:
    """Open the TU data set in a folder or a zip.

    Raises:
        DataError: there is none, there are several, or the zip is damaged or unsafe.
        OSError: the path cannot be read.
    """
    return _open_folder(path) if path.is_dir() else _open_zip(path)


def is_tu_folder(path: Path) -> bool:
    """Whether a folder holds at least one TU data set, valid or not."""
    return any(any(folder.glob(f"*{EDGE_LIST}")) for folder in _places(path))


def _places(path: Path) -> list[Path]:
    """The folder, and its sub-folders `raw` (torch-geometric's layout) and NAME."""
    return [each for each in (path, path / "raw", path / path.name) if each.is_dir()]


def _open_folder(path: Path) -> TUFiles:
    for folder in _places(path):
        entries = {entry.name: entry for entry in folder.iterdir()}
        files = {file: entry for file, entry in entries.items() if entry.is_file()}
        name = _choose(path, [file for file in files if file.endswith(EDGE_LIST)])
        if name is not None:
            _refuse_odd(path, name, entries, files)
            parts = {part: files[file].stat().st_size for file, part in _parts(name, files)}
            return _Folder(folder, name, parts)
    raise DataError([_no_edge_list(path)])


def _open_zip(path: Path) -> TUFiles:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except DAMAGE as error:
        raise _damaged(path, error) from error
    _refuse_unsafe(path, members)
    files = {
        PurePosixPath(member.filename.replace("\\", "/")): member
        for member in members
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    }
    edge_lists = [file for file in files if file.name.endswith(EDGE_LIST)]
    name = _choose(path, [file.name for file in edge_lists])
    if name is None:
        raise DataError([_no_edge_list(path)])
    folder = next(file.parent for file in edge_lists if file.name == name + EDGE_LIST)
    local = {file.name: member for file, member in files.items() if file.parent == folder}
    _refuse_odd(path, name, local, local)
    return _Zip(path, name, {part: local[file] for file, part in _parts(name, local)})


def _parts(name: str, files: Container[str]) -> list[tuple[str, str]]:
    """File name and part of the files that belong to data set `name`."""
    named = [(f"{name}_{part}.txt", part) for part in PARTS]
    return [(file, part) for file, part in named if file in files]


def _refuse_odd(path: Path, name: str, entries: Container[str], files: Collection[str]) -> None:
    """Refuse what would be overlooked: a part that is not a file, or has a misspelt name."""
    parts = {f"{name}_{part}.txt" for part in PARTS}
    problems = [
        Problem(str(path), None, f"{part} exists but is not a file.", "Replace it with the file.")
        for part in sorted(parts)
        if part in entries and part not in files
    ]
    for file in sorted(files):
        meant = get_close_matches(file, parts - set(files), n=1, cutoff=_MISSPELT)
        if file.startswith(f"{name}_") and file not in parts and meant:
            remedy = f"Did you mean {meant[0]}? Rename it, or move it away."
            problems.append(Problem(str(path), None, f"{file} is not part of the format.", remedy))
    if problems:
        raise DataError(problems)


def _choose(path: Path, edge_lists: list[str]) -> str | None:
    """The data set's name, from its edge list; of several, the one named like the folder or zip."""
    own = path.name if path.is_dir() else path.stem
    names = sorted(file.removesuffix(EDGE_LIST) for file in edge_lists)
    if len(names) > 1:
        if names.count(own) == 1:
            return own
        raise DataError(
            [
                Problem(
                    str(path),
                    None,
                    f"it holds several data sets: {', '.join(names)}.",
                    "Keep one, or name the folder or zip after the one to read.",
                )
            ]
        )
    return names[0] if names else None


def _refuse_unsafe(path: Path, members: list[zipfile.ZipInfo]) -> None:
    remedy = "Do not trust this file; download it again from its publisher."
    problems = []
    seen = set()
    for member in members:
        name = member.filename.replace("\\", "/")
        if name.startswith("/") or name[1:3] == ":/" or ".." in PurePosixPath(name).parts:
            message = f"its member {member.filename!r} points outside the archive."
            problems.append(Problem(str(path), None, message, remedy))
        if name in seen:
            message = f"its member {member.filename!r} appears twice."
            problems.append(Problem(str(path), None, message, remedy))
        seen.add(name)
        if member.flag_bits & 1:
            message = f"its member {member.filename!r} is encrypted."
            problems.append(Problem(str(path), None, message, "Unpack it and give the folder."))
    total = sum(member.file_size for member in members)
    if total > HARMLESS_BYTES and total > MAX_COMPRESSION * path.stat().st_size:
        message = f"it would unpack to {total / 2**30:,.1f} GiB, like a zip bomb."
        problems.append(Problem(str(path), None, message, remedy))
    if problems:
        raise DataError(problems)


def _no_edge_list(path: Path) -> Problem:
    return Problem(
        str(path),
        None,
        "no TU data set found (no file NAME_A.txt with edges).",
        "Check the path; docs/data.md describes the format.",
    )


def _damaged(path: Path, error: Exception) -> Exception:
    """The error to raise; errors of the file system are passed on."""
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return error
    reason = str(error).rstrip(".")
    return DataError(
        [
            Problem(
                str(path),
                None,
                f"not a complete zip file ({reason}).",
                "Delete it and download it again.",
            )
        ]
    )
