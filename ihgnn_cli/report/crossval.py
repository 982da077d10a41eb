"""A figure of a cross-validation: accuracy per fold, and under other selection rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ihgnn_cli.models.settings import Variant
from ihgnn_cli.report.figures import legend_below, literal, new_figure, save_figure, shortened
from ihgnn_cli.studies.crossval.result import CrossvalResult, RuleResult
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_HONEST, _ON_TEST, _VALIDATION, _PLAIN = "#4c72b0", "#c44e52", "#dd8452", "#6b6b6b"
_REFERENCE = "#55a868"
_LONGEST_NAME = 37  # of a data set, in the title
_FOLD_WIDTH, _MOST_WIDTH = 0.5, 14.0  # inches
_RULES_WIDTH = 4.6
_MOST_TICKS = 20  # with more folds, only some are numbered
_NOTED = "*"
_RULE_NAMES = {
    "nested": "selection runs,\none configuration per fold",
    "common-validation": f"one configuration\nfor all folds{_NOTED}",
    "authors": "the authors' script",
    "common-test-epoch": "one configuration and\nepoch for all folds",
}
"""Shorter forms of the titles in `studies.crossval.rules`."""
_NOTE = f"{_NOTED} test graphs of one fold are validation\ngraphs of others in this choice"
"""Shorter form of the note in `studies.crossval.rules`."""
_CHOSEN_ON_TEST = "\n(chosen on test)"

# Horizontal positions relative to the fold's number.
_VALIDATION_AT, _RUNS_AT, _RUNS_SPREAD, _MEAN_HALF = -0.3, 0.1, 0.15, 0.24


@dataclass(frozen=True)
class _Row:
    """One row of the right panel, in percent."""

    name: str
    honest: bool
    mean: float
    std: float


def draw_folds(result: CrossvalResult, path: Path) -> None:
    """Draw the test accuracies of each fold and, if there are any, the results of other rules.

    Args:
        result: the result.
        path: the figure's file.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    folds, rules = result.folds, result.rules
    width = min(_MOST_WIDTH, max(6.8, 1.5 + _FOLD_WIDTH * len(folds)))
    if rules is None:
        figure = new_figure((width, 4.6))
        panel = figure.subplots()
    else:
        figure = new_figure((width + _RULES_WIDTH, 4.6))
        panel, other = figure.subplots(1, 2, width_ratios=(width, _RULES_WIDTH))
        _draw_rules(other, _rows(result, rules))
    legend = _draw_by_fold(panel, result)
    runs = counted(len(result.runs), "run")
    repeats = len(result.repeats)
    of = f"{repeats} partitions of " if repeats > 1 else ""
    which = f"{of}{counted(len(folds) // repeats, 'fold')}, {runs} each"
    which += ", chosen in a race" * bool(result.race)
    title = f"{shortened(result.dataset, _LONGEST_NAME)}: {which}"
    figure.suptitle(literal(title))
    legend_below(figure, legend, columns=2 if rules is None else 3)  # as many as fit
    save_figure(figure, path)


