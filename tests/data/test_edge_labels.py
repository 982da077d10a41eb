"""Edge labels that are used, and the one that means "no edge"."""

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from graph_makers import dataset_of
from torch_geometric.data import Data

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.json_graph import GraphError
from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.data.splits import Split
from ihgnn_cli.data.twins import colorings
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import describe
from ihgnn_cli.models.objects import entry_for

TRIANGLE = ([0, 1, 2], [(0, 1), (1, 2), (0, 2)])
EDGE = ([0, 1], [(0, 1)])


def triangle_and_edge() -> GraphDataset:
    """Labels 0, 1 and 2 of the triangle's edges; 1 of the single edge."""
    data = dataset_of([TRIANGLE, EDGE], edge_labels=[0, 1, 2, 1])
    attributes = np.arange(8, dtype=np.float32).reshape(8, 1)
    return replace(data, edge_attributes=attributes, source="here")


def test_the_background_label_and_its_edges_are_left_out() -> None:
    found = with_edge_labels(triangle_and_edge(), background="1")
    assert found.edge_index().tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert found.edge_label is not None
    assert found.edge_attributes is not None
    # Edges 0-1, 0-2, 1-0, 1-2, 2-0, 2-1, 3-4, 4-3, of which the third and fourth pair are gone.
    assert (found.edge_label.tolist(), found.edge_label_values) == ([0, 1, 0, 1], (0, 2))
    assert found.edge_attributes[:, 0].tolist() == [0, 1, 2, 4]
    assert found.degree.tolist() == [2, 1, 1, 0, 0]
    assert (found.source, found.uses_edge_labels, found.edge_types) == ("here", False, 1)


def test_degrees_that_are_labels_are_those_without_the_background() -> None:
    found = with_edge_labels(triangle_and_edge().with_degree_labels(), background="1")
    assert found.label_source == LabelSource.DEGREE
    assert [found.label_values[each] for each in found.node_label] == [2, 1, 1, 0, 0]


def test_used_edge_labels_survive_the_choice_of_graphs() -> None:
    found = with_edge_labels(triangle_and_edge(), use=True).select([1])
    assert found.edge_types == 3
    assert found.edge_type is not None
    assert found.edge_type.tolist() == [1, 1]


def test_without_a_request_nothing_changes() -> None:
    data = triangle_and_edge()
    assert with_edge_labels(data) is data


def test_data_without_edge_labels_is_refused() -> None:
    plain = dataset_of([TRIANGLE])
    with pytest.raises(InputError, match=r"^tiny has no edge labels. Leave out --edge-labels.$"):
        with_edge_labels(plain, use=True)
    with pytest.raises(InputError, match=r"Leave out --background-edge-label.$"):
        with_edge_labels(plain, background="1")


def test_a_background_that_does_not_occur_is_refused_with_those_that_do() -> None:
    with pytest.raises(InputError) as refused:
        with_edge_labels(triangle_and_edge(), background="7")
    assert str(refused.value) == (
        "No edge of tiny has the label 7. Its edge labels are 1 (2 edges), 0 (1 edge), 2 (1 edge)."
    )


def test_a_background_of_all_edges_is_refused() -> None:
    with pytest.raises(InputError, match="so none would be left"):
        with_edge_labels(dataset_of([EDGE], edge_labels=[2]), background="2")


def test_labels_that_depend_on_the_direction_are_refused() -> None:
    data = dataset_of([EDGE], edge_labels=[0])
    directed = replace(data, edge_label=np.array([0, 1], dtype=np.int32), edge_label_values=(0, 1))
    with pytest.raises(InputError, match="1 edge has a different label in each direction"):
        with_edge_labels(directed, use=True)


def test_graphs_that_differ_in_edge_labels_only_are_no_twins_where_these_are_used() -> None:
    data = dataset_of([EDGE, EDGE, EDGE], edge_labels=[0, 1, 0])
    assert len(set(colorings(data)[-1].tolist())) == 1
    before, after = colorings(with_edge_labels(data, use=True))[:2]
    assert len(set(before.tolist())) == 1
    assert after[0] == after[2] != after[1]


def test_labels_of_networkx_edges_are_read() -> None:
    path = nx.path_graph(3)
    nx.set_edge_attributes(path, {(0, 1): "single", (1, 2): "double"}, "label")
    path.graph["class"] = "x"
    found = from_graphs([path, path])
    assert found.edge_label is not None
    assert [found.edge_label_values[each] for each in found.edge_label[:4]] == [
        *("single", "single", "double", "double")
    ]
    del path.edges[0, 1]["label"]
    with pytest.raises(InputError, match="1 of 2 edges have no 'label'"):
        from_graphs([path])


def test_edge_labels_of_torch_geometric_are_read_for_a_model() -> None:
    data = with_edge_labels(triangle_and_edge(), use=True, background="1")
    card = describe("tiny", data, Features.LABELS, Split([0], [1], [], may_be_empty=True))
    assert card.edge_label_values == (0, 2)
    edges = torch.tensor([[0, 1], [1, 0]])
    for given in (torch.tensor([2, 2]), torch.eye(3)[[2, 2]], torch.eye(2)[[1, 1]]):
        graph = Data(x=torch.eye(3)[:2], edge_index=edges, edge_attr=given)
        assert entry_for(graph, card)["edge_labels"] == [2, 2]
    graph = Data(x=torch.eye(3)[:2], edge_index=edges, edge_attr=torch.rand(2, 3))
    with pytest.raises(GraphError, match="edge_attr is neither one-hot nor a single integer"):
        entry_for(graph, card)
    none = torch.empty(2, 0, dtype=torch.int64)
    graph = Data(x=torch.eye(3)[:2], edge_index=none, edge_attr=torch.empty(0, 3))
    assert entry_for(graph, card)["edges"] == []


def test_bzr_md_without_its_background_is_made_of_molecules(real_data: Path) -> None:
    whole = load_dataset("BZR_MD", data_root=real_data, offline=True)
    found = with_edge_labels(whole, use=True, background="1")
    assert (whole.num_edges, found.num_edges) == (68_867, 7_273)
    assert found.edge_label_values == (0, 2, 3, 4)
    assert found.degree.min() == 1
