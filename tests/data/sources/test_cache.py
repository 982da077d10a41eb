"""The cache of parsed data: fast when it is whole, and never believed when it is not."""

import io
import logging
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.data.sources import cache
from ihgnn_cli.data.sources.cache import load, load_or_read, save
from ihgnn_cli.errors import DataError, Problem


@pytest.fixture
def triangle() -> GraphDataset:
    """A triangle and a single node, with every column that there is."""
    return GraphDataset(
        name="TRIANGLE",
        node_ptr=np.array([0, 3, 4]),
        neighbor_ptr=np.array([0, 2, 4, 6, 6]),
        neighbors=np.array([1, 2, 0, 2, 0, 1], dtype=np.int32),
        node_label=np.array([0, 1, 1, 0], dtype=np.int32),
        label_values=("C", "Ö"),
        label_source=LabelSource.LABELS,
        graph_class=np.array([1, 0], dtype=np.int32),
        class_values=(-1, 1),
        node_attributes=np.array([[0.5, 1], [2, 3], [4, 5], [6, 7]], dtype=np.float32),
        edge_label=np.array([0, 1, 0, 0, 1, 0], dtype=np.int32),
        edge_label_values=(7, 9),
        edge_attributes=np.arange(6, dtype=np.float32).reshape(6, 1),
        notes=ReadingNotes(self_loops=1, duplicate_edges=2),
    )


class Reader:
    """Gives a data set, and counts how often it was asked."""

    def __init__(self, dataset: GraphDataset) -> None:
        self.dataset = dataset
        self.calls = 0

    def __call__(self) -> GraphDataset:
        self.calls += 1
        return self.dataset


def assert_same(one: GraphDataset, other: GraphDataset) -> None:
    assert one.columns().keys() == other.columns().keys()
    for name, column in one.columns().items():
        assert column.dtype == other.columns()[name].dtype
        np.testing.assert_array_equal(column, other.columns()[name], err_msg=name)
    for name in ("label_values", "class_values", "edge_label_values", "label_source", "notes"):
        assert getattr(one, name) == getattr(other, name)


def cache_files() -> list[str]:
    return sorted(file.name for file in Path(os.environ["IHGNN_CACHE"]).iterdir())


def npy(*arrays: NDArray[np.generic]) -> bytes:
    stream = io.BytesIO()
    for array in arrays:
        np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


# What is kept


def test_the_second_time_comes_from_the_cache_column_by_column(
    triangle: GraphDataset, tmp_path: Path
) -> None:
    reader = Reader(triangle)
    first = load_or_read(tmp_path, "digest", "TRIANGLE", reader)
    second = load_or_read(tmp_path, "digest", "TRIANGLE", reader)
    assert reader.calls == 1
    assert first is triangle
    assert_same(second, triangle)
    assert second.fingerprint == triangle.fingerprint


def test_columns_that_are_absent_stay_absent(triangle: GraphDataset, tmp_path: Path) -> None:
    plain = replace(
        triangle,
        node_attributes=None,
        edge_label=None,
        edge_label_values=(),
        edge_attributes=None,
        label_source=LabelSource.DEGREE,
    )
    save(tmp_path / "file", plain)
    kept = load(tmp_path / "file", "TRIANGLE")
    assert kept is not None
    assert kept.node_attributes is kept.edge_label is kept.edge_attributes is None
    assert_same(kept, plain)


def test_a_data_set_without_edges_is_kept(triangle: GraphDataset, tmp_path: Path) -> None:
    single = triangle.select([1])
    save(tmp_path / "file", single)
    kept = load(tmp_path / "file", "TRIANGLE")
    assert kept is not None
    assert kept.edge_attributes is not None
    assert kept.edge_attributes.shape == (0, 1)
    assert_same(kept, single)


def test_the_name_is_the_asker_s(triangle: GraphDataset, tmp_path: Path) -> None:
    load_or_read(tmp_path, "digest", "TRIANGLE", Reader(triangle))
    assert load_or_read(tmp_path, "digest", "OTHER", Reader(triangle)).name == "OTHER"


def test_columns_are_read_only_whether_read_or_kept(triangle: GraphDataset, tmp_path: Path) -> None:
    for _ in range(2):
        dataset = load_or_read(tmp_path, "digest", "TRIANGLE", Reader(triangle))
        for column in dataset.columns().values():
            with pytest.raises(ValueError, match="read-only"):
                column[:1] = column[:1]


