"""Where a study is kept: addresses, what opens, and that secrets are nowhere to be seen."""

import copy
import os
import pickle
import sqlite3
import sys
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote

import optuna
import pytest
import sqlalchemy
import sqlalchemy.exc
from optuna.exceptions import StorageInternalError
from started import run_together

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.studies.tuning import storage
from ihgnn_cli.studies.tuning.storage import Address, address, database_calls, masked, open_storage

CLOSED = "127.0.0.1:9"  # the discard port: refused at once
PASSWORDS = [
    "hunter2",
    "hun@ter2",
    "hun:ter2",
    "hun/ter2",
    "hun?ter=2&x",
    "hun%ter2",
    "hun ter2",
    "h{unter}2",
    "hun#ter2",
    "@hunter2@",
]

OPENER = """
import sys
from pathlib import Path
import optuna
import sqlalchemy.event
from sqlalchemy.engine import Engine
from ihgnn_cli.studies.tuning.storage import address, open_storage

sqlalchemy.event.listen(
    Engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = OFF")  # as in conftest.py
)
print("ready", flush=True)
sys.stdin.readline()
folder = Path(sys.argv[1])
found = open_storage(address(sys.argv[2], folder), folder)
study = optuna.create_study(storage=found, study_name="one", load_if_exists=True)
study.set_user_attr(folder.name, True)
"""


def addresses(password: str) -> list[str]:
    quoted = quote(password, safe="")
    return [
        f"postgresql://me:{quoted}@host:1/db",
        f"postgresql://me%40there:{quoted}@host/db?x=a@b",
        f"postgresql://me@there:{quoted}@host/db",
        f"postgresql://:{quoted}@host/db",
        f"postgresql+psycopg://me:{quoted}@host/db",
        f"postgresql://host/db?user=me&password={quoted}",
        f"postgresql://me@host/db?PASSWORD={quoted}&x=1",
        f"postgresql://host/db?sslmode=require&sslpassword={quoted}",
        f"postgresql://host/db?access_token={quoted}",
        f"postgresql://me:other@host/db?ssl_key={quoted}",
    ]


def is_shown(password: str, text: str) -> bool:
    return password in text or quote(password, safe="") in text or "ter2" in text


@pytest.mark.parametrize("password", PASSWORDS)
def test_no_form_of_an_address_shows_its_secret(password: str) -> None:
    for url in addresses(password):
        where = Address(url)
        for text in (where.masked, str(where), repr(where), f"{where}", masked(f"--storage={url}")):
            assert not is_shown(password, text), text
            assert "***" in text
        assert where.masked.startswith(url.partition("://")[0])
        assert repr(copy.copy(where)) == repr(where)
        assert repr([where]) == f"[{where!r}]"


@pytest.mark.parametrize("password", PASSWORDS)
def test_a_password_that_is_not_quoted_is_not_shown_either(password: str) -> None:
    where = Address(f"postgresql://me:{password}@host/db")
    assert where.masked == "postgresql://me:***@host/db"
    assert where.without_secrets(
        f"refused: {where.url}, password {password}, that is {password!r}"
    ) == ("refused: postgresql://me:***@host/db, password ***, that is '***'")


@pytest.mark.parametrize("password", PASSWORDS)
def test_what_a_database_says_is_told_without_the_secret(password: str) -> None:
    """Quoted and unquoted, however the driver writes it, and on one line."""
    forms = [password, quote(password), quote(password, safe=""), quote(password, safe=" +")]
    for url in addresses(password):
        for form in (*forms, url):
            told = Address(url).without_secrets(f"no entry\n  for <{form}>\tat host")
            assert not is_shown(password, told), told
            assert told.startswith("no entry for <")
            assert "\n" not in told


def test_what_is_no_secret_stays() -> None:
    for plain in (
        "postgresql://me@host:5432/db?sslmode=require",
        "sqlite:////home/me/runs/study.db",
        "journal:/home/me/j.log",
        "--trials=50",
        "MUTAG",
    ):
        assert masked(plain) == plain
    where = Address("postgresql://me:hunter2@host:5432/db?sslmode=require")
    assert where.masked == "postgresql://me:***@host:5432/db?sslmode=require"
    assert where.without_secrets("host is away.\nTry again") == "host is away. Try again"


def test_an_address_that_went_to_another_process_is_as_silent(tmp_path: Path) -> None:
    where = Address("postgresql://me:hunter2@host/db")
    there = pickle.loads(pickle.dumps(where))
    assert there == where
    assert repr(there) == "Address('postgresql://me:***@host/db')"


