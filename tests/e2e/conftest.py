"""The installed command, as a user starts it."""

import io
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from started import PATIENCE

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def command() -> str:
    """The `ihgnn` script of the environment that runs the tests."""
    found = shutil.which("ihgnn", path=str(Path(sys.executable).parent)) or shutil.which("ihgnn")
    assert found, "the package is not installed: pip install ."
    return found


@pytest.fixture
def ihgnn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Run:
    """Run `ihgnn ARGS` in an empty folder and in this process, which has torch imported already.

    With `IHGNN_E2E=process` each is a process of its own, as for a user. `text` is what comes on
    standard input.
    """
    if os.environ.get("IHGNN_E2E") == "process":
        run_process: Run = request.getfixturevalue("ihgnn_process")
        return run_process

    def run(*args: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
        from ihgnn_cli.cli import app
        from ihgnn_cli.data.features import note_unread

        note_unread.cache_clear()  # as in a new process
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        given = ["ihgnn", *map(str, args)]
        logger = logging.getLogger("ihgnn_cli")
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as typed,
            monkeypatch.context() as patch,
            warnings.catch_warnings(),
        ):
            typed.write(text)
            typed.seek(0)
            warnings.simplefilter("ignore")
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", given)
            patch.setattr(sys, "stdin", typed)
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.setattr(logger, "handlers", [])
            for name in ("install", "uninstall"):  # the handlers of pytest stay
                patch.setattr(app.signals, name, lambda: None)
            with pytest.raises(SystemExit) as ended:
                app.main()
        shown = []
        for stream in (out, err):
            stream.flush()
            shown.append(stream.buffer.getvalue().decode())
        code = ended.value.code
        return subprocess.CompletedProcess(given, code if isinstance(code, int) else 0, *shown)

    return run


@pytest.fixture
def ihgnn_process(command: str, tmp_path: Path) -> Run:
    """Run `ihgnn ARGS` in an empty folder, as a new process."""

    def run(*args: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command, *map(str, args)],
            cwd=tmp_path,
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )

    return run


@pytest.fixture
def in_terminal(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., str]:
    """Run `ihgnn ARGS` in a terminal of 80 columns, and give all that it was sent."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals are of Unix")

    def run(*args: str) -> str:
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", "80")
        shown = bytearray()
        ours, theirs = pty.openpty()
        with os.fdopen(ours, "rb", buffering=0) as screen:
            process = subprocess.Popen(
                [command, *args],
                **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
                cwd=tmp_path,
                start_new_session=True,
            )
            os.close(theirs)
            with suppress(OSError):  # Linux reports the end of a terminal's output this way
                while block := screen.read(4096):
                    shown.extend(block)
        assert process.wait() == 0, shown.decode()
        return shown.decode()

    return run


class StallingServer:
    """Serves files by path; a path in `stalled` gets half its bytes and then silence."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.stalled: set[str] = set()
        self.half_sent = threading.Event()
        self.release = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = outer.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.path in outer.stalled:
                    self.wfile.write(content[: len(content) // 2])
                    self.wfile.flush()
                    outer.half_sent.set()
                    outer.release.wait(PATIENCE)
                else:
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StallingServer]:
    """A real server on loopback, which commands take for the TU server."""
    made = StallingServer()
    monkeypatch.setenv("IHGNN_MIRROR", made.address)
    thread = threading.Thread(target=made.http.serve_forever, daemon=True)
    thread.start()
    yield made
    made.release.set()
    made.http.shutdown()
    made.http.server_close()
    thread.join()
