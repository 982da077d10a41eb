"""The figures of a search, drawn by `optuna.visualization.matplotlib`.

Importing this module imports matplotlib and Optuna: commands import it when they draw.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axis import Axis
from matplotlib.ticker import PercentFormatter
from optuna import Study
from optuna.importance import FanovaImportanceEvaluator
from optuna.trial import FrozenTrial, TrialState
from optuna.visualization import matplotlib as plots

from ihgnn_cli.report.figures import save_figure

_ACCURACY = "Validation accuracy (%)"
_IMPORTANCE = "Importance of each setting (fANOVA)"
_FEWEST = 5  # complete trials for importances
_LONGEST_LEGEND = 20  # trials
_STYLE = {
    "figure.constrained_layout.use": True,
    "figure.figsize": (7.0, 4.5),
    "savefig.bbox": "tight",
    "axes.titlesize": "medium",
}


def draw_study(study: Study, folder: Path) -> dict[str, Path]:
    """Draw a search with at least one complete trial.

    Returns:
        The PNG files by caption. Importances need five complete trials that differ in accuracy.
    """
    chosen = dict(_PLOTS)
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < _FEWEST or len({each.value for each in complete}) == 1:
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


def _history(study: Study) -> None:
    axes = plots.plot_optimization_history(study, target_name=_ACCURACY)
    axes.legend(loc="best")  # inside the axes: beside them it takes a third of the width
    _percent(axes.yaxis)


def _curves(study: Study) -> None:
    axes = plots.plot_intermediate_values(study)
    axes.set(title="Best accuracy up to each epoch", xlabel="Epoch", ylabel=_ACCURACY)
    axes.locator_params(axis="x", integer=True)
    _percent(axes.yaxis)
    legend = axes.get_legend()
    if legend is not None and len(axes.lines) > _LONGEST_LEGEND:
        legend.remove()


def _parallel(study: Study) -> None:
    plots.plot_parallel_coordinate(study, target=_in_percent, target_name=_ACCURACY)
    figure = plt.gcf()
    figure.set_figwidth(max(7.0, 1.6 * len(figure.axes)))  # room for the numbers of each axis


def _slices(study: Study) -> None:
    plots.plot_slice(study, target=_in_percent, target_name=_ACCURACY)
    for axes in plt.gcf().axes:
        axes.tick_params(axis="x", which="both", rotation=45)  # else those of a log axis overlap


def _importance(study: Study) -> None:
    evaluator = FanovaImportanceEvaluator(seed=0)  # the same trials give the same figure
    plots.plot_param_importances(study, evaluator=evaluator, target_name=_ACCURACY)


def _in_percent(trial: FrozenTrial) -> float:
    return 100 * (trial.value or 0.0)


def _percent(axis: Axis) -> None:
    axis.set_major_formatter(PercentFormatter(1.0, symbol=""))


_PLOTS: dict[str, tuple[str, Callable[[Study], None]]] = {
    "Optimization history": ("history.png", _history),
    "Validation accuracy by epoch": ("curves.png", _curves),
    "Parallel coordinates": ("parallel.png", _parallel),
    "Accuracy by setting": ("slices.png", _slices),
    _IMPORTANCE: ("importance.png", _importance),
}
