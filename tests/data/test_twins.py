"""Twins are graphs with the same multiset of 1-WL colours."""

import numpy as np
from graph_makers import HEXAGON, KITE, PATH, TWO_TRIANGLES, dataset_of

from ihgnn_cli.data.twins import ROUNDS, colorings, twin_groups


def test_the_classic_pair_that_1_wl_cannot_tell_apart_are_twins() -> None:
    groups = twin_groups(dataset_of([TWO_TRIANGLES, KITE, HEXAGON]))
    assert groups[0] == groups[2] != groups[1]


def test_the_order_of_nodes_does_not_matter() -> None:
    reversed_path = ([0, 2, 1, 0, 0], [(4, 3), (3, 2), (2, 1), (1, 0)])
    assert len(set(twin_groups(dataset_of([PATH, reversed_path])).tolist())) == 1


def test_graphs_with_the_same_labels_are_told_apart_by_later_rounds() -> None:
    # Same labels and degrees; the labelled node is at the end of one path and inside the other.
    end = ([1, 0, 0, 0], [(0, 1), (1, 2), (2, 3)])
    inside = ([0, 1, 0, 0], [(0, 1), (1, 2), (2, 3)])
    found = colorings(dataset_of([end, inside]))
    assert [len(np.unique(each)) for each in found] == [1, 2, 2, 2, 2, 2]
    assert len(found) == ROUNDS + 1
