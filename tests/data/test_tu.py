"""The TU format: small data sets worked out by hand, and every reason to refuse one."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.data.problems import MAX_PROBLEMS
from ihgnn_cli.data.tu import is_tu_folder, open_tu, read_tu
from ihgnn_cli.errors import DataError

WriteTU = Callable[..., Path]

# Graph 1 is the path 1 - 2 - 3, graph 2 the edge 4 - 5.
PATH_AND_EDGE = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
}
EVERYTHING = PATH_AND_EDGE | {
    "node_labels": "3\n1\n3\n1\n1\n",
    "node_attributes": "1,.5\n2,0\n3,0\n4,0\n-5e-1,0\n",
    "edge_labels": "12\n21\n23\n32\n45\n54\n",
    "edge_attributes": "1.2\n2.1\n2.3\n3.2\n4.5\n5.4\n",
}


def read(folder: Path, **options: Any) -> GraphDataset:
    return read_tu(open_tu(folder), **options)


def values(positions: np.ndarray | None, vocabulary: tuple[int | str, ...]) -> list[int | str]:
    assert positions is not None
    return [vocabulary[position] for position in positions]


def archive(path: Path, files: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return path


def named(parts: dict[str, str], name: str = "TINY", folder: str = "") -> dict[str, str | bytes]:
    return {f"{folder}{name}_{part}.txt": content for part, content in parts.items()}


# What is read


def test_two_graphs_as_columns(write_tu: WriteTU) -> None:
    dataset = read(write_tu(**EVERYTHING))
    assert dataset.name == "TINY"
    assert dataset.node_ptr.tolist() == [0, 3, 5]
    assert dataset.neighbor_ptr.tolist() == [0, 1, 3, 4, 5, 6]
    assert dataset.neighbors.tolist() == [1, 0, 2, 1, 4, 3]
    assert (dataset.node_label.tolist(), dataset.label_values) == ([1, 0, 1, 0, 0], (1, 3))
    assert (dataset.graph_class.tolist(), dataset.class_values) == ([1, 0], (-1, 1))
    assert dataset.label_source is LabelSource.LABELS
    assert dataset.node_attributes is not None
    assert dataset.node_attributes.tolist() == [[1, 0.5], [2, 0], [3, 0], [4, 0], [-0.5, 0]]
    assert values(dataset.edge_label, dataset.edge_label_values) == [12, 21, 23, 32, 45, 54]
    assert dataset.edge_attributes is not None
    expected = np.array([1.2, 2.1, 2.3, 3.2, 4.5, 5.4], dtype=np.float32)
    assert dataset.edge_attributes[:, 0].tolist() == expected.tolist()
    assert dataset.notes == ReadingNotes()


def test_absent_columns_stay_absent_and_the_degree_is_the_label(write_tu: WriteTU) -> None:
    dataset = read(write_tu(**PATH_AND_EDGE))
    assert dataset.node_attributes is dataset.edge_label is dataset.edge_attributes is None
    assert values(dataset.node_label, dataset.label_values) == [1, 2, 1, 1, 1]
    assert dataset.label_source is LabelSource.DEGREE


@pytest.mark.parametrize(
    ("parts", "node_ptr", "neighbors"),
    [
        ({"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n2\n2\n"}, [0, 2, 4], [1, 0]),
        ({"A": "", "graph_indicator": "1\n2\n"}, [0, 1, 2], []),
        ({"A": "1, 2\n", "graph_indicator": "1\n1\n", "graph_labels": "5\n"}, [0, 2], [1, 0]),
    ],
    ids=["a last graph without edges", "no edge at all", "a single graph"],
)
def test_small_data_sets(write_tu: WriteTU, parts, node_ptr, neighbors) -> None:
    dataset = read(write_tu(**{"graph_labels": "0\n1\n", **parts}))
    assert dataset.node_ptr.tolist() == node_ptr
    assert dataset.neighbors.tolist() == neighbors


def test_labels_and_classes_keep_the_numbers_of_the_file(write_tu: WriteTU) -> None:
    parts = {"graph_labels": "7\n-2\n", "node_labels": f"-5\n{4 * 10**9}\n-5\n1\n1\n"}
    dataset = read(write_tu(**PATH_AND_EDGE | parts))
    assert dataset.class_values == (-2, 7)
    assert values(dataset.node_label, dataset.label_values) == [-5, 4 * 10**9, -5, 1, 1]


def test_labels_of_several_columns_become_one_joint_label(write_tu: WriteTU) -> None:
    parts = {"node_labels": "1, 0\n0, 1\n1, 0\n0, 0\n0, 1\n", "edge_labels": "1, 2\n" * 6}
    dataset = read(write_tu(**PATH_AND_EDGE | parts))
    assert values(dataset.node_label, dataset.label_values) == ["1,0", "0,1", "1,0", "0,0", "0,1"]
    assert dataset.edge_label_values == ("1,2",)


def test_nodes_of_a_graph_that_are_apart_are_brought_together(write_tu: WriteTU) -> None:
    # Nodes 1, 3 and 5 are graph 1 with the path 1 - 3 - 5; nodes 2 and 4 are graph 2.
    dataset = read(
        write_tu(
            A="1, 3\n3, 1\n3, 5\n5, 3\n2, 4\n4, 2\n",
            graph_indicator="1\n2\n1\n2\n1\n",
            graph_labels="10\n20\n",
            node_labels="1\n2\n3\n4\n5\n",
            node_attributes="1\n2\n3\n4\n5\n",
            edge_labels="13\n31\n35\n53\n24\n42\n",
        )
    )
    assert dataset.node_ptr.tolist() == [0, 3, 5]
    assert dataset.neighbors.tolist() == [1, 0, 2, 1, 4, 3]
    assert values(dataset.node_label, dataset.label_values) == [1, 3, 5, 2, 4]
    assert dataset.node_attributes is not None
    assert dataset.node_attributes[:, 0].tolist() == [1, 3, 5, 2, 4]
    assert values(dataset.edge_label, dataset.edge_label_values) == [13, 31, 35, 53, 24, 42]
    assert dataset.notes == ReadingNotes(reordered_nodes=4)


def test_edge_labels_that_only_dropped_edges_have_are_no_labels(write_tu: WriteTU) -> None:
    parts = {"A": "1, 1\n1, 2\n2, 1\n", "edge_labels": "3\n5\n5\n", "graph_labels": "1\n2\n"}
    dataset = read(write_tu(**PATH_AND_EDGE | parts))
    assert dataset.edge_label_values == (5,)


@pytest.mark.parametrize(
    "form",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n \n",
        lambda text: "\ufeff" + text,
        lambda text: text.replace(", ", ",").replace(",", "\t "),
    ],
    ids=["Windows", "no last newline", "blank end", "byte order mark", "blanks for commas"],
)
def test_how_a_file_is_written_changes_nothing(write_tu: WriteTU, form) -> None:
    plain = read(write_tu("PLAIN", **EVERYTHING)).fingerprint
    other = {part: form(content) for part, content in EVERYTHING.items()}
    assert read(write_tu("OTHER", **other)).fingerprint == plain
    decimals = EVERYTHING | {"node_labels": "3.0\n1.0\n3\n+1\n1e0\n"}
    assert read(write_tu("DECIMALS", **decimals)).fingerprint == plain


def test_data_to_predict_needs_no_classes(write_tu: WriteTU) -> None:
    parts = {part: content for part, content in PATH_AND_EDGE.items() if part != "graph_labels"}
    dataset = read(write_tu(**parts), classes=False)
    assert (dataset.graph_class.tolist(), dataset.class_values) == ([-1, -1], ())
    with pytest.raises(DataError, match=r"TINY_graph_labels\.txt: the file is missing"):
        read(write_tu("TINY", **parts))


def test_progress_counts_every_byte(write_tu: WriteTU) -> None:
    files, told = open_tu(write_tu(**EVERYTHING)), []
    read_tu(files, told.append)
    assert sum(told) == sum(files.sizes.values())


# What is refused: the part and its content, the line, and what is said


@pytest.mark.parametrize(
    ("part", "content", "line", "said"),
    [
        ("A", "1, 2\n0, 1\n", 2, "nodes are numbered 1 to 5"),
        ("A", "1, 2\n2, 6\n2, 7\n", 2, "(2 such lines)"),
        ("A", "1, 2\n-1, 2\n", 2, "nodes are numbered 1 to 5"),
        ("A", "1, 2\n3, 4\n", 2, "joins nodes of two graphs"),
        ("A", "1, 2\n2, one\n", 2, "'one' is not a number"),
        ("A", "1, 2\n2,\n", 2, "'' is not a number"),
        ("A", "1, 2, 1\n", 1, "3 values found"),
        ("A", f"1, {2**40}\n", 1, "nodes are numbered 1 to 5"),
        ("A", "1, 2\n2, 1.5\n", 2, "'1.5' is not a whole number"),
        ("graph_indicator", "0\n1\n1\n2\n2\n", 1, "graphs are numbered 1 to 2"),
        ("graph_indicator", "1\n1\n1\n2\n3\n", 5, "graphs are numbered 1 to 2"),
        ("graph_indicator", "1\n1\n\n2\n2\n", 3, "the line is empty"),
        ("graph_indicator", "", None, "the file is empty"),
        ("graph_labels", "1\n-1\n1\n", 3, "graph 3 has no nodes"),
        ("graph_labels", "", None, "the file is empty"),
        ("graph_labels", "1\nmutagenic\n", 2, "JSON lines take words"),
        ("graph_labels", "1, 0\n-1, 0\n", 1, "2 values found"),
        ("node_labels", "1\n2\n3\n4\n", None, "4 lines, and TINY_graph_indicator.txt has 5"),
        ("node_labels", f"1\n2\n3\n4\n{2**70}\n", 5, "not a whole number below 2^63"),
        ("node_labels", "1\n2\n3\n4\n1_0\n", 5, "'1_0' is not a number"),
        ("node_labels", "1\n2\n3\n4\n1, 2\n", 5, "2 values found"),
        ("node_attributes", "1\n2\nnan\n4\n5\n", 3, "NaN, infinite or beyond 32-bit"),
        ("node_attributes", "1\n1e39\n1\n4\n5\n", 2, "NaN, infinite or beyond 32-bit"),
        ("node_attributes", "1\n1\n1\n4\nC\n", 5, "'C' is not a number"),
        ("edge_labels", "1\n" * 7, None, "7 lines, and TINY_A.txt has 6"),
        ("edge_attributes", "0.5\n", None, "1 line, and TINY_A.txt has 6"),
        ("node_labels", "1\n2\n".encode("utf-16"), None, "not plain text"),
    ],
)
def test_a_mistake_is_refused_with_its_file_and_line(
    write_tu: WriteTU, part, content, line, said
) -> None:
    with pytest.raises(DataError) as caught:
        read(write_tu(**PATH_AND_EDGE | {part: content}))
    problem = caught.value.problems[0]
    assert (problem.file, problem.line) == (f"TINY_{part}.txt", line)
    assert said in str(problem)
    assert problem.remedy


def test_several_mistakes_are_told_at_once_and_many_are_cut(write_tu: WriteTU) -> None:
    parts = {"A": "1, x\n2, y\n", "node_labels": "C\n" * 5}
    with pytest.raises(DataError) as caught:
        read(write_tu(**PATH_AND_EDGE | parts))
    assert [each.line for each in caught.value.problems] == [1, 2, 1, 2, 3, 4, 5]
    with pytest.raises(DataError) as caught:
        read(write_tu(**PATH_AND_EDGE | {"A": "bad\n" * 1_000_000}))
    assert len(caught.value.problems) == MAX_PROBLEMS + 1
    assert caught.value.problems[-1].message == "reading stopped here."


# Where the files are


@pytest.mark.parametrize("folder", ["", "TINY/", "a/b/", "raw\\"])
def test_a_zip_holds_the_same_data_set_as_its_folder(tmp_path, write_tu: WriteTU, folder) -> None:
    plain = read(write_tu(**EVERYTHING)).fingerprint
    files = named(EVERYTHING, folder=folder) | {"__MACOSX/._TINY_A.txt": b"x", "README.txt": b"x"}
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA):
        assert read(archive(tmp_path / "TINY.zip", files, method)).fingerprint == plain


@pytest.mark.parametrize("inside", [".", "raw", "TINY"])
def test_a_folder_may_hold_the_files_one_level_down(tmp_path, write_tu: WriteTU, inside) -> None:
    write_tu("TINY", tmp_path / "TINY" / inside, **PATH_AND_EDGE)
    assert is_tu_folder(tmp_path / "TINY")
    assert read(tmp_path / "TINY").name == "TINY"


def test_of_several_data_sets_the_one_named_like_the_place_is_read(tmp_path, write_tu) -> None:
    folder = write_tu("ONE", tmp_path / "ONE", **PATH_AND_EDGE)
    write_tu("TWO", folder, **PATH_AND_EDGE)
    assert read(folder).name == "ONE"
    with pytest.raises(DataError, match="several data sets: ONE, TWO"):
        read(folder.rename(tmp_path / "THREE"))
    both = named(PATH_AND_EDGE, "ONE", "a/") | named(PATH_AND_EDGE, "TWO", "b/")
    assert read(archive(tmp_path / "TWO.zip", both)).name == "TWO"
    twice = named(PATH_AND_EDGE, "TWO", "a/") | named(PATH_AND_EDGE, "TWO", "b/")
    for path, files in (("THREE.zip", both), ("TWO.zip", twice)):
        with pytest.raises(DataError, match="several data sets"):
            read(archive(tmp_path / path, files))


def test_a_place_without_a_data_set_and_a_misspelt_part_are_refused(tmp_path, write_tu) -> None:
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", archive(tmp_path / "empty.zip", {"README": "x"})):
        with pytest.raises(DataError, match="no TU data set found"):
            open_tu(path)
    assert not is_tu_folder(tmp_path / "empty")
    with pytest.raises(DataError, match=r"Did you mean TINY_node_labels\.txt"):
        open_tu(write_tu(**PATH_AND_EDGE, node_label="1\n" * 5))
    with pytest.raises(DataError, match="ihgnn only classifies"):
        read(write_tu("R", A="", graph_indicator="1\n", graph_attributes="0.5\n"))


def test_the_digest_knows_every_byte_and_not_the_place(tmp_path, write_tu: WriteTU) -> None:
    one = open_tu(write_tu("TINY", tmp_path / "one", **EVERYTHING)).digest()
    assert open_tu(write_tu("TINY", tmp_path / "two", **EVERYTHING)).digest() == one
    changed = EVERYTHING | {"node_labels": EVERYTHING["node_labels"].replace("3", "4")}
    swapped = EVERYTHING | {
        "edge_labels": EVERYTHING["edge_attributes"],
        "edge_attributes": EVERYTHING["edge_labels"],
    }
    for other in (PATH_AND_EDGE, changed, swapped):
        for part in EVERYTHING:
            (tmp_path / "one" / f"TINY_{part}.txt").unlink(missing_ok=True)
        assert open_tu(write_tu("TINY", tmp_path / "one", **other)).digest() != one


# Hostile and damaged zips


def test_a_zip_with_any_byte_wrong_is_read_rightly_or_refused(tmp_path) -> None:
    path = archive(tmp_path / "TINY.zip", named(PATH_AND_EDGE))
    plain, good = read(path).fingerprint, path.read_bytes()
    refused = 0
    for position in range(0, len(good), 5):
        damaged = bytearray(good)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        try:
            assert read(path).fingerprint == plain
        except DataError:
            refused += 1
    assert refused > len(good) / 15
    for length in range(0, len(good), 11):
        path.write_bytes(good[:length])
        with pytest.raises(DataError):
            read(path)


def test_an_encrypted_member_is_refused(tmp_path) -> None:
    stream = io.BytesIO()
    archive(stream, named(PATH_AND_EDGE), zipfile.ZIP_STORED)  # type: ignore[arg-type]
    data = bytearray(stream.getvalue())
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(magic, at + 1)) >= 0:
            data[at + offset] |= 1
    (tmp_path / "TINY.zip").write_bytes(data)
    with pytest.raises(DataError, match=r"not a complete zip file .*encrypted"):
        read(tmp_path / "TINY.zip")


def test_a_zip_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch) -> None:
    bomb = named(PATH_AND_EDGE) | {"TINY_node_attributes.txt": b"0" * (65 << 20)}
    with pytest.raises(DataError, match=r"it would unpack to 0\.1 GB, like a bomb"):
        read(archive(tmp_path / "TINY.zip", bomb))
    many = named(PATH_AND_EDGE) | {f"{number}": b"" for number in range(10_000)}
    with pytest.raises(DataError, match="it has 10,003 members"):
        read(archive(tmp_path / "TINY.zip", many))
    monkeypatch.setattr("ihgnn_cli.data.tu.MAX_LINE", 20)
    long = named(PATH_AND_EDGE) | {"TINY_A.txt": "1, 2" + ", 2" * 10}
    with pytest.raises(DataError, match="a line of more than"):
        read(archive(tmp_path / "TINY.zip", long))
