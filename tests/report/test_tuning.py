"""The figures and the table of a search show its trials, and no text hides another."""

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.text import Text

from ihgnn_cli.errors import InputError
from ihgnn_cli.report import tuning, tuning_settings
from ihgnn_cli.report.tuning import (
    BEST_COLOR,
    TrialRow,
    best_row,
    draw_history,
    draw_importance,
    write_trials,
)
from ihgnn_cli.report.tuning_scales import make_scale, shown
from ihgnn_cli.report.tuning_settings import draw_parallel, draw_slices


def trial(number: int, accuracy: float | None, state: str = "complete", **params: Any) -> TrialRow:
    failed = state == "failed"
    return TrialRow(
        number=number,
        state=state,
        accuracy=accuracy,
        loss=None if accuracy is None else 1 - accuracy,
        params=params,
        curve=(),
        best_epoch=None if accuracy is None else 3.5,
        seconds=None if accuracy is None else 1.25,
        tries=1,
        failure="the loss is no number" if failed else None,
    )


FIVE = [
    trial(0, 0.70, lr=0.0001, layers=2, variant="full"),
    trial(1, 0.80, lr=0.001, layers=3, variant="no-concat"),
    trial(2, 0.60, "pruned", lr=0.01, layers=2, variant="full"),
    trial(3, None, "failed", lr=0.01, layers=3, variant="full"),
    trial(5, 0.75, lr=0.002, layers=3, variant="no-concat"),
]


def search(trials: int, **options: Any) -> list[TrialRow]:
    """A search as it might be, the same each time."""
    random = np.random.default_rng(trials)
    states = options.get("states", ["complete"] * 7 + ["pruned"] * 2 + ["failed"])
    words = options.get("words", ["full", "no-concat", "no-attention-at-all"])
    rows = []
    for number in range(trials):
        state = str(random.choice(states))
        accuracy = float(options.get("accuracy", random.uniform(0.5, 0.95)))
        params = {
            "lr": float(10 ** random.uniform(-4, -2)),
            "dropout": float(random.uniform(0, 0.7)),
            "batch_size": int(random.choice([32, 64, 128])),
            "width": int(random.integers(8, 65)),
            "variant": str(random.choice(words)),
            "readout_relu": bool(random.random() < 0.5),
        }
        params = {name: params[name] for name in options.get("names", params)}
        rows.append(trial(number, None if state == "failed" else accuracy, state, **params))
    return rows


SEARCHES = {
    "one trial": search(1, states=["complete"]),
    "many": search(500),
    "usual": search(40),
    "all failed": search(8, states=["failed"]),
    "all pruned": search(8, states=["pruned"]),
    "one setting": search(20, names=["lr"]),
    "words": search(30, names=["variant"], words=["a$" * 40, "b$" * 40, "a_long_word_" * 9]),
    "all alike": search(12, accuracy=0.75),
    "nothing": [],
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Figure]:
    """Draws a figure as it would be saved."""
    found: list[Figure] = []
    for module in (tuning, tuning_settings):
        monkeypatch.setattr(module, "save_figure", lambda figure, path: found.append(figure))

    def draw(function: Callable[..., None], content: object, *more: object) -> Figure:
        function(content, Path("figure.png"), *more)
        return found[-1]

    return draw


def texts_of(figure: Figure) -> list[Text]:
    """All that there is to read."""
    found = [figure._suptitle] if figure._suptitle else []  # it has no public name
    found += [text for legend in figure.legends for text in legend.get_texts()]
    for panel in figure.axes:
        found += panel.texts
        if not panel.axison:
            continue
        found += [panel.title, panel.xaxis.label, panel.yaxis.label]
        for axis in (panel.xaxis, panel.yaxis):
            low, high = sorted(axis.get_view_interval())  # ticks beyond are not drawn
            ticks = [each for each in axis.get_major_ticks() if low <= each.get_loc() <= high]
            found += [each.label1 for each in ticks if each.label1.get_visible()]
            found += [each.label2 for each in ticks if each.label2.get_visible()]
    return [each for each in found if each.get_text()]


def names(figure: Figure) -> list[str]:
    return [each.get_text() for each in texts_of(figure)]


