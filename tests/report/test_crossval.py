"""The figure of a cross-validation shows the numbers of its result, and no text hides another."""

import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path
from typing import Any

import finished_crossvals
import matplotlib as mpl
import pytest
from finished_crossvals import fold_result
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.report import crossval
from ihgnn_cli.report.crossval import draw_folds
from ihgnn_cli.studies.crossval.result import CrossvalResult, RuleResult
from ihgnn_cli.studies.crossval.summary import FoldResult
from ihgnn_cli.studies.paper import PaperAccuracy

PAPER = PaperAccuracy(Variant.FULL, 0.899, 0.06)
OF_ABLATION = PaperAccuracy(Variant.NO_INTEGRATION, 0.883, 0.052)
RULES = tuple(
    RuleResult(key, "", honest, mean, 0.05, None, None, None)
    for key, honest, mean in (
        ("nested", True, 0.71),
        ("common-validation", True, 0.72),
        ("authors", False, 0.73),
        ("common-test-epoch", False, 0.74),
    )
)


def fold(number: int, validation: float | None, *tests: float) -> FoldResult:
    return fold_result(number, *tests, validation=validation)


def result(**changes: Any) -> CrossvalResult:
    known = {"dataset": "MUTAG", "majority_share": 0.665, "test_mean": 0.7, "test_std": 0.1}
    folds = (fold(0, 0.9, 0.5, 0.7), fold(1, 0.95, 0.8, 0.8))
    return made({**known, "folds": folds, **changes})


def made(values: dict[str, Any]) -> CrossvalResult:
    return finished_crossvals.result(**values)


def drawn(monkeypatch: pytest.MonkeyPatch, **changes: object) -> Figure:
    """The figure as it would be saved."""
    found: list[Figure] = []
    with monkeypatch.context() as patch:
        patch.setattr(crossval, "save_figure", lambda figure, path: found.append(figure))
        draw_folds(result(**changes), Path("folds.png"))
    return found[0]


def heights(panel: Axes) -> list[list[float]]:
    """Of each series of points and of each line through the panel."""
    return [pytest.approx(list(line.get_ydata()), abs=1e-9) for line in panel.lines]


def texts_of(figure: Figure) -> list[Text]:
    """All that there is to read."""
    found = [figure._suptitle, *figure.legends[0].get_texts()]  # the title has no public name
    for panel in figure.axes:
        found += [panel.title, panel.xaxis.label, panel.yaxis.label, *panel.texts]
        for axis in (panel.xaxis, panel.yaxis):
            low, high = sorted(axis.get_view_interval())  # ticks beyond are not drawn
            ticks = [each for each in axis.get_major_ticks() if low <= each.get_loc() <= high]
            found += [each.label1 for each in ticks]
    return [each for each in found if each.get_text()]


def names(figure: Figure) -> list[str]:
    return [each.get_text() for each in texts_of(figure)]


def test_a_fold_shows_its_runs_their_mean_and_its_validation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (panel,) = drawn(monkeypatch).axes
    assert heights(panel) == [[50, 70, 80, 80], [90, 95], [70, 70], [66.5, 66.5]]
    means = panel.collections[0].get_segments()
    assert [segment[0][1] for segment in means] == pytest.approx([60, 80])
    runs, validation = panel.lines[0].get_xdata(), panel.lines[1].get_xdata()
    assert [round(float(each)) for each in runs] == [0, 0, 1, 1]
    assert [round(float(each)) for each in validation] == [0, 1]
    assert panel.lines[1].get_markerfacecolor() == "none"


def test_without_a_selection_there_is_no_validation_but_a_mean_prediction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folds = (fold(0, None, 0.5, 0.7), fold(1, None, 0.8, 0.8))
    figure = drawn(monkeypatch, folds=folds, snapshots=10)
    assert heights(figure.axes[0]) == [[50, 70, 80, 80], [70, 70], [66.5, 66.5]]
    assert "mean prediction per fold" in names(figure)


def test_the_mean_over_folds_has_a_band_of_a_standard_deviation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    figure = drawn(monkeypatch)
    (band,) = figure.axes[0].patches
    box = band.get_extents().transformed(figure.axes[0].transData.inverted())
    assert (box.y0, box.y1) == pytest.approx((60, 80))
    assert "test, mean ± std over folds: 70.0 ± 10.0 %" in names(figure)


def test_the_paper_is_a_dashed_line_and_the_majority_class_a_dotted_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    figure = drawn(monkeypatch, paper=PAPER)
    lines = {line.get_linestyle(): line.get_ydata()[0] for line in figure.axes[0].lines[2:]}
    assert lines == pytest.approx({"-": 70, "--": 89.9, ":": 66.5})
    assert {"paper, mean: 89.9 %", "majority class: 66.5 %"} <= set(names(figure))


