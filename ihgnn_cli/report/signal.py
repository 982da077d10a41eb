"""What is attainable on a data set, as lines of text and as a figure."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.errors import InputError
from ihgnn_cli.report.figures import literal, new_figure, save_figure, shortened
from ihgnn_cli.report.layout import auc_text, percent
from ihgnn_cli.studies.signal.ceiling import Ceiling
from ihgnn_cli.studies.signal.permutation import PermutationTest, Permuted
from ihgnn_cli.studies.signal.signal import Signal
from ihgnn_cli.studies.statistics import p_text
from ihgnn_cli.words import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _RED, _GRAY = "#4c72b0", "#c44e52", "#6b6b6b"
_LONGEST_NAME = 40


def how_measured(dataset: GraphDataset, *, group_twins: bool) -> str:
    """How folds are drawn and edges are read, as the rest of a title."""
    return f"{', twins kept together' if group_twins else ''}{edges_read(dataset)}"


def edges_read(dataset: GraphDataset) -> str:
    """How the edges are told apart, and which are left out, as the rest of a title."""
    bins, kinds = dataset.edge_bins, []
    if dataset.uses_edge_labels and (bins is None or bins.labels):
        kinds.append("edge labels")
    if bins is not None:
        kinds.append(f"{bins.count} edge bins")
    text = f", with {' and '.join(kinds)}" if kinds else ""
    background = dataset.background_edge_label
    return text + (f", without edges labelled {background}" if background else "")


def edge_lines(dataset: GraphDataset) -> list[str]:
    """What the data says about its edges that was not used, and the options that can use it."""
    lines, labels, used = [], dataset.edge_label, dataset.uses_edge_labels
    if dataset.edge_bins is None and labels is not None and len(dataset.edge_label_values) > 1:
        counts = np.bincount(labels, minlength=len(dataset.edge_label_values))
        if not used and _possible(dataset, use=True):
            lines.append(
                f"{counted(len(counts), 'edge label')}, not used: --edge-labels tells edges apart"
            )
        common = dataset.edge_label_values[counts.argmax()]
        nodes = np.diff(dataset.node_ptr)
        complete = (np.diff(dataset.edge_ptr) == nodes * (nodes - 1)).all()
        if complete and _possible(dataset, use=used, background=str(common)):
            share = percent(counts.max() / counts.sum())
            lines.append(
                f"all graphs are complete; if the most frequent edge label, {common} ({share} %), "
                f'means "no edge": --background-edge-label {common}'
            )
    if dataset.edge_bins is None and _possible(dataset, use=used, bins=8):
        lines.append("edge attributes, not used: --edge-bins 8 tells edges apart by 8 bins")
    return lines


def _possible(dataset: GraphDataset, **options: Any) -> bool:
    """Whether `with_edge_labels` takes these options for this data."""
    try:
        with_edge_labels(dataset, **options)
    except InputError:
        return False
    return True


def ceiling_lines(ceiling: Ceiling) -> list[str]:
    """The bound by round, and by homophily where it is below 100 %."""
    rounds, last = ", ".join(percent(each) for each in ceiling.rounds), len(ceiling.rounds) - 1
    lines = [f"{rounds} % after 0, 1, ... {last} rounds, with classes known"]
    lines += [
        f"homophily {each.low:.1f} to {each.high:.1f}: {percent(each.accuracy)} % after {last} "
        f"rounds ({counted(each.graphs, 'graph')})"
        for each in ceiling.bins
        if each.graphs and each.accuracy < 1
    ]
    if len(lines) > 1 and any(each.graphs and each.accuracy == 1 for each in ceiling.bins):
        lines.append("other homophily: 100 %")
    return lines


def twin_lines(found: Signal) -> list[str]:
    """How many graphs have twins, and how the best reference does on them."""
    twins, tested = found.twins, found.accuracy_by_twins
    lines = [
        f"{percent(twins.same_class)} % of the graphs have a twin of the same class, "
        f"{percent(twins.other_class)} % one of another class"
    ]
    where = (
        f"{tested.with_twin:,} of {counted(tested.tested, 'test graph')} have a twin in training"
    )
    shares = [(tested.accuracy_with, "with"), (tested.accuracy_without, "without")]
    parts = [f"{percent(share)} % {word}" for share, word in shares if share is not None]
    how = f"{found.best_reference.title} (mean over graphs): {' and '.join(parts)} one"
    return [*lines, f"{where}; {how}"]


def permutation_lines(test: PermutationTest | None) -> list[str]:
    """The statistics with the true classes and with shuffled ones."""
    if test is None:
        return []
    return [
        f"accuracy {percent(test.accuracy.value)} %, {_shuffled(test.accuracy, _percent)}, "
        f"{_p(test.accuracy)}",
        f"ROC-AUC {auc_text(test.roc_auc.value)}, {_shuffled(test.roc_auc, auc_text)}, "
        f"{_p(test.roc_auc)}",
        f"best of {len(test.kernels)} kernel ridge classifiers and the majority class, "
        f"{counted(test.permutations, 'shuffle')} of the classes of "
        f"{counted(test.graphs, 'graph')}",
    ]


def draw_signal(
    dataset: GraphDataset, found: Signal, path: Path, *, group_twins: bool = False
) -> None:
    """Draw the references with the ceiling, the ceiling by round, and the permutation test.

    Raises:
        InputError: the suffix is not one of a figure.
    """
    test = found.permutation_test
    figure = new_figure((8.0, 4.2) if test is None else (11.5, 4.2))
    widths = (2.2, 1) if test is None else (2.2, 1, 1.2)
    left, middle, *right = figure.subplots(1, len(widths), width_ratios=widths)
    _draw_references(left, found)
    _draw_ceiling(middle, found.ceiling)
    if test is not None:
        _draw_test(right[0], test)
    name = shortened(dataset.name, _LONGEST_NAME)
    how = how_measured(dataset, group_twins=group_twins)
    figure.suptitle(literal(f"{name}: attainable without a network{how}"))
    save_figure(figure, path)


def _draw_references(panel: "Axes", found: Signal) -> None:
    for place, each in enumerate(found.references):
        mean, std = 100 * each.scores.accuracy, 100 * each.scores.accuracy_std
        color = _GRAY if each.key == "majority" else _BLUE
        panel.errorbar(mean, place, xerr=std, fmt="o", color=color, capsize=3)
        panel.annotate(
            f"{mean:.1f}",
            (mean, place),
            (0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    panel.axvline(100 * found.ceiling.rounds[-1], color=_RED, linestyle="--", linewidth=1.2)
    panel.set_yticks(
        range(len(found.references)),
        [each.title.replace(", ", ",\n") for each in found.references],
        fontsize=8,
    )
    panel.set_ylim(len(found.references) - 0.4, -0.6)
    panel.set_xlabel("accuracy in %, mean ± std over folds\n(dashed: 1-WL ceiling)")
    panel.grid(axis="x", alpha=0.25)


def _draw_ceiling(panel: "Axes", ceiling: Ceiling) -> None:
    values = [100 * each for each in ceiling.rounds]
    panel.plot(range(len(values)), values, "o-", color=_RED)
    panel.set_xticks(range(len(values)))
    panel.set_ylim(min(50.0, *values) - 2, 102)
    panel.set_xlabel("rounds of 1-WL")
    panel.set_ylabel("ceiling in %")
    panel.grid(axis="y", alpha=0.25)


def _draw_test(panel: "Axes", test: PermutationTest) -> None:
    for place, (name, each) in enumerate((("accuracy", test.accuracy), ("ROC-AUC", test.roc_auc))):
        panel.plot([each.null_mean, each.null_high], [place, place], color=_GRAY, linewidth=6)
        panel.plot(each.value, place, "D", color=_BLUE)
        panel.annotate(
            f"{name}, {_p(each)}", (0.02, place - 0.15), xycoords=("axes fraction", "data")
        )
    panel.set_ylim(1.5, -0.5)
    panel.set_yticks([])
    panel.locator_params(axis="x", nbins=5)
    panel.set_xlabel(
        f"true classes (blue) and {test.permutations:,} shuffles\n(gray: mean to 95 % quantile)"
    )
    panel.grid(axis="x", alpha=0.25)


def _percent(share: float) -> str:
    return f"{percent(share)} %"


def _shuffled(found: Permuted, shown: Callable[[float], str]) -> str:
    return f"with shuffled classes {shown(found.null_mean)} (95 % below {shown(found.null_high)})"


def _p(found: Permuted) -> str:
    return "p undefined" if math.isnan(found.p) else p_text(found.p)
