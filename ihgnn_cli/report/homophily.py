"""Homophily as remarks, JSON, CSV and histograms (the paper's Figure 1)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.sources import Source
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.measures import isolated_nodes
from ihgnn_cli.homophily.paper import differences, paper_row
from ihgnn_cli.homophily.summary import HomophilySummary, MeasureSummary
from ihgnn_cli.report.figures import literal, new_figure, save_figure
from ihgnn_cli.report.tables import write_rows
from ihgnn_cli.words import counted

_COLUMNS = 3


def draw_histograms(summaries: Sequence[HomophilySummary], measure: Measure, path: Path) -> None:
    """Draw one histogram per data set (with the node measure, the paper's Figure 1)."""
    columns = min(_COLUMNS, len(summaries))
    rows = math.ceil(len(summaries) / columns)
    figure = new_figure((4.2 * columns, 3.1 * rows))
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, summary in zip(panels, summaries, strict=False):
        shown = summary.of(measure)
        panel.stairs(shown.bin_counts, shown.bin_edges, fill=True, color="#4c72b0")
        mean = shown.overall.mean
        text = "undefined" if math.isnan(mean) else f"mean {mean:.2f}"
        if not math.isnan(mean):
            panel.axvline(mean, color="#c44e52", linestyle="--", linewidth=1.2)
        undefined = shown.overall.undefined
        part = f"{summary.graphs - undefined:,} of " if undefined else ""
        title = f"{summary.name} ({text}, {part}{counted(summary.graphs, 'graph')})"
        panel.set_title(literal(title), wrap=True)
        panel.set_xlim(*measure.span)
        panel.set_xticks(np.linspace(*measure.span, 6 if measure.span[0] == 0 else 5))
        panel.yaxis.get_major_locator().set_params(integer=True)
        panel.set_xlabel(measure.label)
        panel.set_ylabel("graphs")
    for panel in panels[len(summaries) :]:
        panel.set_axis_off()
    save_figure(figure, path)


def write_csv(
    datasets: Sequence[GraphDataset],
    summaries: Sequence[HomophilySummary],
    measures: Sequence[Measure],
    path: Path,
) -> None:
    """Write a CSV file with one row per graph; undefined values are empty."""
    head = ["dataset", "graph", "class", "nodes", "edges", "isolated_nodes"]
    head += [f"{measure}_homophily" for measure in measures]
    write_rows(path, head, _graph_rows(datasets, summaries, measures))


def _graph_rows(
    datasets: Sequence[GraphDataset],
    summaries: Sequence[HomophilySummary],
    measures: Sequence[Measure],
) -> Iterator[list[object]]:
    for dataset, summary in zip(datasets, summaries, strict=True):
        nodes = np.diff(dataset.node_ptr).tolist()
        edges = (np.diff(dataset.edge_ptr) // 2).tolist()
        isolated = isolated_nodes(dataset).tolist()
        values = [summary.of(measure).values.tolist() for measure in measures]
        for graph, position in enumerate(dataset.graph_class.tolist()):
            row = [dataset.name, graph, dataset.class_values[position]]
            row += [nodes[graph], edges[graph], isolated[graph]]
            row += ["" if math.isnan(each[graph]) else repr(each[graph]) for each in values]
            yield row


def reading_remarks(dataset: GraphDataset) -> list[str]:
    """Remarks on how a data set was read."""
    found = [f"In reading: {sentence}." for sentence in dataset.notes.sentences()]
    if dataset.label_source == LabelSource.DEGREE:
        degrees = "No node labels in the data: each node's degree is its label, as in the paper."
        found.insert(0, degrees)
    return found


def remarks(
    dataset: GraphDataset, summary: HomophilySummary, measures: Sequence[Measure]
) -> list[str]:
    """Remarks on how the numbers were obtained."""
    found = reading_remarks(dataset)
    isolated = summary.isolated_nodes
    if isolated and Measure.NODE in measures:
        nodes = "1 node has no neighbours and counts"
        if isolated > 1:
            nodes = f"{isolated:,} nodes have no neighbours and count"
        found.append(f"{nodes} as 0.")
    for measure in measures:
        undefined = summary.of(measure).overall.undefined
        if undefined:
            found.append(
                f"{measure.label} is undefined for {counted(undefined, 'graph')} (all edges belong "
                "to one label, or there are none); these are left out."
            )
    return found


def as_entry(
    dataset: GraphDataset, source: Source, summary: HomophilySummary, *, compare_paper: bool
) -> dict[str, object]:
    """One data set as plain values; `beta_*` is the paper's node homophily."""
    beta = summary.of(Measure.NODE).overall
    entry: dict[str, object] = {
        "name": summary.name,
        "source": source.origin,
        "path": source.path if source.has_files else None,
        "fingerprint": dataset.fingerprint,
        "graphs": summary.graphs,
        "mean_nodes": summary.mean_nodes,
        "mean_edges": summary.mean_edges,
        "node_labels": summary.node_labels,
        "classes": summary.classes,
        "class_values": dataset.class_values,
        "label_source": summary.label_source,
        "isolated_nodes": summary.isolated_nodes,
        "reading": asdict(dataset.notes),
        "beta_mean": beta.mean,
        "beta_std": beta.std,
        "beta_median": beta.median,
        "homophilic_share": beta.homophilic_share,
        "heterophilic_share": 1 - beta.homophilic_share,
        "measures": {each.measure.value: _measure_entry(each) for each in summary.measures},
    }
    if compare_paper:
        row = paper_row(summary.name)
        entry["paper"] = None if row is None else asdict(row)
        entry["paper_differences"] = [] if row is None else differences(dataset, summary, row)
    return entry


def _measure_entry(found: MeasureSummary) -> dict[str, object]:
    return {
        **asdict(found.overall),
        "threshold": found.measure.threshold,
        "by_class": [{"class": value, **asdict(each)} for value, each in found.by_class],
        "histogram": {
            "bin_edges": found.bin_edges.round(6).tolist(),
            "counts": found.bin_counts.tolist(),
        },
    }
