"""Listed edges become simple undirected graphs; the small cases are worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihgnn_cli.data.build import ListedGraphs, build, simplify, symmetric
from ihgnn_cli.data.dataset import ReadingNotes

Pairs = list[tuple[int, int]]


def ends(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    return array[:, 0], array[:, 1]


@pytest.mark.parametrize(
    ("pairs", "neighbors", "line", "notes"),
    [
        pytest.param(
            [(0, 1), (1, 0), (1, 2), (2, 1)], [[1], [0, 2], [1]], [0, 1, 2, 3], {}, id="simple"
        ),
        pytest.param(
            [(2, 1), (1, 2), (0, 1), (1, 0)], [[1], [0, 2], [1]], [2, 3, 1, 0], {}, id="unsorted"
        ),
        pytest.param(
            [(0, 0), (0, 1), (1, 0), (2, 2)], [[1], [0], []], [1, 2], {"self_loops": 2}, id="loops"
        ),
        pytest.param(
            [(1, 0), (0, 1), (0, 1), (1, 0)],
            [[1], [0], []],
            [1, 0],
            {"duplicate_edges": 2},
            id="the first of duplicates is kept",
        ),
        pytest.param(
            [(0, 1), (1, 2), (2, 1)],
            [[1], [0, 2], [1]],
            [0, 0, 1, 2],
            {"one_directional": 1},
            id="an added direction takes the line of its mirror",
        ),
        pytest.param(
            [(1, 0), (0, 1), (1, 2)],
            [[1], [0, 2], [1]],
            [1, 0, 2, 2],
            {"one_directional": 1},
            id="a listed direction keeps its own line where others are added",
        ),
        pytest.param([], [[], [], []], [], {}, id="no edges"),
    ],
)
def test_listed_edges_become_simple(pairs, neighbors, line, notes) -> None:
    source, target = ends(pairs)
    before = source.copy()
    found = simplify(source, target, 3, keep_lines=True)
    assert [
        each.tolist() for each in np.split(found.neighbors, found.neighbor_ptr[1:-1])
    ] == neighbors
    assert found.line is not None
    assert found.line.tolist() == line
    assert found.notes == ReadingNotes(**notes)
    assert (found.neighbor_ptr.dtype, found.neighbors.dtype) == (np.int64, np.int32)
    assert source.tolist() == before.tolist()
    assert simplify(source, target, 3, keep_lines=False).line is None
    assert simplify(source, target, 3, keep_lines=False, undirected=True).notes.one_directional == 0


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=30))
def test_any_list_of_edges_gives_what_sets_give(pairs: Pairs) -> None:
    found = simplify(*ends(pairs), 5, keep_lines=True)
    source = np.repeat(np.arange(5), np.diff(found.neighbor_ptr)).tolist()
    proper = [pair for pair in pairs if pair[0] != pair[1]]
    listed = set(proper)
    both = sorted(listed | {pair[::-1] for pair in listed})
    assert list(zip(source, found.neighbors.tolist(), strict=True)) == both
    assert found.line is not None
    lines = [pairs.index(pair if pair in listed else pair[::-1]) for pair in both]
    assert found.line.tolist() == lines
    assert found.notes == ReadingNotes(
        self_loops=len(pairs) - len(proper),
        duplicate_edges=len(proper) - len(listed),
        one_directional=len(both) - len(listed),
    )
    ptr, neighbors = symmetric(*(each.astype(np.int64) for each in ends(pairs)), 5)
    assert ptr.tolist() == found.neighbor_ptr.tolist()
    assert neighbors.tolist() == found.neighbors.tolist()


@pytest.mark.parametrize(
    ("pairs", "attributes", "conflicts"),
    [
        ([(0, 1), (1, 0), (0, 1)], [[7], [8], [7]], 0),  # directions may differ
        ([(0, 1), (0, 1), (1, 0), (0, 1), (1, 0)], [[7], [8], [1], [7], [2]], 2),
        ([(0, 1), (0, 1), (0, 1)], [[1, 2], [3, 4], [1, 5]], 2),
        ([(0, 1), (1, 1), (1, 1)], [[1], [2], [3]], 0),
    ],
)
def test_duplicates_that_disagree_are_counted_and_the_first_counts(
    pairs, attributes, conflicts
) -> None:
    source, target = ends(pairs)
    dataset = build(
        ListedGraphs(
            name="ONE",
            sizes=np.array([2]),
            source=source,
            target=target,
            classes=(np.zeros(1, np.int32), (0,)),
            edge_attributes=np.array(attributes, dtype=np.float32),
        )
    )
    assert dataset.notes.conflicting_duplicates == conflicts
    assert dataset.edge_attributes is not None
    assert dataset.edge_attributes[0].tolist() == attributes[0]
