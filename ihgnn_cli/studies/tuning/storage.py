"""The storage of a study: SQLite in the run folder, a database server, or Optuna's journal file.

The address of a server may contain a password, which is never shown, written or raised: `masked` is
the address without it, and messages of a database go through `without_secrets`.
"""

import re
import sqlite3
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import exclusive
from ihgnn_cli.masking import masked, masked_text
from ihgnn_cli.paths import expanded
from ihgnn_cli.signals import held

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from sqlalchemy.exc import DBAPIError

DATABASE, JOURNAL = "study.db", "journal:"
LOCK = "study.lock"
# Drivers for PostgreSQL, SQLAlchemy's default first: module, and its suffix in an address.
_DRIVERS = (("psycopg2", ""), ("psycopg", "+psycopg"))
_REMEDY = "Check the address and that the server runs; the same command continues."
HEARTBEAT_SECONDS, STALE_SECONDS = 10, 60
"""Interval between heartbeats, and the time without one after which a process counts as dead."""
# Seconds to wait for another process that writes to the same SQLite file.
_SQLITE_TIMEOUT = 60
# Two processes that create the tables of a database at the same time disturb each other.
_TRIES, _PAUSE = 5, 0.5
# Seconds that another process may take to create the tables, on a slow disk.
_CREATION_SECONDS = 60
_LONGEST = 300  # characters of a cause in a message


@dataclass(frozen=True)
class Address:
    """The address of a storage; it may contain a password and is never shown as it is."""

    url: str
    file: Path | None = None
    """The SQLite file; some characters of a file name have another meaning in an address."""

    def __repr__(self) -> str:
        return f"Address({self.masked!r})"

    __str__ = __repr__

    @property
    def path(self) -> Path | None:
        """The file of the study, if it is stored in one."""
        if self.url.startswith(JOURNAL):
            return Path(self.url.removeprefix(JOURNAL))
        return self._sqlite

    @property
    def lock(self) -> Path | None:
        """The lock file for processes that share a SQLite file."""
        path = self._sqlite
        return None if path is None else path.with_name(f"{path.stem}.lock")

    @property
    def _sqlite(self) -> Path | None:
        """The SQLite file, also if the address has a query; not for SQLite's own `file:` form."""
        name = self.url.partition(":///")[2].partition("?")[0]
        if self.file is None and self.url.startswith("sqlite") and not name.startswith("file:"):
            return Path(name)
        return self.file

    @property
    def masked(self) -> str:
        """The address without secrets."""
        return masked(self.url)

    def seen_from(self, folder: Path) -> str:
        """The address without secrets; relative for a folder's own file, which may be moved."""
        own = self.file is not None and self.file.resolve() == (folder / DATABASE).resolve()
        return DATABASE if own else self.masked

    def without_secrets(self, text: object) -> str:
        """A message of the database on one line, without the secrets of this address."""
        return " ".join(masked_text(str(text), self.url).split())


def address(given: str | None, folder: Path) -> Address:
    """The storage that a user gave; by default a SQLite file in the folder.

    Raises:
        InputError: the address is not valid.
    """
    if given is None:
        return _sqlite_file(folder / DATABASE)
    if given.startswith(JOURNAL):
        path = given.removeprefix(JOURNAL)
        path = path[2:] if path.startswith("//") else path
        if not path:
            raise InputError(f"--storage {JOURNAL}FILE needs the name of a file.")
        return Address(f"{JOURNAL}{expanded(Path(path)).absolute()}")
    if not re.match(r"(sqlite|postgresql)(\+\w+)?://", given):
        # Without a scheme it is unknown where a password begins.
        shown = f"{re.split('[:/@?]', given)[0]}..." if re.search("[@?]", given) else given
        raise InputError(
            f"--storage is postgresql://..., sqlite:///FILE or {JOURNAL}FILE, not '{shown}'."
        )
    if given.startswith("sqlite"):
        return _sqlite_address(given)
    if not _is_readable(given):
        raise InputError(
            f"--storage is not a valid address ({masked(given)}). Write "
            "postgresql://NAME:PASSWORD@HOST:PORT/DATABASE, with %40 for an @ in a name or "
            "password, %3A for a : and %2F for a /."
        )
    return Address(given)


def open_storage(where: Address, folder: Path | None = None) -> "BaseStorage":
    """Connect, and create the tables if there are none.

    Args:
        where: the address.
        folder: folder of the search, if any; processes that share it do this one after the other.

    Raises:
        InputError: the driver is missing, or the address is not valid.
        IhgnnError: the server does not answer, or refuses the connection.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    warnings.filterwarnings("ignore", "Heartbeat of storage is supposed to be used")
    one_by_one = nullcontext() if folder is None else exclusive(folder / LOCK)
    with one_by_one, database_calls(where, "Cannot open the study's storage"):
        if where.url.startswith(JOURNAL):
            return _journal(Path(where.url.removeprefix(JOURNAL)))
        return _database(where)


@contextmanager
def database_calls(where: Address, what: str = "The study's storage failed") -> Iterator[None]:
    """As `database_errors`; Ctrl-C and SIGTERM also wait for the end of the block.

    A `safe_point` in the block lets them through. An interrupted database call would leave the
    connection in an unknown state.
    """
    with database_errors(where, what), held():
        yield


@contextmanager
def database_errors(where: Address, what: str = "The study's storage failed") -> Iterator[None]:
    """Raise errors of the database as an `IhgnnError` of one line, without secrets."""
    try:
        yield
    except IhgnnError:
        raise
    except Exception as error:
        if not _of_database(error, where):
            raise
        message = (
            f"{what} ({where.masked}): {_short(where.without_secrets(_cause(error)))} {_REMEDY}"
        )
    else:
        return
    failure = IhgnnError(message)
    try:
        raise failure
    finally:
        failure.__context__ = None  # it contains the address


def _cause(error: Exception) -> BaseException:
    """The driver's own error, inside those of SQLAlchemy and Optuna."""
    cause: BaseException = getattr(error, "orig", None) or error.__cause__ or error
    return getattr(cause, "orig", None) or cause


