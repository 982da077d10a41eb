"""Whether a folder may be used for a job, before it is known in full."""

from pathlib import Path

import pytest

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.studies import job_folder
from ihgnn_cli.studies.job_folder import CROSSVAL_JOB, SEARCH, JobKind, refuse_unusable

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
    with pytest.raises(IhgnnError, match=r"Cannot write .*: Not a directory"):
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
