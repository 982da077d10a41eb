"""The curves of a training."""

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from ihgnn_cli.errors import InputError
from ihgnn_cli.report.training import draw_curves
from ihgnn_cli.training.epoch import Epoch

UNKNOWN = math.nan, math.nan
THREE = [Epoch(1, 0.7, 0.5, 0.8, 0.4), Epoch(2, 0.4, 0.8, 0.6, 0.7), Epoch(3, 0.2, 1, 0.9, 0.6)]


def drawn(history: list[Epoch], best_epoch: int | None, folder: Path) -> list[str]:
    """The texts of the figure."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_curves(history, "IHGNN on $A and $B", best_epoch, folder / "curves.svg")
    return [each.text for each in ET.parse(folder / "curves.svg").iter() if each.text]


def test_curves_are_labelled_and_the_best_epoch_is_marked(tmp_path: Path) -> None:
    texts = drawn(THREE, 2, tmp_path)
    assert {"IHGNN on $A and $B", "loss", "accuracy", "best epoch 2"} <= set(texts)
    assert (texts.count("training"), texts.count("validation")) == (1, 1)
    assert texts.count("epoch") == 2


def test_what_is_not_there_is_not_drawn(tmp_path: Path) -> None:
    history = [Epoch(1, 0.7, 0.5, *UNKNOWN), Epoch(2, math.nan, 0.6, *UNKNOWN)]
    texts = drawn(history, None, tmp_path)
    assert "training" in texts
    assert "validation" not in texts
    assert not any(text.startswith("best epoch") for text in texts)


def test_a_training_that_diverged_at_once_still_has_its_accuracy(tmp_path: Path) -> None:
    assert "training" in drawn(
        [Epoch(1, math.inf, 0.5, *UNKNOWN), Epoch(2, math.nan, 0.5, *UNKNOWN)], 1, tmp_path
    )


def test_epochs_are_whole_numbers_even_if_there_is_one(tmp_path: Path) -> None:
    texts = drawn(THREE[:1], 1, tmp_path)
    assert texts.count("1") == 2


def test_a_spike_does_not_flatten_the_rest(tmp_path: Path) -> None:
    spike = [*THREE * 4, Epoch(13, 0.3, 0.9, 50.0, 0.5)]
    assert "loss (log scale)" in drawn(spike, 2, tmp_path)
    assert "loss (log scale)" not in drawn(spike[:-1], 2, tmp_path)


def test_a_png_is_written(tmp_path: Path) -> None:
    draw_curves(THREE * 20, "long", 2, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert [file.name for file in tmp_path.iterdir()] == ["curves.png"]


def test_other_formats_and_no_epochs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        draw_curves(THREE, "three", 2, tmp_path / "curves.txt")
    with pytest.raises(ValueError, match="no epochs"):
        draw_curves([], "none", None, tmp_path / "curves.png")
    assert not any(tmp_path.iterdir())
