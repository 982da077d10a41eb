"""Listed edges become simple undirected graphs; the small cases are worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihgnn_cli.data.dataset import ReadingNotes
from ihgnn_cli.data.readers.edges import SimpleEdges, count_conflicts, simplify, symmetric

Pairs = list[tuple[int, int]]


def ends(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def simple(pairs: Pairs, num_nodes: int, undirected: bool = False) -> SimpleEdges:
    return simplify(*ends(pairs), num_nodes, keep_lines=True, undirected=undirected)


def rows(edges: SimpleEdges) -> list[list[int]]:
    """The neighbours of each node."""
    return [part.tolist() for part in np.split(edges.neighbors, edges.neighbor_ptr[1:-1])]


def test_a_graph_that_is_simple_already_stays_as_it_is() -> None:
    # 0 - 1 - 2
    edges = simple([(0, 1), (1, 0), (1, 2), (2, 1)], 3)
    assert edges.neighbor_ptr.tolist() == [0, 1, 3, 4]
    assert edges.neighbors.tolist() == [1, 0, 2, 1]
    assert edges.line is not None
    assert edges.line.tolist() == [0, 1, 2, 3]
    assert edges.notes == ReadingNotes()


def test_neighbours_ascend_whatever_the_order_of_the_list() -> None:
    # A star around 2 with the rays 0, 1 and 3.
    edges = simple([(2, 3), (3, 2), (2, 0), (1, 2), (0, 2), (2, 1)], 4)
    assert rows(edges) == [[2], [2], [0, 1, 3], [2]]
    assert edges.line is not None
    assert edges.line.tolist() == [4, 3, 2, 5, 0, 1]
    assert edges.notes == ReadingNotes()


def test_self_loops_are_left_out_and_counted() -> None:
    edges = simple([(0, 0), (0, 1), (1, 0), (1, 1), (2, 2)], 3)
    assert rows(edges) == [[1], [0], []]
    assert edges.line is not None
    assert edges.line.tolist() == [1, 2]
    assert edges.notes == ReadingNotes(self_loops=3)


def test_duplicates_are_merged_into_the_first_and_counted() -> None:
    edges = simple([(1, 0), (0, 1), (0, 1), (1, 0), (0, 1)], 2)
    assert rows(edges) == [[1], [0]]
    assert edges.line is not None
    assert edges.line.tolist() == [1, 0]
    assert edges.notes == ReadingNotes(duplicate_edges=3)


def test_a_missing_direction_is_added_and_takes_the_line_of_its_mirror() -> None:
    # 0 - 1 stands once, 1 - 2 twice, 3 - 0 once and backwards.
    edges = simple([(0, 1), (1, 2), (2, 1), (3, 0)], 4)
    assert rows(edges) == [[1, 3], [0, 2], [1], [0]]
    assert edges.line is not None
    assert edges.line.tolist() == [0, 3, 0, 1, 2, 3]
    assert edges.notes == ReadingNotes(one_directional=2)


def test_a_listed_direction_keeps_its_own_line_where_others_are_added() -> None:
    edges = simple([(1, 0), (0, 1), (1, 2)], 3)
    assert rows(edges) == [[1], [0, 2], [1]]
    assert edges.line is not None
    assert edges.line.tolist() == [1, 0, 2, 2]


def test_all_changes_together() -> None:
    # On nodes 0-4: a loop at 4, 0 -> 3 three times, 2 -> 1 once; node 4 is left alone.
    edges = simple([(4, 4), (0, 3), (2, 1), (0, 3), (0, 3)], 5)
    assert rows(edges) == [[3], [2], [1], [0], []]
    assert edges.line is not None
    assert edges.line.tolist() == [1, 2, 2, 1]
    assert edges.notes == ReadingNotes(self_loops=1, duplicate_edges=2, one_directional=2)


def test_edges_listed_once_by_definition_are_no_news() -> None:
    edges = simple([(0, 1), (1, 2), (2, 2), (0, 1)], 3, undirected=True)
    assert rows(edges) == [[1], [0, 2], [1]]
    assert edges.notes == ReadingNotes(self_loops=1, duplicate_edges=1, one_directional=0)


@pytest.mark.parametrize("pairs", [[], [(1, 1)]])
def test_without_edges_every_row_is_empty(pairs: Pairs) -> None:
    edges = simple(pairs, 3)
    assert edges.neighbor_ptr.tolist() == [0, 0, 0, 0]
    assert edges.neighbors.tolist() == []
    assert edges.notes == ReadingNotes(self_loops=len(pairs))


def test_lines_are_kept_only_on_request() -> None:
    assert simplify(*ends([(1, 0), (1, 1)]), 2, keep_lines=False).line is None


@pytest.mark.parametrize("pairs", [[], [(0, 1)], [(1, 0), (0, 1)]])
def test_the_columns_have_the_types_of_a_data_set(pairs: Pairs) -> None:
    edges = simple(pairs, 2)
    assert (edges.neighbor_ptr.dtype, edges.neighbors.dtype) == (np.int64, np.int32)


def test_the_list_that_was_given_is_not_changed() -> None:
    source, target = ends([(2, 1), (0, 0), (2, 1)])
    before = source.copy(), target.copy()
    simplify(source, target, 3, keep_lines=True)
    np.testing.assert_array_equal((source, target), before)


def reference(pairs: Pairs) -> tuple[Pairs, list[int], ReadingNotes]:
    """Both directions of every edge in order, the line of each, and what was changed."""
    proper = [pair for pair in pairs if pair[0] != pair[1]]
    listed = set(proper)
    both = sorted(listed | {(target, source) for source, target in listed})
    lines = [pairs.index(pair if pair in listed else pair[::-1]) for pair in both]
    notes = ReadingNotes(
        self_loops=len(pairs) - len(proper),
        duplicate_edges=len(proper) - len(listed),
        one_directional=len(both) - len(listed),
    )
    return both, lines, notes


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, n - 1)] * 2))))
def test_any_list_of_edges_gives_what_sets_give(pairs: Pairs) -> None:
    num_nodes = 5
    edges = simple(pairs, num_nodes)
    source = np.repeat(np.arange(num_nodes), np.diff(edges.neighbor_ptr))
    found = list(zip(source.tolist(), edges.neighbors.tolist(), strict=True))
    assert edges.line is not None
    assert (found, edges.line.tolist(), edges.notes) == reference(pairs)


def conflicts(pairs: Pairs, num_nodes: int, column: list[int] | list[list[int]]) -> int:
    return count_conflicts(simple(pairs, num_nodes), *ends(pairs), np.array(column))


def test_duplicates_that_agree_are_no_conflict() -> None:
    assert conflicts([(0, 1), (1, 0), (0, 1)], 2, [7, 8, 7]) == 0


def test_each_duplicate_that_differs_from_the_first_is_a_conflict() -> None:
    # 0 -> 1 has the values 7, 8, 7, 9, of which the first 7 is kept; 1 -> 0 agrees with itself.
    pairs = [(0, 1), (0, 1), (1, 0), (0, 1), (1, 0), (0, 1)]
    assert conflicts(pairs, 2, [7, 8, 1, 7, 1, 9]) == 2


def test_a_row_of_several_values_conflicts_once() -> None:
    assert conflicts([(0, 1), (0, 1), (0, 1)], 2, [[1, 2], [3, 4], [1, 5]]) == 2


def test_directions_may_differ_and_self_loops_do_not_count() -> None:
    assert conflicts([(0, 1), (1, 0), (2, 2), (2, 2)], 3, [1, 2, 3, 4]) == 0


@pytest.mark.parametrize("pairs", [[], [(0, 0), (0, 0)]])
def test_without_proper_edges_there_is_no_conflict(pairs: Pairs) -> None:
    assert conflicts(pairs, 1, [1, 2][: len(pairs)]) == 0


def test_conflicts_cannot_be_counted_without_lines() -> None:
    source, target = ends([(0, 1)])
    edges = simplify(source, target, 2, keep_lines=False)
    with pytest.raises(ValueError, match="keep_lines=True"):
        count_conflicts(edges, source, target, np.array([1]))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30))
def test_the_edges_of_a_batch_become_the_same_graphs(pairs: Pairs) -> None:
    source, target = ends(pairs)
    ptr, neighbors = symmetric(source.astype(np.int64), target.astype(np.int64), 7)
    expected = simple(pairs, 7)
    assert ptr.tolist() == expected.neighbor_ptr.tolist()
    assert neighbors.tolist() == expected.neighbors.tolist()
