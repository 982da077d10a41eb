"""Bins of an edge attribute as edge labels."""

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from graph_makers import dataset_of
from torch_geometric.data import Data

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.edge_bins import EdgeBins, bins_from_plain, quantile_boundaries
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.json_graph import GraphError
from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.data.splits import Split
from ihgnn_cli.data.twins import colorings
from ihgnn_cli.errors import InputError, SettingError
from ihgnn_cli.models.card import card_from_plain, describe
from ihgnn_cli.models.objects import entry_for

TRIANGLE = ([0, 1, 2], [(0, 1), (1, 2), (0, 2)])
EDGE = ([0, 1], [(0, 1)])
# The directed edges are 0-1, 0-2, 1-0, 1-2, 2-0, 2-1, 3-4, 4-3.
DISTANCES = [1.5, 2.5, 1.5, 3.5, 2.5, 3.5, 4.5, 4.5]


def triangle_and_edge() -> GraphDataset:
    """Distances 1.5 (label 0), 3.5 (label 1) and 2.5 (label 2) in the triangle; 4.5 (label 1)."""
    data = dataset_of([TRIANGLE, EDGE], edge_labels=[0, 1, 2, 1])
    return replace(data, edge_attributes=np.array(DISTANCES, dtype=np.float32)[:, None])


def test_half_of_the_edges_are_in_each_of_two_bins() -> None:
    found = with_edge_labels(triangle_and_edge(), bins=2)
    assert found.edge_bins == EdgeBins((2.5,))
    assert found.edge_type is not None
    assert found.edge_type.tolist() == [0, 0, 0, 1, 0, 1, 1, 1]
    assert (found.edge_label_values, found.edge_types) == ((0, 1), 2)
    assert with_edge_labels(found, bins=2) is found


def test_with_edge_labels_a_label_is_a_pair_that_occurs() -> None:
    found = with_edge_labels(triangle_and_edge(), use=True, bins=2)
    assert found.edge_bins == EdgeBins((2.5,), labels=True)
    assert found.edge_label_values == ("0,0", "1,1", "2,0")
    assert found.edge_type is not None
    assert found.edge_type.tolist() == [0, 2, 0, 1, 2, 1, 1, 1]


def test_boundaries_are_those_of_the_edges_without_the_background() -> None:
    found = with_edge_labels(triangle_and_edge(), background="1", bins=2)
    assert found.edge_bins == EdgeBins((1.5,))
    assert found.edge_type is not None
    assert found.edge_type.tolist() == [0, 1, 0, 1]
    both = with_edge_labels(triangle_and_edge(), use=True, background="1", bins=2)
    assert both.edge_label_values == ("0,0", "2,1")


def test_a_value_on_a_boundary_is_in_the_lower_bin_and_values_outside_in_the_last_ones() -> None:
    bins = EdgeBins((1.0, 2.0))
    assert bins.of([-9, 1, 1.5, 2, 2.1, 1e9]).tolist() == [0, 0, 1, 1, 2, 2]
    tenth = quantile_boundaries(np.array([0.1, 0.2], dtype=np.float32), 2)
    assert EdgeBins(tenth).of([0.1]).tolist() == [0]  # 0.1 is larger as a 32-bit float


@pytest.mark.parametrize(
    ("values", "count", "expected"),
    [
        ([1, 2, 3, 4], 4, (1, 2, 3)),
        ([1, 2, 3, 4, 5, 6], 3, (2, 4)),
        ([0, 0, 0, 1], 2, (0,)),
        ([0, 1, 1, 1], 2, (0,)),  # not 1, above which there is nothing
        ([1, 1, 1, 2, 3], 4, (1, 2)),
        ([5, 5, 5], 2, ()),
    ],
)
def test_equal_quantiles_are_merged_and_no_bin_is_empty(
    values: list[float], count: int, expected: tuple[float, ...]
) -> None:
    assert quantile_boundaries(np.array(values, dtype=np.float32), count) == expected


def test_the_sentence_says_how_many_bins_remain() -> None:
    assert EdgeBins((1.0, 2.5)).sentence(4) == (
        "Divided the edge attribute into 3 bins (4 requested; equal quantiles were merged) at 1, "
        "2.5."
    )


def test_labels_and_attributes_that_give_the_same_bins_are_found() -> None:
    for use in (False, True):
        data = with_edge_labels(triangle_and_edge(), use=use, bins=3)
        assert data.edge_bins is not None
        labels, attributes = zip(*map(data.edge_bins.split, data.edge_label_values), strict=True)
        made = data.edge_bins.joined(labels, np.array(attributes, dtype=np.float32))
        assert made == list(data.edge_label_values)


def test_other_bins_are_other_data() -> None:
    data = triangle_and_edge()
    made = [with_edge_labels(data, use=use, bins=bins) for use in (False, True) for bins in (2, 3)]
    prints = {each.fingerprint for each in (data, with_edge_labels(data, use=True), *made)}
    assert len(prints) == 6


def test_graphs_that_differ_in_distances_only_are_no_twins_where_these_are_read() -> None:
    data = dataset_of([EDGE, EDGE, EDGE])
    distances = np.array([1, 1, 2, 2, 1, 1], dtype=np.float32)
    data = replace(data, edge_attributes=distances[:, None])
    assert len(set(colorings(data)[-1].tolist())) == 1
    color = colorings(with_edge_labels(data, bins=2))[1]
    assert color[0] == color[2] != color[1]


