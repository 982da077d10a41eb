"""The figures of a search, drawn by `optuna.visualization.matplotlib`.

Importing this module imports matplotlib and Optuna: commands import it when they draw.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import optuna
from matplotlib.colors import ListedColormap
from optuna import Study
from optuna.importance import FanovaImportanceEvaluator
from optuna.trial import FrozenTrial, TrialState
from optuna.visualization import matplotlib as plots

from ihgnn_cli.report.figures import literal, save_figure
from ihgnn_cli.studies.tuning.rows import TrialRow

_ACCURACY = "Validation accuracy (%)"
_FEWEST = 5  # complete trials for importances
_LONGEST_LEGEND = 20  # the colours that Optuna draws curves in
# Optuna's colours without the lightest: it draws the worst trial white.
_BLUES = ListedColormap(mpl.colormaps["Blues"](np.linspace(0.4, 1, 256)))
_STYLE = {
    "figure.constrained_layout.use": True,
    "figure.figsize": (7.0, 4.5),
    "savefig.bbox": "tight",
    "axes.titlesize": "medium",
}


def draw_trials(rows: Sequence[TrialRow], folder: Path) -> dict[str, Path]:
    """Draw a search with at least one complete trial.

    Returns:
        The PNG files by caption. Importances need five complete trials that differ in accuracy.
    """
    study = _as_study(rows)
    chosen = dict(_PLOTS)
    complete = [row.accuracy for row in rows if row.state is TrialState.COMPLETE]
    if len(complete) < _FEWEST or len(set(complete)) == 1:
        del chosen[_IMPORTANCE]
    figures = {}
    for caption, (name, plot) in chosen.items():
        figures[caption] = folder / name
        with _own_style():
            plot(study)
            save_figure(plt.gcf(), figures[caption])
    return figures


@contextmanager
def _own_style() -> Iterator[None]:
    """Leave no figure, style or backend behind: Optuna draws with pyplot and sets a style."""
    plt.switch_backend("agg")
    with plt.style.context(("default", _STYLE)), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the module is experimental; a single value has no range
        try:
            yield
        finally:
            plt.close()


def _as_study(rows: Sequence[TrialRow]) -> Study:
    """The trials with their numbers and with accuracies in percent, in a study in memory.

    Numbers without a row, those of repeated tries, become failed trials, which no figure shows.
    """
    study = optuna.create_study(direction="maximize")
    by_number = {row.number: row for row in rows}
    for number in range(max(by_number) + 1):
        study.add_trial(_as_trial(by_number.get(number)))
    return study


def _as_trial(row: TrialRow | None) -> FrozenTrial:
    if row is None or row.state not in (TrialState.COMPLETE, TrialState.PRUNED):
        return optuna.create_trial(state=TrialState.FAIL)
    best = accumulate(row.curve, max)
    return optuna.create_trial(
        state=row.state,
        value=row.percent,
        params={literal(name): row.params[name] for name in row.distributions},
        distributions={literal(name): each for name, each in row.distributions.items()},
        intermediate_values={epoch: 100 * share for epoch, share in enumerate(best, start=1)},
    )


def _history(study: Study) -> None:
    axes = plots.plot_optimization_history(study, target_name=_ACCURACY)
    axes.legend(loc="best")  # inside the axes: beside them it takes a third of the width


def _curves(study: Study) -> None:
    axes = plots.plot_intermediate_values(study)
    axes.set(title="Best accuracy up to each epoch", xlabel="Epoch", ylabel=_ACCURACY)
    axes.locator_params(axis="x", integer=True)
    legend = axes.get_legend()
    if legend is not None and len(axes.lines) > _LONGEST_LEGEND:
        legend.remove()


def _parallel(study: Study) -> None:
    axes = plots.plot_parallel_coordinate(study, target_name=_ACCURACY)
    for lines in axes.collections:
        lines.set(cmap=_BLUES, clip_on=False)  # whole lines at the top and at the bottom
    figure = plt.gcf()
    figure.set_figwidth(max(7.0, 1.6 * len(figure.axes)))  # room for the numbers of each axis


def _slices(study: Study) -> None:
    plots.plot_slice(study, target_name=_ACCURACY)
    for axes in plt.gcf().axes:
        axes.tick_params(axis="x", which="both", rotation=45)  # else those of a log axis overlap


def _importance(study: Study) -> None:
    evaluator = FanovaImportanceEvaluator(seed=0)  # the same trials give the same figure
    plots.plot_param_importances(study, evaluator=evaluator, target_name=_ACCURACY)


_IMPORTANCE = "Importance of each setting (fANOVA)"
_PLOTS: dict[str, tuple[str, Callable[[Study], None]]] = {
    "Optimization history": ("history.png", _history),
    "Validation accuracy by epoch": ("curves.png", _curves),
    "Parallel coordinates": ("parallel.png", _parallel),
    "Accuracy by setting": ("slices.png", _slices),
    _IMPORTANCE: ("importance.png", _importance),
}
