"""`ihgnn homophily`: how homophilic the graphs of a data set are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ihgnn_cli.cli import options
from ihgnn_cli.cli.help import argument, examples, option
from ihgnn_cli.errors import InputError
from ihgnn_cli.homophily.kinds import Measure

if TYPE_CHECKING:
    from ihgnn_cli.data.dataset import GraphDataset
    from ihgnn_cli.data.sources import Source
    from ihgnn_cli.homophily.summary import Distribution, HomophilySummary, MeasureSummary

_BAR_WIDTH = 48


EXAMPLES = examples(
    ("ihgnn homophily MUTAG", "The bundled data set"),
    (
        "ihgnn homophily MUTAG PROTEINS --compare-paper --plot figure1.svg",
        "Two data sets beside the paper, with histograms",
    ),
    (
        "ihgnn homophily graphs.jsonl -m node -m edge --csv beta.csv",
        "Two measures of your own graphs",
    ),
)


def homophily(
    names: Annotated[
        list[str],
        argument(
            "NAME",
            "Data sets: names (MUTAG, synthetic:...), TU folders or zips, .jsonl files.",
            autocompletion=options.complete_dataset,
        ),
    ],
    measure: Annotated[
        list[Measure] | None,
        option(
            "Data",
            "node, edge or adjusted; repeatable.",
            "--measure",
            "-m",
            metavar="NAME",
            default="node",
        ),
    ] = None,
    background_edge_label: options.BackgroundEdgeLabel = None,
    data_root: options.DataRoot = None,
    offline: options.Offline = False,
    compare_paper: Annotated[
        bool, option("Output", "Compare with the paper's numbers.", "--compare-paper")
    ] = False,
    plot: Annotated[Path | None, options.figure("histograms of the first measure")] = None,
    csv: Annotated[
        Path | None, option("Output", "Write a CSV file with one row per graph.", metavar="FILE")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure how often connected nodes have the same label, per graph.

    Measures: node is the paper's (equations 1-2); edge is the share of edges between equal labels;
    adjusted is that share corrected for label frequencies.
    """
    from ihgnn_cli.cli import console
    from ihgnn_cli.data.edge_labels import with_edge_labels
    from ihgnn_cli.data.sources import locate, read, refuse_overwriting
    from ihgnn_cli.homophily.summary import summarize
    from ihgnn_cli.report.figures import check_figure_path
    from ihgnn_cli.report.homophily import as_entry, draw_histograms, write_csv

    if plot is not None:
        check_figure_path(plot)
        if csv is not None and plot.absolute() == csv.absolute():
            raise InputError(f"--plot and --csv both name {plot}. Give different files.")
    shown = tuple(dict.fromkeys(measure or [Measure.NODE]))
    # The paper's beta is always computed: the comparison and the JSON need it.
    measures = shown if Measure.NODE in shown else (*shown, Measure.NODE)
    where = console.access(data_root, offline)
    sources = [locate(name, where) for name in names]
    refuse_overwriting([each for each in (csv, plot) if each is not None], sources)
    datasets = [
        with_edge_labels(read(source, where.progress), background=background_edge_label or "")
        for source in sources
    ]
    summaries = [summarize(each, measures) for each in datasets]
    if csv is not None:
        write_csv(datasets, summaries, shown, csv)
    if plot is not None:
        draw_histograms(summaries, shown[0], plot)
    results = list(zip(datasets, sources, summaries, strict=True))
    if as_json:
        entries = [as_entry(*each, compare_paper=compare_paper) for each in results]
        console.show_json({"datasets": entries})
        return
    for dataset, source, summary in results:
        _show(dataset, source, summary, shown)
        if compare_paper:
            _show_comparison(dataset, summary)
    for path in (csv, plot):
        if path is not None:
            console.note(f"Wrote {path}")
    given = ["--background-edge-label", background_edge_label] if background_edge_label else []
    console.next_steps(("train", names[0], *given))


def _show(
    dataset: "GraphDataset",
    source: "Source",
    summary: "HomophilySummary",
    measures: tuple[Measure, ...],
) -> None:
    from ihgnn_cli.cli import console
    from ihgnn_cli.report.homophily import remarks

    console.show(f"{summary.name} ({source})", style="bold")
    statistics = console.table(
        None,
        *("Graphs", "Mean nodes", "Mean edges", "Node labels", "Classes"),
        "Isolated nodes",
    )
    statistics.add_row(
        f"{summary.graphs:,}",
        f"{summary.mean_nodes:.2f}",
        f"{summary.mean_edges:.2f}",
        f"{summary.node_labels:,}",
        f"{summary.classes:,}",
        f"{summary.isolated_nodes:,}",
    )
    console.show(statistics)
    if len(measures) > 1:
        _show_side_by_side([summary.of(measure) for measure in measures])
    for measure in measures:
        _show_measure(summary.of(measure))
    for line in remarks(dataset, summary, measures):
        console.show(f"- {line}")
    console.show("")


