"""The paper's statistics of its data sets, and why ours may differ."""

from dataclasses import dataclass

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.summary import HomophilySummary


@dataclass(frozen=True)
class PaperRow:
    """A column of the paper's table of data sets; homophily is printed with two decimals."""

    graphs: int
    mean_nodes: float
    mean_edges: float
    node_labels: int | None
    """`None` if the paper uses degrees."""
    beta_mean: float
    beta_std: float


PAPER: dict[str, PaperRow] = {
    "KKI": PaperRow(83, 26.96, 48.42, 190, 0.00, 0.00),
    "DD": PaperRow(1178, 284.32, 715.66, 82, 0.07, 0.02),
    "COLLAB": PaperRow(5000, 74.49, 2457.78, None, 0.30, 0.33),
    "IMDB-BINARY": PaperRow(1000, 19.77, 96.53, None, 0.46, 0.27),
    "DHFR_MD": PaperRow(393, 23.87, 283.01, 7, 0.51, 0.07),
    "BZR_MD": PaperRow(306, 21.30, 225.06, 8, 0.60, 0.08),
    "MUTAG": PaperRow(188, 17.93, 19.79, 7, 0.65, 0.14),
    "PROTEINS": PaperRow(1113, 39.06, 72.82, 3, 0.66, 0.18),
    "IMDB-MULTI": PaperRow(1500, 13.00, 65.93, None, 0.72, 0.32),
}

# The paper rounds some means and truncates others (283.018 became 283.01).
_PRINTED_DIGIT = 0.01

MISPLACED_DEGREES = (
    "The paper's homophily of COLLAB, IMDB-BINARY and IMDB-MULTI does not follow from its own "
    "equations. Its numbers result from listing degrees in the order in which networkx first saw "
    "the nodes and reading them in the order of node numbers, which gives nodes the degrees of "
    "other nodes. The value shown here follows equations 1 and 2."
)


def paper_row(name: str) -> PaperRow | None:
    """The paper's row for a data set, if it has one."""
    return PAPER.get(name)


def differences(dataset: GraphDataset, summary: HomophilySummary, row: PaperRow) -> list[str]:
    """Sentences on where and why the summary differs from the paper in a printed digit."""
    found: list[str] = []
    beta = summary.of(Measure.NODE).overall
    if not (_close(beta.mean, row.beta_mean) and _close(beta.std, row.beta_std)):
        degrees = summary.label_source == LabelSource.DEGREE and row.node_labels is None
        found.append(
            MISPLACED_DEGREES
            if degrees
            else "The homophily differs from the paper's: these may not be its files."
        )
    if not _close(summary.mean_edges, row.mean_edges):
        loops = dataset.notes.self_loops
        with_loops = summary.mean_edges + loops / summary.graphs
        if loops and _close(with_loops, row.mean_edges):
            found.append(
                f"The paper counts the {loops:,} self-loops as edges (mean {with_loops:.2f}); "
                "they are left out here, as its adjacency matrix has an empty diagonal."
            )
        else:
            found.append("The mean number of edges differs from the paper's.")
    if summary.label_source == LabelSource.LABELS and summary.node_labels != row.node_labels:
        found.append("The number of node labels differs from the paper's.")
    if summary.graphs != row.graphs or not _close(summary.mean_nodes, row.mean_nodes):
        found.append("The number of graphs or nodes differs: these are not the paper's files.")
    return found


def _close(ours: float, printed: float) -> bool:
    return abs(ours - printed) < _PRINTED_DIGIT
