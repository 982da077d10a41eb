"""Where a study is kept: SQLite in the run folder, a database server, or Optuna's journal file.

The address of a server may hold a password. Nothing that is shown, written or raised has it in it:
`masked` is the address for people, and whatever a database says goes through `told`.
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
# Drivers of PostgreSQL, SQLAlchemy's own choice first: module, and its name in an address.
_DRIVERS = (("psycopg2", ""), ("psycopg", "+psycopg"))
_REMEDY = "Check the address and that the server runs; the same command continues."
HEARTBEAT_SECONDS, STALE_SECONDS = 10, 60
"""Between two heartbeats of a trial; and without one after which its process counts as dead."""
# Processes that share a file of SQLite wait for each other for so long.
_PATIENCE = 60
# Two processes that make the tables of a database at the same moment get in each other's way.
_TRIES, _PAUSE = 5, 0.5


@dataclass(frozen=True)
class Address:
    """Where a study is kept; never shown as it is."""

    url: str
    file: Path | None = None
    """Of SQLite, by its name: in an address, some signs of a name would mean something else."""

    def __repr__(self) -> str:
        return f"Address({self.masked!r})"

    __str__ = __repr__

    @property
    def path(self) -> Path | None:
        """Of a study that is kept in a file."""
        if self.url.startswith(JOURNAL):
            return Path(self.url.removeprefix(JOURNAL))
        return self._sqlite

    @property
    def lock(self) -> Path | None:
        """A file for those to wait for each other who share a file of SQLite."""
        path = self._sqlite
        return None if path is None else path.with_name(f"{path.stem}.lock")

    @property
    def _sqlite(self) -> Path | None:
        """Its file, also where the address has a query; not of one that SQLite is to read."""
        name = self.url.partition(":///")[2].partition("?")[0]
        if self.file is None and self.url.startswith("sqlite") and not name.startswith("file:"):
            return Path(name)
        return self.file

    @property
    def masked(self) -> str:
        """The address without its secrets, for people to read."""
        return masked(self.url)

    def told(self, text: object) -> str:
        """What a database said, on one line and without the secrets of this address."""
        return " ".join(masked_text(str(text), self.url).split())


def address(given: str | None, folder: Path) -> Address:
    """The address that a user means; without one, a file in the folder.

    Raises:
        InputError: it is no address.
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
        # Without a scheme nobody knows where a password begins.
        shown = f"{re.split('[:/@?]', given)[0]}..." if re.search("[@?]", given) else given
        raise InputError(
            f"--storage is postgresql://..., sqlite:///FILE or {JOURNAL}FILE, not '{shown}'."
        )
    if given.startswith("sqlite"):
        return _sqlite_address(given)
    if not _is_readable(given):
        raise InputError(
            f"--storage is no address that can be read ({masked(given)}): it is "
            "postgresql://NAME:PASSWORD@HOST:PORT/DATABASE, with %40 for an @ in a name or "
            "password, %3A for a : and %2F for a /."
        )
    return Address(given)


def open_storage(where: Address, folder: Path | None = None) -> "BaseStorage":
    """Connect, and make the tables where there are none.

    Args:
        where: the address.
        folder: of the run, if any; processes that share it do this one after the other.

    Raises:
        InputError: the driver is missing, or the address cannot be.
        IhgnnError: nobody answers there, or refuses.
    """
    import optuna  # noqa: PLC0415  takes long

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    warnings.filterwarnings("ignore", "Heartbeat of storage is supposed to be used")
    one_by_one = nullcontext() if folder is None else exclusive(folder / LOCK)
    with one_by_one, speaking(where, "Cannot open the study's storage"):
        if where.url.startswith(JOURNAL):
            return _journal(Path(where.url.removeprefix(JOURNAL)))
        return _database(where)


@contextmanager
def speaking(where: Address, what: str = "The study's storage failed") -> Iterator[None]:
    """Report in one line, without secrets, what a database raises in the block.

    Ctrl-C and SIGTERM wait for the end of the block, or a `safe_point` in it: a call into a
    database that is cut short leaves a connection in an unknown state.
    """
    with reported(where, what), held():
        yield


@contextmanager
def reported(where: Address, what: str = "The study's storage failed") -> Iterator[None]:
    """Report in one line, without secrets, what a database raises in the block."""
    try:
        yield
    except IhgnnError:
        raise
    except Exception as error:
        if not _of_database(error, where):
            raise
        message = f"{what} ({where.masked}): {_short(where.told(_cause(error)))} {_REMEDY}"
    else:
        return
    told = IhgnnError(message)
    try:
        raise told
    finally:
        # No traceback leads to an exception with the address in it.
        told.__context__ = None


