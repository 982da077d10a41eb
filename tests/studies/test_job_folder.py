"""Whether a folder may be used for a job, before it is known in full."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.studies import job_folder
from ihgnn_cli.studies.job_folder import (
    CROSSVAL_JOB,
    SEARCH,
    JobKind,
    difference,
    open_job,
    refuse_unusable,
)

KINDS = pytest.mark.parametrize("kind", [CROSSVAL_JOB, SEARCH])


@KINDS
def test_a_new_an_empty_and_a_begun_folder_are_usable(tmp_path: Path, kind: JobKind) -> None:
    refuse_unusable(tmp_path / "new" / "job", kind)
    refuse_unusable(tmp_path, kind)
    (tmp_path / ".lock").touch()
    (tmp_path / ".crossval-12-ab.part.json").touch()  # of a command that was killed
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


PLAIN: dict[str, Any] = {
    "protocol": {
        "data": {"dataset": "MUTAG"},
        "model": {"width": 32, "variant": "full"},
        "training": {"epochs": 2, "seed": 0},
        "grid": [{"lr": lr, "batch_size": size} for lr in (0.01, 0.001) for size in (32, 64)],
        "runs": 3,
    },
    "data_sha256": "ab",
    "splits_sha256": "cd",
    "folds": 10,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"protocol.training.epochs": 350}, "--epochs was 2, is 350"),
        ({"protocol.model.width": 64}, "width was 32, is 64"),
        ({"protocol.data.dataset": "x" * 61}, "--dataset differs"),
        ({"data_sha256": "ef"}, "the content of the data set differs"),
        (
            {"protocol.grid": [{"lr": 0.02, "batch_size": 32}]},
            "--lr was 0.01,0.001, is 0.02; --batch-size was 32,64, is 32",
        ),
        ({"protocol.grid": PLAIN["protocol"]["grid"][:-1]}, "its settings differ"),
        # What follows from a setting is not repeated.
        ({"protocol.training.seed": 1, "splits_sha256": "ef"}, "--seed was 0, is 1"),
        ({"protocol.runs": 1, "splits_sha256": "ef"}, "--runs was 3, is 1; the splits differ"),
        (
            {f"protocol.{name}": 9 for name in ("training.epochs", "runs", "model.width")}
            | {"folds": 3, "splits_sha256": "ef"},
            "width was 32, is 9; --epochs was 2, is 9; --runs was 3, is 9; 1 more",
        ),
        (
            {"space": {"lr": {"low": 0.001, "high": 0.1, "log": True}}},
            "--lr was 0.01,0.001, is 0.001 to 0.1, log scale",
        ),
    ],
)
def test_two_jobs_differ_in_words_that_a_user_can_act_on(
    changes: dict[str, Any], said: str | None
) -> None:
    other = deepcopy(PLAIN)
    for place, value in changes.items():
        *path, last = place.split(".")
        section = other
        for key in path:
            section = section[key]
        section[last] = value
    assert difference(PLAIN, other) == said