def _show_side_by_side(found: "list[MeasureSummary]") -> None:
    from ihgnn_cli.cli import console

    means = console.table("Mean ± std over graphs", "", *(each.measure.label for each in found))
    means.add_row("all", *(_mean(each.overall) for each in found))
    for position, (value, _) in enumerate(found[0].by_class):
        means.add_row(
            console.plain(f"class {value}"), *(_mean(each.by_class[position][1]) for each in found)
        )
    console.show(means)


def _show_measure(found: "MeasureSummary") -> None:
    from ihgnn_cli.cli import console

    threshold = f"{found.measure.threshold:g}"
    distributions = console.table(
        f"{found.measure.label} by graph",
        *("", "Graphs", "Mean ± std", "Min", "25%", "50%", "75%", "Max"),
        *(f"≥ {threshold}", f"< {threshold}"),
    )
    distributions.add_row("all", *_cells(found.overall))
    for value, distribution in found.by_class:
        distributions.add_row(console.plain(f"class {value}"), *_cells(distribution))
    console.show(distributions)
    console.show(_histogram(found))


def _cells(found: "Distribution") -> list[str]:
    if found.undefined == found.graphs:
        return [f"{found.graphs:,}", _mean(found), *["-"] * 7]
    five = (found.minimum, found.quartile_1, found.median, found.quartile_3, found.maximum)
    return [
        f"{found.graphs:,}",
        _mean(found),
        *(f"{round(value, 2) + 0.0:.2f}" for value in five),  # + 0.0 turns -0.0 into 0.0
        f"{found.homophilic_share:.0%}",
        f"{1 - found.homophilic_share:.0%}",
    ]


def _mean(found: "Distribution") -> str:
    if found.undefined == found.graphs:
        return "undefined"
    return f"{found.mean:.3f} ± {found.std:.3f}"


def _histogram(found: "MeasureSummary") -> str:
    """One bar per line, each for two bins of the summary."""
    from ihgnn_cli.cli import console

    counts = found.bin_counts.reshape(-1, 2).sum(axis=1)
    edges = found.bin_edges[::2]
    beside = len("  0.0 to  0.1   ") + len(str(counts.max()))
    scale = console.bar_width(_BAR_WIDTH, beside) / max(1, counts.max())
    lines = []
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        bar = console.bar(count * scale)
        lines.append(f"{low:5.1f} to {high:4.1f}  {bar} {count or ''}".rstrip())
    return "\n".join(lines) + "\n"


def _show_comparison(dataset: "GraphDataset", summary: "HomophilySummary") -> None:
    from ihgnn_cli.cli import console
    from ihgnn_cli.homophily.paper import differences, paper_row

    row = paper_row(summary.name)
    if row is None:
        console.show(f"The paper has no row for {summary.name}.\n")
        return
    beta = summary.of(Measure.NODE).overall
    comparison = console.table(
        f"{summary.name} beside the paper",
        *("", "Graphs", "Mean nodes", "Mean edges", "Node labels", "β mean ± std"),
    )
    comparison.add_row(
        "here",
        f"{summary.graphs:,}",
        f"{summary.mean_nodes:.2f}",
        f"{summary.mean_edges:.2f}",
        _labels(summary.node_labels, summary.label_source),
        f"{beta.mean:.2f} ± {beta.std:.2f}",
    )
    comparison.add_row(
        "paper",
        f"{row.graphs:,}",
        f"{row.mean_nodes:.2f}",
        f"{row.mean_edges:.2f}",
        "degree" if row.node_labels is None else f"{row.node_labels:,}",
        f"{row.beta_mean:.2f} ± {row.beta_std:.2f}",
    )
    console.show(comparison)
    equal = "Equal to the paper's, up to its last printed digit."
    for line in differences(dataset, summary, row) or [equal]:
        console.show(f"- {line}")
    console.show("")


def _labels(count: int, source: str) -> str:
    return f"degree ({count:,})" if source == "degree" else f"{count:,}"
