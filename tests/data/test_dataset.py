"""`GraphDataset` on a path of three nodes, a single node, and a pair:

0 - 1 - 2      3      4 - 5
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes, offsets, vocabulary
from ihgnn_cli.errors import InputError


@pytest.fixture
def three() -> GraphDataset:
    return GraphDataset(
        name="THREE",
        node_ptr=np.array([0, 3, 4, 6]),
        neighbor_ptr=np.array([0, 1, 3, 4, 4, 5, 6]),
        neighbors=np.array([1, 0, 2, 1, 5, 4], dtype=np.int32),
        node_label=np.array([0, 1, 0, 2, 1, 1], dtype=np.int32),
        label_values=("C", "N", "O"),
        label_source=LabelSource.LABELS,
        graph_class=np.array([0, 1, 0], dtype=np.int32),
        class_values=(-1, 1),
        node_attributes=np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [0.5]], dtype=np.float32),
        edge_label=np.array([0, 0, 1, 1, 0, 0], dtype=np.int32),
        edge_label_values=(1, 2),
        edge_attributes=np.array([[1], [1], [2], [2], [3], [3]], dtype=np.float32),
    )


# What the columns say


def test_sizes(three: GraphDataset) -> None:
    assert len(three) == 3
    assert three.num_nodes == 6
    assert three.num_edges == 3
    assert three.max_nodes == 3


def test_degree_counts_neighbours(three: GraphDataset) -> None:
    assert three.degree.tolist() == [1, 2, 1, 0, 1, 1]


def test_edge_ptr_delimits_each_graph_s_directed_edges(three: GraphDataset) -> None:
    assert three.edge_ptr.tolist() == [0, 4, 4, 6]


def test_node_graph_gives_each_node_s_graph(three: GraphDataset) -> None:
    assert three.node_graph.tolist() == [0, 0, 0, 1, 2, 2]


def test_edge_index_lists_both_directions_by_source_and_then_target(three: GraphDataset) -> None:
    assert three.edge_index().tolist() == [[0, 1, 1, 2, 4, 5], [1, 0, 2, 1, 5, 4]]
    assert three.edge_index().dtype == np.int64


def test_columns_are_the_arrays_that_are_there(three: GraphDataset) -> None:
    assert set(three.columns()) == {
        "node_ptr",
        "neighbor_ptr",
        "neighbors",
        "node_label",
        "graph_class",
        "node_attributes",
        "edge_label",
        "edge_attributes",
    }
    assert "node_attributes" not in replace(three, node_attributes=None).columns()


def test_columns_are_read_only(three: GraphDataset) -> None:
    for column in three.columns().values():
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_the_maker_s_own_arrays_stay_writable() -> None:
    label = np.array([0], dtype=np.int32)
    GraphDataset(
        name="ONE",
        node_ptr=np.array([0, 1]),
        neighbor_ptr=np.array([0, 0]),
        neighbors=np.array([], dtype=np.int32),
        node_label=label,
        label_values=(0,),
        label_source=LabelSource.DEGREE,
        graph_class=np.array([0], dtype=np.int32),
        class_values=(1,),
    )
    assert label.flags.writeable


def test_no_graphs_are_refused(three: GraphDataset) -> None:
    with pytest.raises(InputError) as caught:
        replace(three, node_ptr=np.array([0]))
    assert str(caught.value) == "THREE holds no graphs. Give a data set with at least one."


def test_a_graph_without_nodes_is_refused_by_its_position(three: GraphDataset) -> None:
    with pytest.raises(InputError, match=r"^THREE: graph 2 \(counted from 0\) has no nodes"):
        replace(three, node_ptr=np.array([0, 3, 4, 4, 6]))


# Selecting graphs


def test_select_keeps_the_given_order(three: GraphDataset) -> None:
    chosen = three.select([2, 0])
    assert chosen.node_ptr.tolist() == [0, 2, 5]
    assert chosen.neighbor_ptr.tolist() == [0, 1, 2, 3, 5, 6]
    assert chosen.edge_index().tolist() == [[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3]]
    assert chosen.node_label.tolist() == [1, 1, 0, 1, 0]
    assert chosen.graph_class.tolist() == [0, 0]


def test_select_takes_attributes_and_edge_columns_along(three: GraphDataset) -> None:
    chosen = three.select([2, 0])
    assert chosen.node_attributes is not None
    assert chosen.edge_label is not None
    assert chosen.edge_attributes is not None
    np.testing.assert_allclose(chosen.node_attributes[:, 0], [0.4, 0.5, 0.0, 0.1, 0.2])
    assert chosen.edge_label.tolist() == [0, 0, 0, 0, 1, 1]
    assert chosen.edge_attributes.tolist() == [[3], [3], [1], [1], [2], [2]]


def test_select_leaves_absent_columns_absent(three: GraphDataset) -> None:
    plain = replace(three, node_attributes=None, edge_label=None, edge_attributes=None)
    chosen = plain.select([0])
    assert chosen.node_attributes is chosen.edge_label is chosen.edge_attributes is None


def test_select_keeps_vocabularies_that_are_no_longer_used(three: GraphDataset) -> None:
    chosen = three.select([2])
    assert chosen.label_values == ("C", "N", "O")
    assert chosen.class_values == (-1, 1)
    assert chosen.edge_label_values == (1, 2)


def test_select_may_repeat_a_graph(three: GraphDataset) -> None:
    twice = three.select([2, 2])
    assert twice.edge_index().tolist() == [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert twice.node_graph.tolist() == [0, 0, 1, 1]


def test_select_of_a_graph_without_edges_has_none(three: GraphDataset) -> None:
    single = three.select([1])
    assert single.edge_index().shape == (2, 0)
    assert single.edge_ptr.tolist() == [0, 0]
    assert single.edge_attributes is not None
    assert single.edge_attributes.shape == (0, 1)
    assert single.num_edges == 0


def test_select_keeps_types(three: GraphDataset) -> None:
    before = {name: column.dtype for name, column in three.columns().items()}
    after = {name: column.dtype for name, column in three.select([2, 1]).columns().items()}
    assert after == before


def test_select_of_all_is_the_same_data_set(three: GraphDataset) -> None:
    assert three.select(np.arange(3)).fingerprint == three.fingerprint


def test_select_back_and_forth_is_the_same_data_set(three: GraphDataset) -> None:
    assert three.select([2, 0, 1]).select([1, 2, 0]).fingerprint == three.fingerprint


def test_select_counts_negative_positions_from_the_end(three: GraphDataset) -> None:
    assert three.select([-1]).fingerprint == three.select([2]).fingerprint
    assert three.select([-2, -3]).fingerprint == three.select([1, 0]).fingerprint


def test_select_understands_a_mask(three: GraphDataset) -> None:
    mask = np.array([False, True, True])
    assert three.select(mask).fingerprint == three.select([1, 2]).fingerprint


def test_select_of_a_position_that_is_not_there_is_an_error(three: GraphDataset) -> None:
    with pytest.raises(IndexError):
        three.select([3])


def test_select_of_nothing_is_refused(three: GraphDataset) -> None:
    with pytest.raises(InputError, match="THREE holds no graphs"):
        three.select([])


# Degrees as labels


def test_degree_labels_number_the_degrees_that_occur(three: GraphDataset) -> None:
    labelled = three.with_degree_labels()
    assert labelled.label_values == (0, 1, 2)
    assert labelled.node_label.tolist() == [1, 2, 1, 0, 1, 1]
    assert labelled.label_source is LabelSource.DEGREE


def test_degree_labels_leave_the_graphs_alone(three: GraphDataset) -> None:
    labelled = three.with_degree_labels()
    np.testing.assert_array_equal(labelled.edge_index(), three.edge_index())
    assert labelled.class_values == three.class_values
    assert three.label_values == ("C", "N", "O")


# The fingerprint


def test_the_fingerprint_does_not_depend_on_the_name_or_on_notes(three: GraphDataset) -> None:
    renamed = replace(three, name="OTHER", notes=ReadingNotes(self_loops=3))
    assert renamed.fingerprint == three.fingerprint


def test_the_fingerprint_does_not_depend_on_memory_layout(three: GraphDataset) -> None:
    wide = np.zeros((6, 2), dtype=np.float32)
    wide[:, :1] = three.node_attributes
    assert replace(three, node_attributes=wide[:, :1]).fingerprint == three.fingerprint


def test_the_fingerprint_does_not_depend_on_packing(
    write_tu: Callable[..., Path], zip_folder: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = write_tu(
        A="1, 2\n2, 1\n", graph_indicator="1\n1\n", graph_labels="5\n", node_labels="7\n8\n"
    )
    lines = tmp_path / "graphs.jsonl"
    lines.write_text('{"node_labels": [7, 8], "edges": [[0, 1]], "class": 5}\n')
    packed = [load_dataset(str(path)) for path in (folder, zip_folder(folder), lines)]
    assert len({each.fingerprint for each in packed}) == 1


@pytest.mark.parametrize(
    "column",
    ["node_label", "graph_class", "node_attributes", "edge_label", "edge_attributes", "neighbors"],
)
def test_the_fingerprint_changes_with_any_value(three: GraphDataset, column: str) -> None:
    changed = three.columns()[column].copy()
    changed[-1] += 1
    assert replace(three, **{column: changed}).fingerprint != three.fingerprint


@pytest.mark.parametrize("column", ["node_attributes", "edge_label", "edge_attributes"])
def test_the_fingerprint_changes_when_a_column_goes(three: GraphDataset, column: str) -> None:
    assert replace(three, **{column: None}).fingerprint != three.fingerprint


def test_the_fingerprint_changes_with_where_graphs_begin(three: GraphDataset) -> None:
    moved = replace(three, node_ptr=np.array([0, 2, 4, 6]))
    assert moved.fingerprint != three.fingerprint


def test_the_fingerprint_changes_with_the_order_of_graphs(three: GraphDataset) -> None:
    assert three.select([0, 2, 1]).fingerprint != three.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"label_values": ("C", "N", "P")},
        {"class_values": ("-1", "1")},
        {"edge_label_values": (1, 3)},
        {"label_source": LabelSource.DEGREE},
    ],
)
def test_the_fingerprint_changes_with_any_vocabulary(
    three: GraphDataset, change: dict[str, object]
) -> None:
    assert replace(three, **change).fingerprint != three.fingerprint


def test_the_fingerprint_of_a_data_set_without_edges_exists(three: GraphDataset) -> None:
    assert len(three.select([1]).fingerprint) == 64


# Notes


def test_notes_are_told_in_singular_and_plural() -> None:
    ones = ReadingNotes(1, 1, 1, 1, 1)
    assert ones.sentences() == [
        "1 self-loop left out",
        "1 duplicate edge merged (the first one is kept)",
        "1 duplicate disagreed in edge label or attributes",
        "1 one-directional edge made undirected",
        "1 node moved so that each graph's nodes are consecutive",
    ]
    many = ReadingNotes(2, 3, 4, 5, 6000)
    assert many.sentences() == [
        "2 self-loops left out",
        "3 duplicate edges merged (the first one is kept)",
        "4 duplicates disagreed in edge label or attributes",
        "5 one-directional edges made undirected",
        "6,000 nodes moved so that each graph's nodes are consecutive",
    ]


def test_notes_of_nothing_are_silent() -> None:
    assert ReadingNotes().sentences() == []
    assert ReadingNotes(one_directional=2).sentences() == [
        "2 one-directional edges made undirected"
    ]


# The helpers of every reader


def test_vocabulary_numbers_distinct_values_in_ascending_order() -> None:
    positions, values = vocabulary(np.array([7, -1, 7, 3]))
    assert positions.tolist() == [2, 0, 2, 1]
    assert positions.dtype == np.int32
    assert values == (-1, 3, 7)
    assert all(type(value) is int for value in values)


def test_offsets_start_at_zero_and_end_at_the_sum() -> None:
    assert offsets(np.array([3, 0, 2])).tolist() == [0, 3, 3, 5]
    assert offsets(np.array([], dtype=np.int64)).tolist() == [0]
