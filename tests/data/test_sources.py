"""Data sets are found by name or path, downloaded from a server that misbehaves, and listed."""

import hashlib
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.access import Access
from ihgnn_cli.data.catalogue import catalogue, close_names
from ihgnn_cli.data.download import by_hand, download, download_url
from ihgnn_cli.data.listing import list_downloadable, list_local
from ihgnn_cli.data.sources import (
    BUNDLED,
    Origin,
    bundled_path,
    locate,
    locate_by_name,
    locate_file,
    read,
    refuse_overwriting,
)
from ihgnn_cli.errors import DataError, DownloadError, IhgnnError, InputError, NotOnServerError
from ihgnn_cli.paths import data_root
from ihgnn_cli.progress import NO_PROGRESS

MUTAG = "6dca26ad2d47c52ba6df79566b7c0421d0703c4cab7b6cf4ee0f38b02a4ecd07"
IMDB_BINARY = "f7b23dc6246e5fa6761fadc1f65689cbea277d0e95a7ff90c26bbe10fabb75d8"
PAIR = {"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n", "graph_labels": "5\n"}
LINE = '{"node_labels": [1], "edges": [], "class": 0}\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data root, with an empty working folder beside it."""
    (tmp_path / "root").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("IHGNN_DATA", str(tmp_path / "root"))
    monkeypatch.delenv("IHGNN_MIRROR", raising=False)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "root"


def tu_zip(path: Path, name: str | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in PAIR.items():
            archive.writestr(f"{name or path.stem}_{part}.txt", content)
    return path


# Bundled data


def test_bundled_data_has_the_fingerprints_of_the_tu_files(real_data: Path) -> None:
    for name, expected in (("MUTAG", MUTAG), ("IMDB-BINARY", IMDB_BINARY)):
        assert load_dataset(name).fingerprint == expected
        assert load_dataset(str(real_data / f"{name}.zip")).fingerprint == expected
    sizes = [path.stat().st_size for path in Path(bundled_path("MUTAG")).parent.rglob("*.*")]
    assert sum(sizes) < 300_000


def test_bundled_imdb_binary_is_byte_for_byte_that_of_the_server(real_data: Path) -> None:
    ours, theirs = (
        {
            Path(member).name: hashlib.sha256(archive.read(member)).hexdigest()
            for member in archive.namelist()
            if member.endswith(("_A.txt", "_indicator.txt", "_graph_labels.txt"))
        }
        for archive in (
            zipfile.ZipFile(bundled_path("IMDB-BINARY")),
            zipfile.ZipFile(real_data / "IMDB-BINARY.zip"),
        )
    )
    assert len(ours) == 3
    assert ours == theirs


# The order of places


def test_a_bundled_name_comes_first_and_a_path_with_a_slash_is_a_path(root, write_tu) -> None:
    write_tu("MUTAG", root / "MUTAG", **PAIR)
    write_tu("MUTAG", Path("MUTAG"), **PAIR)
    assert locate("MUTAG").origin == Origin.BUNDLED
    assert locate("./MUTAG").origin == Origin.PATH
    assert locate_file("MUTAG").path == Path("MUTAG").absolute()


def test_a_path_comes_before_the_data_root_and_that_before_a_download(root, write_tu) -> None:
    tu_zip(root / "PROTEINS.zip")
    assert locate("PROTEINS").origin == Origin.DATA_ROOT
    write_tu("PROTEINS", Path("PROTEINS"), **PAIR)
    assert locate("PROTEINS").origin == Origin.PATH
    assert locate_by_name("PROTEINS").origin == Origin.DATA_ROOT


def test_a_folder_of_other_things_does_not_hide_a_data_set_of_its_name(root) -> None:
    Path("PROTEINS").mkdir()
    tu_zip(root / "PROTEINS.zip")
    assert locate("PROTEINS").path == root / "PROTEINS.zip"
    with pytest.raises(DataError, match="no TU data set found"):
        read(locate("./PROTEINS"))


def test_the_data_root_holds_zips_folders_json_lines_and_tables(root, write_tu) -> None:
    for number, path in enumerate((tu_zip(root / "A.zip"), write_tu("B", root / "B", **PAIR))):
        assert locate("AB"[number]).path == path
    (root / "C.jsonl").write_text(LINE)
    dataset = load_dataset("c")  # in any case
    assert (dataset.name, dataset.source) == ("C", "C")
    (root / "c.jsonl").write_text(LINE)
    assert locate("c").path == root / "c.jsonl"  # the exact one first
    assert load_dataset(str(root / "C.jsonl")).source == str(root / "C.jsonl")
    assert locate("C", Access(data_root=root)).path == root / "C.jsonl"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "No file or folder ''"),
        ("nowhere.jsonl", "No file or folder 'nowhere.jsonl'"),
        ("no/such/path", "No file or folder"),
        ("x" * 5000, "No file or folder"),
        ("imdb_binary", "Did you mean IMDB-BINARY"),
        ("QQQQ", "No data set 'QQQQ' is known"),
        ("synthetic:size=3", "no field 'size'"),
    ],
)
def test_what_is_neither_a_path_nor_a_name_is_refused(root, given, said) -> None:
    with pytest.raises(InputError, match=said):
        locate(given)


