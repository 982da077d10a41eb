"""Table, figures and page of a search: complete, self-contained, safe against markup."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import optuna
import pytest
from matplotlib.figure import Figure
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from ihgnn_cli.report import tuning_figures
from ihgnn_cli.report.tuning import write_report, write_trials
from ihgnn_cli.report.tuning_figures import draw_study
from ihgnn_cli.studies.tuning.rows import TrialRow
from ihgnn_cli.studies.tuning.storage import quiet_optuna

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>&amp;'
PARAMS = {"lr": 0.00123456, "layers": 3, "readout_relu": True}
ROW = TrialRow(0, "complete", PARAMS, 1, None, 0.8125, 0.5, 12.5, 3.14159)
LOST = TrialRow(3, "failed", {"lr": 0.1, "variant": EVIL}, 3, EVIL)
SPACE = {
    "lr": FloatDistribution(1e-4, 1e-2, log=True),
    "width": IntDistribution(8, 64),
    "variant": CategoricalDistribution(("full", "no-concat")),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with quiet_optuna():
        yield


def result(**changes: Any) -> dict[str, Any]:
    test = {"accuracy": 0.8, "graphs": 19, "balanced_accuracy": 0.75, "roc_auc": 0.9}
    return {
        "dataset": "MUTAG",
        "best": {"trial": 0, "params": PARAMS, "validation_accuracy": 0.8125},
        "final": {"test": test, "best_epoch": 12, "snapshots": [], "seeds": [0]},
        "trials": {"asked": 2, "complete": 1, "failed": 1},
        "chosen_by": "validation accuracy",
        "search": {"sampler": "tpe", "pruner": "median", "data_sha256": "abc"},
        "storage": "postgresql://me:***@host/db",
        "provenance": {"command": EVIL},
        "finished": "2026-01-01",
        **changes,
    }


def test_the_table_has_every_trial_with_empty_cells_for_what_is_unknown(tmp_path: Path) -> None:
    write_trials(tmp_path / "trials.csv", [ROW, LOST])
    with (tmp_path / "trials.csv").open(encoding="utf-8", newline="") as stream:
        first, last = csv.DictReader(stream)
    assert (first["validation_accuracy"], first["readout_relu"], first["variant"]) == (
        "0.8125",
        "true",
        "",
    )
    assert (last["state"], last["validation_loss"], last["best_epoch"]) == ("failed", "", "")
    assert (last["tries"], last["failure"]) == ("3", EVIL)


def test_the_page_is_self_contained_and_escapes_what_it_shows(tmp_path: Path) -> None:
    plt.switch_backend("agg")
    plt.figure().savefig(tmp_path / "history.png")
    plt.close()
    figures = {EVIL: tmp_path / "history.png"}
    write_report([ROW, LOST], result(dataset=EVIL), figures, tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert not re.search(r"""(src|href)=["'](?!data:)""", page)  # nothing is fetched
    for text in ("81.25 %", "0.00123", "12.5", "complete, best", "75.0%; 0.900", "postgresql://me"):
        assert text in page, text


def study(accuracies: list[float | None]) -> optuna.Study:
    found, random = optuna.create_study(direction="maximize"), np.random.default_rng(0)
    for at, accuracy in enumerate(accuracies):
        params = {
            "lr": float(10 ** random.uniform(-4, -2)),
            "width": int(random.integers(8, 65)),
            "variant": ("full", "no-concat")[at % 2],
        }
        state = TrialState.FAIL if accuracy is None else TrialState.COMPLETE
        curve = {} if accuracy is None else {1: accuracy / 2, 2: accuracy}
        trial = optuna.create_trial(
            state=state,
            value=accuracy,
            params=params,
            distributions=SPACE,
            intermediate_values=curve,
        )
        found.add_trial(trial)
    return found


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Figure]:
    """The figures by file name, drawn but not written."""
    found: dict[str, Figure] = {}
    monkeypatch.setattr(
        tuning_figures, "save_figure", lambda figure, path: found.update({path.name: figure})
    )
    return found


def test_optuna_draws_the_complete_trials_in_percent(drawn: dict[str, Figure]) -> None:
    figures = draw_study(study([0.5, None, 0.75, 0.6, 0.7, 0.8]), Path())
    assert set(drawn) == {each.name for each in figures.values()}
    assert {"history.png", "curves.png", "parallel.png", "slices.png", "importance.png"} == set(
        drawn
    )
    axes = drawn["history.png"].axes[0]
    assert sorted(np.asarray(axes.collections[0].get_offsets())[:, 0]) == [0, 2, 3, 4, 5]
    assert float(axes.yaxis.get_major_formatter().format_pct(0.75, 1)) == 75  # without a sign
    assert len(drawn["curves.png"].axes[0].lines) == 5
    heights = np.asarray(drawn["slices.png"].axes[0].collections[0].get_offsets())[:, 1]
    assert sorted(heights) == pytest.approx([50, 60, 70, 75, 80])


@pytest.mark.parametrize("accuracies", [[0.5], [0.5, 0.6, 0.7, 0.8], [0.5] * 6])
def test_importance_needs_five_trials_that_differ(
    drawn: dict[str, Figure], accuracies: list[float | None]
) -> None:
    draw_study(study(accuracies), Path())
    assert set(drawn) == {"history.png", "curves.png", "parallel.png", "slices.png"}


def test_drawing_leaves_no_figure_and_no_style_behind(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    draw_study(study([0.5, 0.6]), tmp_path)
    assert plt.get_fignums() == []
    assert {**mpl.rcParams, "backend": ""} == {**before, "backend": ""}
    assert (tmp_path / "history.png").read_bytes().startswith(b"\x89PNG")
