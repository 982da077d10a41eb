"""The figures of a search, as Optuna draws them."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from ihgnn_cli.report import tuning_figures
from ihgnn_cli.report.tuning_figures import draw_trials
from ihgnn_cli.studies.tuning.rows import TrialRow

WORDS = ("full", "a$" * 20, "a_long_word_" * 4)
SPACE = {
    "lr": FloatDistribution(1e-4, 1e-2, log=True),
    "width": IntDistribution(8, 64),
    "batch_size": CategoricalDistribution((32, 64, 128)),
    "variant": CategoricalDistribution(WORDS),
    "readout_relu": CategoricalDistribution((False, True)),
}
ALWAYS = ["curves.png", "history.png", "parallel.png", "slices.png"]


def trial(number: int, *curve: float, state: TrialState = TrialState.COMPLETE) -> TrialRow:
    random = np.random.default_rng(number)
    params: dict[str, Any] = {
        "lr": float(10 ** random.uniform(-4, -2)),
        "width": int(random.integers(8, 65)),
        "batch_size": int(random.choice([32, 64, 128])),
        "variant": WORDS[number % 3],
        "readout_relu": bool(random.random() < 0.5),
    }
    accuracy = max(curve, default=None)
    return TrialRow(number, state, params, SPACE, 1, None, accuracy, 0.5, 1.0, 1.0, curve)


def failed(number: int) -> TrialRow:
    return TrialRow(number, TrialState.FAIL, {"lr": 0.1}, {}, 2, "the loss is no number")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Figure]:
    """The figures by file name, drawn but not written."""
    found: dict[str, Figure] = {}
    monkeypatch.setattr(
        tuning_figures, "save_figure", lambda figure, path: found.update({path.name: figure})
    )
    return found


def test_the_history_shows_complete_trials_at_their_numbers(drawn: dict[str, Figure]) -> None:
    pruned = trial(2, 0.9, state=TrialState.PRUNED)
    # 1 is missing: a repeated try of another trial.
    draw_trials([trial(0, 0.7), pruned, failed(3), trial(4, 0.8)], Path())
    axes = drawn["history.png"].axes[0]
    points = [tuple(point) for each in axes.collections for point in each.get_offsets()]
    assert points == [(0, pytest.approx(70)), (4, pytest.approx(80))]
    assert axes.get_ylabel() == "Validation accuracy (%)"


def test_a_curve_is_the_best_accuracy_up_to_each_epoch(drawn: dict[str, Figure]) -> None:
    pruned = trial(1, 0.5, 0.25, state=TrialState.PRUNED)
    draw_trials([trial(0, 0.5, 0.75, 0.25, 1.0), pruned, failed(2)], Path())
    whole, stopped = drawn["curves.png"].axes[0].lines
    assert whole.get_xydata().tolist() == [[1, 50], [2, 75], [3, 75], [4, 100]]
    assert stopped.get_xydata().tolist() == [[1, 50], [2, 50]]


def test_many_curves_have_no_legend(drawn: dict[str, Figure]) -> None:
    draw_trials([trial(number, 0.5) for number in range(20)], Path())
    assert drawn["curves.png"].axes[0].get_legend() is not None
    draw_trials([trial(number, 0.5) for number in range(21)], Path())
    assert drawn["curves.png"].axes[0].get_legend() is None


def test_no_trial_is_drawn_in_white(drawn: dict[str, Figure]) -> None:
    draw_trials([trial(number, 0.5 + number / 10) for number in range(4)], Path())
    figure = drawn["parallel.png"]
    (lines,) = figure.axes[0].collections
    figure.canvas.draw()
    *_, last = sorted(np.asarray(lines.get_colors())[:, :3].sum(axis=1))
    assert last < 2.4  # white is 3.0


def test_slices_have_one_panel_per_setting_and_the_scale_of_its_range(
    drawn: dict[str, Figure],
) -> None:
    draw_trials([trial(number, 0.5 + number / 10) for number in range(4)], Path())
    panels = {axes.get_xlabel(): axes for axes in drawn["slices.png"].axes}
    assert set(SPACE) <= set(panels)
    assert panels["lr"].get_xscale() == "log"
    assert panels["width"].get_xscale() == "linear"


def test_the_setting_that_decides_is_the_most_important(drawn: dict[str, Figure]) -> None:
    rows = [trial(number) for number in range(12)]
    by_width = [
        TrialRow(**{**vars(row), "accuracy": row.params["width"] / 100, "curve": ()})
        for row in rows
    ]
    draw_trials(by_width, Path())
    axes = drawn["importance.png"].axes[0]
    widths = {
        label.get_text(): bar.get_width()
        for label, bar in zip(axes.get_yticklabels(), axes.patches, strict=True)
    }
    assert max(widths, key=lambda name: widths[name]) == "width"


@pytest.mark.parametrize(
    ("rows", "important"),
    [
        pytest.param([trial(0, 0.5)], False, id="one trial"),
        pytest.param([trial(number, 0.5) for number in range(9)], False, id="equal accuracies"),
        pytest.param([trial(number, number / 4) for number in range(4)], False, id="four trials"),
        pytest.param([trial(number, number / 5) for number in range(5)], True, id="five trials"),
    ],
)
def test_importances_need_five_trials_that_differ(
    tmp_path: Path, rows: list[TrialRow], important: bool
) -> None:
    figures = draw_trials(rows, tmp_path)
    names = sorted(path.name for path in figures.values())
    assert names == sorted([*ALWAYS, *(["importance.png"] if important else [])])
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures.values())


def test_drawing_leaves_no_figure_and_no_style_behind(tmp_path: Path) -> None:
    before = mpl.rcParams["axes.facecolor"]
    draw_trials([trial(number, number / 5) for number in range(5)], tmp_path)
    assert plt.get_fignums() == []
    assert mpl.rcParams["axes.facecolor"] == before
