"""What `datasets list` knows of a data set without reading its edges."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copy

import pytest

from ihgnn_cli.data.access import Access
from ihgnn_cli.data.sources.catalogue import catalogue
from ihgnn_cli.data.sources.listing import Listed, list_downloadable, list_local
from ihgnn_cli.data.sources.source import BUNDLED, Origin, bundled_path, locate

# The paper's data sets, and the node labels that each one's files hold.
PAPER = {
    "BZR_MD": 8,
    "COLLAB": 0,
    "DD": 82,
    "DHFR_MD": 7,
    "IMDB-BINARY": 0,
    "IMDB-MULTI": 0,
    "KKI": 190,
    "MUTAG": 7,
    "PROTEINS": 3,
}
PARTS = {
    "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "5\n6\n",
}

# What all of the described data sets below have in common.
UNLABELLED = Listed(
    name="TINY",
    where=Origin.DATA_ROOT,
    path=None,
    size_bytes=None,
    graphs=2,
    classes=2,
    has_node_labels=False,
    node_labels=0,
    node_attributes=0,
)
LABELLED = replace(UNLABELLED, has_node_labels=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def in_root(root: Path, write_tu: Callable[..., Path]) -> Callable[..., Path]:
    """Write a TU folder into the data root."""

    def write(name: str = "TINY", **parts: str) -> Path:
        return write_tu(name, root / name, **{**PARTS, **parts})

    return write


def only(root: Path) -> Listed:
    """The one data set in the data root."""
    (found,) = [each for each in list_local(root) if each.where is Origin.DATA_ROOT]
    return found


def test_mutag_is_always_there(root: Path) -> None:
    (mutag,) = list_local(root)
    assert mutag == replace(
        LABELLED,
        name="MUTAG",
        where=Origin.BUNDLED,
        path=bundled_path("MUTAG"),
        size_bytes=sum(file.stat().st_size for file in bundled_path("MUTAG").glob("MUTAG_*")),
        graphs=188,
        node_labels=7,
    )


def test_a_data_root_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert [each.name for each in list_local(tmp_path / "absent")] == list(BUNDLED)


def test_a_folder_is_described(root: Path, in_root: Callable[..., Path]) -> None:
    folder = in_root(node_labels="0\n4\n0\n0\n", node_attributes="1.5, 2\n1, 2\n1, 2\n1, 2\n")
    size = 20 + 8 + 4 + 8 + 22
    assert only(root) == replace(
        LABELLED, path=folder, size_bytes=size, node_labels=2, node_attributes=2
    )


def test_a_zip_is_described_as_its_folder_is_but_for_its_size(
    root: Path, write_tu: Callable[..., Path], zip_folder: Callable[[Path], Path]
) -> None:
    packed = Path(copy(zip_folder(write_tu(**PARTS)), root))
    assert only(root) == replace(UNLABELLED, path=packed, size_bytes=packed.stat().st_size)


def test_json_lines_are_described(root: Path) -> None:
    file = root / "graphs.jsonl"
    file.write_text(
        '{"node_labels": ["C", "O"], "edges": [[0, 1]], "class": "a"}\n'
        '{"node_labels": ["C"], "edges": [], "class": "b"}\n'
    )
    assert only(root) == replace(
        LABELLED, name="graphs", path=file, size_bytes=file.stat().st_size, node_labels=2
    )


def test_json_lines_without_labels_count_none(root: Path) -> None:
    (root / "graphs.jsonl").write_text(
        '{"node_attributes": [[1.5, 2, 3]], "edges": [], "class": 1}\n'
    )
    found = only(root)
    assert (found.has_node_labels, found.node_labels, found.node_attributes) == (False, 0, 3)


def test_edges_are_not_read(root: Path, in_root: Callable[..., Path]) -> None:
    in_root(A="this is no edge\n")
    assert only(root).graphs == 2
    assert only(root).problem is None


@pytest.mark.parametrize("first", ["1.5 2.5 3.5", "1.5, 2.5, 3.5", "1.5,2.5,3.5"])
def test_attributes_are_counted_however_they_are_separated(
    root: Path, in_root: Callable[..., Path], first: str
) -> None:
    in_root(node_attributes=f"{first}\n" * 4)
    assert only(root).node_attributes == 3


def test_labels_of_several_columns_count_as_combinations(
    root: Path, in_root: Callable[..., Path]
) -> None:
    in_root(node_labels="0, 0\n0, 1\n1, 1\n0, 1\n")
    assert only(root).node_labels == 3


def test_what_is_no_data_set_is_not_listed(root: Path) -> None:
    (root / "notes.txt").write_text("")
    (root / "folder").mkdir()
    (root / ".hidden.zip").write_text("")
    assert [each.name for each in list_local(root)] == list(BUNDLED)


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("cut.zip", b"PK\x03\x04", "not a complete zip file"),
        ("bad.jsonl", b"{}\n", "no node_labels"),
    ],
)
def test_what_cannot_be_read_is_listed_with_the_reason(
    root: Path, file: str, content: bytes, problem: str
) -> None:
    (root / file).write_bytes(content)
    found = only(root)
    assert found.name == Path(file).stem
    assert found.path == root / file
    assert found.graphs is None
    assert found.problem is not None
    assert found.problem.startswith(problem)


def test_a_missing_part_is_listed_as_the_reason(root: Path, in_root: Callable[..., Path]) -> None:
    (in_root() / "TINY_graph_labels.txt").unlink()
    assert only(root).problem == "TINY_graph_labels.txt is missing."


@pytest.mark.usefixtures("permissions")
def test_a_closed_folder_does_not_hide_the_others(root: Path, in_root: Callable[..., Path]) -> None:
    in_root()
    (root / "closed").mkdir(mode=0)
    try:
        assert "TINY" in [each.name for each in list_local(root)]
    finally:
        (root / "closed").chmod(0o700)


def test_data_sets_are_listed_by_name_after_the_bundled_one(
    root: Path, in_root: Callable[..., Path]
) -> None:
    for name in ("beta", "GAMMA", "Alpha"):
        in_root(name)
    assert [each.name for each in list_local(root)] == [*BUNDLED, "Alpha", "beta", "GAMMA"]


def test_mutag_in_the_data_root_is_shadowed(root: Path, in_root: Callable[..., Path]) -> None:
    in_root("MUTAG")
    in_root("TINY")
    shadowed = [(each.where, each.shadowed) for each in list_local(root)]
    assert shadowed[len(BUNDLED) :] == [
        (Origin.DATA_ROOT, True),
        (Origin.DATA_ROOT, False),
    ]


def test_a_data_set_is_listed_under_the_name_that_finds_it(
    root: Path, write_tu: Callable[..., Path]
) -> None:
    write_tu("MUTAG", root / "mine", **PARTS)
    found = only(root)
    assert locate(found.name, Access(root, offline=True)).path == found.path
    assert not found.shadowed


def test_what_is_here_need_not_be_downloaded() -> None:
    names = [each.name for each in list_downloadable({"MUTAG", "KKI"})]
    assert set(names) == catalogue().keys() - {"MUTAG", "KKI"}


def test_what_is_to_be_downloaded_is_described_by_the_catalogue() -> None:
    by_name = {each.name: each for each in list_downloadable(set())}
    assert by_name["PROTEINS"] == replace(
        LABELLED,
        name="PROTEINS",
        where=Origin.DOWNLOAD,
        graphs=1113,
        node_labels=None,
        node_attributes=1,
    )


def test_the_catalogue_agrees_with_the_paper_s_files(real_data: Path) -> None:
    told = {each.name: each for each in list_downloadable(set())}
    local = [each for each in list_local(real_data) if each.where is Origin.DATA_ROOT]
    found = {each.name: each for each in local if each.name in PAPER}
    assert {name: each.node_labels for name, each in found.items()} == PAPER
    for name, each in found.items():
        assert each == replace(
            told[name],
            where=Origin.DATA_ROOT,
            path=real_data / f"{name}.zip",
            size_bytes=(real_data / f"{name}.zip").stat().st_size,
            node_labels=PAPER[name],
            shadowed=name in BUNDLED,
        )
