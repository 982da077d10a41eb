"""The critical-difference diagram: every name can be read, bars join what does not differ."""

from itertools import combinations
from pathlib import Path

import pytest
from compared import cell
from matplotlib.figure import Figure

from ihgnn_cli.report import critical_difference
from ihgnn_cli.report.critical_difference import draw_ranks
from ihgnn_cli.studies.comparison import compare
from ihgnn_cli.studies.paper import table1_models
from ihgnn_cli.studies.ranks import Ranks, rank_methods


def ranks(count: int, datasets: int = 9) -> Ranks:
    """The last is the best on every data set; the first ones change places."""
    models = table1_models()[-count:]
    cells = [
        cell(
            model,
            *[0.5 + 0.01 * (place if place > count // 2 else (place * data) % 3)] * 2,
            dataset=f"D{data}",
        )
        for data in range(datasets)
        for place, model in enumerate(models)
    ]
    found = rank_methods(compare(cells))
    assert isinstance(found, Ranks)
    return found


def drawn(found: Ranks, path: Path, monkeypatch: pytest.MonkeyPatch) -> Figure:
    kept: list[Figure] = []
    save = critical_difference.save_figure
    monkeypatch.setattr(
        critical_difference,
        "save_figure",
        lambda figure, where: (kept.append(figure), save(figure, where)),
    )
    draw_ranks(found, path)
    kept[0].canvas.draw()  # at its own resolution, not that of the file
    return kept[0]


@pytest.mark.parametrize("count", [3, 5, 15])
def test_names_and_numbers_do_not_overlap_and_are_inside(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ranks(count)
    figure = drawn(found, tmp_path / "ranks.png", monkeypatch)
    (panel,) = figure.axes
    texts = [text for text in panel.texts if text.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    names = " ".join(text.get_text() for text in texts)
    assert all(title in names for title in found.titles)
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    for box in boxes:
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_the_critical_difference_is_drawn_only_if_friedmans_test_rejects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ranks(15)
    assert found.p < 0.05
    figure = drawn(found, tmp_path / "ranks.svg", monkeypatch)
    assert any("critical difference 7.15" in text.get_text() for text in figure.axes[0].texts)
    same = rank_methods(
        compare([cell(m, 0.5, 0.5, dataset=f"D{d}") for d in range(3) for m in table1_models()])
    )
    assert isinstance(same, Ranks)
    figure = drawn(same, tmp_path / "same.svg", monkeypatch)
    assert not any("critical" in text.get_text() for text in figure.axes[0].texts)
