"""The hash of the code, which results record beside the version."""

from pathlib import Path

import torch

from ihgnn_cli import versions
from ihgnn_cli.training.provenance import machine_facts
from ihgnn_cli.versions import code_sha256


def package(folder: Path, **files: bytes) -> Path:
    folder.mkdir()
    for name, content in files.items():
        (folder / f"{name}.py").write_bytes(content)
    return folder


def test_the_hash_is_that_of_names_and_contents(tmp_path: Path) -> None:
    first = code_sha256(package(tmp_path / "first", a=b"x = 1\n", b=b"y = 2\n"))
    assert code_sha256(package(tmp_path / "same", b=b"y = 2\n", a=b"x = 1\n")) == first
    assert code_sha256(package(tmp_path / "windows", a=b"x = 1\r\n", b=b"y = 2\r\n")) == first
    assert code_sha256(package(tmp_path / "content", a=b"x = 1\n", b=b"y = 3\n")) != first
    assert code_sha256(package(tmp_path / "name", a=b"x = 1\n", c=b"y = 2\n")) != first


def test_compiled_files_do_not_change_it(tmp_path: Path) -> None:
    folder = package(tmp_path / "package", a=b"x = 1\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"compiled")
    assert code_sha256(folder) == code_sha256(package(tmp_path / "other", a=b"x = 1\n"))


def test_every_result_has_that_of_this_package() -> None:
    here = code_sha256(Path(versions.__file__).parent)
    assert machine_facts(torch.device("cpu"))["code_sha256"] == here
