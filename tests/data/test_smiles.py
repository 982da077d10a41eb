"""Molecules in CSV files: the columns, the graphs, and every reason to refuse a row."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.listing import list_local
from ihgnn_cli.data.smiles import read_molecules
from ihgnn_cli.data.sources import load_dataset
from ihgnn_cli.errors import DataError, InputError, Problem

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> Path:
        path = tmp_path / "molecules.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def read(write: Write) -> Callable[..., GraphDataset]:
    pytest.importorskip("rdkit", reason="RDKit is not installed (extra chem)")

    def write_and_read(text: str, *, classes: bool = True) -> GraphDataset:
        return read_molecules(write(text), classes=classes)

    return write_and_read


def problems(read: Callable[..., GraphDataset], text: str) -> tuple[Problem, ...]:
    with pytest.raises(DataError) as caught:
        read(text)
    return caught.value.problems


def test_atoms_are_nodes_and_bonds_are_edges(read) -> None:
    dataset = read("id,smiles,class\nacid,CC(=O)O,acid\nphenol,c1ccccc1O,alcohol\n")
    assert (dataset.name, len(dataset)) == ("molecules", 2)
    assert dataset.label_values == ("C", "O")
    assert dataset.node_label.tolist() == [0, 0, 1, 1] + [0] * 6 + [1]
    assert dataset.select([0]).edge_index().tolist() == [[0, 1, 1, 1, 2, 3], [1, 0, 2, 3, 1, 1]]
    assert dataset.edge_label_values == ("aromatic", "double", "single")
    assert dataset.select([0]).edge_label.tolist() == [2, 2, 1, 2, 1, 2]
    assert [dataset.class_values[each] for each in dataset.graph_class] == ["acid", "alcohol"]
    assert dataset.ids == ("acid", "phenol")


@pytest.mark.parametrize(
    "header",
    ["SMILES,class", "Smiles,Label", "canonical_smiles,y", "smiles,target", "smiles , Activity "],
)
def test_usual_names_of_columns_are_recognised_in_any_case(read, header: str) -> None:
    dataset = read(f"{header}\nCCO,1\nCOC,0\n")
    assert (dataset.class_values, dataset.graph_class.tolist()) == ((0, 1), [1, 0])


def test_a_column_named_class_comes_before_others(read) -> None:
    dataset = read("y,smiles,class,weight\n5,CCO,a,46\n6,COC,b,46\n")
    assert dataset.class_values == ("a", "b")
    assert dataset.notes.ignored_keys == ("weight", "y")


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "-1"], (-1, 1)),
        (["0.0", "1.0"], (0, 1)),
        (["1", "2b"], ("1", "2b")),
        (["ja", "nein"], ("ja", "nein")),
    ],
)
def test_classes_are_integers_if_all_are_and_words_otherwise(read, cells, values) -> None:
    first, second = cells
    assert read(f"smiles,class\nCCO,{first}\nCOC,{second}\n").class_values == values


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_separators_quotes_and_a_byte_order_mark_are_read(read, delimiter: str) -> None:
    text = f'\ufeff"smiles"{delimiter}class\r\n"CCO"{delimiter}"a, b"\r\n\r\nCOC{delimiter}c\r\n'
    assert read(text).class_values == ("a, b", "c")


def test_molecules_with_one_atom_salts_and_isotopes_are_graphs(read) -> None:
    dataset = read("smiles,class\nC,a\n[Na+].[Cl-],b\n[2H]OC,a\n")
    assert dataset.label_values == ("C", "Cl", "H", "Na", "O")
    assert dataset.num_edges == 2


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("CCO,1", "no column of SMILES (columns: CCO, 1)"),
        ("mol,Class,pIC50", "no column of SMILES (columns: mol, Class, pIC50)"),  # BACE
        ("num,name,p_np,smiles", "several columns could be the class"),  # BBBP
        ("smiles,activity,HIV_active", "several columns could be the class"),  # HIV
        ("smiles", "no column of classes (columns: smiles)"),
        ("old_smiles,new_smiles,y", "several columns of SMILES"),
    ],
)
def test_columns_that_cannot_be_told_are_refused_with_their_names(read, header, said) -> None:
    (problem,) = problems(read, f"{header}\n")
    assert (problem.file, problem.line) == ("molecules.csv", 1)
    assert said in problem.message
    assert problem.remedy == "Name the columns smiles, class and, if there are names, id."


def test_invalid_molecules_are_told_with_their_lines(read) -> None:
    rows = "\n".join(["C1CC,a", "CCO,a", "C(C)(C)(C)(C)C,b", ",b", "CCO,a,b"])
    ring, valence, missing, cells = problems(read, f"smiles,class\n{rows}\n")
    assert (ring.line, ring.message) == (2, "'C1CC' is not valid SMILES.")
    assert valence.line == 4
    assert valence.message.startswith("'C(C)(C)(C)(C)C' is not a possible molecule (Explicit val")
    assert (missing.line, missing.message) == (5, "no SMILES.")
    assert (cells.line, cells.message) == (6, "3 cells instead of 2.")
    assert ring.remedy == "Correct it, or remove the row."


def test_nothing_of_rdkit_reaches_standard_error(read, capfd: pytest.CaptureFixture[str]) -> None:
    problems(read, "smiles,class\nC1CC,a\nC(C)(C)(C)(C)C,a\n")
    assert capfd.readouterr() == ("", "")


def test_classes_are_no_fractions_and_do_not_lack(read) -> None:
    fraction, none = problems(read, "smiles,y\nCCO,1\nCOC,-0.77\nCC,\n")
    assert (fraction.line, fraction.message) == (3, "the class '-0.77' is a fraction.")
    assert (none.line, none.message) == (4, "no class.")
    (empty,) = problems(read, "smiles,y\n\n")
    assert empty.message == "no molecules found."


def test_for_prediction_there_need_be_no_classes(read) -> None:
    for text in ("smiles\nCCO\n", "smiles,y\nCCO,\n", "smiles,label,y\nCCO,1,2\n"):
        assert read(text, classes=False).class_values == ()


def test_what_is_not_text_is_refused(read, tmp_path: Path) -> None:
    path = tmp_path / "utf16.csv"
    path.write_bytes("smiles,class\nC,1\n".encode("utf-16"))
    with pytest.raises(DataError, match="not plain text"):
        read_molecules(path)


def test_a_file_is_found_by_path_and_in_the_data_root_and_cached(
    read, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("smiles,class,id\nCCO,a,one\nCOC,b,two\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    first = load_dataset(str(path))
    assert load_dataset("molecules", data_root=tmp_path).fingerprint == first.fingerprint
    assert [each.name for each in list_local(tmp_path)] == ["MUTAG", "IMDB-BINARY", "molecules"]
    monkeypatch.setattr("ihgnn_cli.data.smiles._molecule", None)
    again = load_dataset(str(path))
    assert (again.fingerprint, again.ids) == (first.fingerprint, ("one", "two"))


def test_without_rdkit_the_message_says_how_to_get_it(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rdkit", None)
    path = write("smiles,class\nCCO,a\n")
    with pytest.raises(InputError, match=r"needs RDKit.*pip install 'ihgnn-cli\[chem\]'"):
        load_dataset(str(path))
