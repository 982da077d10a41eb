"""Curves: means with their bands, as figure, table and CSV."""

from itertools import combinations
from pathlib import Path

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from ihgnn_cli.errors import InputError
from ihgnn_cli.report import curves
from ihgnn_cli.report.curves import (
    Chart,
    Curve,
    Spread,
    curve_table,
    draw_chart,
    make_curve,
    write_points,
)
from ihgnn_cli.report.layout import Box

MUTAG = make_curve("MUTAG", [(4, [0.8, 0.9]), (1, [0.6, 0.8])], Spread.STD)
KKI = make_curve("KKI", [(1, [0.5, 0.4, 0.6])], Spread.RANGE)


def chart(*found: Curve, log2: bool = True, chance: float | None = None) -> Chart:
    band = Spread.STD.describe("2 seeds")
    return Chart(
        *("sensitivity", "By K", "K", "data set", band, found, "quick", "one run"),
        log2=log2,
        chance=chance,
    )


def drawn(monkeypatch: pytest.MonkeyPatch, what: Chart) -> Figure:
    found: list[Figure] = []
    with monkeypatch.context() as patch:
        patch.setattr(curves, "save_figure", lambda figure, path: found.append(figure))
        draw_chart(what, Path("a.png"))
    found[0].draw_without_rendering()
    return found[0]


def test_a_curve_is_sorted_by_x_with_a_standard_deviation_that_divides_by_n() -> None:
    assert MUTAG.x == (1, 4)
    assert MUTAG.mean == pytest.approx((0.7, 0.85))
    assert MUTAG.low == pytest.approx((0.6, 0.8))
    assert MUTAG.high == pytest.approx((0.8, 0.9))


def test_a_range_is_from_the_lowest_to_the_highest() -> None:
    assert (KKI.mean, KKI.low, KKI.high) == (pytest.approx((0.5,)), (0.4,), (0.6,))


def test_a_point_without_accuracies_is_refused() -> None:
    with pytest.raises(InputError, match="MUTAG has no accuracy at 8"):
        make_curve("MUTAG", [(8, [])], Spread.STD)
    with pytest.raises(ValueError, match="differ in length"):
        Curve("a", (1,), (0.5, 0.6), (0.5,), (0.5,))


def test_the_table_has_one_row_per_line_and_one_column_per_value() -> None:
    found = curve_table(chart(MUTAG, KKI, chance=0.5))
    assert (found.corner, found.heads) == ("data set / K", ("1", "4"))
    assert [row.boxes for row in found.rows] == [
        (Box("70.0", "60.0 to 80.0"), Box("85.0", "80.0 to 90.0")),
        (Box("50.0", "40.0 to 60.0"), Box("–")),
    ]
    assert found.legend == (
        "Test accuracy in %, mean ± standard deviation over 2 seeds (dividing by n); the highest "
        "mean of a row is bold. Random guessing gives 50.0 %."
    )
    assert (found.budget, found.statement) == ("quick", "one run")


def test_csv_has_one_row_per_point_in_percent(tmp_path: Path) -> None:
    write_points(tmp_path / "points.csv", chart(MUTAG, KKI))
    told = "mean ± standard deviation over 2 seeds (dividing by n)"
    assert (tmp_path / "points.csv").read_text(encoding="utf-8").splitlines() == [
        "data_set,K,mean,low,high,band,budget",
        f"MUTAG,1,70.0,60.0,80.0,{told},quick",
        f"MUTAG,4,85.0,80.0,90.0,{told},quick",
        f"KKI,1,50.0,40.0,60.0,{told},quick",
    ]


def test_the_figure_has_lines_bands_and_ticks_that_double(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(monkeypatch, chart(MUTAG, KKI))
    (panel,) = figure.axes
    assert [list(line.get_ydata()) for line in panel.lines] == [pytest.approx([70, 85]), [50]]
    band = panel.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == pytest.approx((60, 90))
    assert panel.get_xscale() == "log"
    assert [each.get_text() for each in panel.get_xticklabels()] == ["1", "4"]
    assert panel.get_title().startswith("mean ± standard deviation over 2 seeds")
    assert panel.get_title().endswith("budget quick")


def test_guessing_is_a_dotted_line(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(monkeypatch, chart(MUTAG, log2=False, chance=0.5))
    (panel,) = figure.axes
    (dotted,) = (line for line in panel.lines if line.get_linestyle() == ":")
    assert list(dotted.get_ydata()) == [50, 50]
    assert panel.get_xscale() == "linear"
    assert figure.legends[0].get_texts()[-1].get_text() == "random guessing: 50.0 %"


def test_nine_lines_differ_in_colour_and_mark_and_the_legend_follows_their_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [
        make_curve(f"data set {number}", [(k, [0.4 + number / 20]) for k in (1, 8, 64)], Spread.STD)
        for number in range(9)
    ]
    figure = drawn(monkeypatch, chart(*found))
    (panel,) = figure.axes
    assert len({to_hex(line.get_color()) for line in panel.lines}) == 9
    assert len({line.get_marker() for line in panel.lines}) == 9
    texts = figure.legends[0].get_texts()
    assert [each.get_text() for each in texts] == [f"data set {n}" for n in range(8, -1, -1)]
    boxes = [each.get_window_extent() for each in (*texts, panel.title, figure._suptitle)]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert panel.get_window_extent().x1 <= min(box.x0 for box in boxes[:9])


def test_without_points_nothing_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no result to draw"):
        draw_chart(chart(), tmp_path / "a.png")
    assert not any(tmp_path.iterdir())
