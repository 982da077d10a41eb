"""What a training says at its start."""

from pathlib import Path

import pytest

from ihgnn_cli.cli.app import app


def test_a_training_says_at_once_what_it_read_and_then_a_line_per_tenth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["--width", "4", "--hidden", "4", "--layers", "1", "--device", "cpu"]
    app(["train", *small, "--epochs", "30", "-b", "256"], standalone_mode=False)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == (
        "Read MUTAG: 188 graphs, 3,371 nodes, 7 node labels, 2 classes. Starting PyTorch ..."
    )
    epochs = [line.split(":")[0] for line in lines if " epochs: " in line]
    assert epochs == ["1 of 30 epochs", *(f"{each} of 30 epochs" for each in range(3, 31, 3))]
