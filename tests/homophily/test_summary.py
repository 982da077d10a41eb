"""Means, quantiles, shares and histograms of a data set's homophily."""

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.measures import same_label_neighbors
from ihgnn_cli.homophily.summary import HISTOGRAM_BINS, bin_positions, summarize


@pytest.fixture
def pairs() -> GraphDataset:
    """Four graphs of two joined nodes: equal, equal, unequal labels; and two that are apart."""
    return build(
        ListedGraphs(
            name="pairs",
            sizes=np.array([2, 2, 2, 2]),
            source=np.array([0, 2, 4], dtype=np.int32),
            target=np.array([1, 3, 5], dtype=np.int32),
            classes=(np.array([0, 0, 1, 1], dtype=np.int32), ("no", "yes")),
            node_labels=(np.array([0, 0, 1, 1, 0, 1, 0, 0], dtype=np.int32), ("C", "N")),
            undirected=True,
        )
    )


def test_statistics_are_those_of_the_papers_table(pairs: GraphDataset) -> None:
    summary = summarize(pairs)
    assert (summary.graphs, summary.mean_nodes, summary.mean_edges) == (4, 2, 3 / 4)
    assert (summary.node_labels, summary.classes, summary.isolated_nodes) == (2, 2, 2)
    assert summary.label_source is LabelSource.LABELS


def test_beta_over_all_graphs_and_by_class(pairs: GraphDataset) -> None:
    found = summarize(pairs).of(Measure.NODE)
    assert found.values.tolist() == [1, 1, 0, 0]
    assert (found.overall.mean, found.overall.std) == (0.5, 0.5)
    assert (found.overall.minimum, found.overall.median, found.overall.maximum) == (0, 0.5, 1)
    assert found.overall.homophilic_share == 0.5
    assert {value: each.mean for value, each in found.by_class} == {"no": 1, "yes": 0}


def test_histograms_count_every_defined_graph_once(pairs: GraphDataset) -> None:
    found = summarize(pairs).of(Measure.NODE)
    assert found.bin_counts.sum() == 4
    assert (found.bin_counts[0], found.bin_counts[-1]) == (2, 2)


def test_undefined_graphs_are_counted_and_left_out(pairs: GraphDataset) -> None:
    # Adjusted: one label only (twice) and no edges are undefined; the mixed pair is at -1.
    found = summarize(pairs, (Measure.ADJUSTED,)).of(Measure.ADJUSTED)
    assert (found.overall.graphs, found.overall.undefined, found.overall.mean) == (4, 3, -1)
    assert found.bin_counts.sum() == 1
    no, yes = (each for _, each in found.by_class)
    assert (no.undefined, yes.undefined) == (2, 1)
    assert np.isnan(no.mean)


def exact_betas(dataset: GraphDataset) -> list[Fraction]:
    """Beta of each graph in fractions, which no rounding touches."""
    same, degree = same_label_neighbors(dataset).tolist(), dataset.degree.tolist()
    betas = []
    for start, end in itertools.pairwise(dataset.node_ptr.tolist()):
        alphas = [Fraction(same[v], degree[v]) if degree[v] else 0 for v in range(start, end)]
        betas.append(Fraction(sum(alphas)) / (end - start))
    return betas


def check_against_fractions(dataset: GraphDataset) -> None:
    found = summarize(dataset).of(Measure.NODE)
    betas = exact_betas(dataset)
    bins = [min(int(beta * HISTOGRAM_BINS), HISTOGRAM_BINS - 1) for beta in betas]
    assert found.bin_counts.tolist() == [bins.count(place) for place in range(HISTOGRAM_BINS)]
    at_least_half = sum(beta >= Fraction(1, 2) for beta in betas)
    assert found.overall.homophilic_share == at_least_half / len(betas)


def test_a_graph_on_the_edge_of_a_bin_or_threshold_is_counted_exactly() -> None:
    """MUTAG has graphs at just 0.5 and 0.6, which float means of thirds miss."""
    check_against_fractions(load_dataset("MUTAG"))


def test_bins_hold_their_lower_edge_and_the_last_one_both() -> None:
    values = np.array([0, 0.3, 0.1 + 0.2, 0.6 - 1e-16, 0.69, 1])
    assert bin_positions(values, 0, 1, 10).tolist() == [0, 3, 3, 6, 6, 9]


@pytest.mark.parametrize("name", ["PROTEINS", "DHFR_MD", "IMDB-MULTI"])
def test_real_histograms_equal_exact_arithmetic(name: str, real_data: Path) -> None:
    check_against_fractions(load_dataset(str(real_data / f"{name}.zip")))


def test_thresholds_are_half_for_shares_and_zero_for_the_adjusted_measure(
    pairs: GraphDataset,
) -> None:
    assert [measure.threshold for measure in Measure] == [0.5, 0.5, 0.0]
    edge = summarize(pairs, (Measure.EDGE,)).of(Measure.EDGE)
    assert edge.overall.homophilic_share == 0.5
