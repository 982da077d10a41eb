"""What is said about the folder of a cross-validation or search that is not finished."""

import json
from pathlib import Path

import pytest

from ihgnn_cli.errors import InputError
from ihgnn_cli.training.config import read_config
from ihgnn_cli.training.folder import checkpoint_of
from ihgnn_cli.training.unfinished import continued, unfinished_job


def job(folder: Path, command: str, name: str = "tune.json") -> Path:
    folder.mkdir()
    (folder / name).write_text(json.dumps({"command": command}))
    return folder


@pytest.mark.parametrize(
    ("name", "command", "said"),
    [
        ("tune.json", "ihgnn tune MUTAG -n 4", "Continue it: ihgnn tune MUTAG -n 4 --out {}"),
        ("tune.json", "ihgnn tune -o old/tr -q", "Continue it: ihgnn tune -q --out {}"),
        ("crossval.json", "ihgnn crossval --out=old", "Continue it: ihgnn crossval --out {}"),
        ("crossval.json", "ihgnn reproduce table1", "Repeat its command: ihgnn reproduce table1"),
        ("tune.json", "", "Repeat the call that made it."),
    ],
)
def test_the_command_that_continues_a_job_names_its_folder(
    tmp_path: Path, name: str, command: str, said: str
) -> None:
    folder = job(tmp_path / "job", command, name)
    assert continued(folder) == said.format(folder)


@pytest.mark.parametrize("text", ["", "[]", '{"command": 3}', "{"])
def test_a_job_whose_file_is_damaged_is_run_again(tmp_path: Path, text: str) -> None:
    (tmp_path / "tune.json").write_text(text)
    assert continued(tmp_path) == "Run its search again in another folder."


def test_only_jobs_without_a_result_are_unfinished(tmp_path: Path) -> None:
    assert unfinished_job(tmp_path) == ""
    folder = job(tmp_path / "job", "")
    assert unfinished_job(folder).startswith("Its search is not finished.")
    (folder / "result.json").touch()
    assert unfinished_job(folder) == ""


def test_a_model_or_settings_that_are_not_there_yet_are_explained(tmp_path: Path) -> None:
    folder = job(tmp_path / "tint", "ihgnn tune MUTAG")
    how = rf"Its search is not finished\. Continue it: ihgnn tune MUTAG --out {folder}$"
    with pytest.raises(InputError, match=rf"holds no checkpoint \(ckpt\.pt\)\. {how}"):
        checkpoint_of(folder)
    with pytest.raises(InputError, match=rf"Cannot read .*best\.toml: No such file .*\. {how}"):
        read_config(folder / "best.toml")
    (folder / "best.toml").touch()  # the best settings so far
    with pytest.raises(InputError, match=how):
        checkpoint_of(folder)