def points(panel: Axes, marker: str) -> list[tuple[float, float]]:
    (line,) = [line for line in panel.lines if line.get_marker() == marker]
    return [(float(x), pytest.approx(float(y))) for x, y in line.get_xydata()]


def settings(figure: Figure) -> list[Axes]:
    """The panels but the colour bar."""
    return [panel for panel in figure.axes if panel.axison and panel.get_label() != "<colorbar>"]


def lines_of(panel: Axes) -> list[Any]:
    """The trials of parallel axes, from behind to before."""
    return [line for line in panel.lines if len(line.get_xdata()) == 4]


def test_the_best_is_complete_and_of_equals_the_one_with_less_loss_then_the_earlier() -> None:
    assert best_row(FIVE) == FIVE[1]
    assert best_row(FIVE[2:4]) is None
    ties = [replace(trial(at, 0.8), loss=loss) for at, loss in enumerate([math.nan, 0.5, 0.4, 0.4])]
    assert best_row([trial(9, 0.9, "pruned"), *ties]) == ties[2]


def test_history_shows_each_trial_as_what_it_became(drawn: Callable[..., Figure]) -> None:
    figure = drawn(draw_history, FIVE)
    (panel,) = figure.axes
    assert points(panel, "o") == [(0, 70), (1, 80), (5, 75)]
    assert points(panel, "v") == [(2, 60)]
    assert [x for x, _ in points(panel, "x")] == [3]
    assert points(panel, "*") == [(1, 80)]
    assert panel.get_title() == "Trials: 3 complete, 1 pruned, 1 failed"


def test_failed_trials_stand_below_all_others(drawn: Callable[..., Figure]) -> None:
    figure = drawn(draw_history, FIVE)
    (panel,) = figure.axes
    figure.draw_without_rendering()
    (cross,) = [line for line in panel.lines if line.get_marker() == "x"]
    height = cross.get_window_extent().y0
    lowest = panel.transData.transform((0, 60))[1]
    assert panel.bbox.y0 < height < lowest


def test_the_best_so_far_never_falls_and_goes_on_to_the_last_trial(
    drawn: Callable[..., Figure],
) -> None:
    (panel,) = drawn(draw_history, [*FIVE, trial(7, None, "running")]).axes
    (line,) = [line for line in panel.lines if line.get_drawstyle() == "steps-post"]
    assert line.get_xdata().tolist() == [0, 1, 5, 7]
    assert line.get_ydata().tolist() == pytest.approx([70, 80, 80, 80])


def test_pruned_trials_never_are_the_best_so_far(drawn: Callable[..., Figure]) -> None:
    (panel,) = drawn(draw_history, [trial(0, 0.9, "pruned"), trial(1, 0.5)]).axes
    (line,) = [line for line in panel.lines if line.get_drawstyle() == "steps-post"]
    assert line.get_ydata().tolist() == pytest.approx([50, 50])


def test_parallel_axes_put_each_value_at_its_place(drawn: Callable[..., Figure]) -> None:
    figure = drawn(draw_parallel, FIVE, {"lr"})
    panel = figure.axes[0]
    shown_lines = lines_of(panel)
    assert len(shown_lines) == 4  # the failed one has no accuracy
    best = shown_lines[-1].get_ydata()
    assert best[0] == pytest.approx(0.5)  # half-way between 0.0001 and 0.01, by scale
    assert best[1] == pytest.approx(0.75, abs=0.06)  # the second of 2, beside the others there
    assert best[2] == pytest.approx(0.75, abs=0.06)
    assert best[3] == 1
    assert {"lr", "layers", "variant", "0.001", "2", "3", "full", "no-concat"} <= set(names(figure))


def test_the_best_line_is_before_all_others_and_pruned_ones_are_faint_behind(
    drawn: Callable[..., Figure],
) -> None:
    figure = drawn(draw_parallel, FIVE, {"lr"})
    pruned, *others, best = lines_of(figure.axes[0])
    assert pruned.get_ydata()[-1] == 0
    assert all(pruned.get_alpha() < 0.5 * line.get_alpha() for line in [*others, best])
    assert to_rgba(best.get_color()) == to_rgba(BEST_COLOR)
    assert best.get_linewidth() > 2 * max(line.get_linewidth() for line in others)
    assert "the best: 80.0 % (trial 1)" in names(figure)


