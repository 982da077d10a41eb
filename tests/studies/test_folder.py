"""The folder of a job: begun at once, never mixed with another, a file a finished unit."""

import json
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from known_unit import FIRST, KNOWN

from ihgnn_cli.data.splits import draw_folds, fold_file, read_fold_file
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.files import exclusive
from ihgnn_cli.jobs.claims import Claims
from ihgnn_cli.studies import folder as folders
from ihgnn_cli.studies import job_folder
from ihgnn_cli.studies.folder import Units, begin, read_job, read_result, write_result
from ihgnn_cli.studies.units import Record, Validated
from ihgnn_cli.studies.units import Tested as OnTest  # pytest takes Test... for tests

FOLDS = draw_folds(np.arange(12) % 2, 0, 2)
PLAIN = Record(KNOWN, None)
WITH_CURVES = Record(KNOWN, OnTest(20, hits=(7, 8)))
DIVERGED = Record(
    replace(KNOWN, epochs=1, diverged=True, best=None, hits=(), losses=()), OnTest(20)
)
RESULT = {
    "test_mean": 0.5,
    "folds": [],
    "runs": [],
    "paper": None,
    "model_epochs": 4,
    "trained_now": 4,
    "seconds": 1.5,
}


def job(**identity: object) -> dict[str, Any]:
    known = {"protocol": {"training": {"epochs": 5}, "grid": [1, 2]}, "folds": 2}
    return {
        "identity": {**known, **identity},
        "stack": 4,
        "final_stack": 2,
        "command": "ihgnn crossval --folds 2",
    }


def content_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"folder"
        for path in folder.rglob("*")
    }


def refusal(path: Path, asked: dict[str, Any]) -> str:
    """What beginning there is refused with; it changes nothing."""
    before = content_of(path.parent)
    with pytest.raises(InputError) as caught:
        begin(path, asked, FOLDS)
    assert content_of(path.parent) == before
    return str(caught.value)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    begin(tmp_path / "job", job(), FOLDS)
    return tmp_path / "job"


def units_of(folder: Path) -> Units:
    """Its finished units, whatever their seeds and splits."""
    return Units(folder, lambda _: True)