def test_a_replaced_file_does_not_change_columns_in_use(
    triangle: GraphDataset, tmp_path: Path
) -> None:
    save(tmp_path / "file", triangle)
    mapped = load(tmp_path / "file", "TRIANGLE")
    save(tmp_path / "file", triangle.select([1]))
    assert mapped is not None
    assert_same(mapped, triangle)


def test_what_cannot_be_read_is_not_kept(tmp_path: Path) -> None:
    def fail() -> GraphDataset:
        raise DataError([Problem("X_A.txt", 1, "wrong.", "Correct it.")])

    with pytest.raises(DataError):
        load_or_read(tmp_path / "cache", "digest", "X", fail)
    assert not (tmp_path / "cache").exists()


# The key


def test_the_same_files_are_read_once(
    write_tu: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n", graph_labels="5\n")
    first = load_dataset(str(folder))
    os.utime(folder / "TINY_A.txt", (0, 0))  # the content counts, not the date
    monkeypatch.setattr(
        "ihgnn_cli.data.sources.source.read_tu", lambda *_: pytest.fail("read again")
    )
    assert_same(load_dataset(str(folder)), first)
    assert len(cache_files()) == 1


def test_changed_content_is_read_again(write_tu: Callable[..., Path]) -> None:
    folder = write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n", graph_labels="5\n")
    assert load_dataset(str(folder)).class_values == (5,)
    (folder / "TINY_graph_labels.txt").write_text("6\n")  # as long as before
    assert load_dataset(str(folder)).class_values == (6,)
    assert len(cache_files()) == 2


def test_an_added_file_is_read(write_tu: Callable[..., Path]) -> None:
    folder = write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n", graph_labels="5\n")
    assert load_dataset(str(folder)).label_values == (1,)  # the degree
    (folder / "TINY_node_labels.txt").write_text("7\n8\n")
    assert load_dataset(str(folder)).label_values == (7, 8)


def test_json_lines_are_kept_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "graphs.jsonl"
    file.write_text('{"node_labels": ["C", "O"], "edges": [[0, 1]], "class": "alcohol"}\n')
    first = load_dataset(str(file))
    monkeypatch.setattr(
        "ihgnn_cli.data.readers.jsonl.read_jsonl", lambda *_: pytest.fail("read again")
    )
    assert_same(load_dataset(str(file)), first)


def test_two_data_sets_in_one_zip_are_not_taken_for_each_other(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "ONE.zip", "w") as archive:
        for name, graph_class in (("ONE", "1\n"), ("TWO", "2\n")):
            archive.writestr(f"{name}/{name}_A.txt", "1, 2\n2, 1\n")
            archive.writestr(f"{name}/{name}_graph_indicator.txt", "1\n1\n")
            archive.writestr(f"{name}/{name}_graph_labels.txt", graph_class)
    shutil.copy(tmp_path / "ONE.zip", tmp_path / "TWO.zip")  # the name chooses the data set
    assert load_dataset(str(tmp_path / "ONE.zip")).class_values == (1,)
    assert load_dataset(str(tmp_path / "TWO.zip")).class_values == (2,)


def test_another_format_is_another_key(
    triangle: GraphDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(triangle)
    load_or_read(tmp_path, "digest", "TRIANGLE", reader)
    monkeypatch.setattr(cache, "FORMAT", cache.FORMAT + 1)
    load_or_read(tmp_path, "digest", "TRIANGLE", reader)
    assert reader.calls == 2


# Damage


@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file")
def test_no_single_wrong_byte_changes_the_data(triangle: GraphDataset, tmp_path: Path) -> None:
    save(tmp_path / "file", triangle)
    good = (tmp_path / "file").read_bytes()
    noticed = 0
    for position in range(len(good)):
        damaged = bytearray(good)
        damaged[position] ^= 0x10
        (tmp_path / "file").write_bytes(damaged)
        kept = load(tmp_path / "file", "TRIANGLE")
        if kept is None:
            noticed += 1
        else:  # white space in the header of an array
            assert_same(kept, triangle)
    assert noticed > 0.5 * len(good)


def test_any_missing_end_is_noticed(triangle: GraphDataset, tmp_path: Path) -> None:
    save(tmp_path / "file", triangle)
    good = (tmp_path / "file").read_bytes()
    believed = []
    for length in range(len(good)):
        (tmp_path / "file").write_bytes(good[:length])
        if load(tmp_path / "file", "TRIANGLE") is not None:
            believed.append(length)
    assert believed == []


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda good: b"", id="empty"),
        pytest.param(lambda good: good[:100], id="cut at the start"),
        pytest.param(lambda good: good[:-1], id="cut at the end"),
        pytest.param(lambda good: good + b"\0", id="too long"),
        pytest.param(lambda good: bytes(len(good)), id="zeros"),
        pytest.param(lambda good: b"not a cache file\n" * 100, id="garbage"),
        pytest.param(lambda good: npy(np.arange(3)), id="no header"),
        pytest.param(lambda good: npy(np.frombuffer(b"[]", np.uint8)), id="wrong header"),
    ],
)
def test_a_damaged_file_is_read_again_and_repaired(
    triangle: GraphDataset, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    load_or_read(tmp_path, "digest", "TRIANGLE", Reader(triangle))
    (file,) = tmp_path.iterdir()
    good = file.read_bytes()
    file.write_bytes(damage(good))
    reader = Reader(triangle)
    assert_same(load_or_read(tmp_path, "digest", "TRIANGLE", reader), triangle)
    assert reader.calls == 1
    assert file.read_bytes() == good
    assert_same(load_or_read(tmp_path, "digest", "TRIANGLE", reader), triangle)
    assert reader.calls == 1
    assert list(tmp_path.iterdir()) == [file]


def test_a_folder_in_the_file_s_place_costs_time_only(
    triangle: GraphDataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load_or_read(tmp_path, "digest", "TRIANGLE", Reader(triangle))
    (file,) = tmp_path.iterdir()
    file.unlink()
    file.mkdir()
    (file / "something").write_text("")
    reader = Reader(triangle)
    assert_same(load_or_read(tmp_path, "digest", "TRIANGLE", reader), triangle)
    assert reader.calls == 1
    assert list(tmp_path.iterdir()) == [file]
    assert "The parsed data was not cached" in caplog.text


def test_damage_is_repaired_for_a_data_set_on_disk(write_tu: Callable[..., Path]) -> None:
    folder = write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n", graph_labels="5\n")
    first = load_dataset(str(folder))
    (file,) = Path(os.environ["IHGNN_CACHE"]).iterdir()
    good = file.read_bytes()
    file.write_bytes(good[:-10])
    assert load_dataset(str(folder)).fingerprint == first.fingerprint
    assert file.read_bytes() == good


# A cache that cannot be written


def test_a_cache_folder_that_cannot_be_made_only_warns(
    write_tu: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IHGNN_CACHE", str(tmp_path / "file" / "cache"))
    folder = write_tu(A="1, 2\n2, 1\n", graph_indicator="1\n1\n", graph_labels="5\n")
    with caplog.at_level(logging.WARNING):
        assert load_dataset(str(folder)).class_values == (5,)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "The parsed data was not cached. Cannot write " in record.message


def test_a_disk_that_fills_up_only_warns_and_leaves_nothing(
    triangle: GraphDataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    resource = pytest.importorskip("resource", reason="no file size limits on this system")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, before[1]))  # less than the file
    try:
        kept = load_or_read(tmp_path / "cache", "digest", "TRIANGLE", Reader(triangle))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_same(kept, triangle)
    assert list((tmp_path / "cache").iterdir()) == []
    assert "The parsed data was not cached" in caplog.text


# Nothing is executed


class Payload:
    """What an attacker would pickle."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.proof),)


def test_a_pickle_in_the_cache_runs_nothing(triangle: GraphDataset, tmp_path: Path) -> None:
    proof, file = tmp_path / "proof", tmp_path / "file"
    payload = pickle.dumps(Payload(proof))
    pickled = np.array([Payload(proof)], dtype=object)
    header = np.frombuffer(b'{"columns": ["node_label"]}', dtype=np.uint8)
    for content in (payload, npy(pickled), npy(header, pickled)):
        file.write_bytes(content)
        assert load(file, "TRIANGLE") is None
    assert not proof.exists()
    pickle.loads(payload)
    assert proof.exists()  # the payload would have worked


# Several processes


RACER = """
import faulthandler, sys
faulthandler.dump_traceback_later(600, exit=True)
from ihgnn_cli.data import load_dataset
print("ready", flush=True)
sys.stdin.readline()
print(load_dataset("MUTAG", offline=True).fingerprint, flush=True)
"""


def test_processes_that_start_at_once_agree_and_leave_one_file(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        answers = [racer.communicate(timeout=600) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    assert {error for _, error in answers} == {""}
    (file,) = cache_files()
    assert file.endswith(f"-{cache.FORMAT}.npy")
    assert {answer for answer, _ in answers} == {f"{load_dataset('MUTAG').fingerprint}\n"}
    assert cache_files() == [file]