def _cause(error: Exception) -> BaseException:
    """What the driver said, under what others made of it."""
    cause: BaseException = getattr(error, "orig", None) or error.__cause__ or error
    return getattr(cause, "orig", None) or cause


def _of_database(error: Exception, where: Address) -> bool:
    import sqlalchemy.exc  # noqa: PLC0415
    from optuna.exceptions import StorageInternalError  # noqa: PLC0415

    if isinstance(error, OSError):  # else of our own output, or of starting processes
        return where.url.startswith(JOURNAL) and not isinstance(error, BrokenPipeError)
    return isinstance(error, sqlalchemy.exc.SQLAlchemyError | StorageInternalError)


def _journal(path: Path) -> "BaseStorage":
    from optuna.storages import JournalStorage  # noqa: PLC0415
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    # The other kind of lock is a symbolic link, which Windows seldom allows.
    lock = JournalFileOpenLock(str(path)) if sys.platform == "win32" else None
    backend = JournalFileBackend(str(path), lock_obj=lock)
    try:
        with path.open("rb") as stream:
            if stream.read(1) not in (b"", b"{"):
                raise ValueError("no journal")  # noqa: TRY301  and none would be from then on
        return JournalStorage(backend)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no journal of Optuna. Choose another --storage.") from error


def _database(where: Address) -> "BaseStorage":
    import sqlalchemy.exc  # noqa: PLC0415
    from optuna.storages import RDBStorage  # noqa: PLC0415

    url, options = _engine(where)
    for left in reversed(range(_TRIES)):
        try:
            return RDBStorage(
                url,
                engine_kwargs=options,
                heartbeat_interval=HEARTBEAT_SECONDS,
                grace_period=STALE_SECONDS,
            )
        except ImportError as error:
            raise InputError(
                f"The driver of {where.masked} is not installed ({error.__cause__ or error}). "
                "Install it, or leave it out of the address."
            ) from error
        except RuntimeError as error:  # tables of another version
            raise InputError(
                f"The storage cannot be used: {where.told(error)} Or choose another --storage."
            ) from error
        except sqlalchemy.exc.DBAPIError as error:
            if not left or not _is_race(error):
                raise
        time.sleep(_PAUSE)
    raise AssertionError  # the last try returns or raises


def _engine(where: Address) -> tuple[str, dict[str, object]]:
    """What SQLAlchemy is given: an address, and how to connect."""
    if where.file is not None:
        where.file.parent.mkdir(parents=True, exist_ok=True)
        # The threads of this process share connections, one at a time.
        connect = partial(sqlite3.connect, where.file, timeout=_PATIENCE, check_same_thread=False)
        return f"sqlite:///{DATABASE}", {"creator": connect}
    url = _with_driver(where.url).replace("{", "{{").replace("}", "}}")  # Optuna formats it
    if url.startswith("sqlite"):
        return url, {"connect_args": {"timeout": _PATIENCE}}
    return url, {"pool_pre_ping": True}


def _is_race(error: "DBAPIError") -> bool:
    """Whether another process made the tables at the same moment."""
    import sqlalchemy.exc  # noqa: PLC0415

    if isinstance(error, sqlalchemy.exc.IntegrityError | sqlalchemy.exc.ProgrammingError):
        return True
    return "already exists" in str(error.orig)


def _sqlite_address(given: str) -> Address:
    """An address of SQLite; a mere file is taken by its name, as for a journal.

    Raises:
        InputError: it names no file, and nothing would be kept.
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
    """Whether SQLAlchemy reads an address as it is meant."""
    from sqlalchemy import make_url  # noqa: PLC0415
    from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

    try:
        return "@" not in (make_url(url).host or "")
    except (ArgumentError, ValueError):
        return False


def _with_driver(url: str) -> str:
    """The address with a driver that is installed.

    Raises:
        InputError: none is.
    """
    dialect, _, rest = url.partition("://")
    if dialect != "postgresql":
        return url
    for module, suffix in _DRIVERS:
        if find_spec(module) is not None:
            return f"{dialect}{suffix}://{rest}"
    raise InputError("No driver for postgresql is installed: pip install 'ihgnn-cli[postgres]'")


def _short(text: str, most: int = 300) -> str:
    text = text if len(text) <= most else f"{text[: most - 3]}..."
    return text if text.endswith((".", "!", "?")) else f"{text}."
