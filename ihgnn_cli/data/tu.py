"""Read the TU Dortmund text format from a folder or a zip (which is never unpacked to disk).

`NAME_A.txt` lists edges `row, column`; nodes are numbered from 1 across the whole data set.
`NAME_graph_indicator.txt` gives the graph of each node, `NAME_graph_labels.txt` the class of each
graph (optional for prediction). Labels and attributes of nodes and edges are optional files with
one line per node or edge.
"""

import errno
import hashlib
import io
import lzma
import warnings
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.build import Coded, ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset, vocabulary
from ihgnn_cli.data.problems import (
    HARMLESS_BYTES,
    MAX_COMPRESSION,
    MAX_LINE,
    MAX_MEMBERS,
    NOT_TEXT,
    SAVE_AS_TEXT,
    TOO_LONG,
    Problems,
)
from ihgnn_cli.errors import DataError, Problem
from ihgnn_cli.files import sha256_of
from ihgnn_cli.progress import Advance, silent
from ihgnn_cli.words import counted

EDGE_LIST = "_A.txt"
PARTS = (
    *("A", "graph_indicator", "graph_labels", "graph_attributes"),
    *("node_labels", "node_attributes", "edge_labels", "edge_attributes"),
)
DAMAGE = (
    *(zipfile.BadZipFile, NotImplementedError, EOFError, UnicodeDecodeError),
    *(zlib.error, lzma.LZMAError, OSError, RuntimeError),  # RuntimeError: encrypted
)
"""What zipfile and its decompressors raise for a damaged file."""
_COLUMNS = {"A": 2, "graph_indicator": 1, "graph_labels": 1}
_INDICES = ("A", "graph_indicator")
_MISSPELT = 0.9  # similarity above which a file name counts as misspelt
_FORMAT = "docs/data.md describes the format."
_WORDS = "TU labels are integers; JSON lines take words (docs/data.md)."
_NUMBERING = "Node and graph numbers start at 1."
_ONE_LINE_EACH = "Both need one line per item, in the same order."

Table = NDArray[Any]
"""A 2-D array of numbers."""


@dataclass(frozen=True)
class TUFiles:
    """The files `NAME_<part>.txt` of one TU data set."""

    path: Path
    """The folder or zip."""
    name: str
    sizes: dict[str, int]
    """Size in bytes of each part: `A`, `graph_indicator`, `graph_labels`, ..."""
    places: dict[str, str]
    """Where each part is: a path, or a member of the zip."""

    def __contains__(self, part: str) -> bool:
        return part in self.sizes

    def file_name(self, part: str) -> str:
        """The file name to show to the user."""
        return f"{self.name}_{part}.txt"

    def read(self, part: str) -> bytes:
        """The content of a part; it must exist."""
        if self.path.is_dir():
            return Path(self.places[part]).read_bytes()
        try:
            with zipfile.ZipFile(self.path) as archive:
                return archive.read(self.places[part])
        except DAMAGE as error:
            raise _damaged(self.path, error) from error

    def digest(self) -> str:
        """SHA-256 of the raw content."""
        if self.path.is_file():
            return sha256_of(self.path)
        found = [f"{part} {sha256_of(Path(self.places[part]))}" for part in sorted(self.sizes)]
        return hashlib.sha256("\n".join(found).encode()).hexdigest()