def test_lines_have_the_colour_of_their_accuracy(drawn: Callable[..., Figure]) -> None:
    figure = drawn(draw_parallel, FIVE, {"lr"})
    bar = figure.axes[1]
    assert bar.get_ylabel() == "validation accuracy in %"
    assert bar.get_ylim() == pytest.approx((60, 80))
    key = figure.axes[0].collections[0]
    for line, percent in zip(lines_of(figure.axes[0])[:-1], (60, 70, 75), strict=True):
        assert to_rgba(line.get_color()) == pytest.approx(key.to_rgba(np.array(percent)))


def test_a_setting_that_a_trial_lacks_breaks_its_line(drawn: Callable[..., Figure]) -> None:
    rows = [*FIVE, trial(6, 0.7, lr=0.001, variant="full")]
    lines = lines_of(drawn(draw_parallel, rows, {"lr"}).axes[0])
    assert sum(math.isnan(line.get_ydata()[1]) for line in lines) == 1


def test_slices_have_a_panel_a_setting_with_its_scale(drawn: Callable[..., Figure]) -> None:
    panels = settings(drawn(draw_slices, FIVE, {"lr"}))
    assert [panel.get_xlabel() for panel in panels] == ["lr", "layers", "variant"]
    assert [panel.get_xscale() for panel in panels] == ["log", "linear", "linear"]
    assert panels[0].get_ylabel() == "validation accuracy in %"
    assert len({panel.get_ylim() for panel in panels}) == 1
    words = [text.get_text() for text in panels[2].get_xticklabels()]
    assert words == ["full", "no-concat"]


def test_slices_show_the_accuracy_at_the_value_and_the_number_as_colour(
    drawn: Callable[..., Figure],
) -> None:
    panels = settings(drawn(draw_slices, FIVE, {"lr"}))
    pruned, complete = panels[0].collections[-2:]
    assert pruned.get_offsets().tolist() == [[0.01, 60]]
    assert complete.get_offsets().tolist() == [
        [0.0001, pytest.approx(70)],
        [0.001, pytest.approx(80)],
        [0.002, pytest.approx(75)],
    ]
    assert complete.get_array().tolist() == [0, 1, 5]
    assert pruned.get_clim() == complete.get_clim() == (0, 5)


def test_points_of_one_word_lie_apart_but_nearer_to_it_than_to_the_next(
    drawn: Callable[..., Figure],
) -> None:
    rows = search(200, names=["variant"])
    figures = [drawn(draw_slices, rows, ()) for _ in range(2)]
    first, again = ([dots.get_offsets() for dots in each.axes[0].collections] for each in figures)
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    places = np.concatenate(first)[:, 0]
    assert np.abs(places - places.round()).max() < 0.3
    assert len(np.unique(places)) > 100


def test_importance_is_sorted_and_told_in_numbers(drawn: Callable[..., Figure]) -> None:
    (panel,) = drawn(draw_importance, {"layers": 0.25, "lr": 0.7, "dropout": 0.05}).axes
    assert [bar.get_width() for bar in panel.patches] == [0.7, 0.25, 0.05]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["lr", "layers", "dropout"]
    assert [text.get_text() for text in panel.texts] == ["0.70", "0.25", "0.05"]
    assert panel.get_ylim()[0] > panel.get_ylim()[1]  # the first on top


def test_without_importances_the_figure_says_why(drawn: Callable[..., Figure]) -> None:
    figure = drawn(draw_importance, {})
    assert "Too few trials to tell" in names(figure)
    assert not figure.axes[0].patches


@pytest.mark.parametrize("rows", [SEARCHES["all failed"], []])
def test_without_accuracies_the_figures_say_so(
    drawn: Callable[..., Figure], rows: Sequence[TrialRow]
) -> None:
    for figure in (
        drawn(draw_history, rows),
        drawn(draw_parallel, rows, ()),
        drawn(draw_slices, rows, ()),
    ):
        assert "No trial came to an accuracy" in names(figure)


