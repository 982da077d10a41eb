"""An evaluation in files: a figure of accuracy by homophily, and a CSV file of predictions."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.inference.metrics import HomophilyBin, ReliabilityBin
from ihgnn_cli.report.figures import legend_below, literal, new_figure, save_figure
from ihgnn_cli.report.predictions import id_text
from ihgnn_cli.report.tables import write_rows

_STRIP = 0.1  # room below the bars for the numbers of graphs, in units of accuracy


def draw_evaluation(
    bins: Sequence[HomophilyBin],
    reliability: Sequence[ReliabilityBin],
    title: str,
    overall_accuracy: float,
    path: Path,
) -> None:
    """Draw accuracy by homophily, and accuracy against confidence."""
    figure = new_figure((11.5, 4.4))
    by_homophily, by_confidence = figure.subplots(1, 2, width_ratios=[1.7, 1])
    legend = _homophily_panel(by_homophily, bins, title, overall_accuracy)
    legend |= _confidence_panel(by_confidence, reliability)
    legend_below(figure, legend, columns=3)
    save_figure(figure, path)


def _confidence_panel(panel: Any, reliability: Sequence[ReliabilityBin]) -> dict[str, Any]:
    """Accuracy against confidence; a calibrated model is on the diagonal."""
    panel.plot([0, 1], [0, 1], color="#6b6b6b", linewidth=0.8)
    (line,) = panel.plot(
        [each.confidence for each in reliability],
        [each.accuracy for each in reliability],
        color="#1f4e79",
        marker="o",
        markersize=4,
        linewidth=1.2,
    )
    panel.set_xlim(0, 1)
    panel.set_ylim(0, 1.03)
    panel.set_xlabel("probability of the predicted class")
    panel.set_ylabel("accuracy")
    panel.spines[["top", "right"]].set_visible(False)
    graphs = sum(each.graphs for each in reliability)
    error = sum(each.graphs * abs(each.confidence - each.accuracy) for each in reliability)
    return {f"confidence, calibration error {error / graphs:.3f}": line}


def _homophily_panel(
    panel: Any, bins: Sequence[HomophilyBin], title: str, overall_accuracy: float
) -> dict[str, Any]:
    """One bar per non-empty bin, with its Wilson interval; returns the entries of the legend."""
    filled = [each for each in bins if each.graphs]
    middles = np.array([(each.low + each.high) / 2 for each in filled])
    widths = np.array([0.86 * (each.high - each.low) for each in filled])
    marks = np.minimum(widths / 3, 0.03)
    heights = np.array([each.accuracy for each in filled])
    bars = panel.bar(middles, heights, widths, color="#a6bddb")
    intervals = panel.errorbar(
        middles,
        heights,
        yerr=[
            [each.accuracy - each.accuracy_low for each in filled],
            [each.accuracy_high - each.accuracy for each in filled],
        ],
        fmt="o",
        markersize=4,
        color="#1f4e79",
        linewidth=1.3,
        capsize=3,
    )
    majority = panel.hlines(
        [each.majority_share for each in filled],
        middles - marks,
        middles + marks,
        color="#6b6b6b",
        linewidth=1.8,
    )
    legend: dict[str, Any] = {
        "accuracy, 95 % interval": (bars, intervals),
        "majority class": majority,
    }
    if not math.isnan(overall_accuracy):
        legend[f"overall accuracy {overall_accuracy:.3f}"] = panel.axhline(
            overall_accuracy, color="#c44e52", linestyle="--", linewidth=1.2, zorder=1
        )
    panel.axhline(0, color="black", linewidth=0.8)
    for each, middle in zip(filled, middles, strict=True):
        panel.text(middle, -_STRIP / 2, f"{each.graphs:,}", ha="center", va="center", fontsize=8)
    shares = np.linspace(0, 1, 6)
    panel.set_yticks([-_STRIP / 2, *shares], ["graphs", *(f"{share:.1f}" for share in shares)])
    graphs_tick = panel.yaxis.get_major_ticks()[0]
    graphs_tick.tick1line.set_visible(False)
    graphs_tick.label1.set_fontsize(8)
    panel.set_ylim(-_STRIP, 1.03)
    panel.set_xlim(0, 1)
    panel.set_xticks(np.linspace(0, 1, 11))
    panel.set_xlabel(Measure.NODE.label)
    panel.set_ylabel("accuracy")
    panel.set_title(literal(title), wrap=True)
    panel.spines[["top", "right"]].set_visible(False)
    return legend


def write_predictions(
    path: Path,
    dataset: GraphDataset,
    graphs: Sequence[int] | NDArray[np.integer],
    probabilities: NDArray[np.floating],
    beta: NDArray[np.float64],
    *,
    uncertainty: NDArray[np.float64] | None = None,
) -> None:
    """Write a CSV file with one row per evaluated graph: its position from 0, its id if any, ...

    Args:
        path: The CSV file.
        dataset: The whole data set.
        graphs: [P] positions in it.
        probabilities: [P, C] in the order of `graphs` and of the data set's classes.
        beta: [P] node homophily, in the order of `graphs`; NaN becomes an empty cell.
        uncertainty: [P] the spread between the members of an ensemble, as a last column.

    Raises:
        ValueError: the shapes do not match.
    """
    shape = (len(graphs), len(dataset.class_values))
    if probabilities.shape != shape or beta.shape != shape[:1]:
        raise ValueError(
            f"Probabilities are {list(probabilities.shape)} and betas {list(beta.shape)} for "
            f"{shape[0]} graphs of {shape[1]} classes: give [graphs, classes] and [graphs]."
        )
    head = ["graph", "id", "nodes", "edges", "class", "predicted", "correct"]
    head += [f"p({value})" for value in dataset.class_values] + ["beta"]
    rows = _prediction_rows(dataset, graphs, probabilities, beta)
    if uncertainty is not None:
        head.append("uncertainty")
        rows = ([*row, f"{each:.7g}"] for row, each in zip(rows, uncertainty, strict=True))
    write_rows(path, head, rows)


def _prediction_rows(
    dataset: GraphDataset,
    graphs: Sequence[int] | NDArray[np.integer],
    probabilities: NDArray[np.floating],
    beta: NDArray[np.float64],
) -> Iterator[list[object]]:
    nodes, edges = np.diff(dataset.node_ptr), np.diff(dataset.edge_ptr) // 2
    predicted = probabilities.argmax(axis=1).tolist()
    for row, graph in enumerate(graphs):
        true = int(dataset.graph_class[graph])
        yield [
            int(graph),
            id_text(dataset.ids[graph] if dataset.ids else None),
            *(int(nodes[graph]), int(edges[graph])),
            dataset.class_values[true],
            dataset.class_values[predicted[row]],
            "true" if predicted[row] == true else "false",
            *(str(value) for value in probabilities[row]),  # no more digits than its precision has
            "" if math.isnan(beta[row]) else repr(float(beta[row])),
        ]
