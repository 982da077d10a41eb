"""The cache of parsed data: used when it is whole, and only time is lost when it is not."""

import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ihgnn_cli.data.cache import load, load_or_read, save
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.data.sources import cache

EVERYTHING = GraphDataset(  # a triangle and a single node, with every column that there is
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
    ids=("one", None),
    notes=ReadingNotes(self_loops=1, ignored_keys=("name",)),
)
LEAST = replace(
    EVERYTHING,
    node_attributes=None,
    edge_label=None,
    edge_label_values=(),
    edge_attributes=None,
    ids=(),
    notes=ReadingNotes(),
)


class Reader:
    """Gives a data set, and counts how often it was asked."""

    calls = 0

    def __call__(self) -> GraphDataset:
        self.calls += 1
        return EVERYTHING


def assert_same(found: GraphDataset | None, expected: GraphDataset) -> None:
    assert found is not None
    assert found.fingerprint == expected.fingerprint
    assert (found.notes, found.ids) == (expected.notes, expected.ids)
    assert not any(column.flags.writeable for column in found.columns().values())


@pytest.mark.parametrize("dataset", [EVERYTHING, LEAST], ids=["every column", "few columns"])
def test_a_stored_data_set_comes_back_under_the_name_it_is_asked_by(tmp_path, dataset) -> None:
    save(tmp_path / "file", dataset)
    found = load(tmp_path / "file", "OTHER")
    assert_same(found, dataset)
    assert found is not None
    assert found.name == "OTHER"


def test_raw_data_is_read_once_per_digest_and_format(tmp_path, monkeypatch) -> None:
    reader = Reader()
    for digest in ("a", "a", "b"):
        assert_same(load_or_read(tmp_path, digest, "TRIANGLE", reader), EVERYTHING)
    assert reader.calls == 2
    monkeypatch.setattr(cache, "FORMAT", cache.FORMAT + 1)
    load_or_read(tmp_path, "a", "TRIANGLE", reader)
    assert reader.calls == 3


def test_no_single_wrong_byte_changes_the_data_and_no_missing_end_is_believed(tmp_path) -> None:
    save(tmp_path / "file", EVERYTHING)
    good = (tmp_path / "file").read_bytes()
    noticed = 0
    for position in range(0, len(good), 3):
        damaged = bytearray(good)
        damaged[position] ^= 0x10
        (tmp_path / "file").write_bytes(damaged)
        found = load(tmp_path / "file", "TRIANGLE")
        noticed += found is None
        if found is not None:  # a time stamp in the zip
            assert_same(found, EVERYTHING)
    assert noticed > len(good) / 9
    for length in range(0, len(good), 7):
        (tmp_path / "file").write_bytes(good[:length])
        assert load(tmp_path / "file", "TRIANGLE") is None


@pytest.mark.parametrize(
    "damage",
    [b"", b"\0" * 1000, b"not a cache file\n" * 100, pickle.dumps([1])],
    ids=["empty", "zeros", "text", "a pickle"],
)
def test_a_damaged_file_is_read_again_and_repaired(tmp_path, damage) -> None:
    load_or_read(tmp_path, "digest", "TRIANGLE", Reader())
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    reader = Reader()
    for _ in range(2):
        assert_same(load_or_read(tmp_path, "digest", "TRIANGLE", reader), EVERYTHING)
    assert reader.calls == 1
    assert list(tmp_path.iterdir()) == [file]


class Payload:
    """What an attacker would pickle."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.proof),)


def test_a_pickle_in_the_cache_runs_nothing(tmp_path) -> None:
    proof, file = tmp_path / "proof", tmp_path / "file"
    hostile = np.array([Payload(proof)], dtype=object)
    file.write_bytes(pickle.dumps(Payload(proof)))
    assert load(file, "TRIANGLE") is None
    with file.open("wb") as stream:
        np.savez(stream, header=hostile, node_label=hostile)
    assert load(file, "TRIANGLE") is None
    assert not proof.exists()
    pickle.loads(pickle.dumps(Payload(proof)))
    assert proof.exists()  # the payload would have worked


def test_a_cache_that_cannot_be_written_is_named_and_left_out(tmp_path, caplog) -> None:
    (tmp_path / "file").write_text("")
    found = load_or_read(tmp_path / "file" / "cache", "digest", "TRIANGLE", Reader())
    assert_same(found, EVERYTHING)
    assert f"without the cache of parsed data in {tmp_path / 'file' / 'cache'}" in caplog.text
    assert "IHGNN_CACHE" in caplog.text


def test_a_full_disk_costs_only_the_cache(tmp_path, caplog) -> None:
    resource = pytest.importorskip("resource", reason="no file size limits on this system")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, before[1]))  # less than the file
    try:
        found = load_or_read(tmp_path / "cache", "digest", "TRIANGLE", Reader())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_same(found, EVERYTHING)
    assert list((tmp_path / "cache").iterdir()) == []
    assert f"without the cache of parsed data in {tmp_path / 'cache'}" in caplog.text


def test_writers_at_the_same_time_leave_one_whole_file(tmp_path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = [pool.submit(load_or_read, tmp_path, "d", "T", Reader()) for _ in range(32)]
    for each in made:
        assert_same(each.result(), EVERYTHING)
    (file,) = tmp_path.iterdir()
    assert_same(load(file, "T"), EVERYTHING)