@pytest.mark.parametrize("which", SEARCHES)
@pytest.mark.parametrize("function", [draw_history, draw_parallel, draw_slices])
def test_no_text_leaves_the_figure_or_hides_another(
    drawn: Callable[..., Figure], function: Callable[..., None], which: str
) -> None:
    log = () if function is draw_history else ({"lr"},)
    figure = drawn(function, SEARCHES[which], *log)
    figure.draw_without_rendering()  # gives everything its place
    boxes = {text: text.get_window_extent() for text in texts_of(figure)}
    for text, box in boxes.items():
        assert figure.bbox.x0 - 1 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1, text
        assert figure.bbox.y0 - 1 <= box.y0 <= box.y1 <= figure.bbox.y1 + 1, text
    slanted = {text for text in boxes if text.get_rotation() not in (0, 90)}  # boxes are too large
    overlapping = [
        (one.get_text(), other.get_text())
        for one, other in combinations(boxes, 2)
        if boxes[one].overlaps(boxes[other]) and not {one, other} <= slanted
    ]
    assert not overlapping
    assert any("validation accuracy" in name.lower() for name in names(figure))


def test_accuracies_that_are_all_alike_have_room_around_them(drawn: Callable[..., Figure]) -> None:
    low, high = drawn(draw_history, SEARCHES["all alike"]).axes[0].get_ylim()
    assert low <= 74
    assert high >= 76


def test_numbers_that_come_again_are_a_list_and_others_an_axis() -> None:
    assert make_scale([32, 128, 32, 64], log=False).listed
    assert not make_scale([0.1, 0.2, 0.35], log=False).listed
    assert not make_scale([*range(10), *range(10)], log=False).listed
    assert make_scale([True, False, None], log=False).ticks == [(0, "false"), (1, "true")]
    log = make_scale([0.01, 0.0001, 0.01], log=True)
    assert log.log
    assert log.ticks == [(0.0001, "0.0001"), (0.001, "0.001"), (0.01, "0.01")]
    assert not make_scale([0, 10, 20], log=True).log  # no logarithm of 0


def test_ticks_are_round_and_within_the_values() -> None:
    assert [told for _, told in make_scale([3, 9, 48], log=False).ticks] == ["10", "20", "30", "40"]
    assert [told for _, told in make_scale([0.003, 0.006], log=True).ticks] == ["0.003", "0.006"]
    assert [told for _, told in make_scale([1, 2, 3], log=False).ticks] == ["1", "2", "3"]


def test_a_long_word_keeps_its_beginning_and_its_end() -> None:
    assert shown("begin" + "-" * 50 + "end") == "begin---…----end"
    assert shown("no-concat") == "no-concat"


def test_the_table_has_a_row_a_trial_and_a_column_a_setting(tmp_path: Path) -> None:
    rows = [
        trial(0, 1 / 3, lr=0.1 + 0.2, variant='a,"b"\nc'),
        trial(1, None, "failed", lr=1e-5, readout_relu=True),
    ]
    write_trials(tmp_path / "trials.csv", rows)
    with (tmp_path / "trials.csv").open(encoding="utf-8", newline="") as stream:
        first, second = csv.DictReader(stream)
    assert list(first) == [
        *("trial", "state", "validation_accuracy", "validation_loss"),
        *("lr", "variant", "readout_relu", "best_epoch", "seconds", "tries", "failure"),
    ]
    assert float(first["validation_accuracy"]) == 1 / 3
    assert float(first["lr"]) == 0.1 + 0.2
    assert (first["variant"], first["readout_relu"]) == ('a,"b"\nc', "")
    assert second["readout_relu"] == "true"
    assert second["validation_accuracy"] == second["seconds"] == ""
    assert (second["state"], second["failure"]) == ("failed", "the loss is no number")


def test_a_png_is_written_and_other_formats_are_refused(tmp_path: Path) -> None:
    draw_history(FIVE, tmp_path / "history.png")
    draw_parallel(FIVE, tmp_path / "parallel.png", {"lr"})
    draw_slices(FIVE, tmp_path / "slices.png", {"lr"})
    draw_importance({"lr": 1.0}, tmp_path / "importance.png")
    assert len(list(tmp_path.iterdir())) == 4
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in tmp_path.iterdir())
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        draw_history(FIVE, tmp_path / "history.txt")