def open_tu(path: Path) -> TUFiles:
    """Find the TU data set in a folder or a zip.

    Raises:
        DataError: there is none, there are several, or the zip is damaged or would not fit in
            memory.
        OSError: the path cannot be read.
    """
    if path.is_dir():
        for folder in _places(path):
            sizes = {each.name: each.stat().st_size for each in folder.iterdir() if each.is_file()}
            if any(file.endswith(EDGE_LIST) for file in sizes):
                name = _name(path, sizes)
                return _parts(path, name, sizes, {file: str(folder / file) for file in sizes})
        raise _no_data_set(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except DAMAGE as error:
        raise _damaged(path, error) from error
    total = sum(member.file_size for member in members)
    distrust = "Do not trust this file; download it again from its publisher."
    if len(members) > MAX_MEMBERS:
        raise _wrong(path, f"it has {len(members):,} members.", distrust)
    if total > HARMLESS_BYTES and total > MAX_COMPRESSION * path.stat().st_size:
        raise _wrong(path, f"it would unpack to {total / 2**30:,.1f} GB, like a bomb.", distrust)
    found = {
        PurePosixPath(member.filename.replace("\\", "/")): member
        for member in members
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    }
    name = _name(path, [file.name for file in found])
    inside = next(file.parent for file in found if file.name == name + EDGE_LIST)
    here = {file.name: member for file, member in found.items() if file.parent == inside}
    sizes = {file: member.file_size for file, member in here.items()}
    return _parts(path, name, sizes, {file: member.filename for file, member in here.items()})


def is_tu_folder(path: Path) -> bool:
    """Whether a folder holds at least one TU data set, valid or not."""
    return any(any(folder.glob(f"*{EDGE_LIST}")) for folder in _places(path))


def read_tu(files: TUFiles, advance: Advance = silent, *, classes: bool = True) -> GraphDataset:
    """Read a TU data set. With `classes=False`, the file of classes may be missing.

    Raises:
        DataError: with the first problems found in the files.
    """
    reading = _Reading(files, advance)
    for part in ("A", "graph_indicator", "graph_labels")[: 3 if classes else 2]:
        if part not in files:
            regression = part == "graph_labels" and "graph_attributes" in files
            remedy = "graph_attributes are for regression; ihgnn only classifies."
            problem = f"the file is missing in {files.path}."
            reading.add(part, None, problem, remedy if regression else f"Add it; {_FORMAT}")
    reading.problems.stop()
    tables = {
        part: reading.table(part) for part in PARTS if part in files and part != "graph_attributes"
    }
    reading.problems.stop()
    reading.check(tables)
    reading.problems.stop()
    return _assemble(files.name, tables)


def read_column(files: TUFiles, part: str) -> Table:
    """One of the small files, for a listing.

    Raises:
        DataError: it is missing, or is not a table of numbers.
    """
    reading = _Reading(files, silent)
    if part not in files:
        reading.add(part, None, f"{files.file_name(part)} is missing.", "Add it.")
    reading.problems.stop()
    table = reading.table(part)
    reading.problems.stop()
    return table


@dataclass(frozen=True)
class _Reading:
    """Reads and checks the files, and collects the first mistakes."""

    files: TUFiles
    advance: Advance
    problems: Problems = field(default_factory=Problems)

    def add(self, part: str, line: int | None, message: str, remedy: str) -> None:
        self.problems.add(self.files.file_name(part), line, message, remedy)

    def add_rows(self, part: str, wrong: NDArray[np.bool_], message: str, remedy: str) -> None:
        self.problems.add_rows(self.files.file_name(part), wrong, message, remedy)

    def table(self, part: str) -> Table:
        """[rows, columns] the numbers of a file."""
        data = self.files.read(part)
        self.advance(len(data))
        data = data.removeprefix(b"\xef\xbb\xbf").rstrip()
        columns = _COLUMNS.get(part)
        dtype: type = np.int32 if part in _INDICES else np.int64
        dtype = np.float32 if part.endswith("_attributes") else dtype
        if not data:
            return np.zeros((0, columns or 1), dtype)
        unreadable = NOT_TEXT if b"\0" in data[: 1 << 16] else TOO_LONG
        if unreadable == NOT_TEXT or _has_long_line(data):
            remedy = SAVE_AS_TEXT if unreadable == NOT_TEXT else "Correct the file."
            self.add(part, None, unreadable, remedy)
            return np.zeros((0, columns or 1), dtype)
        rows = data.count(b"\n") + 1
        try:
            with warnings.catch_warnings(), np.errstate(over="ignore"):
                warnings.simplefilter("error")
                table: Table = np.loadtxt(
                    io.BytesIO(data),
                    dtype=dtype,
                    delimiter="," if b"," in data.partition(b"\n")[0] else None,
                    comments=None,
                    ndmin=2,
                )
        except (ValueError, Warning):
            return self._line_by_line(part, data, columns)
        if len(table) != rows or columns not in (None, table.shape[1]):
            return self._line_by_line(part, data, columns)
        if dtype is np.float32:
            self._check_finite(part, table)
        return table

    def _line_by_line(self, part: str, data: bytes, columns: int | None) -> Table:
        """As `table`, for a file that is not plain: slower, and knows the line of each mistake.

        It accepts whole numbers such as `1.0`, and lines with and without commas.
        """
        whole = not part.endswith("_attributes")
        rows: list[list[float]] = []
        for number, line in enumerate(io.BytesIO(data), start=1):
            fields = line.split(b",") if b"," in line else line.split()
            columns = columns or len(fields)
            if not line.strip():
                self.add(part, number, "the line is empty.", "Remove it or fill it.")
            elif len(fields) != columns:
                remedy = f"Write {counted(columns, 'value')} per line, separated by commas."
                self.add(part, number, f"{counted(len(fields), 'value')} found.", remedy)
            else:
                try:
                    rows.append([_whole(each) if whole else _number(each) for each in fields])
                except ValueError as error:
                    remedy = _WORDS if part.endswith("_labels") else "Correct it."
                    self.add(part, number, str(error), remedy)
        if self.problems.found:  # reported when the other files are read, too
            return np.zeros((0, columns or 1))
        table = np.array(rows, dtype=np.int64 if whole else np.float64)
        if whole:
            return table
        with np.errstate(over="ignore"):
            table = table.astype(np.float32)
        self._check_finite(part, table)
        return table

    def _check_finite(self, part: str, table: Table) -> None:
        message = "a value is NaN, infinite or beyond 32-bit floats."
        remedy = "Replace it with a finite number, or drop the attribute or the graph."
        self.add_rows(part, np.asarray(~np.isfinite(table).all(axis=1)), message, remedy)

    def check(self, tables: dict[str, Table]) -> None:
        """Check that the files fit together."""
        graph, edges = tables["graph_indicator"][:, 0], tables["A"]
        labels = tables.get("graph_labels")
        nodes = len(graph)
        for part, table in (("graph_indicator", graph), ("graph_labels", labels)):
            if table is not None and not len(table):
                self.add(part, None, "the file is empty.", "Give each node and graph its line.")
        if nodes > np.iinfo(np.int32).max:
            self.add("graph_indicator", None, f"{nodes:,} nodes.", "Split the data set.")
        self.problems.stop()
        graphs = int(graph.max()) if labels is None else len(labels)
        message = f"graphs are numbered 1 to {graphs:,}."
        self.add_rows("graph_indicator", (graph < 1) | (graph > graphs), message, _NUMBERING)
        message = f"nodes are numbered 1 to {nodes:,}, the lines of the graph indicator."
        outside = np.asarray(((edges < 1) | (edges > nodes)).any(axis=1))
        self.add_rows("A", outside, message, _NUMBERING)
        for part, expected, other in (
            *((f"node_{kind}", nodes, "graph_indicator") for kind in ("labels", "attributes")),
            *((f"edge_{kind}", len(edges), "A") for kind in ("labels", "attributes")),
        ):
            if part in tables and len(tables[part]) != expected:
                lines = f"{counted(len(tables[part]), 'line')}, and {self.files.file_name(other)}"
                self.add(part, None, f"{lines} has {expected:,}.", _ONE_LINE_EACH)
        self.problems.stop()
        if graphs > nodes or not (present := np.bincount(graph, minlength=graphs + 1)[1:]).all():
            missing = graphs if graphs > nodes else int(np.flatnonzero(present == 0)[0]) + 1
            message = f"graph {missing} has no nodes in the graph indicator."
            place = "graph_indicator" if labels is None else "graph_labels"
            line = None if labels is None else missing
            self.add(place, line, message, "Remove the graph, or give it nodes.")
        crossing = graph[edges[:, 0] - 1] != graph[edges[:, 1] - 1]
        message = "the edge joins nodes of two graphs."
        self.add_rows("A", crossing, message, "Correct it, or the graph indicator.")


def _assemble(name: str, tables: dict[str, Table]) -> GraphDataset:
    """Build the data set from checked tables; from here on, positions count from 0."""
    graph = tables["graph_indicator"][:, 0]
    edges = tables["A"].astype(np.int32, copy=False) - np.int32(1)
    moved = 0
    if (np.diff(graph) < 0).any():  # sort nodes by graph, keeping their order within a graph
        order = np.argsort(graph, kind="stable")
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order))
        moved = int(np.count_nonzero(place != np.arange(len(order))))
        edges = place[edges]
        for part in ("node_labels", "node_attributes"):
            if part in tables:
                tables[part] = tables[part][order]
    sizes = np.bincount(graph)[1:]
    classes: Coded = np.full(len(sizes), -1, dtype=np.int32), ()
    if "graph_labels" in tables:
        classes = vocabulary(tables["graph_labels"][:, 0])
    return build(
        ListedGraphs(
            name=name,
            sizes=sizes,
            source=edges[:, 0],
            target=edges[:, 1],
            classes=classes,
            node_labels=_coded(tables.get("node_labels")),
            node_attributes=tables.get("node_attributes"),
            edge_labels=_coded(tables.get("edge_labels")),
            edge_attributes=tables.get("edge_attributes"),
            reordered_nodes=moved,
        )
    )


