"""Downloads from a real server on this machine that misbehaves on request."""

import errno
import gc
import http.client
import io
import threading
import time
import urllib.request
import warnings
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ihgnn_cli.data.readers.tu import read_tu
from ihgnn_cli.data.readers.tu_files import open_tu
from ihgnn_cli.data.sources.download import (
    TU_SERVER,
    RetryPolicy,
    by_hand,
    download,
    download_url,
)
from ihgnn_cli.errors import DownloadError, IhgnnError, InputError
from ihgnn_cli.progress import Advance

# Seconds; no passing test waits that long.
LONG = 100.0
QUICK = RetryPolicy(timeout=LONG, attempts=3, backoff=0.01)
HASTY = RetryPolicy(timeout=0.7, attempts=2, backoff=0.01)

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Gives each request the next of its answers, and the last one from then on."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[str] = []
        self.user_agents: list[str | None] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()

    def will(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def take(self, handler: BaseHTTPRequestHandler) -> Answer:
        with self._lock:
            self.requests.append(handler.path)
            self.user_agents.append(handler.headers["User-Agent"])
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def wait_for(self, requests: int) -> None:
        """Wait until this many requests have arrived; their clients may have given up."""
        deadline = time.monotonic() + LONG
        while len(self.requests) < requests:
            assert time.monotonic() < deadline
            time.sleep(0.005)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.take(self)(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("IHGNN_MIRROR", f"http://127.0.0.1:{listener.server_port}/sets")
        try:
            yield state
        finally:
            state.closing.set()
            listener.shutdown()
            thread.join(timeout=LONG)


def whole(body: bytes) -> Answer:
    return part(body, len(body))


def half(body: bytes) -> Answer:
    """The whole length is declared, the connection ends half-way."""
    return part(body, len(body) // 2)


def part(body: bytes, sent: int) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:sent])

    return answer


def unsized(body: bytes) -> Answer:
    """No Content-Length: the end of the connection is the end of the file."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def status(code: int) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_error(code)

    return answer


def silence(server: Server) -> Answer:
    def answer(_: BaseHTTPRequestHandler) -> None:
        server.closing.wait(LONG)

    return answer


def stall_after_half(server: Server, body: bytes) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        half(body)(handler)
        handler.wfile.flush()
        server.closing.wait(LONG)

    return answer


def zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


TINY = zipped(
    {
        "TINY/TINY_A.txt": b"1, 2\n2, 1\n",
        "TINY/TINY_graph_indicator.txt": b"1\n1\n",
        "TINY/TINY_graph_labels.txt": b"1\n",
    }
)


class Recorder:
    """A progress display that writes down what it is told."""

    def __init__(self) -> None:
        self.tasks: list[tuple[str, int | None]] = []
        self.done: list[int] = []

    @contextmanager
    def task(self, description: str, total: int | None) -> Iterator[Advance]:
        self.tasks.append((description, total))
        self.done.append(0)

        def advance(amount: int) -> None:
            self.done[-1] += amount

        yield advance


def failure(folder: Path, retry: RetryPolicy = QUICK) -> str:
    """The message of a download that must fail and leave nothing behind."""
    with pytest.raises(DownloadError) as caught:
        download("TINY", folder, retry=retry)
    assert list(folder.iterdir()) == []
    return str(caught.value)


def expected(folder: Path, reason: str) -> str:
    return f"Cannot download TINY from {download_url('TINY')}: {reason}.\n{by_hand('TINY', folder)}"


# The good case


def test_a_download_puts_the_whole_file_under_its_name(server: Server, tmp_path: Path) -> None:
    server.will(whole(TINY))
    path = download("TINY", tmp_path / "new" / "root", retry=QUICK)
    assert path == tmp_path / "new" / "root" / "TINY.zip"
    assert path.read_bytes() == TINY
    assert list(path.parent.iterdir()) == [path]
    assert server.requests == ["/sets/TINY.zip"]
    assert len(read_tu(open_tu(path))) == 1


def test_the_server_is_told_who_asks(server: Server, tmp_path: Path) -> None:
    server.will(whole(TINY))
    download("TINY", tmp_path, retry=QUICK)
    assert [(agent or "").split("/")[0] for agent in server.user_agents] == ["ihgnn"]


def test_progress_adds_up_to_the_size(server: Server, tmp_path: Path) -> None:
    noise = bytes(range(256)) * 600  # two blocks and a bit, once stored without compression
    buffer = io.BytesIO(TINY)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_STORED) as archive:
        archive.writestr("TINY/README.txt", noise)
    body = buffer.getvalue()
    server.will(whole(body))
    seen = Recorder()
    download("TINY", tmp_path, seen, QUICK)
    assert seen.tasks == [("Downloading TINY", len(body))]
    assert seen.done == [len(body)]


def test_without_a_content_length_the_total_is_unknown(server: Server, tmp_path: Path) -> None:
    server.will(unsized(TINY))
    seen = Recorder()
    path = download("TINY", tmp_path, seen, QUICK)
    assert path.read_bytes() == TINY
    assert seen.tasks == [("Downloading TINY", None)]
    assert seen.done == [len(TINY)]


def test_an_old_file_is_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "TINY.zip").write_bytes(b"old")
    server.will(whole(TINY))
    assert download("TINY", tmp_path, retry=QUICK).read_bytes() == TINY


def test_two_downloads_at_once_both_succeed(server: Server, tmp_path: Path) -> None:
    together = threading.Barrier(2, timeout=LONG)

    def answer(handler: BaseHTTPRequestHandler) -> None:
        together.wait()  # both are under way before either gets a byte
        whole(TINY)(handler)

    server.will(answer)
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(download, "TINY", tmp_path, retry=QUICK) for _ in range(2)]
        paths = [each.result(timeout=LONG) for each in both]
    assert paths == [tmp_path / "TINY.zip"] * 2
    assert paths[0].read_bytes() == TINY
    assert list(tmp_path.iterdir()) == [tmp_path / "TINY.zip"]
    assert len(server.requests) == 2


# Failures that may pass


def test_a_dropped_connection_is_tried_again(server: Server, tmp_path: Path) -> None:
    server.will(half(TINY), whole(TINY))
    seen = Recorder()
    assert download("TINY", tmp_path, seen, QUICK).read_bytes() == TINY
    assert list(tmp_path.iterdir()) == [tmp_path / "TINY.zip"]
    assert len(server.requests) == 2
    assert seen.done == [len(TINY) // 2, len(TINY)]


def test_a_connection_that_always_drops_is_given_up(server: Server, tmp_path: Path) -> None:
    server.will(half(TINY))
    reason = f"the connection ended after {len(TINY) // 2} of {len(TINY)} bytes (tried 3 times)"
    assert failure(tmp_path) == expected(tmp_path, reason)
    assert len(server.requests) == 3


def test_a_busy_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.will(status(503), status(503), whole(TINY))
    assert download("TINY", tmp_path, retry=QUICK).read_bytes() == TINY
    assert len(server.requests) == 3


def test_a_server_that_stays_busy_is_given_up(server: Server, tmp_path: Path) -> None:
    server.will(status(503))
    reason = "the server answered 503 Service Unavailable (tried 3 times)"
    assert failure(tmp_path) == expected(tmp_path, reason)
    assert len(server.requests) == 3


def test_a_single_attempt_is_called_once(server: Server, tmp_path: Path) -> None:
    server.will(status(503))
    assert "(tried once)." in failure(tmp_path, RetryPolicy(timeout=LONG, attempts=1))
    assert len(server.requests) == 1


def test_a_server_that_never_answers_is_given_up_after_the_timeout(
    server: Server, tmp_path: Path
) -> None:
    server.will(silence(server))
    reason = "the server did not answer in time (tried 2 times)"
    assert failure(tmp_path, HASTY) == expected(tmp_path, reason)
    server.wait_for(2)
    assert len(server.requests) == 2


def test_a_server_that_stalls_half_way_is_asked_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.will(stall_after_half(server, TINY), whole(TINY))
    real, timeouts = urllib.request.urlopen, [2.0]  # the complete answer gets more

    def urlopen(request: urllib.request.Request, timeout: float) -> object:
        return real(request, timeout=timeouts.pop() if timeouts else LONG)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    assert download("TINY", tmp_path, retry=HASTY).read_bytes() == TINY
    assert list(tmp_path.iterdir()) == [tmp_path / "TINY.zip"]
    assert len(server.requests) == 2


def test_no_server_at_all_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IHGNN_MIRROR", "http://127.0.0.1:9")  # where nobody listens
    message = failure(tmp_path)
    assert message.startswith("Cannot download TINY from http://127.0.0.1:9/TINY.zip: ")
    assert "refused" in message
    assert "(tried 3 times)" in message


def test_a_network_that_goes_down_half_way_is_tried_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.will(whole(TINY))
    real, failures = http.client.HTTPResponse.read, [OSError(errno.ENETDOWN, "Network is down")]

    def read(self: http.client.HTTPResponse, amount: int | None = None) -> bytes:
        if failures:
            raise failures.pop()
        return real(self, amount)

    monkeypatch.setattr(http.client.HTTPResponse, "read", read)
    assert download("TINY", tmp_path, retry=QUICK).read_bytes() == TINY
    assert len(server.requests) == 2


def test_each_pause_is_twice_the_one_before(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.will(status(503), status(503), status(503), whole(TINY))
    pauses: list[float] = []
    monkeypatch.setattr("ihgnn_cli.data.sources.download.time.sleep", pauses.append)
    download("TINY", tmp_path, retry=RetryPolicy(timeout=LONG, attempts=4, backoff=0.5))
    assert pauses == [0.5, 1.0, 2.0]


# Failures that last


def test_a_missing_file_is_not_asked_for_again(server: Server, tmp_path: Path) -> None:
    server.will(status(404))
    assert failure(tmp_path) == expected(tmp_path, "the server answered 404 Not Found")
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [404, 503])
def test_the_connection_of_a_refused_request_is_closed(
    server: Server, tmp_path: Path, code: int
) -> None:
    server.will(status(code))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # what earlier tests have left
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        failure(tmp_path)
        gc.collect()
    assert [str(each.message) for each in told] == []


NO_GOOD = "the downloaded file is invalid: "


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html><body>Please log in</body></html>", id="a web page"),
        pytest.param(b"", id="nothing"),
        pytest.param(zipped({"README.md": b"hello"}), id="a zip of something else"),
        pytest.param(TINY[: len(TINY) * 2 // 3], id="a cut zip of the declared length"),
        pytest.param(zipped({"../TINY_A.txt": b"1, 2\n"}), id="a zip that points outside"),
    ],
)
@pytest.mark.parametrize("answer", [whole, unsized])
def test_what_is_no_tu_zip_is_not_kept(
    server: Server, tmp_path: Path, body: bytes, answer: Callable[[bytes], Answer]
) -> None:
    server.will(answer(body))
    assert f"{download_url('TINY')}: {NO_GOOD}" in failure(tmp_path)
    assert len(server.requests) == 1


def test_a_zip_with_a_wrong_byte_names_the_damaged_file(server: Server, tmp_path: Path) -> None:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("TINY/TINY_A.txt", "1, 2\n2, 1\n")
    server.will(whole(stored.getvalue().replace(b"2, 1", b"2, 7")))
    reason = f"{NO_GOOD}it is damaged in TINY/TINY_A.txt"
    assert failure(tmp_path) == expected(tmp_path, reason)


CENTRAL_METHOD = TINY.index(b"PK\x01\x02") + 10
LOCAL_EXTRA_LENGTH = 29


@pytest.mark.parametrize(
    ("position", "value"),
    [
        pytest.param(CENTRAL_METHOD, 97, id="a method that Python cannot unpack"),
        pytest.param(CENTRAL_METHOD, zipfile.ZIP_BZIP2, id="not the bzip2 that it says"),
        pytest.param(CENTRAL_METHOD, zipfile.ZIP_LZMA, id="not the LZMA that it says"),
        pytest.param(LOCAL_EXTRA_LENGTH, 2, id="a member that starts behind the end"),
    ],
)
def test_a_zip_that_cannot_be_unpacked_is_not_kept(
    server: Server, tmp_path: Path, position: int, value: int
) -> None:
    body = bytearray(TINY)
    body[position] = value
    server.will(whole(bytes(body)))
    message = failure(tmp_path)
    assert message.startswith(f"Cannot download TINY from {download_url('TINY')}: the downloaded")
    assert message.endswith(by_hand("TINY", tmp_path))


def test_an_old_file_outlives_a_failed_download(server: Server, tmp_path: Path) -> None:
    (tmp_path / "TINY.zip").write_bytes(b"old")
    server.will(whole(b"garbage"))
    with pytest.raises(DownloadError):
        download("TINY", tmp_path, retry=QUICK)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]


def test_an_interruption_leaves_nothing_behind(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.will(whole(TINY))

    class Interrupted(Recorder):
        @contextmanager
        def task(self, description: str, total: int | None) -> Iterator[Advance]:
            def advance(_: int) -> None:
                raise KeyboardInterrupt

            yield advance

    with pytest.raises(KeyboardInterrupt):
        download("TINY", tmp_path, Interrupted(), QUICK)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named_before_anything_is_asked(
    server: Server, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    server.will(whole(TINY))
    with pytest.raises(IhgnnError, match=r"Cannot write .*TINY\.zip"):
        download("TINY", tmp_path / "file" / "root", retry=QUICK)
    assert server.requests == []


# Addresses


def test_without_a_mirror_the_address_is_on_the_tu_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IHGNN_MIRROR", raising=False)
    assert download_url("KKI") == "https://www.chrsmrrs.com/graphkerneldatasets/KKI.zip"
    monkeypatch.setenv("IHGNN_MIRROR", "")
    assert download_url("KKI") == f"{TU_SERVER}/KKI.zip"


@pytest.mark.parametrize("mirror", ["https://example.org/sets", "https://example.org/sets/"])
def test_a_mirror_may_end_with_a_slash(monkeypatch: pytest.MonkeyPatch, mirror: str) -> None:
    monkeypatch.setenv("IHGNN_MIRROR", mirror)
    assert download_url("KKI") == "https://example.org/sets/KKI.zip"


@pytest.mark.parametrize("mirror", ["file:///etc", "ftp://example.org", "example.org/sets"])
def test_a_mirror_that_is_not_http_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mirror: str
) -> None:
    monkeypatch.setenv("IHGNN_MIRROR", mirror)
    with pytest.raises(InputError) as caught:
        download("KKI", tmp_path / "root", retry=QUICK)
    assert str(caught.value) == f"IHGNN_MIRROR is '{mirror}'. Give an http or https address."
    assert not (tmp_path / "root").exists()
