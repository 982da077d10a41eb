"""Batches of a triangle (graph 0), a path of two (1), a path of three (2) and a single node (3)."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ihgnn_cli.data.batching.batches import (
    BLOCK_COST,
    Batch,
    Block,
    GraphStore,
    node_places,
    rank_blocks,
)
from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.features import Features

CPU = torch.device("cpu")


@pytest.fixture
def four() -> GraphDataset:
    return GraphDataset(
        name="FOUR",
        node_ptr=np.array([0, 3, 5, 8, 9]),
        neighbor_ptr=np.array([0, 2, 4, 6, 7, 8, 9, 11, 12, 12]),
        neighbors=np.array([1, 2, 0, 2, 0, 1, 4, 3, 6, 5, 7, 6], dtype=np.int32),
        node_label=np.array([0, 1, 1, 0, -1, 1, 0, 1, 0], dtype=np.int32),
        label_values=("C", "N"),
        label_source=LabelSource.LABELS,
        graph_class=np.array([0, 1, 1, 0], dtype=np.int32),
        class_values=(0, 1),
        node_attributes=np.arange(9, dtype=np.float32)[:, None],
    )


def store(
    data: GraphDataset, m: int = 3, rounds: int | None = None, **kinds: Features
) -> GraphStore:
    return GraphStore(data, kinds.get("features", Features.LABELS), m, rounds, CPU)


def batch(data: GraphDataset, *graphs: Sequence[int]) -> Batch:
    return store(data).batch([np.array(each, dtype=np.int64) for each in graphs])


def test_graphs_stand_in_descending_order_of_size(four: GraphDataset) -> None:
    found = batch(four, [3, 1, 0])
    assert found.graph.tolist() == [[0, 1, 3]]
    assert found.origin.tolist() == [[2, 1, 0]]
    assert found.truth.tolist() == [[0, 1, 0]]
    assert found.reach == [3]
    assert batch(four, [2, 0]).graph.tolist() == [[2, 0]]  # of the same size: in order


def test_a_row_reads_itself_and_its_neighbours(four: GraphDataset) -> None:
    """The triangle is rows 0-2, the path rows 3-4; column 2r is row r's own, 2r + 1 is A's."""
    rows = batch(four, [1, 0]).rows
    assert rows.column_ptr.tolist() == [0, 3, 6, 9, 11, 13]
    assert rows.columns.tolist() == [0, 3, 5, 2, 1, 5, 4, 1, 3, 6, 9, 8, 7]
    assert rows.receiver_ptr.tolist() == [0, 1, 3, 4, 6, 7, 9, 10, 11, 12, 13]
    assert rows.receivers.tolist() == [0, 1, 2, 1, 0, 2, 2, 0, 1, 3, 4, 4, 3]
    assert rows.weight is None
    assert rows.graph_ptr.tolist() == [0, 3, 5]
    assert (rows.graph_key >> 32).tolist() == [0, 0, 0, 1, 1]


def test_the_receivers_are_the_transpose_of_the_columns(four: GraphDataset) -> None:
    """With colour classes and two edge labels, so that weights differ by direction."""
    source, target = four.edge_index()
    label = (np.maximum(source, target) % 2).astype(np.int32)
    data = replace(four, edge_label=label, edge_label_values=("a", "b"), uses_edge_labels=True)
    for rounds in (None, 1):
        made = store(data, rounds=rounds)
        rows = made.batch([np.array([0, 2]), np.array([1])]).rows
        assert (rows.weight is None) is (rounds is None or len(made.rows.size) == data.num_nodes)
        count = len(rows.column_ptr) - 1
        reads, received = np.zeros((count, 3 * count)), np.zeros((3 * count, count))
        size = np.diff(rows.node_ptr)
        for found, ptr, index, weight in (
            (reads, rows.column_ptr, rows.columns, rows.weight),
            (received, rows.receiver_ptr, rows.receivers, rows.receiver_weight),
        ):
            at = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
            found[at, index.numpy()] = 1 if weight is None else weight.numpy()
        np.testing.assert_allclose(reads.T, received)
        # Every node reads itself and its neighbours: 6 of the triangle, 4 and 2 of the paths.
        total = (reads * size[:, None]).sum() - size.sum()
        assert total == pytest.approx(6 + 4 + 2)


def test_an_unknown_label_is_the_value_after_the_last(four: GraphDataset) -> None:
    rows = batch(four, [1, 0]).rows
    assert rows.label.tolist() == [0, 1, 1, 0, 2]
    assert rows.label_rows.tolist() == [0, 3, 1, 2, 4]
    assert rows.label_ptr.tolist() == [0, 2, 4, 5]
    assert rows.label_share.flatten().tolist() == pytest.approx([0.4, 0.4, 0.2])


def test_members_stand_one_below_the_other_padded_to_the_longest(four: GraphDataset) -> None:
    found = batch(four, [1], [0, 3])  # R = 4
    rows = found.rows
    assert rows.share.squeeze(1).tolist() == [[0.5, 0.5, 0, 0], [0.25] * 4]
    assert rows.column_ptr.tolist() == [0, 2, 4, 4, 4, 7, 10, 13, 14]
    assert rows.columns.tolist() == [0, 3, 2, 1, 8, 11, 13, 10, 9, 13, 12, 9, 11, 14]
    assert rows.label.tolist() == [0, 2, 2, 2, 3, 4, 4, 3]
    assert rows.node_row.tolist() == [0, 1, 4, 5, 6, 7]
    assert found.graph.tolist() == [[1, -1], [0, 3]]
    assert found.graph_share.tolist() == [[1, 0], [0.5, 0.5]]
    assert rows.graph_ptr.tolist() == [0, 2, 2, 5, 6]
    assert rows.unbiased.flatten().tolist() == pytest.approx([2, 4 / 3])
    assert rows.present is None


def test_a_member_may_have_no_graphs(four: GraphDataset) -> None:
    found = batch(four, [], [0])
    rows = found.rows
    assert found.graph.tolist() == [[-1], [0]]
    assert found.reach == [0, 3]
    assert rows.share[0].tolist() == [[0, 0, 0]]
    assert rows.present is not None
    assert rows.present.flatten().tolist() == [0, 1]
    assert rows.unbiased.flatten().tolist() == pytest.approx([1, 1.5])


def test_attributes_are_zero_at_padding(four: GraphDataset) -> None:
    rows = store(four, features=Features.BOTH).batch([np.array([1]), np.array([0])]).rows
    assert rows.attributes is not None
    assert rows.attributes.squeeze(-1).tolist() == [[3, 4, 0], [0, 1, 2]]


def test_nodes_beyond_m_go_to_the_place_after_the_last(four: GraphDataset) -> None:
    rows = store(four, m=2).batch([np.array([0, 1])]).rows
    assert rows.blocks == (Block(0, 2, 2),)
    assert rows.place.tolist() == [0, 1, 4, 2, 3]


def test_colour_classes_are_rows_of_several_nodes(four: GraphDataset) -> None:
    # With two rounds: a triangle of C and two N; a path N - C - N. The N are equal.
    rows = store(four.select([0, 2]), rounds=2).batch([np.array([0, 1])]).rows
    assert sorted(np.diff(rows.node_ptr).tolist()) == [1, 1, 2, 2]
    assert rows.node_row.tolist() == np.repeat(np.arange(4), np.diff(rows.node_ptr)).tolist()
    assert rows.share.sum().item() == pytest.approx(1)


def test_attributes_have_to_be_there(four: GraphDataset) -> None:
    with pytest.raises(ValueError, match="no node attributes"):
        store(replace(four, node_attributes=None), features=Features.BOTH)


SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=40).map(
    lambda sizes: sorted(sizes, reverse=True)
)


@given(SIZES)
def test_blocks_hold_every_node_in_a_place_of_its_own(sizes: list[int]) -> None:
    blocks = rank_blocks(sizes)
    assert [block.low for block in blocks] == [0, *(block.high for block in blocks[:-1])]
    assert blocks[-1].high == sizes[0]
    held = {
        (graph, rank)
        for block in blocks
        for graph in range(block.graphs)
        for rank in range(block.low, block.high)
    }
    assert held >= {(graph, rank) for graph, size in enumerate(sizes) for rank in range(size)}
    at = np.stack([np.zeros(len(sizes), dtype=int), np.arange(len(sizes))])
    place = node_places(blocks, np.array(sizes), at)
    assert len(set(place.tolist())) == sum(sizes)
    assert place.max() < len(held)


@given(SIZES)
def test_blocks_leave_few_places_empty(sizes: list[int]) -> None:
    places = sum(block.places for block in rank_blocks(sizes))
    assert places <= 2 * sum(sizes) + BLOCK_COST