def _coded(table: Table | None) -> Coded | None:
    """Encode labels; labels with several columns (Cuneiform) are joined as text: `1,0`."""
    if table is None:
        return None
    if table.shape[1] == 1:
        return vocabulary(table[:, 0])
    distinct, position = np.unique(table, axis=0, return_inverse=True)
    joint = np.array([",".join(map(str, row)) for row in distinct.tolist()])
    rank, values = vocabulary(joint)
    return rank[position.reshape(-1)], values


def _has_long_line(data: bytes) -> bool:
    start = 0
    while len(data) - start > MAX_LINE:
        start = data.rfind(b"\n", start, start + MAX_LINE) + 1
        if not start:
            return True
    return False


def _whole(text: bytes) -> int:
    number = _number(text)
    if b"." not in text and b"e" not in text.lower():
        number = int(text)
    if number % 1 or abs(number) >= 2**63:
        raise ValueError(f"'{_shown(text)}' is not a whole number below 2^63.")
    return int(number)


def _number(text: bytes) -> float:
    try:
        if b"_" in text:
            raise ValueError  # noqa: TRY301  Python reads 1_000
        return float(text)
    except ValueError:
        raise ValueError(f"'{_shown(text)}' is not a number.") from None


def _shown(text: bytes) -> str:
    return text.decode(errors="replace").strip()[:40]


