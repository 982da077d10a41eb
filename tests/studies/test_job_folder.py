"""Whether a folder may be used for a job, before it is known in full."""

from pathlib import Path

import pytest

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.studies import job_folder
from ihgnn_cli.studies.job_folder import CROSSVAL_JOB, SEARCH, JobKind, open_job, refuse_unusable

KINDS = pytest.mark.parametrize("kind", [CROSSVAL_JOB, SEARCH])


@KINDS
def test_a_new_an_empty_and_a_begun_folder_are_usable(tmp_path: Path, kind: JobKind) -> None:
    refuse_unusable(tmp_path / "new" / "job", kind)
    refuse_unusable(tmp_path, kind)
    (tmp_path / "splits.json").touch()  # whose folds are compared when the job begins
    for name in (*kind.empty, *kind.locks):
        (tmp_path / name).mkdir()
        if name in kind.locks:
            (tmp_path / name / "lock").touch()
    refuse_unusable(tmp_path, kind)


@KINDS
def test_other_content_is_refused_with_the_words_of_the_job(tmp_path: Path, kind: JobKind) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputError) as caught:
        refuse_unusable(tmp_path, kind)
    assert str(caught.value) == (
        f"{tmp_path} is not empty and holds no {kind.title}. Choose another --out."
    )
    with pytest.raises(InputError, match=r"is not a folder\. Choose another --out"):
        refuse_unusable(tmp_path / "thesis.txt", kind)
    with pytest.raises(IhgnnError, match="Cannot write"):
        refuse_unusable(tmp_path / "thesis.txt" / "job", kind)
    (tmp_path / kind.file).touch()
    refuse_unusable(tmp_path, kind)


@KINDS
def test_only_a_job_that_is_there_may_be_in_a_folder_that_cannot_be_written(
    tmp_path: Path, kind: JobKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_folder.os, "access", lambda *_: False)
    with pytest.raises(IhgnnError, match=r"Cannot write .*: Permission denied"):
        refuse_unusable(tmp_path, kind)
    (tmp_path / kind.file).touch()
    refuse_unusable(tmp_path, kind)


JOB = {"identity": {"training": {"epochs": 2}}, "stack": 3, "command": "ihgnn crossval"}


def test_a_job_is_created_once_and_opened_by_the_same_job(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "job"
    assert open_job(folder, CROSSVAL_JOB, JOB) == (JOB, True)
    later = {**JOB, "stack": 5}
    assert open_job(folder, CROSSVAL_JOB, later) == (JOB, False)  # the first one's stack is kept
    other = {**JOB, "identity": {"training": {"epochs": 3}}}
    with pytest.raises(InputError, match=r"\(--epochs was 2, is 3\)\. Choose another --out, or"):
        open_job(folder, CROSSVAL_JOB, other)


def test_a_folder_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="is not empty"):
        open_job(tmp_path, SEARCH, JOB)
    with pytest.raises(IhgnnError, match="Cannot write"):
        open_job(tmp_path / "thesis.tex" / "job", SEARCH, JOB)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_could_not_be_filled_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(*_: object) -> None:
        raise IhgnnError("Cannot write")

    monkeypatch.setattr(job_folder, "write_json", disk_full)
    with pytest.raises(IhgnnError, match="Cannot write"):
        open_job(tmp_path / "job", SEARCH, JOB)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"identity": 3}', '{"stack": 3}'])
def test_a_damaged_job_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / CROSSVAL_JOB.file).write_text(text)
    with pytest.raises(InputError, match=r"crossval\.json is damaged\. Choose another --out"):
        open_job(tmp_path, CROSSVAL_JOB, JOB)