def at_once(*calls: Callable[[], None]) -> list[Exception]:
    """What the calls, each in a thread of its own, fail with."""
    barrier = threading.Barrier(len(calls))
    failures = []

    def wait_and(call: Callable[[], None]) -> None:
        barrier.wait()
        try:
            call()
        except Exception as error:  # noqa: BLE001  told by the test
            failures.append(error)

    threads = [threading.Thread(target=wait_and, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


# Beginning


def test_a_job_begins_with_all_that_it_needs_and_nothing_else(tmp_path: Path) -> None:
    begin(tmp_path / "new" / "job", job(), FOLDS)
    found = tmp_path / "new" / "job"
    names = {"crossval.json", "splits.json", "units", "claims", "partial"}
    assert {path.name for path in found.iterdir()} == names
    assert [path.name for path in found.parent.iterdir()] == ["job"]
    assert read_job(found) == job()
    read = read_fold_file(found / "splits.json", 12)
    assert [fold.digest for fold in read] == [fold.digest for fold in FOLDS]


def stopped_at(step: str, path: Path) -> None:
    """Begin there, and be stopped before this step."""
    with pytest.MonkeyPatch.context() as patch:

        def stop(*_: object) -> None:
            patch.undo()
            raise SystemExit

        patch.setattr(folders, step, stop)
        with pytest.raises(SystemExit):
            begin(path, job(), FOLDS)


steps = pytest.mark.parametrize("step", ["exclusive", "write_fold_file", "write_json"])


@steps
def test_who_is_stopped_at_the_beginning_leaves_nothing(tmp_path: Path, step: str) -> None:
    stopped_at(step, tmp_path / "job")
    assert not any(tmp_path.iterdir())


@steps
def test_a_folder_that_was_there_stays_and_the_job_can_begin_again(
    tmp_path: Path, step: str
) -> None:
    stopped_at(step, tmp_path)
    assert (tmp_path / "claims").is_dir()
    begin(tmp_path, job(), FOLDS)
    assert read_job(tmp_path) == job()


def test_who_is_stopped_takes_away_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "job"

    def joined(*_: object) -> None:
        (path / "thesis.txt").write_text("text")
        (path / "units" / "notes.txt").write_text("text")
        raise SystemExit

    monkeypatch.setattr(folders, "write_json", joined)
    with pytest.raises(SystemExit):
        begin(path, job(), FOLDS)
    assert set(content_of(path)) == {"thesis.txt", "units", str(Path("units", "notes.txt"))}


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    begin(tmp_path / "job", job(), FOLDS)
    assert read_job(tmp_path / "job") == job()


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"claims/lock": ""},
        {"claims/lock": "", ".splits-1-ab.part.json": "half"},
        {"claims/lock": "", "splits.json": fold_file(FOLDS)},
        {"claims/lock": "", "splits.json": fold_file(FOLDS), ".crossval-1-ab.part.json": "half"},
    ],
)
def test_what_a_killed_process_had_begun_of_this_job_is_taken(
    tmp_path: Path, files: dict[str, str]
) -> None:
    for name in ("units", "claims", "partial"):
        (tmp_path / name).mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    begin(tmp_path, job(), FOLDS)
    assert read_job(tmp_path) == job()
    assert (tmp_path / "splits.json").read_text() == fold_file(FOLDS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("thesis.txt", b"text"),
        (".hidden", b"text"),
        ("units/select.json", b"{}"),
        ("partial/select.pt", b"half"),
        ("splits.json", b"[]"),
        ("splits.json", b"\xff\xfe"),
        ("splits.json", fold_file(FOLDS[::-1]).encode()),
        ("result.json", b"{}"),
    ],
)
def test_what_is_no_beginning_of_this_job_is_refused(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / "mine"
    (path / "units").mkdir(parents=True)
    (path / "partial").mkdir()
    (path / name).write_bytes(content)
    told = refusal(path, job())
    assert told.endswith("mine is not empty and holds no crossval job. Choose another --out.")


def test_the_same_job_is_left_as_it_is(begun: Path) -> None:
    before = content_of(begun)
    later = {**job(), "stack": 9, "command": "ihgnn crossval --stack 9"}
    begin(begun, later, FOLDS)
    assert content_of(begun) == before
    assert read_job(begun)["stack"] == 4


@pytest.mark.parametrize("content", [None, b"", b"[]", b"\xff", fold_file(FOLDS[::-1]).encode()])
def test_splits_that_somebody_has_damaged_are_written_anew(
    begun: Path, content: bytes | None
) -> None:
    before = content_of(begun)
    if content is None:
        (begun / "splits.json").unlink()
    else:
        (begun / "splits.json").write_bytes(content)
    begin(begun, job(), FOLDS)
    assert content_of(begun) == before


def test_splits_of_another_job_are_not_touched(begun: Path) -> None:
    (begun / "splits.json").write_bytes(b"[]")
    assert "holds another job" in refusal(begun, job(folds=3))
    assert (begun / "splits.json").read_bytes() == b"[]"


def test_identities_are_compared_as_the_file_holds_them(tmp_path: Path) -> None:
    asked = job(grid=(1, 2), path=Path("a"), lost=float("nan"))
    begin(tmp_path / "job", asked, FOLDS)
    begin(tmp_path / "job", asked, FOLDS)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"folds": 3}, "--folds was 2, is 3"),
        (
            {"protocol": {"training": {"epochs": 6}, "grid": [1]}, "folds": 3},
            "--epochs was 5, is 6; grid was [1, 2], is [1]; --folds was 2, is 3",
        ),
        ({"data_sha256": "ab"}, "the content of the data set differs"),
    ],
)
def test_another_job_is_refused_with_what_differs_and_the_command_of_the_first(
    begun: Path, changes: dict[str, object], told: str
) -> None:
    assert refusal(begun, job(**changes)) == (
        f"{begun} holds another job ({told}). Choose another --out, or repeat its own command: "
        "ihgnn crossval --folds 2"
    )


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    assert refusal(tmp_path / "file", job()).endswith("file is not a folder. Choose another --out.")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IhgnnError, match="Cannot write"):
        begin(tmp_path / "file" / "job", job(), FOLDS)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "3", '{"stack": 4}', '{"identity": 3, "stack": 4}', '{"identity":{}}'],
)
def test_a_damaged_job_is_refused(begun: Path, content: str) -> None:
    (begun / "crossval.json").write_text(content)
    assert refusal(begun, job()).endswith("crossval.json is damaged. Choose another --out.")


