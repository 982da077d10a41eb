"""Equations 1 and 2, and the two other measures, on graphs small enough to count by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.homophily import measures
from ihgnn_cli.homophily.kinds import Measure
from ihgnn_cli.homophily.measures import (
    graph_homophily,
    isolated_nodes,
    node_homophily,
    same_label_neighbors,
)


def graphs(*items: tuple[list[str], list[tuple[int, int]]]) -> GraphDataset:
    """Graphs from node labels and undirected edges, all of class 0."""
    start, pairs, labels = 0, [], []
    for node_labels, edges in items:
        pairs += [(source + start, target + start) for source, target in edges]
        labels += node_labels
        start += len(node_labels)
    values = sorted(set(labels))
    ends = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    return build(
        ListedGraphs(
            name="hand-made",
            sizes=np.array([len(node_labels) for node_labels, _ in items]),
            source=ends[:, 0],
            target=ends[:, 1],
            classes=(np.zeros(len(items), dtype=np.int32), (0,)),
            node_labels=(
                np.array([values.index(each) for each in labels], dtype=np.int32),
                tuple(values),
            ),
            undirected=True,
        )
    )


# A path a-a-b with a node c that nobody knows.
PATH = (["a", "a", "b", "c"], [(0, 1), (1, 2)])
TRIANGLE = (["a", "a", "a"], [(0, 1), (1, 2), (2, 0)])
STAR = (["a", "b", "b", "b"], [(0, 1), (0, 2), (0, 3)])
# Two pairs of equals, joined by one edge: degrees a: 1 + 2, b: 2 + 1.
CHAIN = (["a", "a", "b", "b"], [(0, 1), (1, 2), (2, 3)])


def test_alpha_is_the_share_of_neighbours_with_the_same_label() -> None:
    assert_allclose(node_homophily(graphs(PATH)), [1, 0.5, 0, 0])


def test_beta_is_the_mean_of_alpha_and_isolated_nodes_count_as_zero() -> None:
    dataset = graphs(PATH, TRIANGLE, STAR)
    assert_allclose(graph_homophily(dataset), [(1 + 0.5 + 0 + 0) / 4, 1, 0])
    assert isolated_nodes(dataset).tolist() == [1, 0, 0]


def test_edge_homophily_is_the_share_of_edges_between_equal_labels() -> None:
    assert_allclose(graph_homophily(graphs(PATH, TRIANGLE, STAR), Measure.EDGE), [1 / 2, 1, 0])


def test_adjusted_homophily_corrects_for_degrees_and_label_shares() -> None:
    # Two of three edges join equals; each label holds 3 of the 6 edge ends: S = 1/4 + 1/4.
    assert_allclose(
        graph_homophily(graphs(CHAIN), Measure.ADJUSTED), [(2 / 3 - 1 / 2) / (1 - 1 / 2)]
    )
    # The star's ends are half and half, and no edge joins equals: as heterophilic as can be.
    assert_allclose(graph_homophily(graphs(STAR), Measure.ADJUSTED), [-1])


def test_adjusted_homophily_is_undefined_for_one_label_or_no_edges() -> None:
    edgeless = (["a", "b"], [])
    values = graph_homophily(graphs(TRIANGLE, edgeless, CHAIN), Measure.ADJUSTED)
    assert np.isnan(values).tolist() == [True, True, False]


def test_adjusted_homophily_is_defined_as_soon_as_two_labels_have_edges() -> None:
    # A path of 20,000 a's that ends in one b: S is 1 but for the last digits.
    path = (["a"] * 20000 + ["b"], [(node, node + 1) for node in range(20000)])
    value = graph_homophily(graphs(path), Measure.ADJUSTED)[0]
    share, b = 19999 / 20000, 1 / 40000
    expected = (1 - b) ** 2 + b**2
    assert value == pytest.approx((share - expected) / (1 - expected), rel=1e-6)


def test_a_graph_without_edges_has_homophily_zero() -> None:
    edgeless = graphs((["a", "a"], []))
    assert graph_homophily(edgeless, Measure.NODE).tolist() == [0]
    assert graph_homophily(edgeless, Measure.EDGE).tolist() == [0]


def test_blocks_of_edges_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = graphs(PATH, STAR, TRIANGLE, (["a"], []), CHAIN, (["b", "b"], []))
    whole = same_label_neighbors(dataset)
    for block in (1, 2, 3, 7):
        monkeypatch.setattr(measures, "_BLOCK_EDGES", block)
        assert same_label_neighbors(dataset).tolist() == whole.tolist()


@st.composite
def labelled_graph(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, int]]]:
    size = draw(st.integers(1, 7))
    labels = draw(st.lists(st.sampled_from("abc"), min_size=size, max_size=size))
    node = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(node, node).filter(lambda e: e[0] != e[1]), max_size=12))
    return labels, edges


@given(st.lists(labelled_graph(), min_size=1, max_size=4), st.randoms())
def test_every_measure_follows_its_definition_and_ignores_the_order_of_nodes(
    items: list[tuple[list[str], list[tuple[int, int]]]], random: object
) -> None:
    dataset = graphs(*items)
    shuffled = []
    for (labels, edges), beta, edge_share in zip(
        items,
        graph_homophily(dataset),
        graph_homophily(dataset, Measure.EDGE),
        strict=True,
    ):
        simple = {frozenset(edge) for edge in edges}
        alphas = []
        for node, label in enumerate(labels):
            around = [next(iter(edge - {node})) for edge in simple if node in edge]
            same = [labels[other] == label for other in around]
            alphas.append(sum(same) / len(same) if same else 0)
        assert beta == pytest.approx(sum(alphas) / len(alphas))
        equal = [len({labels[node] for node in edge}) == 1 for edge in simple]
        assert edge_share == pytest.approx(sum(equal) / len(equal) if equal else 0)
        place = list(range(len(labels)))
        random.shuffle(place)  # type: ignore[attr-defined]
        moved = [labels[place.index(node)] for node in range(len(labels))]
        shuffled.append((moved, [(place[source], place[target]) for source, target in edges]))
    for measure in Measure:
        assert_allclose(
            graph_homophily(graphs(*shuffled), measure),
            graph_homophily(dataset, measure),
            atol=1e-12,
        )


def test_node_homophily_equals_torch_geometrics_on_mutag() -> None:
    import torch
    from torch_geometric.utils import homophily

    from ihgnn_cli.data import load_dataset

    dataset = load_dataset("MUTAG")
    theirs = homophily(
        torch.tensor(dataset.edge_index()),
        torch.tensor(dataset.node_label, dtype=torch.long),
        torch.tensor(dataset.node_graph),
        method="node",
    )
    assert_allclose(graph_homophily(dataset), theirs.numpy(), atol=1e-6)
