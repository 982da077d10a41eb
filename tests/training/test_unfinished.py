"""What is said about the folder of a cross-validation or search that is not finished."""

import json
from pathlib import Path

import pytest

from ihgnn_cli.errors import InputError
from ihgnn_cli.training.config import read_config
from ihgnn_cli.training.folder import checkpoint_of
from ihgnn_cli.training.unfinished import continued, unfinished_job


@pytest.mark.parametrize(("name", "title"), [("tune.json", "search"), ("crossval.json", "cross-")])
def test_the_command_of_an_unfinished_job_continues_it(
    tmp_path: Path, name: str, title: str
) -> None:
    assert unfinished_job(tmp_path) == ""
    (tmp_path / name).write_text(json.dumps({"command": "ihgnn tune MUTAG --out x"}))
    told = unfinished_job(tmp_path)
    assert told.startswith(f"Its {title}")
    assert told.endswith("is not finished. Continue it: ihgnn tune MUTAG --out x")
    with pytest.raises(InputError, match=r"holds no checkpoint \(ckpt\.pt\)\. Its .* Continue it"):
        checkpoint_of(tmp_path)
    with pytest.raises(InputError, match=r"Cannot read .*best\.toml: No such file .* Continue it"):
        read_config(tmp_path / "best.toml")
    (tmp_path / "result.json").touch()
    assert unfinished_job(tmp_path) == ""


@pytest.mark.parametrize("text", ["", "[]", '{"command": 3}', "{", '{"command": ""}'])
def test_a_job_that_names_no_command_is_run_again(tmp_path: Path, text: str) -> None:
    (tmp_path / "tune.json").write_text(text)
    assert continued(tmp_path) == "Run the command or the call that made it again."
