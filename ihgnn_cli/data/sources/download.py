"""Fetch a TU data set from the public server, whole or not at all."""

import http.client
import logging
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn

from ihgnn_cli import __version__
from ihgnn_cli.data.readers.tu_files import DAMAGE, open_tu
from ihgnn_cli.errors import DataError, DownloadError, InputError, NotOnServerError, Problem
from ihgnn_cli.files import written_whole
from ihgnn_cli.progress import NO_PROGRESS, Advance, Progress

# Where torch-geometric's TUDataset downloads from.
TU_SERVER = "https://www.chrsmrrs.com/graphkerneldatasets"
MIRROR_VARIABLE = "IHGNN_MIRROR"
_BLOCK = 1 << 16
_log = logging.getLogger(__name__)
_WORTH_ANOTHER_TRY = {408, 425, 429, 500, 502, 503, 504}
_MISSING = {404, 410}


@dataclass(frozen=True)
class Patience:
    """How long to wait and how often to try."""

    timeout: float = 30.0
    """Seconds without a byte after which a connection is given up."""
    attempts: int = 4
    backoff: float = 1.0
    """Seconds before the second attempt; twice as long before each further one."""


PATIENCE = Patience()


class _PassingError(Exception):
    """A failure that may be gone at the next attempt."""


class _LastingError(Exception):
    """A failure that will be there again."""


class _MissingError(_LastingError):
    """The server has no such file."""


def mirror() -> str | None:
    """The server that the user has set in place of the TU server, if any."""
    return os.environ.get(MIRROR_VARIABLE) or None


def download_url(name: str) -> str:
    """The address of a data set's zip: on `$IHGNN_MIRROR` if set, else on the TU server."""
    server = mirror() or TU_SERVER
    try:
        parts = urllib.parse.urlsplit(server)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise InputError(f"{MIRROR_VARIABLE} is {server!r}. Give an http or https address.")
    return f"{server.rstrip('/')}/{name}.zip"


def download(
    name: str, folder: Path, progress: Progress = NO_PROGRESS, patience: Patience = PATIENCE
) -> Path:
    """Fetch `NAME.zip` into `folder` and return its path.

    The file is written beside its final name, checked to be a whole zip that holds a TU data
    set, and moved: a partial file never carries the final name.

    Raises:
        NotOnServerError: the server has no such file.
        DownloadError: it could not be fetched; says where to put the file by hand.
        IhgnnError: the folder cannot be written.
    """
    target = folder / f"{name}.zip"
    url = download_url(name)
    with written_whole(target) as temporary:
        for attempt in range(1, patience.attempts + 1):
            try:
                _fetch(url, temporary, f"Downloading {name}", progress, patience.timeout)
                break
            except _PassingError as error:
                if attempt == patience.attempts:
                    tries = "once" if attempt == 1 else f"{attempt} times"
                    _fail(name, url, target, f"{error} (tried {tries})")
                pause = patience.backoff * 2 ** (attempt - 1)
                _log.warning("%s: %s; trying again in %g s.", name, error, pause)
                time.sleep(pause)
            except _LastingError as error:
                missing = isinstance(error, _MissingError)
                kind = NotOnServerError if missing else DownloadError
                _fail(name, url, target, str(error), kind)
        try:
            check_whole(temporary, name)
        except DataError as error:
            _fail(
                name, url, target, f"what the server sent is no good: {error.problems[0].message}"
            )
    return target


def _fetch(url: str, path: Path, what: str, progress: Progress, timeout: float) -> None:
    request = urllib.request.Request(  # noqa: S310 - download_url lets only http(s) through
        url, headers={"User-Agent": f"ihgnn/{__version__}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else None
            with progress.task(what, total) as advance, path.open("wb") as stream:
                received = _copy(response, stream, advance)
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"the server answered {error.code} {error.reason}"
        if error.code in _WORTH_ANOTHER_TRY:
            raise _PassingError(answer) from error
        raise (_MissingError if error.code in _MISSING else _LastingError)(answer) from error
    except urllib.error.URLError as error:
        raise _PassingError(_reason(error.reason)) from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _PassingError(_reason(error)) from error
    except ValueError as error:
        raise _LastingError(f"{error}") from error
    if total is not None and received != total:
        raise _PassingError(f"the connection ended after {received:,} of {total:,} bytes")


def _copy(response: http.client.HTTPResponse, stream: BinaryIO, advance: Advance) -> int:
    received = 0
    while block := _receive(response):
        stream.write(block)
        received += len(block)
        advance(len(block))
    return received


def _receive(response: http.client.HTTPResponse) -> bytes:
    """The next block; whatever the network does here may be gone next time (TLS, no route, …)."""
    try:
        return response.read(_BLOCK)
    except OSError as error:
        raise _PassingError(_reason(error)) from error


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    if isinstance(error, http.client.IncompleteRead):
        return f"the connection ended after {len(error.partial):,} bytes of a block"
    return str(error) or type(error).__name__


def check_whole(path: Path, name: str) -> None:
    """Make sure that a zip holds this data set, and every byte of it.

    Raises:
        DataError: it does not.
    """
    remedy = "Delete the file and fetch it again."
    held = open_tu(path).name
    if held != name:
        raise DataError([Problem(str(path), None, f"it holds {held} instead of {name}.", remedy)])
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except DAMAGE as error:
        raise DataError([Problem(str(path), None, f"it is damaged ({error}).", remedy)]) from error
    if damaged is not None:
        raise DataError([Problem(str(path), None, f"it is damaged in {damaged}.", remedy)])


def _fail(
    name: str, url: str, target: Path, reason: str, kind: type[DownloadError] = DownloadError
) -> NoReturn:
    raise kind(
        f"Cannot download {name} from {url}: {reason.removesuffix('.')}.\n"
        f"Fetch the file by other means and put it at {target}"
    )
