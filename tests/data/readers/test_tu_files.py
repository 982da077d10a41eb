"""A data set's raw files in a folder or a zip: found where they may be, refused when unsafe."""

import hashlib
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ihgnn_cli.data.readers.tu import read_tu
from ihgnn_cli.data.readers.tu_files import HARMLESS_BYTES, MAX_COMPRESSION, open_tu
from ihgnn_cli.errors import DataError, Problem
from ihgnn_cli.files import sha256_of

WriteTU = Callable[..., Path]
ZipFolder = Callable[[Path], Path]

PARTS = {
    "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n1\n0\n0\n",
}
DISTRUST = "Do not trust this file; download it again from its publisher."
FETCH_AGAIN = "Delete it and download it again."


def pack(path: Path, members: dict[str, str | bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def tiny(folder: str = "TINY/", name: str = "TINY") -> dict[str, str | bytes]:
    return {f"{folder}{name}_{part}.txt": content for part, content in PARTS.items()}


def refusal(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(DataError) as caught:
        read_tu(open_tu(path))
    return caught.value.problems


# Where the files may be.


def test_a_folder_and_its_zip_hold_the_same_data_set(
    write_tu: WriteTU, zip_folder: ZipFolder
) -> None:
    folder = write_tu(**PARTS)
    from_folder, from_zip = open_tu(folder), open_tu(zip_folder(folder))
    assert from_folder.name == from_zip.name == "TINY"
    assert from_folder.parts == from_zip.parts
    assert read_tu(from_folder).fingerprint == read_tu(from_zip).fingerprint


def test_parts_are_known_by_their_names_and_sizes(write_tu: WriteTU) -> None:
    files = open_tu(write_tu(**PARTS))
    assert files.parts == {part: len(content) for part, content in PARTS.items()}
    assert "A" in files
    assert "edge_labels" not in files
    assert files.file_name("A") == "TINY_A.txt"


def test_a_part_is_opened_as_bytes(write_tu: WriteTU, zip_folder: ZipFolder) -> None:
    folder = write_tu(**PARTS)
    for path in (folder, zip_folder(folder)):
        with open_tu(path).open("graph_labels") as stream:
            assert stream.read() == b"1\n-1\n"


@pytest.mark.parametrize("folder", ["", "TINY/", "any/where/"])
def test_the_files_may_stand_anywhere_in_a_zip(tmp_path: Path, folder: str) -> None:
    files = open_tu(pack(tmp_path / "some.zip", tiny(folder)))
    assert (files.name, set(files.parts)) == ("TINY", set(PARTS))


@pytest.mark.parametrize("below", ["", "raw", "TINY"])
def test_the_files_may_stand_in_a_sub_folder_raw_or_of_the_same_name(
    write_tu: WriteTU, tmp_path: Path, below: str
) -> None:
    write_tu(folder=tmp_path / "TINY" / below, **PARTS)
    assert open_tu(tmp_path / "TINY").name == "TINY"


def test_other_files_beside_the_data_set_do_no_harm(write_tu: WriteTU) -> None:
    folder = write_tu(**PARTS)
    (folder / "README.txt").write_text("about")
    (folder / "processed").mkdir()
    assert set(open_tu(folder).parts) == set(PARTS)


def test_parts_in_another_folder_of_the_zip_are_not_taken(tmp_path: Path) -> None:
    members = {**tiny(), "old/TINY_edge_labels.txt": "1\n"}
    assert "edge_labels" not in open_tu(pack(tmp_path / "TINY.zip", members))


def test_what_the_mac_adds_to_a_zip_is_ignored(tmp_path: Path) -> None:
    members = {**tiny(), "__MACOSX/TINY/._TINY_A.txt": b"\x00\x05", "__MACOSX/TINY_A.txt": b"\x00"}
    assert open_tu(pack(tmp_path / "TINY.zip", members)).name == "TINY"


def test_of_several_data_sets_the_one_named_like_the_folder_is_read(write_tu: WriteTU) -> None:
    folder = write_tu(**PARTS)
    write_tu("OTHER", folder=folder, **PARTS)
    assert open_tu(folder).name == "TINY"


def test_a_folder_with_a_dot_in_its_name_is_no_exception(write_tu: WriteTU) -> None:
    folder = write_tu("TINY.v2", **PARTS)
    write_tu("OTHER", folder=folder, **PARTS)
    assert open_tu(folder).name == "TINY.v2"


def test_of_several_data_sets_the_one_named_like_the_zip_is_read(tmp_path: Path) -> None:
    members = {**tiny(), **tiny("OTHER/", "OTHER")}
    assert open_tu(pack(tmp_path / "TINY.zip", members)).name == "TINY"


def test_several_data_sets_and_none_named_like_the_place(write_tu: WriteTU, tmp_path: Path) -> None:
    folder = write_tu(folder=tmp_path / "both", **PARTS)
    write_tu("OTHER", folder=folder, **PARTS)
    archive = pack(tmp_path / "both.zip", {**tiny(), **tiny("", "OTHER")})
    for path in (folder, archive):
        assert refusal(path) == (
            Problem(
                str(path),
                None,
                "it holds several data sets: OTHER, TINY.",
                "Keep one, or name the folder or zip after the one to read.",
            ),
        )


def test_the_same_data_set_twice_in_a_zip_is_refused(tmp_path: Path) -> None:
    [problem] = refusal(pack(tmp_path / "TINY.zip", {**tiny("a/"), **tiny("b/")}))
    assert problem.message == "it holds several data sets: TINY, TINY."


def test_a_place_without_an_edge_list(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for path in (
        tmp_path / "empty",
        pack(tmp_path / "empty.zip", {}),
        pack(tmp_path / "TINY.zip", {"TINY/TINY_graph_labels.txt": "1\n"}),
    ):
        assert refusal(path) == (
            Problem(
                str(path),
                None,
                "no TU data set found (no file NAME_A.txt with edges).",
                "Check the path; docs/data.md describes the format.",
            ),
        )


# The digest.


def test_the_digest_of_a_folder_changes_with_any_byte_and_any_part(write_tu: WriteTU) -> None:
    digests = [
        open_tu(write_tu(**PARTS)).digest(),
        open_tu(write_tu(**{**PARTS, "node_labels": "0\n1\n0\n1\n"})).digest(),
        open_tu(write_tu(**{**PARTS, "node_labels": "0\n1\n0\n0"})).digest(),
        open_tu(write_tu(**PARTS, edge_labels="")).digest(),
    ]
    assert len(set(digests)) == 4


def test_the_digest_of_a_folder_tells_which_part_holds_what(write_tu: WriteTU) -> None:
    before = open_tu(write_tu(**PARTS, edge_labels="1\n", edge_attributes="2\n")).digest()
    after = open_tu(write_tu(**PARTS, edge_labels="2\n", edge_attributes="1\n")).digest()
    assert before != after


def test_the_digest_does_not_depend_on_where_the_folder_is(
    write_tu: WriteTU, tmp_path: Path
) -> None:
    here = open_tu(write_tu(**PARTS)).digest()
    assert open_tu(write_tu(folder=tmp_path / "else" / "where", **PARTS)).digest() == here


def test_the_digest_of_a_zip_is_that_of_the_file(tmp_path: Path) -> None:
    path = pack(tmp_path / "TINY.zip", tiny())
    expected = hashlib.sha256(path.read_bytes()).hexdigest()
    assert open_tu(path).digest() == sha256_of(path) == expected


# Zips that are unsafe.


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "C:/evil.txt", "C:\\evil.txt", "../evil.txt", "TINY/../../evil.txt",
             "..\\evil.txt", "TINY\\..\\..\\evil.txt", "\\evil.txt"]
)  # fmt: skip
def test_a_member_that_points_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = pack(tmp_path / "TINY.zip", {**tiny(), name: "x"})
    [problem] = refusal(path)
    assert problem.where == str(path)
    assert problem.message.endswith("points outside the archive.")
    assert problem.remedy == DISTRUST


def test_a_member_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "TINY.zip", tiny())
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile warns of the duplicate
        archive.writestr("TINY/TINY_A.txt", "1, 1\n")
    message = "its member 'TINY/TINY_A.txt' appears twice."
    assert refusal(path) == (Problem(str(path), None, message, DISTRUST),)


def test_a_member_that_is_encrypted_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "TINY.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in tiny().items():
            archive.writestr(name, content)
        archive.getinfo("TINY/TINY_A.txt").flag_bits |= 1
    message = "its member 'TINY/TINY_A.txt' is encrypted."
    assert refusal(path) == (Problem(str(path), None, message, "Unpack it and give the folder."),)


def test_everything_unsafe_is_told_at_once(tmp_path: Path) -> None:
    path = pack(tmp_path / "TINY.zip", {**tiny(), "/one": "x", "../two": "x"})
    assert len(refusal(path)) == 2


def test_a_zip_bomb_is_refused_without_being_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "TINY.zip"
    mebibyte = bytes(1 << 20)
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("TINY/TINY_A.txt", "w") as stream,
    ):
        for _ in range((HARMLESS_BYTES >> 20) + 1):
            stream.write(mebibyte)
    assert path.stat().st_size * MAX_COMPRESSION < HARMLESS_BYTES
    message = "it would unpack to 0.1 GiB, like a zip bomb."
    assert refusal(path) == (Problem(str(path), None, message, DISTRUST),)


