"""Node features on one edge between two nodes of different labels."""

import logging
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.features import Features, node_features, note_unread, resolved_features
from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.errors import InputError
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.loading import load_data


@pytest.fixture
def pair() -> GraphDataset:
    return GraphDataset(
        name="PAIR",
        node_ptr=np.array([0, 2]),
        neighbor_ptr=np.array([0, 1, 2]),
        neighbors=np.array([1, 0], dtype=np.int32),
        node_label=np.array([2, 0], dtype=np.int32),
        label_values=("C", "N", "O"),
        label_source=LabelSource.LABELS,
        graph_class=np.array([0], dtype=np.int32),
        class_values=(1,),
        node_attributes=np.array([[0.5, -1], [2, 3]], dtype=np.float32),
    )


def test_labels_are_one_hot_over_the_whole_vocabulary(pair: GraphDataset) -> None:
    assert node_features(pair, Features.LABELS).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_labels_are_the_default(pair: GraphDataset) -> None:
    np.testing.assert_array_equal(node_features(pair), node_features(pair, Features.LABELS))


def test_attributes_are_as_they_are(pair: GraphDataset) -> None:
    assert node_features(pair, Features.ATTRIBUTES).tolist() == [[0.5, -1], [2, 3]]


def test_both_are_attributes_and_then_labels(pair: GraphDataset) -> None:
    assert node_features(pair, Features.BOTH).tolist() == [[0.5, -1, 0, 0, 1], [2, 3, 1, 0, 0]]


@pytest.mark.parametrize("kind", list(Features))
def test_features_are_32_bit_floats(pair: GraphDataset, kind: Features) -> None:
    assert node_features(pair, kind).dtype == np.float32


def test_degrees_count_as_labels(pair: GraphDataset) -> None:
    assert node_features(pair.with_degree_labels()).tolist() == [[1], [1]]


@pytest.mark.parametrize("kind", [Features.ATTRIBUTES, Features.BOTH])
def test_attributes_that_are_not_there_are_refused(pair: GraphDataset, kind: Features) -> None:
    with pytest.raises(InputError) as caught:
        node_features(replace(pair, node_attributes=None), kind)
    assert str(caught.value) == "PAIR has no node attributes. Use --features labels."


def test_a_kind_may_be_given_as_text(pair: GraphDataset) -> None:
    expected = node_features(pair, Features.LABELS)
    assert node_features(pair, "labels").tolist() == expected.tolist()  # type: ignore[arg-type]


EDGES = {"edges": [[0, 1]], "edge_labels": [1], "edge_attributes": [[0.5]]}
LABELLED = {"node_labels": [1, 2], "node_attributes": [[1.0], [2.0]], "edges": [[0, 1]]}
ONLY_ATTRIBUTES = {"node_attributes": [[1.0], [2.0]], "edges": [[0, 1]]}
BARE = {"num_nodes": 2, "edges": [[0, 1]]}


@pytest.mark.parametrize(
    ("graph", "features"),
    [(LABELLED, "labels"), (ONLY_ATTRIBUTES, "attributes"), (BARE, "labels")],
)
def test_auto_reads_labels_else_attributes_else_degrees(graph, features) -> None:
    dataset = from_graphs([graph] * 2, [0, 1])
    assert resolved_features(dataset, Features.AUTO) == features
    config, _ = load_data(configure(), dataset=dataset)
    assert config.data.features == features


@pytest.mark.parametrize(
    ("graph", "settings", "named"),
    [
        (BARE, {}, ()),
        (ONLY_ATTRIBUTES, {}, ()),
        (ONLY_ATTRIBUTES, {"features": "labels"}, ("node attributes", "--features attributes")),
        (LABELLED, {}, ("node attributes", "--features both")),
        (LABELLED, {"features": "both"}, ()),
        (LABELLED, {"features": "attributes"}, ("node labels", "--features both")),
        (BARE | EDGES, {}, ("--edge-labels", "edge attributes (--edge-bins)")),
        (BARE | EDGES, {"edge_labels": True}, ("edge attributes",)),
        (BARE | EDGES | {"edge_attributes": [[1, 2]]}, {"edge_labels": True}, ("no option",)),
    ],
)
def test_what_is_not_read_is_named_once_with_its_option(caplog, graph, settings, named) -> None:
    dataset = from_graphs([graph] * 2, [0, 1])
    note_unread.cache_clear()
    with caplog.at_level(logging.INFO, "ihgnn_cli"):
        for _ in range(2):
            load_data(configure(overrides=settings), dataset=dataset)
    assert len(caplog.messages) == bool(named)
    for each in named:
        assert each in caplog.text


def test_signal_names_attributes_that_no_reference_reads(caplog) -> None:
    dataset = from_graphs([ONLY_ATTRIBUTES] * 2, [0, 1])
    note_unread.cache_clear()
    with caplog.at_level(logging.INFO, "ihgnn_cli"):
        load_data(configure(), dataset=dataset, references=True)
    assert "node attributes ('ihgnn train' can)" in caplog.text


def test_a_program_that_has_not_configured_logging_sees_what_is_not_read(caplog) -> None:
    note_unread.cache_clear()
    with caplog.at_level(logging.WARNING, "ihgnn_cli"):
        note_unread("Not read.")
        note_unread.cache_clear()
    assert [each.levelname for each in caplog.records] == ["WARNING"]
    assert not logging.getLogger("ihgnn_cli").handlers  # logging's last resort shows it


def test_attributes_of_networkx_and_pyg_that_are_not_read_are_named(caplog) -> None:
    path = nx.path_graph(2)
    nx.set_node_attributes(path, {0: "C", 1: "O"}, "atom")
    nx.set_edge_attributes(path, 1.5, "weight")
    from_graphs([path], [0])
    assert "'atom', 'weight'" in caplog.text
    assert "'label'" in caplog.text
    edges = torch.tensor([[0, 1], [1, 0]])
    from_graphs([Data(edge_index=edges, num_nodes=2, pos=torch.zeros(2, 3), y=0)])
    assert "ignoring 'pos'. Add their columns to 'x'" in caplog.text
