"""Batches of a triangle (graph 0), a path of two (1), a path of three (2) and a single node (3)."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from ihgnn_cli.data.batching.blocks import BLOCK_COST, rank_blocks, slots

from ihgnn_cli.data.batching import store as store_module
from ihgnn_cli.data.batching.batches import Batch, GraphStore
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


def test_graphs_of_the_same_size_keep_their_order(four: GraphDataset) -> None:
    assert batch(four, [2, 0]).graph.tolist() == [[2, 0]]


def test_rows_and_their_neighbours(four: GraphDataset) -> None:
    found = batch(four, [1, 0])  # the triangle is rows 0-2, the path rows 3-4
    assert found.neighbor_ptr.tolist() == [0, 2, 4, 6, 7, 8]
    assert found.neighbors.tolist() == [1, 2, 0, 2, 0, 1, 4, 3]
    assert found.edge_weight is None
    assert found.graph_ptr.tolist() == [0, 3, 5]
    assert found.layout.graph.tolist() == [0, 0, 0, 1, 1]


def test_an_unknown_label_is_the_value_after_the_last(four: GraphDataset) -> None:
    found = batch(four, [1, 0])
    assert found.label.tolist() == [0, 1, 1, 0, 2]
    assert found.label_rows.tolist() == [0, 3, 1, 2, 4]
    assert found.label_ptr.tolist() == [0, 2, 4, 5]
    assert found.label_share.flatten().tolist() == pytest.approx([0.4, 0.4, 0.2])


def test_members_stand_one_below_the_other_padded_to_the_longest(four: GraphDataset) -> None:
    found = batch(four, [1], [0, 3])  # R = 4
    assert found.size.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert found.share.squeeze(1).tolist() == [[0.5, 0.5, 0, 0], [0.25] * 4]
    assert found.neighbors.tolist() == [1, 0, 5, 6, 4, 6, 4, 5]
    assert found.neighbor_ptr.tolist() == [0, 1, 2, 2, 2, 4, 6, 8, 8]
    assert found.label.tolist() == [0, 2, 2, 2, 3, 4, 4, 3]
    assert found.layout.row.tolist() == [0, 1, 4, 5, 6, 7]
    assert found.graph.tolist() == [[1, -1], [0, 3]]
    assert found.graph_weight.tolist() == [[1, 0], [1, 1]]
    assert found.graph_share.tolist() == [[1, 0], [0.5, 0.5]]
    assert found.graph_ptr.tolist() == [0, 2, 2, 5, 6]
    assert found.unbiased.flatten().tolist() == pytest.approx([2, 4 / 3])


def test_a_member_may_have_no_graphs(four: GraphDataset) -> None:
    found = batch(four, [], [0])
    assert found.size.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert found.share[0].tolist() == [[0, 0, 0]]
    assert found.graph.tolist() == [[-1], [0]]
    assert found.filled.flatten().tolist() == [0, 1]
    assert found.unbiased.flatten().tolist() == pytest.approx([1, 1.5])


def test_attributes_are_zero_at_padding(four: GraphDataset) -> None:
    both = store(four, features=Features.BOTH)
    found = both.batch([np.array([1]), np.array([0])])
    assert found.attributes is not None
    assert found.attributes.squeeze(-1).tolist() == [[3, 4, 0], [0, 1, 2]]


def test_nodes_beyond_m_go_to_the_place_after_the_last(four: GraphDataset) -> None:
    found = store(four, m=2).batch([np.array([0, 1])])
    assert [(each.low, each.high, each.graphs) for each in found.layout.blocks] == [(0, 2, 2)]
    assert found.layout.slot.tolist() == [0, 1, 4, 2, 3]


def test_colour_classes_are_rows_of_several_nodes(four: GraphDataset) -> None:
    # With two rounds: a triangle of C and two N; a path N - C - N. The N are equal.
    data = four.select([0, 2])
    found = store(data, rounds=2).batch([np.array([0, 1])])
    layout = found.layout
    assert found.size.sum().item() == 6
    assert layout.size is not None
    assert layout.node is not None
    assert layout.within is not None
    assert sorted(layout.size.tolist()) == [1, 1, 2, 2]
    assert layout.size[layout.node].tolist() == layout.size.repeat_interleave(layout.size).tolist()
    assert layout.node_ptr[-1] == 6
    assert sorted(layout.within.tolist()) == [0, 0, 0, 0, 1, 1]


def test_steps_together_are_the_steps_one_by_one(
    four: GraphDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [
        [np.array([0, 1]), np.array([3, 2, 1])],
        [np.array([2]), np.array([0])],
        [np.array([], dtype=np.int64), np.array([3])],
    ]
    for rounds, cost in ((None, 10**6), (2, 10**6), (2, 20)):
        monkeypatch.setattr(store_module, "_GROUP_COST", cost)
        made = store(four, rounds=rounds)
        for together, step in zip(made.batches(steps), steps, strict=True):
            alone = made.batch(step)
            for name in ("label", "label_rows", "label_ptr", "neighbors", "graph_ptr", "share"):
                assert torch.equal(getattr(together, name), getattr(alone, name))
            assert together.layout.blocks == alone.layout.blocks
            for name in ("slot", "row", "graph", "node_row", "node_ptr"):
                assert torch.equal(getattr(together.layout, name), getattr(alone.layout, name))


def test_attributes_have_to_be_there(four: GraphDataset) -> None:
    from dataclasses import replace

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
    at = np.stack([np.zeros(len(sizes)), np.zeros(len(sizes)), np.arange(len(sizes))]).astype(int)
    place = slots([blocks], 1, np.array(sizes), at)
    assert len(set(place.tolist())) == sum(sizes)
    assert place.max() < len(held)


@given(SIZES)
def test_blocks_leave_few_places_empty(sizes: list[int]) -> None:
    places = sum(block.slots for block in rank_blocks(sizes))
    assert places <= 2 * sum(sizes) + BLOCK_COST
