"""Read molecules from a CSV file with a column of SMILES; needs RDKit.

    smiles,class,id
    CCO,alcohol,ethanol

The atoms are nodes labelled with their element, the bonds are edges labelled with their type.
Hydrogens are implicit, as RDKit reads them. If no column is named `class`, it is the only other
column.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.data.dataset import GraphDataset, Value
from ihgnn_cli.data.json_graph import GraphError, JsonGraph
from ihgnn_cli.data.jsonl import Collected
from ihgnn_cli.data.problems import MAX_LINE, NOT_TEXT, SAVE_AS_TEXT, TOO_LONG, Problems
from ihgnn_cli.errors import DataError, InputError, Problem
from ihgnn_cli.progress import Advance, silent
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from rdkit.Chem import Mol

SUFFIX = ".csv"
SMILES, CLASS, ID = "smiles", "class", "id"
_DELIMITERS = ",;\t"
_NUMBER = re.compile(r"[-+]?\d{1,18}(\.\d*)?")


@dataclass(frozen=True)
class MoleculeRow:
    """One row of the file."""

    smiles: str
    class_text: str = ""
    """Empty if there is none."""
    id: str | None = None
    mistake: str = ""
    """What is wrong with the row, if anything."""

    def graph(self) -> JsonGraph:
        """The molecule as a graph without class.

        Raises:
            GraphError: the row or its SMILES is not valid.
        """
        if self.mistake:
            raise GraphError(self.mistake, "Put quotes around cells that hold separators.")
        molecule = _molecule(self.smiles)
        bonds = list(molecule.GetBonds())
        return JsonGraph(
            num_nodes=molecule.GetNumAtoms(),
            edges=[(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in bonds],
            graph_class=None,
            node_labels=[atom.GetSymbol() for atom in molecule.GetAtoms()],
            node_attributes=None,
            edge_labels=[str(bond.GetBondType()).lower() for bond in bonds],
            edge_attributes=None,
            id=self.id,
        )


@dataclass(frozen=True)
class _Columns:
    """Positions of the columns that are read."""

    smiles: int
    graph_class: int | None
    id: int | None
    ignored: tuple[str, ...]


def read_molecules(path: Path, advance: Advance = silent, *, classes: bool = True) -> GraphDataset:
    """Read a data set. With `classes=False`, molecules need no class.

    Raises:
        DataError: with the first problems found, each with its line.
        InputError: RDKit is not installed.
    """
    require_rdkit()
    columns, numbered = _open(path, advance, classes)
    rows = list(numbered)
    problems = Problems()
    collected = Collected(classes, ignored=set(columns.ignored))
    as_numbers = all(_NUMBER.fullmatch(row.class_text) for _, row in rows if row.class_text)
    for line, row in rows:
        try:
            graph_class = _class(row.class_text, as_numbers)
            collected.add(replace(row.graph(), graph_class=graph_class), line)
        except GraphError as error:
            problems.add(path.name, line, error.message, error.remedy)
    if not rows:
        problems.add(path.name, None, "no molecules found.", "Write one per line after the header.")
    return collected.finished(path, problems)


def molecules(path: Path, advance: Advance = silent) -> Iterator[tuple[int, MoleculeRow]]:
    """The rows of a file with their lines, one at a time, for prediction.

    Raises:
        DataError: the file has no column of SMILES, or is not text.
        InputError: RDKit is not installed, or the file cannot be read.
    """
    require_rdkit()
    return _open(path, advance, classes=False)[1]


def is_molecules(path: Path) -> bool:
    """Whether a CSV file has a column of SMILES."""
    try:
        _open(path, silent, classes=False)
    except (DataError, OSError):
        return False
    return True


def require_rdkit() -> str:
    """The version of RDKit.

    Raises:
        InputError: it is not installed.
    """
    try:
        import rdkit
    except ModuleNotFoundError as error:
        raise InputError(
            f"A {SUFFIX} file is read as molecules (a column of SMILES), which needs RDKit. "
            "Install it: pip install 'ihgnn-cli[chem]'"
        ) from error
    return str(rdkit.__version__)


def _open(
    path: Path, advance: Advance, classes: bool
) -> tuple[_Columns, Iterator[tuple[int, MoleculeRow]]]:
    """The columns, and an iterator over the rows."""
    rows = _cells(path, advance)
    _, header = next(rows, (1, []))
    columns = _columns(path.name, [name.strip() for name in header], classes)
    return columns, ((line, _row(cells, columns, len(header))) for line, cells in rows)


def _cells(path: Path, advance: Advance) -> Iterator[tuple[int, list[str]]]:
    """The non-empty rows with their lines."""

    def lines(stream: Iterable[str]) -> Iterator[str]:
        for line in stream:
            advance(len(line.encode()))
            yield line

    def wrong(line: int | None, message: str, remedy: str) -> DataError:
        return DataError([Problem(path.name, line, message, remedy)])

    with path.open(encoding="utf-8-sig", newline="") as stream:
        try:
            header = stream.readline(MAX_LINE)
            if len(header) == MAX_LINE:
                raise wrong(1, TOO_LONG, "Correct the file.")
            delimiter = max(_DELIMITERS, key=header.count)
            reader = csv.reader(lines(chain([header], stream)), delimiter=delimiter)
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield reader.line_num, cells
        except UnicodeDecodeError as error:
            raise wrong(None, NOT_TEXT, SAVE_AS_TEXT) from error
        except csv.Error as error:
            raise wrong(reader.line_num, f"not CSV ({error}).", "Correct it.") from error


def _columns(file: str, header: list[str], classes: bool) -> _Columns:
    """The columns to read, by their names.

    Raises:
        DataError: they cannot be told from the names, which the message lists.
    """
    names = [name.lower() for name in header]

    def refused(what: str) -> DataError:
        shown = ", ".join(header)[:200]
        remedy = f"Name the columns {SMILES}, {CLASS} and, if there are names, {ID}."
        return DataError([Problem(file, 1, f"{what} (columns: {shown}).", remedy)])

    found = [at for at, name in enumerate(names) if name == SMILES]
    found = found or [at for at, name in enumerate(names) if SMILES in name]
    if len(found) != 1:
        raise refused("several columns of SMILES" if found else "no column of SMILES")
    own_id = names.index(ID) if ID in names else None
    others = [at for at in range(len(names)) if at not in (found[0], own_id)]
    of_class = [at for at, name in enumerate(names) if name == CLASS] or others
    if classes and len(of_class) != 1:
        raise refused("several columns could be the class" if of_class else "no column of classes")
    graph_class = of_class[0] if len(of_class) == 1 else None
    ignored = tuple(header[at] for at in others if at != graph_class)
    return _Columns(found[0], graph_class, own_id, ignored)


def _row(cells: list[str], columns: _Columns, width: int) -> MoleculeRow:
    if len(cells) != width:
        return MoleculeRow("", mistake=f"{counted(len(cells), 'cell')} instead of {width}.")
    return MoleculeRow(
        cells[columns.smiles].strip(),
        "" if columns.graph_class is None else cells[columns.graph_class].strip(),
        None if columns.id is None else cells[columns.id].strip() or None,
    )


def _class(text: str, as_number: bool) -> Value | None:
    """The class of a row; numbers are integers if all classes of the file are numbers."""
    if not text or not as_number:
        return text or None
    if not float(text).is_integer():
        raise GraphError(f"the class '{text}' is a fraction.", "Use integers or words as classes.")
    return int(text.partition(".")[0])


def _molecule(smiles: str) -> "Mol":
    from rdkit import Chem, rdBase

    if not smiles:
        raise GraphError("no SMILES.", "Add it, or remove the row.")
    with rdBase.BlockLogs():  # RDKit would write to standard error
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is not None and molecule.GetNumAtoms():
            return molecule
        unchecked = Chem.MolFromSmiles(smiles, sanitize=False)
        found = [] if unchecked is None else Chem.DetectChemistryProblems(unchecked)
    if found:
        message = f"'{smiles[:40]}' is not a possible molecule ({found[0].Message()})."
    else:
        message = f"'{smiles[:40]}' is not valid SMILES."
    raise GraphError(message, "Correct it, or remove the row.")