def _draw_by_fold(panel: "Axes", result: CrossvalResult) -> "dict[str, Artist]":
    """Draw the left panel, and return the entries of the legend."""
    folds = result.folds
    numbers = np.array([fold.fold for fold in folds])
    places = numbers + _RUNS_AT
    runs = len(result.runs)
    beside = np.linspace(-_RUNS_SPREAD, _RUNS_SPREAD, runs) if runs > 1 else np.zeros(1)
    legend: dict[str, Artist] = {}
    (legend["test accuracy of each run"],) = panel.plot(
        (places[:, None] + beside).ravel(),
        [100 * run.test_accuracy for fold in folds for run in fold.runs],
        "o",
        markersize=4,
        color=_HONEST,
        alpha=0.75,
    )
    of_fold = "mean prediction per fold" if result.snapshots else "mean per fold"
    legend[of_fold] = panel.hlines(
        [100 * fold.test_mean for fold in folds],
        places - _MEAN_HALF,
        places + _MEAN_HALF,
        color=_HONEST,
        linewidth=1.6,
    )
    chosen = [each for each in (fold.validation_accuracy for fold in folds) if each is not None]
    if chosen:  # without snapshots
        (legend["validation accuracy of the chosen configuration"],) = panel.plot(
            numbers + _VALIDATION_AT,
            [100 * each for each in chosen],
            "D",
            markersize=4.5,
            markerfacecolor="none",
            markeredgecolor=_VALIDATION,
        )
    mean, std = 100 * result.test_mean, 100 * result.test_std
    line = panel.axhline(mean, color=_HONEST, linewidth=1.2, zorder=1)
    band = panel.axhspan(mean - std, mean + std, color=_HONEST, alpha=0.13, linewidth=0, zorder=0)
    label = f"test, mean ± std over folds: {mean:.1f} ± {std:.1f} %"
    legend[label] = (band, line)  # type: ignore[assignment]  # drawn on top of each other
    paper, majority = result.paper, 100 * result.majority_share
    if paper is not None:
        of = "" if paper.variant == Variant.FULL else f", {paper.variant}"
        printed = 100 * paper.mean
        legend[f"paper, mean{of}: {printed:.1f} %"] = panel.axhline(
            printed, color=_ON_TEST, linestyle="--", linewidth=1.2, zorder=1
        )
    legend[f"majority class: {majority:.1f} %"] = panel.axhline(
        majority, color=_PLAIN, linestyle=":", linewidth=1.4, zorder=1
    )
    if result.references is not None:
        best = result.references.best_method
        legend[f"{best.title}: {100 * best.accuracy:.1f} %"] = panel.axhline(
            100 * best.accuracy, color=_REFERENCE, linestyle="-.", linewidth=1.2, zorder=1
        )
    panel.set_xlim(numbers[0] - 0.6, numbers[-1] + 0.6)
    repeats = result.repeats
    if len(repeats) > 1:
        each = len(folds) / len(repeats)
        for place in range(1, len(repeats)):
            panel.axvline(place * each - 0.5, color=_PLAIN, linewidth=0.8, alpha=0.5, zorder=0)
        middles = [place * each + (each - 1) / 2 for place in range(len(repeats))]
        panel.set_xticks(middles, [str(repeat.seed) for repeat in repeats])
    elif len(folds) <= _MOST_TICKS:
        panel.set_xticks(numbers)
    panel.set_xlabel("folds, by the seed of their partition" if len(repeats) > 1 else "fold")
    panel.set_ylabel("accuracy in %")
    panel.grid(axis="y", alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    return legend


def _rows(result: CrossvalResult, rules: Sequence[RuleResult]) -> list[_Row]:
    rows = [
        _Row(
            "this result,\nfinal runs",
            True,
            100 * result.test_mean,
            100 * result.test_std,
        )
    ]
    for rule in rules:
        name = _RULE_NAMES.get(rule.key, rule.key)
        name += "" if rule.honest else _CHOSEN_ON_TEST
        rows.append(_Row(name, rule.honest, 100 * rule.mean, 100 * rule.std))
    if result.paper is not None:
        paper = result.paper
        name = "paper (chosen on test\nby the authors' script)"
        if paper.variant != Variant.FULL:
            name = f"paper, {paper.variant}\n(chosen on test by\nthe authors' script)"
        rows.append(_Row(name, False, 100 * paper.mean, 100 * paper.std))
    return rows


def _draw_rules(panel: "Axes", rows: Sequence[_Row]) -> None:
    for place, row in enumerate(rows):
        color = _HONEST if row.honest else _ON_TEST
        panel.errorbar(row.mean, place, xerr=row.std, fmt="o", markersize=5, color=color, capsize=3)
        panel.annotate(
            f"{row.mean:.1f} ± {row.std:.1f}",
            (row.mean, place),
            (0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=color,
        )
    panel.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=8)
    for label, row in zip(panel.get_yticklabels(), rows, strict=True):
        label.set_color("black" if row.honest else _ON_TEST)
    panel.set_ylim(len(rows) - 0.5, -0.7)  # the first on top
    noted = any(row.name.endswith(_NOTED) for row in rows)
    panel.set_xlabel("test accuracy in %" + (f"\n{_NOTE}" if noted else ""))
    panel.set_title("other selection rules, mean ± std over folds", fontsize=10)
    panel.grid(axis="x", alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
