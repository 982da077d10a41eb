"""The zip file that a checkpoint is, checked without torch, which is slow to import."""

import zipfile
from pathlib import Path
from typing import BinaryIO

from ihgnn_cli.errors import InputError


def check_archive(path: Path) -> None:
    """Check that a file can be a checkpoint: it exists, and is a whole zip file.

    Raises:
        InputError: it is not.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder. Give a ckpt.pt that 'train' wrote.")
        if path.exists() and not path.is_file():  # a device may never end
            raise InputError(f"{path} is not a file. Give a ckpt.pt that 'train' wrote.")
        with path.open("rb") as stream:
            whole = zipfile.is_zipfile(stream) and _sums_are_right(stream)
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist. Give a ckpt.pt that 'train' wrote.") from error
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    if not whole:
        raise not_loading(path)


def not_loading(path: Path) -> InputError:
    """The error for a file that is no checkpoint."""
    return InputError(
        f"{path} is not an ihgnn checkpoint, or it is damaged: it does not load as plain tensors. "
        "No code in it was run. Give a ckpt.pt that 'train' wrote."
    )


def _sums_are_right(stream: BinaryIO) -> bool:
    """Whether the checksums of the zip file are right; torch does not check them."""
    try:
        archive = zipfile.ZipFile(stream)
        # torch never compresses; a compressed file could expand to gigabytes.
        plain = all(each.compress_type == zipfile.ZIP_STORED for each in archive.infolist())
        return plain and archive.testzip() is None
    except Exception:  # noqa: BLE001  a damaged zip can raise anything
        return False