def test_data_without_a_single_edge_attribute_is_refused() -> None:
    data = triangle_and_edge()
    with pytest.raises(InputError, match=r"tiny has no edge attributes.* Leave out --edge-bins.$"):
        with_edge_labels(replace(data, edge_attributes=None), bins=2)
    two = np.zeros((8, 2), dtype=np.float32)
    with pytest.raises(InputError, match="has 2 edge attributes, and edge bins need exactly one"):
        with_edge_labels(replace(data, edge_attributes=two), bins=2)
    with pytest.raises(InputError, match="have the same attribute, so there is one bin"):
        with_edge_labels(replace(data, edge_attributes=two[:, :1]), bins=2)
    with pytest.raises(InputError, match="has no edge labels"):
        with_edge_labels(replace(data, edge_label=None), use=True, bins=2)


def test_other_settings_of_data_that_has_bins_are_refused() -> None:
    found = with_edge_labels(triangle_and_edge(), bins=2)
    settings = "edge labels and background label and number of bins"
    with pytest.raises(InputError, match=f"made with another setting of the {settings}"):
        with_edge_labels(found, bins=5, use=True, background="1")
    with pytest.raises(InputError, match="made with another setting of the number of bins"):
        with_edge_labels(found, bins=3)
    assert with_edge_labels(found) is found
    both = with_edge_labels(triangle_and_edge(), use=True, background="1", bins=5)
    assert both.edge_bins is not None
    assert both.edge_bins.count == 2  # of 5 requested; two edges remain
    assert with_edge_labels(both, use=True, background="1", bins=5) is both
    assert with_edge_labels(both, bins=5) is both


def test_attributes_that_depend_on_the_direction_are_refused() -> None:
    distances = np.arange(8, dtype=np.float32)[:, None]
    with pytest.raises(InputError, match="4 edges have a different attribute in each direction"):
        with_edge_labels(replace(triangle_and_edge(), edge_attributes=distances), bins=2)


@pytest.mark.parametrize("bins", [-1, 1, 65])
def test_a_number_of_bins_out_of_range_is_refused(bins: int) -> None:
    with pytest.raises(SettingError, match=f"edge_bins must be from 2 to 64, not {bins}"):
        with_edge_labels(triangle_and_edge(), bins=bins)


def test_a_card_keeps_the_bins_and_cards_without_them_are_read() -> None:
    data = with_edge_labels(triangle_and_edge(), use=True, bins=3)
    card = describe("tiny", data, Features.LABELS, Split([0], [1], [], may_be_empty=True))
    plain = card.as_plain()
    assert plain["edge_bins"] == {"boundaries": [2.5, 3.5], "labels": True}
    assert card_from_plain(plain).edge_bins == data.edge_bins
    del plain["edge_bins"]
    assert card_from_plain(plain).edge_bins is None
    for wrong in ([], [2.0, 1.0], [1.0, 1.0], [float("nan"), 1.0]):
        with pytest.raises(ValueError, match="must ascend"):
            bins_from_plain({"boundaries": wrong, "labels": False})


def test_attributes_of_networkx_edges_are_read() -> None:
    path = nx.path_graph(3)
    nx.set_edge_attributes(path, {(0, 1): [1.5], (1, 2): [2.5]}, "x")
    path.graph["class"] = "x"
    found = from_graphs([path, path])
    assert found.edge_attributes is not None
    assert found.edge_attributes[:4, 0].tolist() == [1.5, 1.5, 2.5, 2.5]


@pytest.mark.parametrize("use", [False, True])
def test_the_first_column_of_torch_geometric_is_the_attribute(use: bool) -> None:
    data = with_edge_labels(triangle_and_edge(), use=use, bins=2)
    card = describe("tiny", data, Features.LABELS, Split([0], [1], [], may_be_empty=True))
    rows = torch.tensor([[2.5, 0, 0, 1], [2.5, 0, 0, 1]])
    graph = Data(x=torch.eye(3)[:2], edge_index=torch.tensor([[0, 1], [1, 0]]), edge_attr=rows)
    if not use:
        graph.edge_attr = rows[:, :1]
    entry = entry_for(graph, card)
    assert entry["edge_attributes"] == [[2.5], [2.5]]
    assert entry.get("edge_labels") == (["2", "2"] if use else None)


def test_further_columns_of_torch_geometric_have_to_be_labels() -> None:
    data = with_edge_labels(triangle_and_edge(), bins=2)
    card = describe("tiny", data, Features.LABELS, Split([0], [1], [], may_be_empty=True))
    ends = torch.tensor([[0, 1], [1, 0]])
    graph = Data(x=torch.eye(3)[:2], edge_index=ends)
    graph.edge_attr = torch.tensor([[2.5, 0.3, 0.7], [2.5, 0.3, 0.7]])
    with pytest.raises(
        GraphError, match=r"and edge_attr has 3 columns\. Those after the first are"
    ):
        entry_for(graph, card)
    graph.edge_attr = torch.tensor([[2.5, 1, 0], [2.5, 1, 0]])
    assert entry_for(graph, card)["edge_attributes"] == [[2.5], [2.5]]
    assert "edge_labels" not in entry_for(graph, card)


def test_bins_of_bzr_md_have_equally_many_edges(real_data: Path) -> None:
    whole = load_dataset("BZR_MD", data_root=real_data, offline=True)
    found = with_edge_labels(whole, bins=8)
    counts = np.bincount(found.edge_type) / 2
    assert counts.sum() == 68_867
    assert np.abs(counts - 68_867 / 8).max() < 30
    bonds = with_edge_labels(whole, use=True, background="1", bins=8)
    assert bonds.num_edges == 7_273
    assert bonds.edge_label_values[0] == "0,0"
