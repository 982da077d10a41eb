"""The figure of a data set shows its numbers, the best on top, and no text hides another."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from compared import GIN, OURS, WORSE, cell
from matplotlib.figure import Figure

from ihgnn_cli.errors import InputError
from ihgnn_cli.report import comparison_figure
from ihgnn_cli.report.comparison_figure import draw_comparison
from ihgnn_cli.studies.comparison import Cell, ReferenceCell, compare, refused_cell
from ihgnn_cli.studies.paper import table1_models
from ihgnn_cli.studies.signal.references import MAJORITY

REFUSED = refused_cell("MUTAG", "ppgn", "does not fit: about 96 GB")


def drawn(monkeypatch: pytest.MonkeyPatch, cells: list[Cell]) -> Figure:
    found: list[Figure] = []
    with monkeypatch.context() as patch:
        patch.setattr(comparison_figure, "save_figure", lambda figure, path: found.append(figure))
        draw_comparison(compare(cells), "MUTAG", Path("a.png"), budget="quick")
    found[0].draw_without_rendering()
    return found[0]


def test_methods_are_sorted_by_ours_and_those_not_run_come_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (panel,) = drawn(monkeypatch, [REFUSED, WORSE, GIN, OURS]).axes
    assert [each.get_text() for each in panel.get_yticklabels()] == ["IHGNN", "GIN", "ACM", "PPGNs"]
    weights = [each.get_fontweight() for each in panel.get_yticklabels()]
    assert weights == ["bold", "normal", "normal", "normal"]
    bottom, top = panel.get_ylim()
    assert bottom > top


def test_ours_is_a_dot_with_a_bar_and_the_papers_mean_a_diamond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (panel,) = drawn(monkeypatch, [GIN, OURS, REFUSED]).axes
    points = {
        mark: [
            float(line.get_xdata()[0])
            for line in panel.lines
            if line.get_marker() == mark and len(line.get_xdata())
        ]
        for mark in ("o", "D", "None")
    }
    assert points["o"] == pytest.approx([84, 82])
    assert points["D"] == pytest.approx([89.9, 83.4, 86.7])
    assert points["None"] == pytest.approx([60])  # the majority class
    (first, _) = (each.get_segments()[0] for each in panel.collections)
    assert [point[0] for point in first] == pytest.approx(
        [84 - 100 * OURS.std, 84 + 100 * OURS.std]
    )  # type: ignore[operator]


def test_the_best_classifier_without_a_network_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = (ReferenceCell("majority class", 0.6, 0.0), ReferenceCell("forest", 0.88, 0.05))
    cells = [replace(each, references=listed, best_reference="forest") for each in (GIN, OURS)]
    figure = drawn(monkeypatch, cells)
    lines = [each for each in figure.axes[0].lines if each.get_linestyle() == "-."]
    assert [each.get_xdata()[0] for each in lines] == [88]
    assert "forest: 88.0 %" in [each.get_text() for each in figure.legends[0].get_texts()]


def test_the_majority_class_is_drawn_once_though_folds_differ_in_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = (ReferenceCell(MAJORITY, 0.601, 0.01), ReferenceCell("forest", 0.5, 0.05))
    cells = [replace(each, references=listed, best_reference=MAJORITY) for each in (GIN, OURS)]
    figure = drawn(monkeypatch, cells)
    assert not [each for each in figure.axes[0].lines if each.get_linestyle() == "-."]
    assert "majority class: 60.0 %" in [each.get_text() for each in figure.legends[0].get_texts()]


def test_numbers_and_reasons_stand_beside_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(monkeypatch, [WORSE, OURS, REFUSED])
    shown = [each.get_text() for each in figure.axes[0].texts]
    assert shown == ["84.0 ± 5.8", "59.6 ± 2.4*", "does not fit: about 96 GB"]
    legend = {each.get_text() for each in figure.legends[0].get_texts()}
    assert legend == {
        "ours, mean ± std over folds",
        "paper, mean",
        "differs from IHGNN (Holm's p < 0.05)",
        "majority class: 60.0 %",
    }
    assert figure.axes[0].get_title() == "MUTAG (budget quick)"


def test_no_text_hides_another_with_all_fifteen_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "does not fit: about 96 GB of memory for one batch, and the machine has 16 GB"
    cells = [cell(key, 0.7, 0.8 + place / 100) for place, key in enumerate(table1_models()[1:])]
    figure = drawn(monkeypatch, [*cells, refused_cell("MUTAG", "ppgn", long)])
    (panel,) = figure.axes
    texts = [*panel.texts, *panel.get_yticklabels(), *figure.legends[0].get_texts(), panel.title]
    boxes = [each.get_window_extent() for each in texts]
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    width, height = figure.bbox.size
    for box in boxes:
        assert box.x0 >= 0
        assert box.x1 <= width + 1
        assert box.y0 >= 0
        assert box.y1 <= height


def test_without_results_nothing_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no result on DD"):
        draw_comparison(compare([OURS]), "DD", tmp_path / "a.png", budget="quick")


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf"])
def test_the_figure_is_written_in_the_format_of_its_name(tmp_path: Path, name: str) -> None:
    draw_comparison(compare([OURS, GIN]), "MUTAG", tmp_path / name, budget="quick")
    assert (tmp_path / name).stat().st_size > 1000