def test_without_an_address_it_is_a_file_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert address(None, Path("run")).url == f"sqlite:///{tmp_path / 'run' / 'study.db'}"


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("journal:x.log", "x.log"),
        ("journal:sub/x.log", "sub/x.log"),
        ("journal://x.log", "x.log"),
        ("journal:./x.log", "x.log"),
    ],
)
def test_a_journals_name_is_relative_to_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert address(given, Path("run")).url == f"journal:{tmp_path / path}"


def test_a_journals_name_may_be_absolute_or_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert address("journal:///x", Path()).url == f"journal:{Path('/x').absolute()}"
    assert address("journal:/x", Path()).url == f"journal:{Path('/x').absolute()}"
    assert address("journal:~/x", Path()).url == f"journal:{tmp_path / 'x'}"


def test_a_file_of_sqlite_is_found_like_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    assert address("sqlite:///x.db", Path("run")).url == f"sqlite:///{tmp_path / 'x.db'}"
    assert address("sqlite:///~/x.db", Path()).url == f"sqlite:///{tmp_path / 'home' / 'x.db'}"
    assert address(f"sqlite:///{tmp_path}/y", Path()).url == f"sqlite:///{tmp_path / 'y'}"


@pytest.mark.parametrize("given", ["journal:", "journal://"])
def test_a_journal_needs_a_name(given: str) -> None:
    with pytest.raises(InputError, match="--storage journal:FILE needs the name of a file"):
        address(given, Path())


@pytest.mark.parametrize(
    "given", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite+pysqlite://"]
)
def test_a_database_that_nobody_else_could_see_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="--storage sqlite:///FILE needs the name of a file"):
        open_storage(address(given, tmp_path), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    [
        "",
        "study.db",
        "postgres://me:hunter2@host/db",
        "oracle://me:hunter2@host/db",
        "me:hunter2@host/db",
        "hunter:hunter2@host",
        "postgresql:/me:hunter2@host/db",
        "postgresql//me:hunter2@host/db",
        "host/db?password=hunter2",
        "http://host/?token=hunter2",
        "PostgreSQL://me:hunter2@host/db",
    ],
)
def test_what_is_no_address_is_refused_without_its_secret(given: str) -> None:
    with pytest.raises(InputError, match=r"--storage is postgresql://\.\.\., .* not '") as caught:
        address(given, Path())
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "given",
    [
        "postgresql://me:hun@ter2@host/db",
        "postgresql://me:h@un:ter2@host/db",
        "postgresql://me:ter2@host:port/db",
        "postgresql://me:a@b@ter2@host/db",
    ],
)
def test_an_address_that_would_be_read_otherwise_is_refused_with_a_remedy(given: str) -> None:
    """SQLAlchemy would look for a host whose name begins with the rest of the password."""
    with pytest.raises(InputError, match=r"with %40 for an @ in a name or password") as caught:
        address(given, Path())
    assert "ter2" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def raised(error: Exception, where: Address) -> IhgnnError:
    with pytest.raises(IhgnnError) as caught, database_calls(where):
        raise error
    return caught.value


def seen(error: BaseException) -> str:
    """All that somebody who debugs could see of an exception, with the package's variables."""
    found = traceback.TracebackException.from_exception(error, capture_locals=True)
    ours = [frame for frame in found.stack if "ihgnn_cli" in frame.filename]
    assert ours
    parts = [str(error), repr(error), *traceback.format_exception(error)]
    return "\n".join([*parts, *(str(frame.locals) for frame in ours)])


WHERE = Address("postgresql://me:hunter2@host/db?sslpassword=hunter3")
SAID = 'connection to "host" failed: password=hunter2 sslpassword=hunter3'


def with_cause(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        sqlalchemy.exc.OperationalError("SELECT 1", None, Exception(SAID)),
        sqlalchemy.exc.ArgumentError(SAID),
        with_cause(
            StorageInternalError("An exception is raised during the commit."),
            sqlalchemy.exc.OperationalError("SELECT 1", None, Exception(SAID)),
        ),
    ],
)
def test_what_a_database_raises_is_told_in_a_line_that_leads_to_no_secret(
    error: Exception,
) -> None:
    told = raised(error, WHERE)
    assert not isinstance(told, InputError)
    assert told.__cause__ is None
    assert told.__context__ is None
    assert str(told).startswith(
        "The study's storage failed (postgresql://me:***@host/db?sslpassword=***): "
    )
    assert 'connection to "host" failed: password=*** sslpassword=***' in str(told)
    assert "\n" not in str(told)
    assert "hunter" not in seen(told)