def test_a_small_zip_may_shrink_as_much_as_it_likes(tmp_path: Path) -> None:
    members = {**tiny(), "TINY/TINY_A.txt": "1, 2\n" * 200_000}
    path = pack(tmp_path / "TINY.zip", members, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size * MAX_COMPRESSION < 1_000_000
    assert open_tu(path).parts["A"] == 1_000_000


# Zips that are damaged.


@pytest.mark.parametrize("content", [b"", b"1, 2\n", b"<html>Not found</html>" * 100])
def test_what_is_not_a_zip_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "TINY.zip"
    path.write_bytes(content)
    message = "not a complete zip file (File is not a zip file)."
    assert refusal(path) == (Problem(str(path), None, message, FETCH_AGAIN),)


def test_a_zip_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "TINY.zip", tiny(), zipfile.ZIP_DEFLATED)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert [problem.remedy for problem in refusal(path)] == [FETCH_AGAIN]


def test_a_changed_byte_of_the_content_is_noticed(tmp_path: Path) -> None:
    path = pack(tmp_path / "TINY.zip", tiny())
    path.write_bytes(path.read_bytes().replace(b"3, 4\n4, 3\n", b"3, 4\n4, 4\n"))
    message = "not a complete zip file (Bad CRC-32 for file 'TINY/TINY_A.txt')."
    assert refusal(path) == (Problem(str(path), None, message, FETCH_AGAIN),)


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_a_zip_with_any_byte_wrong_is_read_rightly_or_refused(tmp_path: Path, method: int) -> None:
    members = {name: content for name, content in tiny().items() if "node_labels" not in name}
    path = pack(tmp_path / "TINY.zip", members, method)
    whole = path.read_bytes()
    right = read_tu(open_tu(path)).fingerprint
    refused = 0
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        try:
            assert read_tu(open_tu(path)).fingerprint == right
        except DataError:
            refused += 1
    assert refused > len(whole) // 2


