"""The curves of a search: a line a trial, the best stands out, those given up end early."""

from pathlib import Path

import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from ihgnn_cli.report import tuning_curves
from ihgnn_cli.report.tuning import BEST_COLOR, TrialRow
from ihgnn_cli.report.tuning_curves import draw_curves


def trial(number: int, curve: tuple[float, ...], state: str = "complete") -> TrialRow:
    return TrialRow(
        number=number,
        state=state,
        accuracy=max(curve, default=None),
        loss=0.5,
        params={"lr": 0.1},
        curve=curve,
        best_epoch=1.0,
        seconds=1.0,
        tries=1,
        failure=None,
    )


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    made: list[Figure] = []

    def save(figure: Figure, path: Path) -> None:
        made.append(figure)

    monkeypatch.setattr(tuning_curves, "save_figure", save)
    return made


def test_a_line_is_the_best_up_to_each_epoch(drawn: list[Figure]) -> None:
    rows = [
        trial(0, (0.5, 0.75, 0.25, 1.0)),
        trial(1, (0.5, 0.25), "pruned"),
        trial(2, (), "failed"),
    ]
    draw_curves(rows, Path("curves.png"))
    (panel,) = drawn[0].axes
    best, pruned, end = panel.lines
    assert list(best.get_ydata()) == [50, 75, 75, 100]
    assert to_rgba(best.get_color()) == to_rgba(BEST_COLOR)
    assert list(pruned.get_xdata()) == [1, 2]
    assert list(end.get_xdata()) == [2]  # where it was given up
    assert "validation accuracy" in panel.get_ylabel()


def test_nothing_to_draw_is_said(drawn: list[Figure]) -> None:
    draw_curves([trial(0, (), "failed")], Path("curves.png"))
    (panel,) = drawn[0].axes
    assert [text.get_text() for text in panel.texts] == ["No trial came to an accuracy"]


def test_the_figure_is_written(tmp_path: Path) -> None:
    draw_curves([trial(0, (0.5, 1.0))], tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
