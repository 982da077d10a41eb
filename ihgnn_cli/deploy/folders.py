"""Folders that an export writes: each appears whole, and none is replaced by accident."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ihgnn_cli.errors import InputError
from ihgnn_cli.files import writing


def refuse_taken(folder: Path, marker: str, *, force: bool) -> None:
    """Check that a folder can be written: it is new or empty, or a former export (with `force`).

    Args:
        folder: the folder.
        marker: the file that a former export has.
        force: replace a former export.

    Raises:
        InputError: it holds something else, or is a file.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / marker).is_file():
        raise InputError(f"{folder} holds other files. Give another folder.")
    if not force:
        raise InputError(f"{folder} already exists. Give another folder, or use --force.")


@contextmanager
def folder_written_whole(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`, and put it in its place at the end.

    If the block fails, `folder` is unchanged.

    Raises:
        IhgnnError: it cannot be written.
    """
    folder = folder.resolve()
    temporary = folder.with_name(f".{folder.name[:100]}-{secrets.token_hex(4)}.part")
    try:
        with writing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            temporary.mkdir()
            yield temporary
            if folder.exists():
                shutil.rmtree(folder)
            temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
