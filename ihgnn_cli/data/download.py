"""Download a TU data set from the public server."""

import logging
import os
import tempfile
import urllib.parse
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ihgnn_cli.data.tu import DAMAGE, open_tu
from ihgnn_cli.errors import DataError, DownloadError, InputError, NotOnServerError, Problem
from ihgnn_cli.files import cannot_write, writing
from ihgnn_cli.masking import masked
from ihgnn_cli.progress import NO_PROGRESS, Advance, Progress

# Where torch-geometric's TUDataset downloads from.
TU_SERVER = "https://www.chrsmrrs.com/graphkerneldatasets"
MIRROR_VARIABLE = "IHGNN_MIRROR"
RETRIES = 3
_TIMEOUT = 30.0  # seconds without data
_MISSING = (404, 410)


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
    name: str, folder: Path, progress: Progress = NO_PROGRESS, retries: int = RETRIES
) -> Path:
    """Download `NAME.zip` into `folder` and return its path.

    The file gets its final name only after it has been checked: it must be an undamaged zip with
    this TU data set.

    Raises:
        NotOnServerError: the server has no such file.
        DownloadError: the download failed; says how to give the data without it.
        IhgnnError: the folder cannot be written.
    """
    import pooch
    import requests

    url = download_url(name)
    target = folder / f"{name}.zip"
    failed = f"Cannot download {name} from {masked(url)}"
    pooch.get_logger().setLevel(logging.ERROR)

    def fetch(url: str, output_file: Any, fetcher: Any) -> None:
        with progress.task(f"Downloading {name}", None) as advance:
            get = pooch.HTTPDownloader(timeout=_TIMEOUT, progressbar=_Bar(advance))
            try:
                get(url, output_file, fetcher)
            except requests.HTTPError as error:
                if error.response is not None:
                    error.response.close()
                if error.response is None or error.response.status_code not in _MISSING:
                    raise
                # Asking again does not help.
                why = f"{failed}: {_reason(error)}\n{by_hand(name, folder)}"
                raise NotOnServerError(why) from error

    with writing(target):
        folder.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(prefix=".download-", dir=folder)
    with temporary:
        fetcher = pooch.create(
            path=temporary.name,
            base_url="",
            registry={target.name: None},
            urls={target.name: url},
            retry_if_failed=retries,
        )
        try:
            found = Path(fetcher.fetch(target.name, downloader=fetch))
            check_whole(found, name)
            found.replace(target)
        except DataError as error:
            reason = f"the downloaded file is invalid: {error.problems[0].message}"
            raise DownloadError(f"{failed}: {reason}\n{by_hand(name, folder)}") from error
        except (requests.RequestException, ValueError) as error:
            reason = _reason(error)
            raise DownloadError(f"{failed}: {reason}\n{by_hand(name, folder)}") from error
        except OSError as error:
            raise cannot_write(target, error) from error
    return target


def by_hand(name: str, root: Path) -> str:
    """How to give a data set without a download."""
    return (
        f"Put {name}.zip into {root}, or name the folder that holds it with --data-root FOLDER or "
        "IHGNN_DATA=FOLDER."
    )


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


def _reason(error: Exception) -> str:
    """What went wrong, in a few words: messages of requests repeat the address."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}."
    if isinstance(error, requests.Timeout):
        return "the server did not answer in time."
    if isinstance(error, requests.ConnectionError | requests.exceptions.ChunkedEncodingError):
        return "there is no connection to the server, or it ended."
    return f"the transfer failed ({type(error).__name__})."


@dataclass
class _Bar:
    """What pooch calls a progress bar."""

    advance: Advance
    total: int = 0

    def update(self, count: int) -> None:
        self.advance(count)

    def reset(self) -> None:
        """Pooch fills the bar once more at the end."""
        self.advance = lambda _: None

    def close(self) -> None:
        pass
