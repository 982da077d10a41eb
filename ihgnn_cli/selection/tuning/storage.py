"""Where a study is kept: SQLite in the run folder, a database server, or Optuna's journal file.

The address of a server may hold a password. Nothing that is shown, written or raised has it in it:
`masked` is the address for people, and whatever a database says goes through `told`.
"""

import re
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import exclusive
from ihgnn_cli.paths import expanded

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

DATABASE, JOURNAL = "study.db", "journal:"
LOCK = "study.lock"
_HIDDEN = "***"
# name:password@, and values in a query that are named like secrets.
_PASSWORD = re.compile(r"(?<=://)([^/@\s:]*):(\S*)@")
_SECRET = re.compile(r"(?i)([?&][^=&\s]*(?:pass|pwd|secret|token|key)[^=&\s]*=)([^&\s]+)")
# A dialect's driver where SQLAlchemy's own choice is not installed: module, name, extra.
_DRIVERS = {
    "postgresql": (("psycopg2", ""), ("psycopg", "+psycopg")),
    "mysql": (("MySQLdb", ""), ("pymysql", "+pymysql")),
}
_EXTRAS = {"postgresql": "postgres", "mysql": "mysql"}
# Processes that share a file of SQLite wait for each other for so long.
_PATIENCE = 60
# Two processes that make the tables of a database at the same moment get in each other's way.
_TRIES, _PAUSE = 5, 0.5


@dataclass(frozen=True)
class Address:
    """Where a study is kept; never shown as it is."""

    url: str

    def __repr__(self) -> str:
        return f"Address({self.masked!r})"

    __str__ = __repr__

    @property
    def masked(self) -> str:
        """For people: without passwords."""
        return masked(self.url)

    def told(self, text: object) -> str:
        """What a database said, on one line and without the secrets of this address."""
        line = " ".join(str(text).split())
        for secret in _secrets(self.url):
            line = line.replace(secret, _HIDDEN)
        return masked(line)


def masked(text: str) -> str:
    """The text with the passwords of the addresses in it hidden."""
    return _SECRET.sub(rf"\1{_HIDDEN}", _PASSWORD.sub(rf"\1:{_HIDDEN}@", text))


def address(given: str | None, folder: Path) -> Address:
    """The address that a user means; without one, a file in the folder.

    Raises:
        InputError: it is no address.
    """
    if given is None:
        return Address(f"sqlite:///{(folder / DATABASE).absolute()}")
    if given.startswith(JOURNAL):
        path = given.removeprefix(JOURNAL)
        path = path[2:] if path.startswith("//") else path
        if not path:
            raise InputError(f"--storage {JOURNAL}FILE needs the name of a file.")
        return Address(f"{JOURNAL}{expanded(Path(path)).absolute()}")
    if not re.match(r"(sqlite|postgresql|mysql)(\+\w+)?://", given):
        raise InputError(
            f"--storage is postgresql://..., mysql://..., sqlite:///FILE or {JOURNAL}FILE, not "
            f"'{masked(given)}'."
        )
    return Address(given)


def open_storage(where: Address, folder: Path) -> "BaseStorage":
    """Connect, and make the tables where there are none.

    Args:
        where: the address.
        folder: of the run; processes that share it do this one after the other.

    Raises:
        InputError: the driver is missing, or the address cannot be.
        IhgnnError: nobody answers there, or refuses.
    """
    import optuna  # noqa: PLC0415  takes long

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    with exclusive(folder / LOCK), speaking(where, "Cannot open the study's storage"):
        if where.url.startswith(JOURNAL):
            return _journal(Path(where.url.removeprefix(JOURNAL)))
        return _database(_with_driver(where.url))


@contextmanager
def speaking(where: Address, what: str = "The study's storage failed") -> Iterator[None]:
    """Tell in a line, without secrets, what a database raises in the block."""
    try:
        yield
        return
    except IhgnnError:
        raise
    except Exception as error:
        if not _of_database(error):
            raise
        cause = getattr(error, "orig", None) or error.__cause__ or error
        cause = getattr(cause, "orig", None) or cause
        message = (
            f"{what} ({where.masked}): {_short(where.told(cause))} "
            "Check the address and that the server runs; the same command goes on."
        )
    # Outside of the block, so that no traceback leads to a text with the address in it.
    raise IhgnnError(message)


def _of_database(error: Exception) -> bool:
    import sqlalchemy.exc  # noqa: PLC0415
    from optuna.exceptions import StorageInternalError  # noqa: PLC0415

    kinds = (sqlalchemy.exc.SQLAlchemyError, StorageInternalError, OSError)
    return isinstance(error, kinds)


def _journal(path: Path) -> "BaseStorage":
    from optuna.storages import JournalStorage  # noqa: PLC0415
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    # The other kind of lock is a symbolic link, which Windows seldom allows.
    lock = JournalFileOpenLock(str(path)) if sys.platform == "win32" else None
    return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))


def _database(url: str) -> "BaseStorage":
    import sqlalchemy.exc  # noqa: PLC0415
    from optuna.storages import RDBStorage  # noqa: PLC0415

    if url.startswith("sqlite"):
        options: dict[str, object] = {"connect_args": {"timeout": _PATIENCE}}
        file = Path(url.split("///", 1)[-1])
        file.parent.mkdir(parents=True, exist_ok=True)
    else:
        options = {"pool_pre_ping": True}
    for left in reversed(range(_TRIES)):
        try:
            return RDBStorage(url, engine_kwargs=options)
        except (sqlalchemy.exc.IntegrityError, sqlalchemy.exc.ProgrammingError):
            if not left:
                raise
        time.sleep(_PAUSE)
    raise AssertionError  # the last try returns or raises


def _with_driver(url: str) -> str:
    """The address with a driver that is installed.

    Raises:
        InputError: none is.
    """
    dialect, _, rest = url.partition("://")
    if dialect not in _DRIVERS:
        return url
    for module, suffix in _DRIVERS[dialect]:
        if find_spec(module) is not None:
            return f"{dialect}{suffix}://{rest}"
    raise InputError(
        f"No driver for {dialect} is installed: pip install 'ihgnn-cli[{_EXTRAS[dialect]}]'"
    )


def _secrets(url: str) -> list[str]:
    """The secrets of an address, as written and as meant; the longest first."""
    found = [match[2] for match in _PASSWORD.finditer(url)]
    found += [match[2] for match in _SECRET.finditer(url)]
    forms = {form for each in found for form in (each, unquote(each)) if form}
    return sorted(forms, key=len, reverse=True)


def _short(text: str, most: int = 300) -> str:
    text = text if len(text) <= most else f"{text[: most - 3]}..."
    return text if text.endswith((".", "!", "?")) else f"{text}."