def _places(path: Path) -> list[Path]:
    """The folder, and its sub-folders `raw` (torch-geometric's layout) and NAME."""
    return [each for each in (path, path / "raw", path / path.name) if each.is_dir()]


def _name(path: Path, files: Iterable[str]) -> str:
    """The name of the data set; of several, the one named like the folder or zip."""
    own = path.name if path.is_dir() else path.stem
    names = sorted(file.removesuffix(EDGE_LIST) for file in files if file.endswith(EDGE_LIST))
    if not names:
        raise _no_data_set(path)
    if len(names) == 1:
        return names[0]
    if names.count(own) != 1:
        remedy = "Keep one, or name the folder or zip after the one to read."
        raise _wrong(path, f"it holds several data sets: {', '.join(names[:10])}.", remedy)
    return own


def _parts(path: Path, name: str, sizes: dict[str, int], places: dict[str, str]) -> TUFiles:
    files = {f"{name}_{part}.txt": part for part in PARTS}
    _refuse_misspelt(path, name, sizes, files)
    found = [(file, part) for file, part in files.items() if file in sizes]
    parts = {part: sizes[file] for file, part in found}
    return TUFiles(path, name, parts, {part: places[file] for file, part in found})


def _refuse_misspelt(path: Path, name: str, found: Iterable[str], parts: Iterable[str]) -> None:
    """Refuse a file that would be overlooked although it is probably a part."""
    missing = set(parts) - set(found)
    for file in sorted(found):
        if file.startswith(f"{name}_") and file not in parts and len(file) < len(name) + 30:
            for meant in get_close_matches(file, missing, n=1, cutoff=_MISSPELT):
                remedy = f"Did you mean {meant}? Rename it, or move it away."
                raise _wrong(path, f"{file} is not part of the format.", remedy)


def _wrong(path: Path, message: str, remedy: str) -> DataError:
    return DataError([Problem(str(path), None, message, remedy)])


def _no_data_set(path: Path) -> DataError:
    return _wrong(path, "no TU data set found (no file NAME_A.txt with edges).", _FORMAT)


def _damaged(path: Path, error: Exception) -> Exception:
    """The error to raise; errors of the file system are passed on."""
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return error
    reason = str(error).rstrip(".") or type(error).__name__
    remedy = "Delete it and download it again."
    return _wrong(path, f"not a complete zip file ({reason}).", remedy)