def test_files_of_other_kinds_and_damaged_zips_are_refused(root) -> None:
    Path("graphs.txt").write_text("")
    with pytest.raises(InputError, match=r"neither a folder, a \.zip, a \.jsonl nor a \.csv"):
        load_dataset("graphs.txt")
    whole = tu_zip(Path("CUT.zip")).read_bytes()
    Path("CUT.zip").write_bytes(whole[:-30])
    with pytest.raises(DataError, match="not a complete zip"):
        load_dataset("CUT.zip")
    source = locate_file(str(tu_zip(Path("GONE.zip"))))
    source.path.unlink()
    with pytest.raises(InputError, match="Cannot read"):
        read(source)


def test_data_is_parsed_once_and_again_when_it_changes(root, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("IHGNN_CACHE", str(tmp_path / "cache"))
    path = tu_zip(root / "ONE.zip")
    first = load_dataset("ONE")
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert load_dataset(str(path)).fingerprint == first.fingerprint
    assert len(list((tmp_path / "cache").iterdir())) == 1
    (root / "TWO.jsonl").write_text(LINE)
    load_dataset("TWO")
    (root / "TWO.jsonl").write_text(LINE * 2)
    assert len(load_dataset("TWO")) == 2


def test_outputs_do_not_replace_the_data(root) -> None:
    source = locate_file(str(tu_zip(root / "ONE.zip")))
    refuse_overwriting([root / "other.csv"], [source])
    with pytest.raises(InputError, match="belongs to the data set"):
        refuse_overwriting([root / "ONE.zip"], [source])


# Downloads


Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Gives each request the next of its answers, and the last one from then on."""

    answers: list[Answer]
    requests: list[str]


def sent(body: bytes, length: int | None = None, part: int | None = None) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(length or len(body)))
        handler.end_headers()
        handler.wfile.write(body[:part])

    return answer


def status(code: int) -> Answer:
    return lambda handler: handler.send_error(code)


@pytest.fixture
def server(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()
    state.requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests.append(self.path)
            last = len(state.answers) == 1
            (state.answers[0] if last else state.answers.pop(0))(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("IHGNN_MIRROR", f"http://127.0.0.1:{listener.server_port}/sets/")
        monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)
        try:
            yield state
        finally:
            listener.shutdown()
            thread.join()


@pytest.fixture
def body(tmp_path: Path) -> bytes:
    return tu_zip(tmp_path / "PROTEINS.zip").read_bytes()


def test_a_download_fills_the_data_root_and_is_not_repeated(root, server, body) -> None:
    server.answers = [sent(body)]
    source = locate("proteins")
    assert (source.origin, source.path) == (Origin.DOWNLOAD, root / "PROTEINS.zip")
    assert source.path.read_bytes() == body
    assert locate("PROTEINS").origin == Origin.DATA_ROOT
    assert server.requests == ["/sets/PROTEINS.zip"]
    assert [each.name for each in root.iterdir()] == ["PROTEINS.zip"]


def test_a_busy_server_and_a_broken_connection_are_asked_again(root, server, body) -> None:
    server.answers = [status(503), sent(body, part=len(body) // 2), sent(body)]
    assert download("PROTEINS", root).read_bytes() == body
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("answer", "requests", "said"),
    [
        (lambda _: status(503), 4, "the server answered 503"),
        (lambda _: status(404), 1, "the server answered 404"),
        (lambda body: sent(body, part=5), 4, "connection"),
        (lambda body: sent(b"<html>"), 1, "the downloaded file is invalid"),
        (lambda body: sent(body.replace(b"PROTEINS", b"OTHERSET")), 1, "it holds OTHERSET"),
        (lambda body: sent(body[:55] + bytes([255 - body[55]]) + body[56:]), 1, "it is damaged"),
    ],
    ids=["busy", "missing", "cut", "no zip", "another data set", "damaged"],
)
def test_a_download_that_fails_leaves_nothing_and_says_what_to_do(
    server, body, answer, requests, said
) -> None:
    server.answers = [answer(body)]
    root = data_root()
    with pytest.raises(DownloadError, match=said) as caught:
        locate("PROTEINS")
    assert str(caught.value).endswith(by_hand("PROTEINS", root))
    assert "--data-root FOLDER or IHGNN_DATA=FOLDER" in str(caught.value)
    assert len(server.requests) == requests
    assert not list(root.iterdir())


def test_without_a_connection_the_data_can_be_given_otherwise(root, monkeypatch) -> None:
    monkeypatch.setenv("IHGNN_MIRROR", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match="there is no connection to the server"):
        download("PROTEINS", root, retries=0)
    with pytest.raises(DownloadError, match=r"--offline forbids .*\n.*--data-root"):
        locate("PROTEINS", Access(offline=True))
    tu_zip(root / "PROTEINS.zip")
    assert locate("PROTEINS", Access(offline=True)).origin == Origin.DATA_ROOT


def test_a_name_outside_the_catalogue_is_asked_for_once_and_only_at_a_mirror(
    root, server, monkeypatch
) -> None:
    server.answers = [status(404)]
    with pytest.raises(InputError, match="No data set 'MINE' is known, and http://127"):
        locate("MINE")
    server.answers = [status(503)]
    with pytest.raises(DownloadError):
        locate("MINE")
    assert len(server.requests) == 2
    server.answers = [status(410)]
    with pytest.raises(NotOnServerError):
        locate("PROTEINS")


def test_a_mirror_is_an_http_address_and_passwords_stay_hidden(root, monkeypatch) -> None:
    for wrong in ("ftp://host", "host", "http://", "http://["):
        monkeypatch.setenv("IHGNN_MIRROR", wrong)
        with pytest.raises(InputError, match="Give an http or https address"):
            download_url("PROTEINS")
    monkeypatch.setenv("IHGNN_MIRROR", "http://me:secret@127.0.0.1:9")
    with pytest.raises(DownloadError) as caught:
        download("PROTEINS", root, retries=0)
    assert "secret" not in str(caught.value)


def test_a_folder_that_cannot_be_made_is_a_failure(root, server, body) -> None:
    server.answers = [sent(body)]
    (root / "file").write_text("")
    with pytest.raises(IhgnnError, match="Cannot write"):
        download("PROTEINS", root / "file" / "inside", NO_PROGRESS)
    assert not server.requests


# The list


def test_the_catalogue_has_the_paper_s_data_sets_and_finds_similar_names() -> None:
    names = ("COLLAB", "DD", "DHFR_MD", "BZR_MD", "KKI", "MUTAG", "PROTEINS", "IMDB-MULTI")
    assert set(names) <= set(catalogue())
    assert (catalogue()["MUTAG"].graphs, catalogue()["MUTAG"].node_labels) == (188, True)
    assert close_names("protein")[0] == "PROTEINS"
    assert close_names("zzzz") == []


def test_the_list_says_what_is_where(root, write_tu) -> None:
    write_tu("MINE", root / "MINE", **PAIR, node_attributes="1, 2\n3, 4\n")
    tu_zip(root / "MUTAG.zip")
    (root / "BROKEN.zip").write_bytes(b"no zip")
    (root / "bare.jsonl").write_text('{"node_labels": ["C"], "edges": []}\n')
    (root / "wrong.jsonl").write_text("x\n")
    (root / "notes.txt").write_text("")
    found = {(each.name, each.where): each for each in list_local(root)}
    assert {name for name, _ in found} == {*BUNDLED, "MINE", "BROKEN", "bare", "wrong"}
    mine = found["MINE", Origin.DATA_ROOT]
    assert (mine.graphs, mine.classes) == (1, 1)
    assert (mine.has_node_labels, mine.node_attributes) == (False, 2)
    bundled = found["MUTAG", Origin.BUNDLED]
    assert (bundled.graphs, bundled.classes, bundled.node_labels) == (188, 2, 7)
    assert not bundled.shadowed
    assert found["MUTAG", Origin.DATA_ROOT].shadowed
    assert "not a complete zip" in (found["BROKEN", Origin.DATA_ROOT].problem or "")
    assert "not JSON" in (found["wrong", Origin.DATA_ROOT].problem or "")
    bare = found["bare", Origin.DATA_ROOT]
    assert (bare.problem, bare.classes, bare.node_labels) == (None, 0, 1)
    remote = list_downloadable({"MUTAG"})
    assert "MUTAG" not in {each.name for each in remote}
    assert all(each.where == Origin.DOWNLOAD and each.path is None for each in remote)
    assert [each.name for each in list_local(root / "absent")] == list(BUNDLED)
