"""The demo: four commands on bundled data, continued after an interruption."""

import json
import shlex
from pathlib import Path

import pytest

from ihgnn_cli.cli.app import app
from ihgnn_cli.errors import InputError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_whole_path_is_shown_with_its_commands_and_continued(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app(["demo", "--epochs", "1"], standalone_mode=False)
    shown = capsys.readouterr().out
    commands = [line[2:] for line in shown.splitlines() if line.startswith("$ ")]
    assert commands == [
        "ihgnn train --dataset MUTAG --epochs 1 --out ihgnn-demo/run",
        "ihgnn evaluate ihgnn-demo/run --plot ihgnn-demo/accuracy-by-homophily.png",
        "ihgnn export ihgnn-demo/run ihgnn-demo/model.onnx",
        "ihgnn predict ihgnn-demo/model.onnx ihgnn-demo/new.jsonl",
    ]
    for said in ("Test accuracy", "Accuracy by graph homophily", "nitrobenzene"):
        assert said in shown
    made = folder / "ihgnn-demo"
    recorded = json.loads((made / "run" / "result.json").read_text())["provenance"]["command"]
    assert recorded == commands[0]
    before = (made / "run" / "ckpt.pt").read_bytes()
    # What is done is not done again, and the commands are those a user can copy.
    (made / "model.onnx").unlink()
    app(["demo", "--json", "--epochs", "2"], standalone_mode=False)
    shown = capsys.readouterr()
    assert "--epochs is ignored: ihgnn-demo/run exists. Remove ihgnn-demo" in shown.err
    steps = json.loads(shown.out)["steps"]
    assert [each["skipped"] for each in steps] == [True, True, False, False]
    assert [each["id"] for each in steps[3]["json"]] == ["benzene", "nitrobenzene"]
    assert (made / "run" / "ckpt.pt").read_bytes() == before
    app([*shlex.split(commands[3])[1:], "--csv", "-"], standalone_mode=False)
    assert "nitrobenzene" in capsys.readouterr().out


def test_other_files_are_not_mixed_with_a_demo(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").touch()
    with pytest.raises(InputError, match="mine is not empty and holds no demo"):
        app(["demo", "--out", "mine"], standalone_mode=False)
    with pytest.raises(InputError, match=r"notes.txt is not a folder"):
        app(["demo", "--out", "mine/notes.txt"], standalone_mode=False)
    assert [each.name for each in (folder / "mine").iterdir()] == ["notes.txt"]
