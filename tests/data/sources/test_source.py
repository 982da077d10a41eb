"""Where a data set comes from: the stated order, and what is said when it is nowhere."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copy, copytree

import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.access import Access
from ihgnn_cli.data.sources.download import by_hand
from ihgnn_cli.data.sources.source import (
    Origin,
    Source,
    bundled_path,
    find_in_root,
    locate,
    locate_file,
    read,
)
from ihgnn_cli.errors import DataError, DownloadError, IhgnnError, InputError

JSON_GRAPH = '{"node_labels": ["C", "O"], "edges": [[0, 1]], "class": "alcohol"}\n'


@pytest.fixture
def tiny(write_tu: Callable[..., Path]) -> Path:
    """TINY/ in TU format: one edge, classes 5."""
    return write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n", graph_labels="5\n")


@pytest.fixture
def tiny_zip(tiny: Path, zip_folder: Callable[[Path], Path]) -> Path:
    return zip_folder(tiny)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root, and an empty working folder beside it."""
    (tmp_path / "here").mkdir()
    (tmp_path / "root").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("IHGNN_DATA", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture
def mirror(tiny_zip: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A server that has TINY.zip; the addresses that it was asked for."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, *_: object) -> None:
            asked.append(self.path)

        def log_message(self, *_: object) -> None:
            pass

    handler = partial(Handler, directory=str(tiny_zip.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("IHGNN_MIRROR", f"http://127.0.0.1:{server.server_port}")
        yield asked
        server.shutdown()
        thread.join()


# The order


def test_bundled_mutag_comes_before_a_path_and_the_data_root(
    root: Path, tiny: Path, tiny_zip: Path
) -> None:
    copytree(tiny, "MUTAG")
    copy(tiny_zip, root / "MUTAG.zip")
    assert locate("MUTAG") == Source("MUTAG", Origin.BUNDLED, bundled_path("MUTAG"))
    assert len(load_dataset("MUTAG")) == 188


def test_a_path_beside_the_bundled_data_set_is_reached_by_writing_it_as_a_path(
    root: Path, tiny: Path
) -> None:
    copytree(tiny, "MUTAG")
    found = locate("./MUTAG")
    assert found == Source("MUTAG", Origin.PATH, Path.cwd() / "MUTAG")
    assert read(found).class_values == (5,)


def test_a_path_comes_before_the_data_root(root: Path, tiny: Path, tiny_zip: Path) -> None:
    copytree(tiny, "TINY")
    copy(tiny_zip, root)
    assert locate("TINY") == Source("TINY", Origin.PATH, Path.cwd() / "TINY")


def test_the_data_root_is_asked_for_a_zip_then_a_folder_then_json_lines(
    root: Path, tiny: Path, tiny_zip: Path
) -> None:
    assert find_in_root(root, "TINY") is None
    (root / "TINY.jsonl").write_text(JSON_GRAPH)
    assert locate("TINY") == Source("TINY", Origin.DATA_ROOT, root / "TINY.jsonl")
    copytree(tiny, root / "TINY")
    assert locate("TINY") == Source("TINY", Origin.DATA_ROOT, root / "TINY")
    copy(tiny_zip, root)
    assert locate("TINY") == Source("TINY", Origin.DATA_ROOT, root / "TINY.zip")


def test_the_data_root_comes_before_a_download(
    root: Path, tiny_zip: Path, mirror: list[str]
) -> None:
    copy(tiny_zip, root)
    assert locate("TINY").origin is Origin.DATA_ROOT
    assert mirror == []


def test_a_download_comes_last_and_fills_the_data_root(root: Path, mirror: list[str]) -> None:
    assert locate("TINY") == Source("TINY", Origin.DOWNLOAD, root / "TINY.zip")
    assert locate("TINY") == Source("TINY", Origin.DATA_ROOT, root / "TINY.zip")
    assert mirror == ["/TINY.zip"]


def test_zip_folder_and_json_lines_are_all_read(root: Path, tiny: Path, tiny_zip: Path) -> None:
    (root / "graphs.jsonl").write_text(JSON_GRAPH)
    assert load_dataset(str(tiny)).class_values == (5,)
    assert load_dataset(str(tiny_zip)).class_values == (5,)
    assert load_dataset(str(root / "graphs.jsonl")).class_values == ("alcohol",)


def test_a_source_says_where_it_is(tmp_path: Path) -> None:
    assert str(Source("MUTAG", Origin.BUNDLED, tmp_path)) == "bundled"
    assert str(Source("TINY", Origin.DATA_ROOT, tmp_path)) == f"data root: {tmp_path}"


# The data root


def test_a_given_data_root_comes_before_the_variable(
    root: Path, tiny_zip: Path, tmp_path: Path
) -> None:
    copy(tiny_zip, root)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "TINY.jsonl").write_text(JSON_GRAPH)
    assert locate("TINY").path == root / "TINY.zip"
    found = locate("TINY", Access(tmp_path / "other"))
    assert found.path == tmp_path / "other" / "TINY.jsonl"


def test_a_relative_data_root_counts_from_the_working_folder(root: Path, tiny_zip: Path) -> None:
    Path("sets").mkdir()
    copy(tiny_zip, "sets")
    assert locate("TINY", Access(Path("sets"))).path == Path.cwd() / "sets" / "TINY.zip"


@pytest.mark.parametrize("variable", [None, ""])
def test_without_either_the_platform_s_cache_folder_is_the_data_root(
    root: Path,
    tiny_zip: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda app, **_: tmp_path / "cached" / app)
    if variable is None:
        monkeypatch.delenv("IHGNN_DATA")
    else:
        monkeypatch.setenv("IHGNN_DATA", variable)
    folder = tmp_path / "cached" / "ihgnn" / "datasets"
    folder.mkdir(parents=True)
    copy(tiny_zip, folder)
    assert locate("TINY").path == folder / "TINY.zip"


def test_a_data_root_that_is_not_there_is_made_by_a_download(
    tmp_path: Path, mirror: list[str]
) -> None:
    root = tmp_path / "not" / "yet"
    assert locate("TINY", Access(root)).path == root / "TINY.zip"
    assert [file.name for file in root.iterdir()] == ["TINY.zip"]


def test_a_data_root_that_is_a_file_is_named(tmp_path: Path, mirror: list[str]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IhgnnError, match=r"^Cannot write .*TINY\.zip: "):
        locate("TINY", Access(tmp_path / "file"))
    assert mirror == []


# Nowhere


def test_offline_says_where_to_put_the_file(root: Path, mirror: list[str]) -> None:
    with pytest.raises(DownloadError) as caught:
        locate("PROTEINS", Access(offline=True))
    assert str(caught.value) == (
        "PROTEINS is not on this machine, and --offline forbids downloading it.\n"
        f"{by_hand('PROTEINS', root)}"
    )
    assert mirror == []


def test_offline_says_so_for_a_data_root_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        locate("PROTEINS", Access(tmp_path / "absent", offline=True))
    assert str(caught.value).endswith(by_hand("PROTEINS", tmp_path / "absent"))
    assert not (tmp_path / "absent").exists()


def test_offline_still_finds_what_is_here(root: Path, tiny_zip: Path) -> None:
    copy(tiny_zip, root)
    assert locate("TINY", Access(offline=True)).origin is Origin.DATA_ROOT
    assert locate("MUTAG", Access(offline=True)).origin is Origin.BUNDLED


@pytest.mark.parametrize("given", ["mutag", "Mutag", "tiny", "Tiny"])
def test_a_name_may_be_written_in_any_case(root: Path, tiny_zip: Path, given: str) -> None:
    copy(tiny_zip, root)
    assert locate(given, Access(offline=True)).name == given.upper()
    assert locate_file(given).name == given.upper()


def test_a_name_with_exactly_these_letters_comes_first(root: Path, tiny_zip: Path) -> None:
    copy(tiny_zip, root / "mutag.zip")
    assert locate("mutag", Access(offline=True)).path == root / "mutag.zip"
    assert locate("Mutag", Access(offline=True)).origin is Origin.BUNDLED
    (Path.cwd() / "proteins").mkdir()  # holds no data set
    with pytest.raises(DownloadError, match="PROTEINS is not on this machine"):
        locate("proteins", Access(offline=True))


UNKNOWN = [
    ("mutga", " Did you mean MUTAG"),
    ("PROTIENS", " Did you mean PROTEINS"),
    ("imdb_binary", " Did you mean IMDB-BINARY"),
    ("QQQQ", "\n"),
]


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize(("given", "meant"), UNKNOWN)
def test_a_name_that_is_not_in_the_catalogue_is_refused_without_a_look_at_the_server(
    root: Path, monkeypatch: pytest.MonkeyPatch, given: str, meant: str, offline: bool
) -> None:
    monkeypatch.setattr("ihgnn_cli.data.sources.source.download", None)
    with pytest.raises(InputError) as caught:
        locate(given, Access(offline=offline))
    assert str(caught.value).startswith(f"No data set '{given}' is known.{meant}")
    assert "'ihgnn datasets --all'" in str(caught.value).splitlines()[1]


@pytest.mark.parametrize(("given", "meant"), UNKNOWN)
def test_a_mirror_is_asked_once_for_a_name_that_is_not_in_the_catalogue(
    root: Path, mirror: list[str], given: str, meant: str
) -> None:
    with pytest.raises(InputError) as caught:
        locate(given)
    assert f" has none of that name.{meant}" in str(caught.value)
    assert mirror == [f"/{given}.zip"]
    assert list(root.iterdir()) == []


def test_a_mirror_that_is_away_is_asked_once_for_such_a_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IHGNN_MIRROR", "http://127.0.0.1:9")  # the discard port: refused at once
    with pytest.raises(DownloadError, match=r"Cannot download QQQQ from .* \(tried once\)"):
        locate("QQQQ")


def test_an_unknown_name_in_the_data_root_is_read_however_close_it_is(
    root: Path, tiny_zip: Path
) -> None:
    copy(tiny_zip, root / "PROTIENS.zip")
    assert locate("PROTIENS").path == root / "PROTIENS.zip"


def test_a_known_name_that_the_server_does_not_have_says_where_to_put_the_file(
    root: Path, mirror: list[str]
) -> None:
    with pytest.raises(DownloadError) as caught:
        locate("PROTEINS")
    assert "the server answered 404" in str(caught.value)
    assert str(caught.value).endswith(by_hand("PROTEINS", root))
    assert mirror == ["/PROTEINS.zip"]


@pytest.mark.parametrize(
    "given",
    [
        "sets/TINY",
        "./TINY",
        "../NOWHERE",
        "TINY.zip",
        "TINY.jsonl",
        "/no/such/folder",
        "TINY*",
        "-x",
        "a b",
        "a\0b",
        "",
        "~nobody-of-this-name/TINY",
        pytest.param("T" * 300, id="a very long name"),
    ],
)
def test_what_is_neither_a_path_nor_a_name_is_an_input_error(
    root: Path, mirror: list[str], given: str
) -> None:
    with pytest.raises(InputError) as caught:
        locate(given)
    message = f"No file or folder '{given}'. Give a path that exists, or a name."
    assert str(caught.value) == message
    assert mirror == []


# Things that are there and cannot be read


def test_a_file_of_another_kind_is_refused(root: Path) -> None:
    Path("graphs.txt").write_text("1, 2\n")
    with pytest.raises(InputError) as caught:
        load_dataset("graphs.txt")
    assert str(caught.value) == (
        f"{Path.cwd() / 'graphs.txt'} is neither a folder, a .zip, a .jsonl nor a .csv file. "
        "docs/data.md describes the formats."
    )


def test_a_folder_without_a_data_set_is_refused(root: Path) -> None:
    (root / "TINY").mkdir()
    with pytest.raises(DataError, match="no TU data set found"):
        load_dataset(str(root / "TINY"))


def test_an_empty_folder_in_the_data_root_does_not_stand_for_a_data_set(
    root: Path, mirror: list[str]
) -> None:
    (root / "KKI" / "raw").mkdir(parents=True)
    with pytest.raises(DownloadError, match="not on this machine"):
        locate("KKI", Access(offline=True))


def test_a_folder_of_other_things_does_not_hide_a_data_set_of_its_name(
    root: Path, tiny_zip: Path
) -> None:
    (root / "TINY.zip").write_bytes(tiny_zip.read_bytes())
    Path("TINY").mkdir()
    assert locate("TINY").path == root / "TINY.zip"


def test_a_folder_of_other_things_that_is_no_known_name_is_taken_for_a_path(root: Path) -> None:
    Path("things").mkdir()
    with pytest.raises(DataError, match="no TU data set found"):
        load_dataset("things")


def test_files_to_check_are_those_of_the_path_even_for_a_bundled_name(root: Path) -> None:
    Path("MUTAG").mkdir()
    assert locate_file("MUTAG").origin is Origin.PATH
    assert locate_file("MUTAG").path == Path("MUTAG").absolute()


@pytest.mark.parametrize("given", ["NOWHERE", "KKI", "no/where", ""])
def test_files_to_check_are_not_downloaded(root: Path, mirror: list[str], given: str) -> None:
    with pytest.raises(InputError, match="No file or folder"):
        locate_file(given)
    assert mirror == []


def test_a_zip_that_is_cut_short_is_refused(root: Path, tiny_zip: Path) -> None:
    (root / "TINY.zip").write_bytes(tiny_zip.read_bytes()[:100])
    with pytest.raises(DataError, match=r"not a complete zip file.*Delete it and download it"):
        load_dataset("TINY")


def test_a_file_that_goes_away_before_it_is_read_is_an_input_error(
    root: Path, tiny_zip: Path
) -> None:
    gone = Source("TINY", Origin.PATH, root / "TINY.zip")
    with pytest.raises(InputError, match=r"^Cannot read .*TINY\.zip: No such file or directory\.$"):
        read(gone)


@pytest.mark.usefixtures("permissions")
@pytest.mark.parametrize("name", ["TINY.zip", "TINY.jsonl"])
def test_a_file_without_read_permission_is_an_input_error(
    root: Path, tiny_zip: Path, name: str
) -> None:
    copy(tiny_zip, root / name)
    (root / name).chmod(0)
    with pytest.raises(InputError, match=r"^Cannot read .*: Permission denied\.$"):
        load_dataset(str(root / name))


@pytest.mark.usefixtures("permissions")
def test_a_path_behind_a_closed_folder_is_an_input_error(root: Path) -> None:
    closed = Path("closed")
    closed.mkdir(mode=0)
    try:
        with pytest.raises(InputError, match="closed"):
            locate("closed/TINY.zip")
    finally:
        closed.chmod(0o700)


@pytest.mark.usefixtures("permissions")
def test_a_closed_data_root_is_an_ihgnn_error(root: Path) -> None:
    root.chmod(0)
    try:
        with pytest.raises(IhgnnError):
            locate("TINY", Access(offline=True))
    finally:
        root.chmod(0o700)


# Names


def test_a_folder_is_named_after_itself_however_it_is_written(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny)
    assert locate(".").name == "TINY"
    assert locate(str(tiny) + "/").name == "TINY"


def test_a_home_folder_is_understood(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert locate("~/TINY") == Source("TINY", Origin.PATH, tiny)


def test_a_linked_file_has_the_same_name_before_and_after_it_is_cached(root: Path) -> None:
    (root / "graphs.jsonl").write_text(JSON_GRAPH)
    link = root / "link.jsonl"
    link.symlink_to(root / "graphs.jsonl")
    first, second = load_dataset(str(link)), load_dataset(str(link))
    assert first.name == second.name == locate(str(link)).name


# MUTAG


def test_bundled_mutag_is_the_paper_s_mutag() -> None:
    mutag = load_dataset("MUTAG", offline=True)
    assert mutag.name == "MUTAG"
    assert len(mutag) == 188
    assert mutag.num_nodes == 3371
    assert mutag.num_edges == 3721
    assert mutag.max_nodes == 28
    assert mutag.label_values == (0, 1, 2, 3, 4, 5, 6)
    assert mutag.class_values == (-1, 1)
    assert mutag.edge_label_values == (0, 1, 2, 3)
    assert mutag.notes.sentences() == []


def test_bundled_mutag_is_the_tu_server_s_mutag(real_data: Path) -> None:
    published = load_dataset(str(real_data / "MUTAG.zip"))
    assert published.fingerprint == load_dataset("MUTAG").fingerprint


def test_graphs_without_classes_are_read_on_request_and_by_nobody_else(
    write_tu: Callable[..., Path],
) -> None:
    folder = write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n")
    source = locate(str(folder))
    for _ in range(2):
        assert read(source, classes=False).class_values == ()
        with pytest.raises(DataError, match=r"TINY_graph_labels\.txt: the file is missing"):
            read(source)