def test_what_the_system_raises_is_the_storages_only_for_a_journal() -> None:
    """Else it is of what the process writes itself, or of processes that it starts."""
    journal = Address("journal:/home/me/j.log")
    told = raised(OSError(5, "Input/output error"), journal)
    assert str(told).startswith("The study's storage failed (journal:/home/me/j.log): ")
    assert "Input/output error" in str(told)
    assert told.__context__ is None
    for where in (WHERE, Address("sqlite:////x.db", Path("/x.db"))):
        with pytest.raises(OSError, match="Input/output error"), database_calls(where):
            raise OSError(5, "Input/output error")
    with pytest.raises(BrokenPipeError), database_calls(journal):  # as of `ihgnn tune | head`
        raise BrokenPipeError(32, "Broken pipe")


def test_a_failure_while_another_was_handled_leads_to_no_secret() -> None:
    """As when the trials in hand cannot be given back because the server is away."""

    def fail() -> None:
        with database_calls(WHERE):
            try:
                raise sqlalchemy.exc.OperationalError("SELECT 1", None, Exception(SAID))
            finally:
                raise sqlalchemy.exc.OperationalError("SELECT 2", None, Exception(SAID))

    with pytest.raises(IhgnnError) as caught:
        fail()
    assert caught.value.__context__ is None
    assert "hunter" not in "".join(traceback.format_exception(caught.value))


def test_other_exceptions_pass() -> None:
    refused = InputError("no")
    with pytest.raises(InputError) as caught, database_calls(WHERE):
        raise refused
    assert caught.value is refused
    with pytest.raises(ZeroDivisionError), database_calls(WHERE):
        raise ZeroDivisionError
    with pytest.raises(KeyboardInterrupt), database_calls(WHERE):
        raise KeyboardInterrupt


def test_a_long_story_is_cut() -> None:
    told = raised(sqlalchemy.exc.ArgumentError("x" * 5000), WHERE)
    assert len(str(told)) < 600
    assert "xxx... Check the address" in str(told)


@pytest.mark.parametrize("password", ["h{unter}2", "hun%40ter2"])
def test_a_server_that_does_not_answer_is_told_without_the_secret(
    tmp_path: Path, password: str
) -> None:
    where = address(f"postgresql://me:{password}@{CLOSED}/db?connect_timeout=5", tmp_path)
    with pytest.raises(IhgnnError, match="Cannot open the study's storage") as caught:
        open_storage(where, tmp_path)
    told = str(caught.value)
    assert f"(postgresql://me:***@{CLOSED}/db?connect_timeout=5)" in told
    assert "refused" in told
    assert "Check the address and that the server runs" in told
    assert "\n" not in told
    assert caught.value.__context__ is None
    text = "".join(traceback.format_exception(caught.value))
    for form in (password, "hunter2", "hun@ter2"):
        assert form not in text


def test_a_missing_driver_is_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "find_spec", lambda _: None)
    where = address(f"postgresql://me:hunter2@{CLOSED}/db", tmp_path)
    with pytest.raises(InputError) as caught:
        open_storage(where, tmp_path)
    assert str(caught.value) == (
        "No driver for PostgreSQL is installed: pip install 'ihgnn-cli[postgres]'"
    )


def test_a_missing_driver_that_the_address_names_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pg8000", None)
    where = address(f"postgresql+pg8000://me:hunter2@{CLOSED}/db", tmp_path)
    with pytest.raises(InputError, match=r"The driver for .* is not installed") as caught:
        open_storage(where, tmp_path)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_driver_that_there_is_none_of_is_told(tmp_path: Path) -> None:
    where = address(f"postgresql+nonsense://me:hunter2@{CLOSED}/db", tmp_path)
    with pytest.raises(IhgnnError, match="Cannot open the study's storage") as caught:
        open_storage(where, tmp_path)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.skipif(os.name == "nt", reason="names may not hold these signs")
@pytest.mark.parametrize("given", [None, "sqlite", "journal"])
def test_a_study_is_kept_in_a_folder_of_any_name(tmp_path: Path, given: str | None) -> None:
    # A ? begins the query of an address, and is no part of a name that is given as one.
    folder = tmp_path / ("a b%20{x}#1é&=@:100%" + ("" if given == "sqlite" else "?x=1"))
    folder.mkdir()
    if given == "sqlite":
        given = f"sqlite:///{folder}/made/mine.db"
    elif given == "journal":
        given = f"journal:{folder}/made/mine.log"
    where = address(given, folder)
    study = optuna.create_study(storage=open_storage(where, folder), study_name="one")
    study.add_trial(optuna.create_trial(value=0.5, user_attrs={"a": [1, 2]}))
    again = optuna.load_study(storage=open_storage(where, folder), study_name="one")
    assert [(each.value, each.user_attrs) for each in again.trials] == [(0.5, {"a": [1, 2]})]
    assert list(tmp_path.iterdir()) == [folder]
    made = folder / "study.db" if given is None else next((folder / "made").glob("mine.*"))
    assert made.stat().st_size > 0


