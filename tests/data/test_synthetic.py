"""Synthetic data sets: the recipe, what it gives away, and what it does not."""

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.synthetic import generate, partners
from ihgnn_cli.data.synthetic_spec import parse_synthetic
from ihgnn_cli.homophily.measures import graph_homophily, isolated_nodes

# Of 20 graphs at beta 0.3: a change means that everybody's synthetic data sets have changed.
FINGERPRINT = "3ad4d63caa5df6b2e8a6e65dd5449f1a19bb1515f98cfadfd269f0d87e593718"


def made(text: str) -> GraphDataset:
    return generate(parse_synthetic(text))


def pair_counts(dataset: GraphDataset) -> NDArray[np.int64]:
    """[G, L · L] edges by the labels of their ends."""
    labels, edges = len(dataset.label_values), dataset.edge_index()
    ends = dataset.node_label[edges]
    kind = ends[0] * labels + ends[1]
    return by_graph(dataset.node_graph[edges[0]], kind, len(dataset), labels**2)


def by_graph(
    graph: NDArray[np.int64], value: NDArray[np.integer], graphs: int, values: int
) -> NDArray[np.int64]:
    counts = np.bincount(graph * values + value, minlength=graphs * values)
    return counts.reshape(graphs, values)


def accuracy(features: NDArray[np.generic], dataset: GraphDataset) -> float:
    """Of a linear classifier, cross-validated."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    return float(cross_val_score(model, features, dataset.graph_class, cv=5).mean())


def triangles(dataset: GraphDataset) -> NDArray[np.float64]:
    """[G] times six."""
    found = np.zeros(len(dataset))
    for graph in range(len(dataset)):
        one = dataset.select([graph])
        adjacency = np.zeros((one.num_nodes, one.num_nodes))
        adjacency[tuple(one.edge_index())] = 1
        found[graph] = np.trace(adjacency @ adjacency @ adjacency)
    return found


# What is asked for


def test_a_round_pairs_all_labels_and_all_rounds_pair_any_two_once() -> None:
    assert partners(4, 0) == [(0, 3), (1, 2)]
    assert partners(4, 1) == [(0, 2), (1, 3)]
    assert partners(4, 2) == [(0, 1), (2, 3)]
    assert [partners(3, number) for number in range(3)] == [[(1, 2)], [(0, 2)], [(0, 1)]]
    for labels in range(3, 9):
        rounds = [partners(labels, number) for number in range(labels - 1 + labels % 2)]
        met = sorted(pair for each in rounds for pair in each)
        assert met == [(a, b) for a in range(labels) for b in range(a + 1, labels)]


def test_nodes_labels_edges_and_classes_are_as_many_as_asked_for() -> None:
    dataset = made("synthetic:graphs=90,nodes=41..50,labels=5,classes=3,degree=4,homophily=0.4")
    sizes = np.diff(dataset.node_ptr)
    assert len(dataset) == 90
    assert (sizes.min(), sizes.max()) == (41, 50)
    assert np.bincount(dataset.graph_class).tolist() == [30, 30, 30]
    assert (np.diff(dataset.edge_ptr) == 4 * sizes).all()
    labels = by_graph(dataset.node_graph, dataset.node_label, 90, 5)
    assert (labels.max(axis=1) - labels.min(axis=1) <= 1).all()
    assert dataset.class_values == (0, 1, 2)
    assert dataset.label_values == (0, 1, 2, 3, 4)
    assert dataset.notes.sentences() == []


@pytest.mark.parametrize("beta", [each / 10 for each in range(11)])
def test_the_homophily_is_the_one_asked_for_in_each_class(beta: float) -> None:
    dataset = made(f"synthetic:homophily={beta},graphs=200")
    found = graph_homophily(dataset)
    for number in (0, 1):
        assert found[dataset.graph_class == number].mean() == pytest.approx(beta, abs=0.015)
    assert isolated_nodes(dataset).sum() == 0


@pytest.mark.parametrize(
    ("beta", "fields"),
    [
        (0.1, "labels=2"),
        (0.8, "labels=3,degree=2.5,signal=0.3"),
        (0.3, "labels=7,nodes=70,degree=5,classes=7,signal=0.3"),
        (1.0, "labels=2,nodes=16,degree=3"),
    ],
)
def test_other_recipes_hit_the_homophily_too(beta: float, fields: str) -> None:
    found = graph_homophily(made(f"synthetic:homophily={beta},graphs=140,{fields}"))
    assert found.mean() == pytest.approx(beta, abs=0.02)


def test_at_the_ends_each_graph_has_the_homophily_exactly() -> None:
    assert set(graph_homophily(made("synthetic:homophily=0,graphs=50"))) == {0.0}
    assert set(graph_homophily(made("synthetic:homophily=1,graphs=50"))) == {1.0}


def test_of_a_range_each_graph_draws_its_own() -> None:
    found = graph_homophily(made("synthetic:homophily=0.2..0.8,graphs=300"))
    assert found.min() == pytest.approx(0.2, abs=0.06)
    assert found.max() == pytest.approx(0.8, abs=0.06)
    assert np.quantile(found, [0.25, 0.5, 0.75]) == pytest.approx([0.35, 0.5, 0.65], abs=0.05)


def test_full_graphs_take_what_has_no_room_elsewhere() -> None:
    """38 edges in 45 pairs, 15 of each label: the favoured one cannot take all of its own."""
    dataset = made("synthetic:homophily=1,nodes=18,labels=3,degree=4.2,signal=0.04,graphs=300")
    assert (np.diff(dataset.edge_ptr) == 2 * 38).all()
    assert pair_counts(dataset).max() == 2 * 15
    assert set(graph_homophily(dataset)) == {1.0}


# The same again


def test_the_same_text_is_the_same_data_on_every_machine() -> None:
    dataset = load_dataset("synthetic:graphs=20,homophily=0.3")
    assert dataset.fingerprint == FINGERPRINT
    again = load_dataset("synthetic: homophily = 0.30 , graphs = 20")
    assert (again.name, again.fingerprint) == (dataset.name, dataset.fingerprint)
    assert dataset.name == "synthetic:homophily=0.3,graphs=20"


def test_another_seed_is_other_data_of_the_same_kind() -> None:
    first, second = (made(f"synthetic:graphs=60,seed={seed}") for seed in (0, 1))
    assert first.fingerprint != second.fingerprint
    betas = [graph_homophily(each).mean() for each in (first, second)]
    assert betas[0] == pytest.approx(betas[1], abs=0.02)


def test_a_smaller_data_set_is_the_beginning_of_a_larger_one() -> None:
    large = made("synthetic:graphs=30")
    assert made("synthetic:graphs=12").fingerprint == large.select(range(12)).fingerprint


def test_nothing_depends_on_or_disturbs_the_global_random_numbers() -> None:
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = made("synthetic:graphs=4").fingerprint
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    np.random.seed(6)  # noqa: NPY002
    assert made("synthetic:graphs=4").fingerprint == first


def test_noise_gives_a_share_of_the_graphs_another_class_and_leaves_them_as_they_are() -> None:
    fields = "graphs=600,nodes=12..14,labels=3,classes=3,degree=3"
    clean, noisy = made(f"synthetic:{fields}"), made(f"synthetic:{fields},noise=0.25")
    changed = clean.graph_class != noisy.graph_class
    assert changed.mean() == pytest.approx(0.25, abs=0.05)
    moved = (noisy.graph_class - clean.graph_class)[changed] % 3
    assert np.bincount(moved, minlength=3)[1:].min() > 50
    assert (clean.neighbors == noisy.neighbors).all()
    assert (clean.node_label == noisy.node_label).all()
    assert (made(f"synthetic:{fields},noise=1").graph_class != clean.graph_class).all()


# Where the class lies


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_edges_by_the_labels_of_their_ends_tell_the_class(beta: float) -> None:
    dataset = made(f"synthetic:homophily={beta},graphs=600")
    assert 0.91 < accuracy(pair_counts(dataset), dataset) < 0.995


def test_more_signal_is_easier() -> None:
    found = []
    for signal in (0.02, 0.08, 0.3):
        dataset = made(f"synthetic:graphs=400,signal={signal},homophily=0.3")
        found.append(accuracy(pair_counts(dataset), dataset))
    assert found[0] < 0.7 < found[1] < 0.93 < found[2]
    assert found[2] > 0.99


@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
def test_neither_labels_nor_structure_nor_homophily_alone_tell_the_class(beta: float) -> None:
    """600 guesses: three standard deviations are 0.06."""
    dataset = made(f"synthetic:homophily={beta},graphs=600,signal=0.3")
    graphs = len(dataset)
    degrees = np.minimum(dataset.degree, 12)
    structure = np.column_stack(
        [
            by_graph(dataset.node_graph, degrees, graphs, 13),
            np.diff(dataset.node_ptr),
            np.diff(dataset.edge_ptr),
            triangles(dataset),
        ]
    )
    labels = by_graph(dataset.node_graph, dataset.node_label, graphs, 4)
    beta_of = graph_homophily(dataset)[:, None]
    for features in (structure, labels, beta_of):
        assert accuracy(features, dataset) == pytest.approx(0.5, abs=0.07)


def test_the_mixing_of_labels_is_the_documented_one() -> None:
    """At beta 0 and 4 labels a couple has signal / 2 + (1 - signal) / 6 of the edges."""
    dataset = made("synthetic:homophily=0,graphs=400,signal=0.3")
    counts = pair_counts(dataset).reshape(-1, 4, 4)
    for number, couples in ((0, [(0, 3), (1, 2)]), (1, [(0, 2), (1, 3)])):
        total = counts[dataset.graph_class == number].sum(axis=0)
        share = 2 * total / total.sum()
        for a in range(4):
            for b in range(a + 1, 4):
                expected = 0.7 / 6 + (0.15 if (a, b) in couples else 0)
                assert share[a, b] == pytest.approx(expected, abs=0.01)
    of_one = made("synthetic:homophily=1,graphs=400,signal=0.3")
    counts = pair_counts(of_one).reshape(-1, 4, 4)
    for number in (0, 1):
        total = counts[of_one.graph_class == number].sum(axis=0)
        expected = [0.175 + (0.3 if a == number else 0) for a in range(4)]
        assert np.diag(total / total.sum()) == pytest.approx(expected, abs=0.01)
