"""Summary statistics of the homophily of a data set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.measures import graph_homophily, isolated_nodes

HISTOGRAM_BINS = 20
# Tolerance for rounding errors, so that a graph at exactly 0.5 counts as such.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Distribution:
    """One measure over a set of graphs (standard deviation with ddof 0)."""

    graphs: int
    undefined: int
    """Graphs for which the measure is undefined; left out of the statistics below."""
    mean: float
    std: float
    minimum: float
    quartile_1: float
    median: float
    quartile_3: float
    maximum: float
    homophilic_share: float
    """Share of graphs at or above the measure's threshold."""


@dataclass(frozen=True)
class MeasureSummary:
    """One measure over a data set and each class, with a histogram."""

    measure: Measure
    values: NDArray[np.float64]
    """[G]"""
    overall: Distribution
    by_class: tuple[tuple[Value, Distribution], ...]
    bin_edges: NDArray[np.float64]
    bin_counts: NDArray[np.int64]


@dataclass(frozen=True)
class HomophilySummary:
    """The paper's statistics of a data set, and its homophily by each requested measure."""

    name: str
    graphs: int
    mean_nodes: float
    mean_edges: float
    """Undirected edges, without self-loops."""
    node_labels: int
    classes: int
    label_source: LabelSource
    isolated_nodes: int
    measures: tuple[MeasureSummary, ...]

    def of(self, measure: Measure) -> MeasureSummary:
        """The summary of one of the requested measures."""
        return next(each for each in self.measures if each.measure is measure)


def summarize(
    dataset: GraphDataset, measures: tuple[Measure, ...] = (Measure.NODE,)
) -> HomophilySummary:
    """Compute a data set's homophily summary."""
    return HomophilySummary(
        name=dataset.name,
        graphs=len(dataset),
        mean_nodes=dataset.num_nodes / len(dataset),
        mean_edges=dataset.num_edges / len(dataset),
        node_labels=len(dataset.label_values),
        classes=len(dataset.class_values),
        label_source=dataset.label_source,
        isolated_nodes=int(isolated_nodes(dataset).sum()),
        measures=tuple(_summarize(dataset, measure) for measure in measures),
    )


def _summarize(dataset: GraphDataset, measure: Measure) -> MeasureSummary:
    values = graph_homophily(dataset, measure)
    counts, edges = _histogram(values[~np.isnan(values)], *measure.span)
    return MeasureSummary(
        measure=measure,
        values=values,
        overall=_distribution(values, measure),
        by_class=tuple(
            (value, _distribution(values[dataset.graph_class == position], measure))
            for position, value in enumerate(dataset.class_values)
        ),
        bin_edges=edges,
        bin_counts=counts,
    )


def bin_positions(
    values: NDArray[np.float64], low: float, high: float, bins: int
) -> NDArray[np.int64]:
    """The bin of each value; bins include their lower edge, and the last also its upper edge."""
    place = np.floor((values - low) / (high - low) * bins + _ROUNDING).astype(np.int64)
    return np.clip(place, 0, bins - 1)


def _histogram(
    values: NDArray[np.float64], low: float, high: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    places = bin_positions(values, low, high, HISTOGRAM_BINS)
    counts = np.bincount(places, minlength=HISTOGRAM_BINS)
    return counts, np.linspace(low, high, HISTOGRAM_BINS + 1)


def _distribution(values: NDArray[np.float64], measure: Measure) -> Distribution:
    defined = values[~np.isnan(values)]
    quantiles = np.quantile(defined, [0, 0.25, 0.5, 0.75, 1]) if len(defined) else [np.nan] * 5
    return Distribution(
        graphs=len(values),
        undefined=len(values) - len(defined),
        mean=float(defined.mean()) if len(defined) else np.nan,
        std=float(defined.std()) if len(defined) else np.nan,
        minimum=float(quantiles[0]),
        quartile_1=float(quantiles[1]),
        median=float(quantiles[2]),
        quartile_3=float(quantiles[3]),
        maximum=float(quantiles[4]),
        homophilic_share=_share(defined, measure.threshold),
    )


def _share(values: NDArray[np.float64], threshold: float) -> float:
    return float((values >= threshold - _ROUNDING).mean()) if len(values) else np.nan