def test_a_folder_without_a_job_has_none_to_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Cannot read .*crossval\.json: No such file"):
        read_job(tmp_path)


def test_who_was_slower_finds_the_job_of_who_was_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "job"

    def overtaken(lock: Path) -> AbstractContextManager[None]:
        monkeypatch.undo()
        begin(path, {**job(), "stack": 1}, FOLDS)
        return exclusive(lock)

    monkeypatch.setattr(folders, "exclusive", overtaken)
    begin(path, {**job(), "stack": 2}, FOLDS)
    assert read_job(path)["stack"] == 1
    assert [each.name for each in tmp_path.iterdir()] == ["job"]


def test_a_job_that_begins_between_two_looks_at_the_place_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "job"
    path.mkdir()
    real = job_folder._is_beginning

    def overtaken(*given: Any) -> bool:
        monkeypatch.undo()
        begin(path, {**job(), "stack": 1}, FOLDS)
        return real(*given)

    monkeypatch.setattr(job_folder, "_is_beginning", overtaken)
    begin(path, {**job(), "stack": 2}, FOLDS)
    assert read_job(path)["stack"] == 1


def test_several_that_begin_the_same_job_at_once_share_it(tmp_path: Path) -> None:
    for attempt in range(5):
        path = tmp_path / f"{attempt}" / "job"
        assert at_once(*[partial(begin, path, job(), FOLDS)] * 6) == []
        assert [each.name for each in path.parent.iterdir()] == ["job"]
        assert read_job(path) == job()


def test_of_two_jobs_that_begin_at_once_in_one_place_one_is_refused(tmp_path: Path) -> None:
    for attempt in range(5):
        path = tmp_path / f"{attempt}" / "job"
        asked = [partial(begin, path, job(folds=number), FOLDS) for number in (2, 3)]
        (failure,) = at_once(*asked)
        assert isinstance(failure, InputError)
        assert "holds another job (--folds was" in str(failure)
        assert [each.name for each in path.parent.iterdir()] == ["job"]


def test_a_folder_of_before_final_runs_had_a_size_of_their_own_has_one_for_both(
    begun: Path,
) -> None:
    content = job()
    del content["final_stack"]
    (begun / "crossval.json").write_text(json.dumps(content))
    assert read_job(begun)["final_stack"] == 4
    begin(begun, job(), FOLDS)  # which changes nothing
    assert read_job(begun)["final_stack"] == 4


# Units


def test_a_finished_unit_is_read_back_by_anybody(begun: Path) -> None:
    units = units_of(begun)
    assert units.read(FIRST) is None
    assert not units.has(FIRST, curves=False)
    units.write(PLAIN)
    assert units.read(FIRST) == PLAIN
    assert units.has(FIRST, curves=False)
    assert units_of(begun).read(FIRST) == PLAIN
    assert [path.name for path in (begun / "units").iterdir()] == [f"{FIRST.name}.json"]


def test_a_unit_counts_with_curves_only_if_it_has_them(begun: Path) -> None:
    mine, other = units_of(begun), units_of(begun)
    for lacking in (PLAIN, Record(KNOWN, OnTest(20, 0.5)), Record(KNOWN, OnTest(20, hits=(1,)))):
        mine.write(lacking)
        assert mine.has(FIRST, curves=False)
        assert not mine.has(FIRST, curves=True)
    other.write(WITH_CURVES)
    assert mine.has(FIRST, curves=True)
    assert mine.read(FIRST) == WITH_CURVES
    assert mine.has(FIRST, curves=False)


def test_a_unit_that_diverged_at_once_needs_no_curve(begun: Path) -> None:
    units = units_of(begun)
    units.write(DIVERGED)
    assert units.has(FIRST, curves=True)


