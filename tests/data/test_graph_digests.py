"""Telling graphs by their content: three of MUTAG's kind, and small changes of them."""

from dataclasses import replace

import numpy as np
import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset, Value, graph_digests


def graph(
    labels: list[int],
    edges: list[tuple[int, int]],
    values: tuple[Value, ...] = ("C", "N", "O"),
    graph_class: int = 0,
) -> GraphDataset:
    source, target = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    return build(
        ListedGraphs(
            name="ONE",
            sizes=np.array([len(labels)]),
            source=source,
            target=target,
            classes=(np.array([graph_class], dtype=np.int32), ("bad", "good")),
            node_labels=(np.array(labels, dtype=np.int32), values),
            undirected=True,
        )
    )


def digests(dataset: GraphDataset) -> list[str]:
    return graph_digests(dataset, np.arange(len(dataset)))


PATH = digests(graph([0, 1, 0], [(0, 1), (1, 2)]))


def test_the_same_graph_has_the_same_digest_in_another_part() -> None:
    mutag = load_dataset("MUTAG")
    chosen = np.array([150, 3, 77])
    assert digests(mutag.select(chosen)) == graph_digests(mutag, chosen)
    assert digests(mutag.select(chosen)) == [digests(mutag)[each] for each in chosen]


def test_digests_come_in_the_order_that_was_asked_for() -> None:
    mutag = load_dataset("MUTAG")
    forth, back = (graph_digests(mutag, np.array(each)) for each in ([1, 2, 3], [3, 2, 1]))
    assert forth == back[::-1]
    assert len(set(forth)) == 3


def test_no_graphs_have_no_digests() -> None:
    assert graph_digests(load_dataset("MUTAG"), np.array([], dtype=np.int64)) == []


def test_a_digest_is_a_short_text() -> None:
    (found,) = PATH
    assert len(found) == 16
    int(found, 16)


def test_digests_are_the_same_on_every_machine_and_in_every_version() -> None:
    """Checkpoints hold them."""
    assert PATH == ["2151b3aa8c338f58"]
    assert digests(graph([2], [])) == ["9be36b7823e3f1f9"]


@pytest.mark.parametrize(
    "other",
    [
        graph([0, 1, 0], [(0, 1), (1, 2)], values=("C", "N")),
        graph([1, 0, 1], [(0, 1), (1, 2)], values=("N", "C")),
        graph([7, 3, 7], [(0, 1), (1, 2)], values=tuple("abcNefgC")),
    ],
    ids=["fewer values", "other order", "more values"],
)
def test_labels_count_by_what_the_author_wrote(other: GraphDataset) -> None:
    assert digests(other) == PATH


def test_a_number_and_its_text_count_as_the_same_label() -> None:
    """As in files that know no types."""
    one, other = (graph([0, 1], [(0, 1)], values) for values in ((1, 2), ("1", "2")))
    assert digests(one) == digests(other)


def test_the_class_does_not_count() -> None:
    assert digests(graph([0, 1, 0], [(0, 1), (1, 2)], graph_class=1)) == PATH


def test_the_name_does_not_count() -> None:
    assert digests(replace(graph([0, 1, 0], [(0, 1), (1, 2)]), name="ANOTHER")) == PATH


@pytest.mark.parametrize(
    "other",
    [
        graph([0, 1, 1], [(0, 1), (1, 2)]),
        graph([0, 1, 0], [(0, 1)]),
        graph([0, 1, 0], [(0, 1), (0, 2)]),
        graph([0, 1, 0], [(0, 1), (1, 2), (0, 2)]),
        graph([0, 1, 0, 0], [(0, 1), (1, 2)]),
        graph([0, 1, 0], [(0, 1), (1, 2)], values=("C", "S", "O")),
        graph([0, 1], [(0, 1)]),
    ],
    ids=["label", "an edge less", "edge", "an edge more", "node", "value", "a node less"],
)
def test_a_change_changes_the_digest(other: GraphDataset) -> None:
    assert digests(other) != PATH


def test_the_order_of_nodes_counts() -> None:
    """A renumbered graph is not recognised: that would take an isomorphism test."""
    assert digests(graph([1, 0, 0], [(0, 1), (0, 2)])) != PATH


def test_graphs_without_edges_are_told_apart_by_labels() -> None:
    found = [digests(graph(labels, [])) for labels in ([0], [1], [0, 0], [0, 1], [1, 0])]
    assert len({each for (each,) in found}) == 5


def test_where_a_graph_stands_does_not_count() -> None:
    """Numbers of nodes start anew in each graph."""
    mutag = load_dataset("MUTAG")
    twice = mutag.select([5, 5])
    assert digests(twice)[0] == digests(twice)[1]


def test_degrees_as_labels_count_as_labels() -> None:
    path = graph([0, 1, 0], [(0, 1), (1, 2)])
    assert digests(path.with_degree_labels()) != PATH
    degrees = graph([0, 1, 0], [(0, 1), (1, 2)], values=(1, 2))
    assert digests(path.with_degree_labels()) == digests(degrees)


def test_edge_labels_count_where_they_are_used() -> None:
    path = graph([0, 1, 0], [(0, 1), (1, 2)])
    label = np.zeros(4, dtype=np.int32)
    single = replace(path, edge_label=label, edge_label_values=("single", "double"))
    double = replace(single, edge_label=label + 1)
    assert digests(single) == digests(double) == PATH
    used = [replace(each, uses_edge_labels=True) for each in (single, double)]
    assert len({*digests(used[0]), *digests(used[1]), *PATH}) == 3
    assert len({each.fingerprint for each in (single, used[0])}) == 2
