"""The storage of a study: SQLite in the folder of the search, or PostgreSQL for several machines.

The address of a server may contain a password, which is never shown, written or raised: `masked` is
the address without it, and messages of a database go through `without_secrets`.
"""

import re
import sqlite3
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import exclusive
from ihgnn_cli.masking import masked, masked_text
from ihgnn_cli.paths import expanded

DATABASE = "study.db"
HEARTBEAT_SECONDS, STALE_SECONDS = 10, 60
"""Interval between heartbeats, and the time without one after which a process counts as dead."""
UNAVAILABLE = (OperationalError, StorageInternalError)
"""Errors while a database restarts or the network is interrupted."""
_SQLITE = "sqlite:///"
_SQLITE_TIMEOUT = 60  # seconds to wait for another process that writes to the same file
_LOCK_NUMBER = 4_470_661  # of PostgreSQL's advisory lock; any number
_REMEDY = "Check the address and that the server runs; the same command continues."
_LONGEST = 300  # characters of a cause in a message


@dataclass(frozen=True)
class Address:
    """The address of a storage; it may contain a password and is never shown as it is."""

    url: str = field(repr=False)
    file: Path | None = None
    """The SQLite file; `None` for a server."""

    def __repr__(self) -> str:
        return f"Address({self.masked!r})"

    __str__ = __repr__

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

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes out: they create tables, or hand out a trial, one at a time.

        SQLite can hand out a waiting trial twice, and two processes that create the tables at the
        same time disturb each other.
        """
        if self.file is not None:
            with exclusive(self.file.with_suffix(".lock")):
                yield
            return
        engine = sqlalchemy.create_engine(self._with_driver(), poolclass=sqlalchemy.NullPool)
        with engine.begin() as connection:  # the lock is held to the end of the transaction
            locked = sqlalchemy.text(f"select pg_advisory_xact_lock({_LOCK_NUMBER})")
            connection.execute(locked)
            yield

    def open(self) -> "Storage":
        """Connect, and create the tables if there are none; to be called `alone`.

        Raises:
            InputError: the tables are of another version of Optuna.
        """
        if self.file is None:
            # Optuna formats the address.
            url = self._with_driver().replace("{", "{{").replace("}", "}}")
            options: dict[str, Any] = {"pool_pre_ping": True}
        else:
            # Not in the address, where some characters of a file name have another meaning.
            # Threads of a process share the connections, one at a time.
            connect = partial(
                sqlite3.connect, self.file, timeout=_SQLITE_TIMEOUT, check_same_thread=False
            )
            url, options = f"{_SQLITE}{DATABASE}", {"creator": connect}
        try:
            return Storage(
                url,
                engine_kwargs=options,
                heartbeat_interval=HEARTBEAT_SECONDS,
                grace_period=STALE_SECONDS,
            )
        except RuntimeError as error:  # the tables are of another version
            raise InputError(
                f"The storage cannot be used: {self.without_secrets(error)} "
                "Or choose another --storage."
            ) from error

    def _with_driver(self) -> str:
        return re.sub(r"^postgresql://", "postgresql+psycopg://", self.url)


class Storage(RDBStorage):
    """Optuna's storage; a heartbeat that a database cannot take now does not end the others."""

    def record_heartbeat(self, trial_id: int) -> None:
        """Record that the process of a trial lives."""
        with suppress(*UNAVAILABLE):
            super().record_heartbeat(trial_id)


def address(given: str | None, folder: Path) -> Address:
    """The storage that a user gave; by default a SQLite file in the folder.

    Raises:
        InputError: the address is not valid, or the driver of PostgreSQL is missing.
    """
    if given is None:
        return _sqlite_file(folder / DATABASE)
    if given.startswith(_SQLITE):
        name = given.removeprefix(_SQLITE)
        if name in ("", ":memory:"):
            raise InputError(f"--storage {_SQLITE}FILE needs the name of a file.")
        return _sqlite_file(expanded(Path(name)))
    if not re.match(r"postgresql(\+psycopg)?://", given):
        # Without a scheme it is unknown where a password begins.
        shown = f"{re.split('[:/@?]', given)[0]}..." if re.search("[@?]", given) else given
        raise InputError(f"--storage is postgresql://... or {_SQLITE}FILE, not '{shown}'.")
    if not _is_readable(given):
        raise InputError(
            f"--storage is not a valid address ({masked(given)}). Write "
            "postgresql://NAME:PASSWORD@HOST:PORT/DATABASE, with %40 for an @ in a name or "
            "password, %3A for a : and %2F for a /."
        )
    if find_spec("psycopg") is None:
        raise InputError("No driver for PostgreSQL is installed: pip install 'ihgnn-cli[postgres]'")
    return Address(given)


def _sqlite_file(path: Path) -> Address:
    file = path.absolute()
    return Address(f"{_SQLITE}{file}", file)


def _is_readable(url: str) -> bool:
    """Whether SQLAlchemy can parse an address, and finds no part of a password in the host."""
    try:
        return "@" not in (sqlalchemy.make_url(url).host or "")
    except (ArgumentError, ValueError):
        return False


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep Optuna from logging, and from warning that its heartbeat is experimental."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


@contextmanager
def database_errors(where: Address, what: str = "The study's storage failed") -> Iterator[None]:
    """Raise errors of the database as an `IhgnnError` of one line, without secrets."""
    cause = ""
    try:
        yield
    except (SQLAlchemyError, StorageInternalError) as error:
        cause = where.without_secrets(_cause(error)) or "no reason given"
    if not cause:
        return
    cause = cause if len(cause) <= _LONGEST else f"{cause[: _LONGEST - 3]}..."
    end = "" if cause.endswith((".", "!", "?")) else "."
    failed = IhgnnError(f"{what} ({where.masked}): {cause}{end} {_REMEDY}")
    try:
        raise failed
    finally:
        failed.__context__ = None  # the database's own error, which holds the address


def _cause(error: Exception) -> BaseException:
    """The driver's own error, inside those of SQLAlchemy and Optuna."""
    cause: BaseException = getattr(error, "orig", None) or error.__cause__ or error
    return getattr(cause, "orig", None) or cause
