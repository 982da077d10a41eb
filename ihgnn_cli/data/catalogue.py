"""The graph-classification data sets on the public TU server.

The figures in `catalogue.csv` are those of https://chrsmrrs.github.io/datasets, without regression
data sets and temporal graphs.
"""

import csv
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class CatalogueEntry:
    """One data set on the server: whether it has labels, and how many attributes."""

    name: str
    graphs: int
    classes: int
    mean_nodes: float
    mean_edges: float
    node_labels: bool
    edge_labels: bool
    node_attributes: int
    edge_attributes: int


@cache
def catalogue() -> dict[str, CatalogueEntry]:
    """All entries by name."""
    with (files("ihgnn_cli.data") / "catalogue.csv").open(encoding="utf-8") as stream:
        return {row["name"]: _entry(row) for row in csv.DictReader(stream)}


def _entry(row: dict[str, str]) -> CatalogueEntry:
    return CatalogueEntry(
        name=row["name"],
        graphs=int(row["graphs"]),
        classes=int(row["classes"]),
        mean_nodes=float(row["mean_nodes"]),
        mean_edges=float(row["mean_edges"]),
        node_labels=row["node_labels"] == "1",
        edge_labels=row["edge_labels"] == "1",
        node_attributes=int(row["node_attributes"]),
        edge_attributes=int(row["edge_attributes"]),
    )


def close_names(name: str) -> list[str]:
    """Names in the catalogue that are similar to `name`, most similar first."""
    known = {each.lower(): each for each in catalogue()}
    return [known[each] for each in get_close_matches(name.lower(), known, n=3, cutoff=0.75)]