def test_what_chooses_is_given_the_finished_units_without_test(begun: Path) -> None:
    units = units_of(begun)
    units.write(WITH_CURVES)
    assert units.validated([replace(FIRST, fold=1), FIRST]) == [KNOWN]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        PLAIN.line().encode()[:-30],
        b'{"unit": 3}',
        b"[]",
        b"null",
        b"3",
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_a_damaged_unit_is_refused_with_a_remedy(begun: Path, content: bytes) -> None:
    path = begun / "units" / f"{FIRST.name}.json"
    path.write_bytes(content)
    units = units_of(begun)
    for ask in (units.read, lambda unit: units.has(unit, curves=False)):
        with pytest.raises(InputError) as caught:
            ask(FIRST)
        told = f"{path} is damaged. Remove it, and its stack is trained again."
        assert str(caught.value) == told
    path.unlink()
    assert units.read(FIRST) is None


def test_a_unit_of_another_job_is_refused(begun: Path) -> None:
    """Its name tells neither the seed of the job nor the split."""
    units_of(begun).write(PLAIN)
    path = begun / "units" / f"{FIRST.name}.json"
    asked = []

    def is_ours(record: Validated) -> bool:
        asked.append(record)
        return False

    with pytest.raises(InputError) as caught:
        Units(begun, is_ours).read(FIRST)
    assert (
        str(caught.value) == f"{path} belongs to another job. Remove it, or choose another --out."
    )
    assert asked == [KNOWN]


def test_a_unit_under_the_name_of_another_is_refused(begun: Path) -> None:
    other = Record(replace(KNOWN, unit=replace(FIRST, fold=1)), None)
    (begun / "units" / f"{FIRST.name}.json").write_text(other.line())
    with pytest.raises(InputError, match=r"run0\.json belongs to another job"):
        units_of(begun).read(FIRST)


def test_a_unit_that_cannot_be_read_is_told(begun: Path) -> None:
    (begun / "units" / f"{FIRST.name}.json").mkdir()
    with pytest.raises(InputError, match=r"Cannot read .*run0\.json"):
        units_of(begun).read(FIRST)


# The result


def test_the_result_is_written_and_what_killed_processes_left_is_gone(begun: Path) -> None:
    units_of(begun).write(PLAIN)
    (begun / "units" / ".select-1-ab.part.json").write_text("half")
    (begun / "partial" / "select-k3-batch32-0.pt").write_bytes(b"half")
    assert read_result(begun) is None
    write_result(begun, {**RESULT, "rate": float("nan")})
    assert read_result(begun) == {**RESULT, "rate": None}
    assert not (begun / "partial").exists()
    assert [path.name for path in (begun / "units").iterdir()] == [f"{FIRST.name}.json"]


def test_nothing_is_taken_away_from_those_who_are_still_at_work(begun: Path) -> None:
    theirs = [begun / "units" / ".select-1-ab.part.json", begun / "partial" / "select-0.pt"]
    for path in theirs:
        path.write_text("half")
    with Claims(begun / "claims") as claims:
        claims.take(["select-0"], lambda _: False)
        write_result(begun, RESULT)
        assert read_result(begun) == RESULT
        assert all(path.exists() for path in theirs)
    write_result(begun, RESULT)
    assert not any(path.exists() for path in theirs)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        pytest.param(b"[" * 100_000, id="deep"),
        json.dumps({**RESULT, "paper": {"mean": 89.9, "std": 6.0}}).encode(),
        json.dumps({**RESULT, "paper": 3}).encode(),
        *(
            json.dumps({key: RESULT[key] for key in RESULT if key != missing}).encode()
            for missing in RESULT
        ),
    ],
)
def test_a_damaged_or_outdated_result_is_none(begun: Path, content: bytes) -> None:
    (begun / "result.json").write_bytes(content)
    assert read_result(begun) is None
    write_result(begun, RESULT)
    assert read_result(begun) == RESULT


def test_what_is_finished_outlives_a_power_cut(
    begun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    units_of(begun).write(PLAIN)
    assert len(synced) == 1
    write_result(begun, RESULT)
    assert len(synced) == 2