def test_a_member_name_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "GRÖSSE.zip", tiny("", "GRÖSSE"))
    path.write_bytes(path.read_bytes().replace("Ö".encode(), b"\xff\xff"))
    assert [problem.remedy for problem in refusal(path)] == [FETCH_AGAIN]


def test_a_compression_that_python_does_not_know_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "TINY.zip", tiny())
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        directory = archive.start_dir
    content[8] = content[directory + 10] = 99  # the method, in the member and in the directory
    path.write_bytes(content)
    message = "not a complete zip file (That compression method is not supported)."
    assert refusal(path) == (Problem(str(path), None, message, FETCH_AGAIN),)


def test_a_misspelt_part_is_not_overlooked(write_tu: WriteTU) -> None:
    folder = write_tu(A="1, 2\n", graph_indicator="1\n1\n", graph_labels="1\n", node_label="1\n2\n")
    with pytest.raises(DataError, match=r"Did you mean TINY_node_labels\.txt"):
        open_tu(folder)


def test_other_files_beside_the_parts_do_no_harm(write_tu: WriteTU) -> None:
    folder = write_tu(
        A="1, 2\n", graph_indicator="1\n1\n", graph_labels="1\n", coordinates="1\n", readme="x"
    )
    assert set(open_tu(folder).parts) == {"A", "graph_indicator", "graph_labels"}


def test_a_part_that_is_no_file_is_refused(write_tu: WriteTU) -> None:
    folder = write_tu(A="1, 2\n", graph_indicator="1\n1\n", graph_labels="1\n")
    (folder / "TINY_node_labels.txt").mkdir()
    with pytest.raises(DataError, match="exists but is not a file"):
        open_tu(folder)
