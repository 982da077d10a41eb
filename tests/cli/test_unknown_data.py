"""A data set that cannot exist is a usage error in every command, and no network is needed."""

from pathlib import Path

import pytest

from ihgnn_cli.cli.app import app
from ihgnn_cli.data import sources
from ihgnn_cli.errors import IhgnnError


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("run") / "run"
    small = ("--width", "4", "--hidden", "8", "--layers", "1", "--epochs", "1", "--device", "cpu")
    app(["train", *small, "--out", str(folder), "--quiet"], standalone_mode=False)
    return str(folder / "ckpt.pt")


@pytest.mark.parametrize(
    "args",
    [
        ["train", "--dataset"],
        ["crossval", "--dataset"],
        ["tune", "--dataset"],
        ["evaluate", "CHECKPOINT", "--dataset"],
        ["predict", "CHECKPOINT"],
        ["reproduce", "table1", "--datasets"],
        ["homophily"],
        ["datasets", "check"],
    ],
)
@pytest.mark.parametrize("name", ["../x", "nope"])
def test_an_unknown_data_set_is_a_usage_error(
    args: list[str], name: str, checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "download", None)
    given = [checkpoint if each == "CHECKPOINT" else each for each in args]
    with pytest.raises(IhgnnError, match=name) as caught:
        app([*given, name], standalone_mode=False)
    assert caught.value.exit_code == 2
    assert not list(tmp_path.iterdir())
