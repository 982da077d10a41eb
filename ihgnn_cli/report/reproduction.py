"""A reproduced table or figure as files: Markdown, LaTeX, CSV, figures and one HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.summary import summarize
from ihgnn_cli.paths import file_name
from ihgnn_cli.report import homophily
from ihgnn_cli.report.comparison import (
    accuracy_table,
    auc_table,
    rank_table,
    significance_table,
    write_cells,
)
from ihgnn_cli.report.comparison_figure import draw_comparison
from ihgnn_cli.report.curves import Chart, curve_table, draw_chart, write_points
from ihgnn_cli.report.homophily_table import homophily_table
from ihgnn_cli.report.layout import Table
from ihgnn_cli.report.layout_files import write_latex, write_markdown
from ihgnn_cli.report.reproduction_page import write_page
from ihgnn_cli.studies.comparison import Comparison
from ihgnn_cli.studies.crossval.result import CrossvalResult
from ihgnn_cli.studies.ranks import Ranks, rank_methods

Results = Sequence[CrossvalResult]
"""Where the numbers come from."""


@dataclass(frozen=True)
class Written:
    """The tables and files that were written."""

    tables: tuple[Table, ...]
    files: tuple[Path, ...]
    ranks: Ranks | str | None = None
    """Average ranks over data sets, or why there are none; `None` if no methods are compared."""


def write_comparison(
    comparison: Comparison,
    results: Results,
    folder: Path,
    *,
    name: str,
    title: str,
    budget: str,
    statement: str,
) -> Written:
    """Compare methods with each other and with the paper.

    Raises:
        IhgnnError: a file cannot be written.
    """
    tables = [accuracy_table(comparison, name, title), significance_table(comparison, name)]
    areas = auc_table(comparison, name)
    if areas is not None:
        tables.append(areas)
    ranks = rank_methods(comparison)
    figures: dict[str, Path] = {}
    if isinstance(ranks, str):
        tables[0] = replace(tables[0], notes=(*tables[0].notes, ranks))
    else:
        tables[0] = replace(tables[0], summary=(*tables[0].summary, ranks.sentence))
        tables.append(rank_table(ranks, name))
    for dataset in comparison.datasets:
        if any(entry.cell.mean is not None for entry in comparison.on(dataset)):
            path = folder / f"{name}-{file_name(dataset)}.svg"
            draw_comparison(comparison, dataset, path, budget=budget)
            figures[f"{dataset}: our results and the paper's"] = path
    numbers = folder / f"{name}.csv"
    write_cells(numbers, comparison, budget=budget)
    tables = [replace(each, budget=budget, statement=statement) for each in tables]
    page = folder / f"{name}.html"
    write_page(page, title, tables, figures, comparison=comparison, results=results)
    written = _with_texts(tables, folder, name, [numbers, *figures.values(), page])
    return replace(written, ranks=ranks)


def write_chart(chart: Chart, results: Results, folder: Path) -> Written:
    """A chart of accuracy as a function of a number.

    Raises:
        IhgnnError: a file cannot be written.
    """
    tables = [curve_table(chart)]
    figure, numbers = folder / f"{chart.name}.svg", folder / f"{chart.name}.csv"
    draw_chart(chart, figure)
    write_points(numbers, chart)
    page = folder / f"{chart.name}.html"
    write_page(page, chart.title, tables, {chart.title: figure}, results=results)
    return _with_texts(tables, folder, chart.name, [numbers, figure, page])


def write_homophily(
    datasets: Sequence[GraphDataset], folder: Path, *, budget: str, statement: str
) -> Written:
    """The paper's Figure 1: histograms of homophily, and a table.

    Raises:
        IhgnnError: a file cannot be written.
    """
    summaries = [summarize(each, (Measure.NODE,)) for each in datasets]
    table = homophily_table(datasets, summaries)
    table = replace(table, budget=budget, statement=statement)
    figure, numbers = folder / "figure1.svg", folder / "figure1.csv"
    homophily.draw_histograms(summaries, Measure.NODE, figure)
    homophily.write_csv(datasets, summaries, (Measure.NODE,), numbers)
    page = folder / "figure1.html"
    write_page(page, table.title, [table], {"Graphs by homophily": figure})
    return _with_texts([table], folder, "figure1", [numbers, figure, page])


def _with_texts(
    tables: Sequence[Table], folder: Path, name: str, others: Sequence[Path]
) -> Written:
    texts = [folder / f"{name}.md", folder / f"{name}.tex"]
    write_markdown(texts[0], tables)
    write_latex(texts[1], tables)
    return Written(tuple(tables), (*texts, *others))