def test_an_address_of_sqlite_may_have_a_query(tmp_path: Path) -> None:
    where = address(f"sqlite:///{tmp_path}/x.db?timeout=5", tmp_path)
    optuna.create_study(storage=open_storage(where, tmp_path), study_name="one")
    assert (tmp_path / "x.db").is_file()


def test_without_a_folder_nobody_is_waited_for_and_no_lock_is_made(tmp_path: Path) -> None:
    where = address(f"sqlite:///{tmp_path}/x.db", tmp_path)
    optuna.create_study(storage=open_storage(where), study_name="one")
    assert [path.name for path in tmp_path.iterdir()] == ["x.db"]
    open_storage(where, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"x.db", storage.LOCK}


def test_those_who_share_a_file_of_sqlite_have_a_lock_beside_it(tmp_path: Path) -> None:
    """The one that a search's folder has for its own file."""
    assert address(None, tmp_path).lock == tmp_path / storage.LOCK
    for given in ("x.db", "x.db?timeout=5"):
        assert address(f"sqlite:///{tmp_path}/{given}", tmp_path).lock == tmp_path / "x.lock"
    for given in (f"journal:{tmp_path}/x.log", "postgresql://me:hunter2@host/db"):
        assert address(given, tmp_path).lock is None


@pytest.mark.parametrize("content", [b"hello\n", b"hello", b"a\nb\nc\n", b'{"a": 1}\n{"b": 2}\n'])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is not an Optuna journal. Choose another --storage"):
        open_storage(address(f"journal:{path}", tmp_path), tmp_path)
    assert path.read_bytes() == content


def test_a_file_that_is_no_database_is_told_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(b"hello " * 1000)
    with pytest.raises(IhgnnError, match="file is not a database"):
        open_storage(address(f"sqlite:///{path}", tmp_path), tmp_path)
    assert path.read_bytes() == b"hello " * 1000


def test_tables_of_another_version_of_optuna_are_told(tmp_path: Path) -> None:
    where = address(None, tmp_path)
    open_storage(where, tmp_path)
    with sqlite3.connect(tmp_path / "study.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v99.0.0'")
    connection.close()
    with pytest.raises(InputError, match=r"The storage cannot be used: .*--storage"):
        open_storage(where, tmp_path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IhgnnError, match=r"Cannot write|Cannot open the study's storage"):
        open_storage(address(None, tmp_path / "file"), tmp_path / "file")
    with pytest.raises(IhgnnError, match="Cannot open the study's storage"):
        open_storage(address(f"journal:{tmp_path}/file/x", tmp_path), tmp_path)
    with pytest.raises(IhgnnError, match="Cannot open the study's storage"):
        open_storage(address(f"journal:{tmp_path}", tmp_path), tmp_path)


@pytest.mark.parametrize(
    ("said", "failures", "opens"),
    [("table trials already exists", 30, True), ("no such privilege", 30, False)],
)
def test_one_waits_for_who_is_slow_to_make_the_tables_but_not_for_other_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, failures: int, opens: bool
) -> None:
    real, tried = optuna.storages.RDBStorage, []

    def overtaken(*given: Any, **options: Any) -> optuna.storages.RDBStorage:
        tried.append(given)
        if len(tried) <= failures:
            raise sqlalchemy.exc.ProgrammingError("CREATE", None, Exception(said))
        return real(*given, **options)

    monkeypatch.setattr(optuna.storages, "RDBStorage", overtaken)
    monkeypatch.setattr(storage, "_PAUSE", 0.0)
    where = address(None, tmp_path)
    if opens:
        assert open_storage(where, tmp_path).get_all_studies() == []
    else:
        with pytest.raises(IhgnnError, match=said):
            open_storage(where, tmp_path)
    assert len(tried) == (failures + 1 if opens else 5)


@pytest.mark.parametrize("kind", ["sqlite:///", "journal:"])
def test_processes_that_open_the_same_new_file_at_once_all_do(tmp_path: Path, kind: str) -> None:
    """From folders of their own, as on several machines, so that no lock keeps them apart."""
    file = tmp_path / "shared"
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    run_together(OPENER, *([tmp_path / name, f"{kind}{file}"] for name in ("a", "b")))
    found = open_storage(address(f"{kind}{file}", tmp_path), tmp_path)
    (summary,) = optuna.get_all_study_summaries(storage=found)
    assert summary.user_attrs == {"a": True, "b": True}