def test_the_papers_number_for_an_ablation_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = drawn(monkeypatch, paper=OF_ABLATION, rules=RULES)
    assert "paper, mean, no-integration: 88.3 %" in names(figure)
    row = figure.axes[1].get_yticklabels()[-1].get_text()
    assert row == "paper, no-integration\n(chosen on test by\nthe authors' script)"


def test_where_the_paper_has_no_number_none_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any("paper" in name for name in names(drawn(monkeypatch, rules=RULES)))


def test_the_title_says_data_folds_and_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "MUTAG: 2 folds, 2 runs each" in names(drawn(monkeypatch))
    one = drawn(monkeypatch, folds=tuple(fold(number, 0.9, 0.8) for number in range(3)))
    assert "MUTAG: 3 folds, 1 run each" in names(one)


def test_rules_have_a_panel_of_their_own_with_the_result_first_and_the_paper_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert len(drawn(monkeypatch, paper=PAPER).axes) == 1
    figure = drawn(monkeypatch, paper=PAPER, rules=RULES)
    panel = figure.axes[1]
    shown = [each.get_text() for each in panel.texts]
    assert shown == [
        "70.0 ± 10.0",
        "71.0 ± 5.0",
        "72.0 ± 5.0",
        "73.0 ± 5.0",
        "74.0 ± 5.0",
        "89.9 ± 6.0",
    ]
    bars = [bar.get_children()[-1].get_segments()[0] for bar in panel.containers]
    assert bars[0].ravel().tolist() == pytest.approx([60, 0, 80, 0])
    assert bars[5].ravel().tolist() == pytest.approx([83.9, 5, 95.9, 5])
    assert panel.get_ylim()[0] > panel.get_ylim()[1]  # the first on top


def test_what_is_chosen_on_test_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = drawn(monkeypatch, paper=PAPER, rules=RULES).axes[1]
    shown = [" ".join(label.get_text().split()) for label in panel.get_yticklabels()]
    assert ["(chosen on test" in name for name in shown] == [False, False, False, True, True, True]
    assert shown[-1] == "paper (chosen on test by the authors' script)"
    colors = [text.get_color() for text in panel.texts]
    assert len(set(colors[:3])) == len(set(colors[3:])) == 1
    assert colors[0] != colors[3]


def test_a_choice_that_has_seen_test_graphs_as_validation_graphs_has_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    panel = drawn(monkeypatch, rules=RULES).axes[1]
    noted = [label.get_text().endswith("*") for label in panel.get_yticklabels()]
    assert noted == [False, False, True, False, False]
    assert "* test graphs of one fold are validation" in panel.get_xlabel()
    assert "*" not in drawn(monkeypatch, rules=RULES[:1]).axes[1].get_xlabel()


def test_a_rule_without_a_short_name_is_shown_by_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = RuleResult("another", "", True, 0.5, 0.1, None, None, None)
    panel = drawn(monkeypatch, rules=[rule]).axes[1]
    assert panel.get_yticklabels()[1].get_text() == "another"


@pytest.mark.parametrize("paper", [PAPER, OF_ABLATION])
@pytest.mark.parametrize("rules", [{}, {"rules": RULES}])
@pytest.mark.parametrize(
    ("folds", "name"), [(2, "MUTAG"), (10, "a_long_name_" * 8), (10, "A$LETTERS_" * 9), (50, "A")]
)
def test_no_text_leaves_the_figure_or_hides_another(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    rules: dict[str, object],
    folds: int,
    paper: PaperAccuracy,
) -> None:
    shown = tuple(fold(number, 1.0, 0.89, 0.94, 0.84) for number in range(folds))
    figure = drawn(monkeypatch, dataset=name, folds=shown, paper=paper, **rules)
    figure.draw_without_rendering()  # gives everything its place
    boxes = {text: text.get_window_extent() for text in texts_of(figure)}
    for text, box in boxes.items():
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, text
    overlapping = [
        (one.get_text(), other.get_text())
        for one, other in combinations(boxes, 2)
        if boxes[one].overlaps(boxes[other])
    ]
    assert not overlapping


def test_a_long_name_keeps_its_beginning_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    title = names(drawn(monkeypatch, dataset="begin" + "-" * 90 + "end"))[0]
    assert title.startswith("begin")
    assert "…" in title
    assert title.endswith("end: 2 folds, 2 runs each")


def test_dollar_signs_are_drawn_as_they_stand(tmp_path: Path) -> None:
    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_folds(result(dataset="$A and $B"), tmp_path / "folds.svg")
    texts = [each.text for each in ET.parse(tmp_path / "folds.svg").iter()]
    assert "$A and $B: 2 folds, 2 runs each" in texts


def test_a_png_is_written_and_other_formats_are_refused(tmp_path: Path) -> None:
    draw_folds(result(rules=RULES), tmp_path / "folds.png")
    assert (tmp_path / "folds.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        draw_folds(result(), tmp_path / "folds.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["folds.png"]
