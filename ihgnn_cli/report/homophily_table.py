"""A table of the homophily of data sets and the paper's values, for Figure 1."""

from collections.abc import Sequence

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.paper import differences, paper_row
from ihgnn_cli.homophily.summary import HomophilySummary
from ihgnn_cli.report.layout import Box, Row, Table


def homophily_table(
    datasets: Sequence[GraphDataset], summaries: Sequence[HomophilySummary]
) -> Table:
    """One row per data set: graphs, β and the paper's β; notes explain differences."""
    reasons: dict[str, list[str]] = {}  # one reason may hold for several data sets
    for dataset, summary in zip(datasets, summaries, strict=True):
        row = paper_row(summary.name)
        for reason in [] if row is None else differences(dataset, summary, row):
            reasons.setdefault(reason, []).append(summary.name)
    return Table(
        name="figure1",
        title="Homophily of the graphs",
        corner="data set",
        heads=("graphs", "β", "β in the paper", "difference", "graphs with β ≥ 0.5 in %"),
        rows=tuple(_row(summary) for summary in summaries),
        legend=(
            "β is the mean over a graph's nodes of the share of neighbours with the same label "
            "(the paper's equations 1 and 2); mean ± standard deviation over graphs (dividing by "
            "n). It is computed from the data: no training is involved."
        ),
        notes=tuple(f"{', '.join(names)}: {reason}" for reason, names in reasons.items()),
    )


def _row(summary: HomophilySummary) -> Row:
    found = summary.of(Measure.NODE).overall
    paper = paper_row(summary.name)
    printed = difference = "–"
    if paper is not None:
        printed = f"{paper.beta_mean:.2f} ± {paper.beta_std:.2f}"
        # The difference of rounded numbers, because the paper prints two digits.
        away = round(found.mean, 2) - paper.beta_mean
        difference = "0.00" if abs(away) < 0.005 else f"{away:+.2f}".replace("-", "−")
    return Row(
        summary.name,
        (
            Box(f"{summary.graphs:,}"),
            Box(f"{found.mean:.2f} ± {found.std:.2f}"),
            Box(printed),
            Box(difference),
            Box(f"{100 * found.homophilic_share:.1f}"),
        ),
    )
