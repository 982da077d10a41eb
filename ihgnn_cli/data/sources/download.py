"""Download a TU data set from the public server."""

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
from ihgnn_cli.masking import masked
from ihgnn_cli.progress import NO_PROGRESS, Advance, Progress

# Where torch-geometric's TUDataset downloads from.
TU_SERVER = "https://www.chrsmrrs.com/graphkerneldatasets"
MIRROR_VARIABLE = "IHGNN_MIRROR"
_BLOCK = 1 << 16
_log = logging.getLogger(__name__)
_RETRY_STATUS = {408, 425, 429, 500, 502, 503, 504}
_MISSING = {404, 410}


@dataclass(frozen=True)
class RetryPolicy:
    """Timeout and retries of a download."""

    timeout: float = 30.0
    """Seconds without data after which a connection is closed."""
    attempts: int = 4
    backoff: float = 1.0
    """Seconds before the second attempt; doubles with each further one."""


RETRY_POLICY = RetryPolicy()


class _TemporaryError(Exception):
    """A failure that may not occur again."""


class _PermanentError(Exception):
    """A failure that a retry will not fix."""


class _MissingError(_PermanentError):
    """The server has no such file."""


def mirror() -> str | None:
    """The server that the user has set in place of the TU server, if any."""
    return os.environ.get(MIRROR_VARIABLE) or None


def download_url(name: str) -> str:
    """The URL of a data set's zip: on `$IHGNN_MIRROR` if set, otherwise on the TU server."""
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
    name: str, folder: Path, progress: Progress = NO_PROGRESS, retry: RetryPolicy = RETRY_POLICY
) -> Path:
    """Download `NAME.zip` into `folder` and return its path.

    The file gets its final name only after it has been checked: it must be an undamaged zip with
    this TU data set.

    Raises:
        NotOnServerError: the server has no such file.
        DownloadError: the download failed; says where to put the file by hand.
        IhgnnError: the folder cannot be written.
    """
    target = folder / f"{name}.zip"
    url = download_url(name)
    with written_whole(target) as temporary:
        for attempt in range(1, retry.attempts + 1):
            try:
                _fetch(url, temporary, f"Downloading {name}", progress, retry.timeout)
                break
            except _TemporaryError as error:
                if attempt == retry.attempts:
                    tries = "once" if attempt == 1 else f"{attempt} times"
                    _fail(name, url, target, f"{error} (tried {tries})")
                pause = retry.backoff * 2 ** (attempt - 1)
                _log.warning("%s: %s; trying again in %g s.", name, error, pause)
                time.sleep(pause)
            except _PermanentError as error:
                missing = isinstance(error, _MissingError)
                kind = NotOnServerError if missing else DownloadError
                _fail(name, url, target, str(error), kind)
        try:
            check_whole(temporary, name)
        except DataError as error:
            _fail(name, url, target, f"the downloaded file is invalid: {error.problems[0].message}")
    return target


def _fetch(url: str, path: Path, what: str, progress: Progress, timeout: float) -> None:
    request = urllib.request.Request(  # noqa: S310 - download_url allows http(s) only
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
        if error.code in _RETRY_STATUS:
            raise _TemporaryError(answer) from error
        raise (_MissingError if error.code in _MISSING else _PermanentError)(answer) from error
    except urllib.error.URLError as error:
        raise _TemporaryError(_reason(error.reason)) from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _TemporaryError(_reason(error)) from error
    except ValueError as error:
        raise _PermanentError(f"{error}") from error
    if total is not None and received != total:
        raise _TemporaryError(f"the connection ended after {received:,} of {total:,} bytes")


def _copy(response: http.client.HTTPResponse, stream: BinaryIO, advance: Advance) -> int:
    received = 0
    while block := _receive(response):
        stream.write(block)
        received += len(block)
        advance(len(block))
    return received


def _receive(response: http.client.HTTPResponse) -> bytes:
    """The next block; any network error here (TLS, no route, …) is worth a retry."""
    try:
        return response.read(_BLOCK)
    except OSError as error:
        raise _TemporaryError(_reason(error)) from error


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    if isinstance(error, http.client.IncompleteRead):
        return f"the connection ended after {len(error.partial):,} bytes of a block"
    return str(error) or type(error).__name__


def check_whole(path: Path, name: str) -> None:
    """Check that a zip holds this data set and is not damaged.

    Raises:
        DataError: it does not, or it is.
    """
    remedy = "Delete the file and download it again."
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
        f"Cannot download {name} from {masked(url)}: {reason.removesuffix('.')}.\n"
        f"{by_hand(name, target.parent)}"
    )


def by_hand(name: str, root: Path) -> str:
    """How to give a data set without a download."""
    return (
        f"Put {name}.zip into {root}, or name the folder that holds it with --data-root FOLDER or "
        "IHGNN_DATA=FOLDER."
    )
