"""Lines as they come: whole, in order, and none held back while nothing more comes."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from ihgnn_cli.data import lines as module
from ihgnn_cli.data.lines import lines_as_they_come
from ihgnn_cli.errors import InputError


def of_file(path: Path, content: bytes) -> list[bytes | None]:
    path.write_bytes(content)
    with path.open("rb", buffering=0) as stream:
        return list(lines_as_they_come(stream, "x"))


def test_a_file_is_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert [each for each in of_file(path, b"a\n\nbc\r\nd") if each is not None] == [
        *(b"a", b"", b"bc\r", b"d")
    ]
    assert [each for each in of_file(path, b"a\n") if each is not None] == [b"a"]
    assert of_file(path, b"") == []


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_blocks_may_end_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    content = b"one\ntwo\n\nthree\nfour"
    found = [each for each in of_file(tmp_path / "x", content) if each is not None]
    assert found == content.split(b"\n")


@pytest.mark.skipif(os.name == "nt", reason="files of Windows cannot be asked")
def test_a_file_never_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK", 2)
    assert None not in of_file(tmp_path / "x", b"one\ntwo\nthree\n")


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    end, begin = os.pipe()
    with os.fdopen(end, "rb", buffering=0) as read, os.fdopen(begin, "wb", buffering=0) as write:
        yield read, write


def test_a_pipe_that_has_no_more_for_now_says_so(pipe: tuple[BinaryIO, BinaryIO]) -> None:
    read, write = pipe
    lines = lines_as_they_come(read, "x")
    write.write(b"one\ntwo\nthr")
    assert [next(lines) for _ in range(3)] == [b"one", b"two", None]
    write.write(b"ee\n")
    assert [next(lines) for _ in range(2)] == [b"three", None]
    write.write(b"four")
    write.close()
    assert [each for each in lines if each is not None] == [b"four"]


def test_what_was_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345\n789")
    told: list[int] = []
    with (tmp_path / "x").open("rb", buffering=0) as stream:
        list(lines_as_they_come(stream, "x", told.append))
    assert sum(told) == 9


def test_a_line_without_end_is_cut_and_the_next_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 4)
    monkeypatch.setattr(module, "_BLOCK", 3)
    found = of_file(tmp_path / "x", b"123456789\n1234\n" + b"x" * 50)
    assert [each for each in found if each is not None] == [b"12345", b"1234", b"xxxxx"]


def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    with (
        (tmp_path / "x").open("wb", buffering=0) as stream,
        pytest.raises(InputError, match=r"Cannot read the pipe: "),
    ):
        list(lines_as_they_come(stream, "the pipe"))