def _of_database(error: Exception, where: Address) -> bool:
    import sqlalchemy.exc
    from optuna.exceptions import StorageInternalError

    if isinstance(error, OSError):  # otherwise of our own output, or of starting processes
        return where.url.startswith(JOURNAL) and not isinstance(error, BrokenPipeError)
    return isinstance(error, sqlalchemy.exc.SQLAlchemyError | StorageInternalError)


def _journal(path: Path) -> "BaseStorage":
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    path.parent.mkdir(parents=True, exist_ok=True)
    # Optuna's default lock is a symbolic link, which Windows usually does not allow.
    lock = JournalFileOpenLock(str(path)) if sys.platform == "win32" else None
    backend = JournalFileBackend(str(path), lock_obj=lock)
    try:
        with path.open("rb") as stream:
            if stream.read(1) not in (b"", b"{"):
                raise ValueError("not a journal")  # noqa: TRY301  Optuna would append to it
        return JournalStorage(backend)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not an Optuna journal. Choose another --storage.") from error


def _database(where: Address) -> "BaseStorage":
    import sqlalchemy.exc
    from optuna.storages import RDBStorage

    url, options = _engine(where)
    deadline = time.monotonic() + _CREATION_SECONDS
    left = _TRIES
    while True:
        try:
            return RDBStorage(
                url,
                engine_kwargs=options,
                heartbeat_interval=HEARTBEAT_SECONDS,
                grace_period=STALE_SECONDS,
            )
        except ImportError as error:
            raise InputError(
                f"The driver for {where.masked} is not installed ({error.__cause__ or error}). "
                "Install it, or leave it out of the address."
            ) from error
        except RuntimeError as error:  # the tables are of another version
            raise InputError(
                f"The storage cannot be used: {where.without_secrets(error)} "
                "Or choose another --storage."
            ) from error
        except sqlalchemy.exc.DBAPIError as error:
            left -= not _already_exists(error)  # that is progress of the other process
            if not left or not _is_race(error) or time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE)


def _engine(where: Address) -> tuple[str, dict[str, object]]:
    """The address and connection options for SQLAlchemy."""
    if where.file is not None:
        where.file.parent.mkdir(parents=True, exist_ok=True)
        # Threads of this process share the connections, one at a time.
        connect = partial(
            sqlite3.connect, where.file, timeout=_SQLITE_TIMEOUT, check_same_thread=False
        )
        return f"sqlite:///{DATABASE}", {"creator": connect}
    url = _with_driver(where.url).replace("{", "{{").replace("}", "}}")  # Optuna formats it
    if url.startswith("sqlite"):
        return url, {"connect_args": {"timeout": _SQLITE_TIMEOUT}}
    return url, {"pool_pre_ping": True}


def _is_race(error: "DBAPIError") -> bool:
    """Whether another process created the tables at the same time."""
    import sqlalchemy.exc

    if isinstance(error, sqlalchemy.exc.IntegrityError | sqlalchemy.exc.ProgrammingError):
        return True
    return _already_exists(error)


def _already_exists(error: "DBAPIError") -> bool:
    return "already exists" in str(error.orig)


def _sqlite_address(given: str) -> Address:
    """An SQLite address; a plain file name is used as it is, as for a journal.

    Raises:
        InputError: it does not name a file, so that nothing would be stored.
    """
    name = given.partition(":///")[2]
    if name.partition("?")[0] in ("", ":memory:"):
        raise InputError("--storage sqlite:///FILE needs the name of a file.")
    if "?" in name or not given.startswith("sqlite:///"):
        return Address(given)
    return _sqlite_file(expanded(Path(name)))


def _sqlite_file(path: Path) -> Address:
    file = path.absolute()
    return Address(f"sqlite:///{file}", file)


def _is_readable(url: str) -> bool:
    """Whether SQLAlchemy can parse an address, and finds no part of a password in the host."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return "@" not in (make_url(url).host or "")
    except (ArgumentError, ValueError):
        return False


def _with_driver(url: str) -> str:
    """The address with a driver that is installed.

    Raises:
        InputError: there is no driver.
    """
    dialect, _, rest = url.partition("://")
    if dialect != "postgresql":
        return url
    for module, suffix in _DRIVERS:
        if find_spec(module) is not None:
            return f"{dialect}{suffix}://{rest}"
    raise InputError("No driver for PostgreSQL is installed: pip install 'ihgnn-cli[postgres]'")


def _short(text: str) -> str:
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return text if text.endswith((".", "!", "?")) else f"{text}."
