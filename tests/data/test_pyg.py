"""torch-geometric's graphs in and out."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import FakeDataset, TUDataset

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.data.features import Features, node_features
from ihgnn_cli.data.objects import from_graphs
from ihgnn_cli.data.pyg import from_pyg, to_pyg
from ihgnn_cli.errors import InputError

BOTH_WAYS = [[0, 1, 1, 2], [1, 0, 2, 1]]


def path_of_three(**given: object) -> Data:
    """0 - 1 - 2, class 0."""
    parts = {"edge_index": torch.tensor(BOTH_WAYS), "y": torch.tensor([0]), "num_nodes": 3}
    return Data(**{**parts, **given})


@pytest.fixture
def full() -> GraphDataset:
    """0 - 1 - 2 and a single node, with every column and names that are no positions."""
    return GraphDataset(
        name="FULL",
        node_ptr=np.array([0, 3, 4]),
        neighbor_ptr=np.array([0, 1, 3, 4, 4]),
        neighbors=np.array([1, 0, 2, 1], dtype=np.int32),
        node_label=np.array([0, 2, 0, 2], dtype=np.int32),
        label_values=("C", "N", "O"),  # nothing is N
        label_source=LabelSource.LABELS,
        graph_class=np.array([2, 0], dtype=np.int32),
        class_values=("a", "b", "c"),
        node_attributes=np.array([[0, 1], [1, 0], [1, 0], [0, 1]], dtype=np.float32),
        edge_label=np.array([1, 1, 0, 0], dtype=np.int32),
        edge_label_values=("single", "double", "triple"),
        edge_attributes=np.array([[0.5], [0.5], [1.5], [1.5]], dtype=np.float32),
    )


# There


def test_a_graph_becomes_data(full: GraphDataset) -> None:
    first, second = to_pyg(full)
    assert first.edge_index.tolist() == BOTH_WAYS
    assert first.y.tolist() == [2]
    assert first.y.dtype == torch.long
    assert first.num_nodes == 3
    assert first.x.tolist() == [[0, 1, 1, 0, 0], [1, 0, 0, 0, 1], [1, 0, 1, 0, 0]]
    assert first.edge_attr.tolist() == [
        [0.5, 0, 1, 0],
        [0.5, 0, 1, 0],
        [1.5, 1, 0, 0],
        [1.5, 1, 0, 0],
    ]
    assert second.edge_index.shape == (2, 0)
    assert second.edge_attr.shape == (0, 4)
    assert second.x.tolist() == [[0, 1, 0, 0, 1]]
    assert second.num_nodes == 1
    assert second.validate()


@pytest.mark.parametrize("features", list(Features))
def test_the_chosen_features_become_x(full: GraphDataset, features: Features) -> None:
    stacked = torch.cat([graph.x for graph in to_pyg(full, features)])
    np.testing.assert_array_equal(stacked.numpy(), node_features(full, features))


def test_degrees_become_x_only_when_asked_for(full: GraphDataset) -> None:
    degrees = replace(full, node_attributes=None).with_degree_labels()
    assert to_pyg(degrees)[0].x is None
    assert to_pyg(degrees)[0].num_nodes == 3
    assert to_pyg(degrees, Features.LABELS)[0].x.tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0]]


def test_the_columns_of_the_data_set_stay_read_only(full: GraphDataset) -> None:
    to_pyg(full)[0].edge_index.zero_()
    assert full.neighbors.tolist() == [1, 0, 2, 1]


# There and back


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="everything"),
        pytest.param({"node_attributes": None}, id="labels"),
        pytest.param({"edge_label": None, "edge_label_values": ()}, id="edge attributes"),
        pytest.param({"edge_attributes": None}, id="edge labels"),
        pytest.param(
            {
                "node_attributes": None,
                "edge_label": None,
                "edge_label_values": (),
                "edge_attributes": None,
            },
            id="labels only",
        ),
        pytest.param({"label_values": (-4, 0, 9), "class_values": (-1, 0, 1)}, id="numbers"),
    ],
)
def test_there_and_back_is_the_same_data_set(
    full: GraphDataset, changes: dict[str, object]
) -> None:
    before = replace(full, **changes)
    after = from_pyg(to_pyg(before))
    assert after.name == "FULL"
    assert after.fingerprint == before.fingerprint


def test_there_and_back_keeps_degrees_and_the_vocabularies_of_a_selection(full) -> None:
    degrees = full.with_degree_labels()
    chosen = degrees.select([0])
    assert chosen.label_values == (0, 1, 2)  # no node of degree 0 is left
    plain = replace(degrees, node_attributes=None)
    for dataset in (degrees, plain, chosen, full.select([0]), load_dataset("MUTAG")):
        assert from_pyg(to_pyg(dataset)).fingerprint == dataset.fingerprint


# Features of plain lists


@pytest.mark.parametrize(
    ("x", "labels", "attributes"),
    [
        ([[0.0, 1, 0], [0, 0, 1], [0, 1, 0]], [1, 2, 1], None),
        ([[4], [-2], [4]], [4, -2, 4], None),
        ([4, -2, 4], [4, -2, 4], None),
        ([[True, False], [False, True], [True, False]], [0, 1, 0], None),
        ([[4.0], [-2], [4]], None, [[4], [-2], [4]]),
        ([[0.5, 0], [0, 1], [1, 0]], None, [[0.5, 0], [0, 1], [1, 0]]),
        ([[1, 1], [0, 1], [1, 0]], None, [[1, 1], [0, 1], [1, 0]]),
        (None, None, None),
    ],
)
def test_one_hot_rows_and_integers_are_labels_and_all_else_attributes(
    x, labels, attributes
) -> None:
    dataset = from_pyg([path_of_three(x=None if x is None else torch.tensor(x))])
    if labels is None:
        assert dataset.label_source is LabelSource.DEGREE
    else:
        assert [dataset.label_values[each] for each in dataset.node_label] == labels
    found = dataset.node_attributes
    assert (None if found is None else found.tolist()) == attributes


def test_features_of_edges_follow_their_edges_into_order() -> None:
    order = [2, 0, 3, 1]
    edge_index = torch.tensor(BOTH_WAYS)[:, order]
    for edge_attr, expected in (([3, 1, 4, 1], [1, 1, 3, 4]), ([7, 5, 8, 6], [5, 6, 7, 8])):
        one = path_of_three(edge_index=edge_index, edge_attr=torch.tensor(edge_attr))
        dataset = from_pyg([one])
        assert dataset.edge_label is not None
        assert [dataset.edge_label_values[each] for each in dataset.edge_label] == expected
        floats = path_of_three(edge_index=edge_index, edge_attr=torch.tensor(edge_attr) / 2)
        attributes = from_pyg([floats]).edge_attributes
        assert attributes is not None
        assert attributes[:, 0].tolist() == [each / 2 for each in expected]


def test_edges_are_made_simple_and_undirected() -> None:
    edge_index = torch.tensor([[0, 0, 0, 2], [0, 1, 1, 1]])
    dataset = from_pyg([path_of_three(edge_index=edge_index, edge_attr=torch.tensor([1, 2, 3, 4]))])
    assert dataset.edge_index().tolist() == BOTH_WAYS
    assert dataset.edge_label is not None
    assert [dataset.edge_label_values[each] for each in dataset.edge_label] == [2, 2, 4, 4]
    assert dataset.notes == ReadingNotes(
        self_loops=1, duplicate_edges=1, conflicting_duplicates=1, one_directional=2
    )
    bare = from_pyg([path_of_three(edge_index=torch.zeros(2, 0, dtype=torch.long))])
    assert (bare.num_edges, bare.num_nodes) == (0, 3)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"edge_index": torch.tensor([[0], [3]])}, "names a node that does not exist .3 nodes."),
        ({"edge_index": torch.tensor([[-1], [0]])}, "names a node that does not exist"),
        ({"edge_index": torch.tensor(BOTH_WAYS).T}, "is not .2, E.. Transpose it"),
        ({"edge_index": None}, "has no edge_index"),
        ({"num_nodes": 0}, "has no nodes"),
        ({"y": torch.tensor([0, 1])}, "not one class"),
        ({"y": torch.tensor([0.5])}, "not one class"),
        ({"y": None}, "not one class"),
        ({"x": torch.tensor([[float("nan")], [0], [0]])}, "NaN or infinity"),
        ({"x": torch.tensor([[1e39], [0], [0]], dtype=torch.float64)}, "NaN or infinity"),
        ({"x": torch.zeros(2, 1)}, "x of graph 1 does not have 3 rows"),
        ({"x": None}, "x of graph 1 does not have 3 rows"),
        ({"x": torch.zeros(3, 2)}, "x differs in width"),
    ],
)
def test_a_graph_that_is_incomplete_is_refused(changes, said) -> None:
    whole = path_of_three(x=torch.zeros(3, 1))
    with pytest.raises(InputError, match=said):
        from_pyg([whole, path_of_three(**{"x": torch.zeros(3, 1), **changes})])


def test_a_class_is_one_whole_number_and_a_list_is_needed() -> None:
    for y in (torch.tensor([7]), torch.tensor(7), torch.tensor([[7.0]]), 7):
        assert from_pyg([path_of_three(y=y)]).class_values == (7,)
    for given, said in (([], "holds no graphs"), (path_of_three(), r"Give \[graph\]")):
        with pytest.raises(InputError, match=said):
            from_pyg(given)


# Data sets of torch-geometric


def test_a_data_set_other_than_tu_goes_in() -> None:
    random.seed(0)
    torch.manual_seed(0)
    fake = FakeDataset(
        num_graphs=5, avg_num_nodes=8, avg_degree=3, num_channels=4, edge_dim=2, num_classes=3
    )
    dataset = from_pyg(fake)
    assert dataset.name == "FakeDataset"
    assert len(dataset) == 5
    assert dataset.node_attributes is not None
    np.testing.assert_array_equal(dataset.node_attributes, fake.x.numpy())
    classes = [dataset.class_values[each] for each in dataset.graph_class]
    assert classes == fake.y.tolist()
    for ours, theirs in zip(to_pyg(dataset), fake, strict=True):
        assert ours.num_nodes == theirs.num_nodes
        assert torch.equal(ours.edge_index, theirs.edge_index)  # already simple and undirected
        assert torch.equal(ours.edge_attr, theirs.edge_attr)


def test_any_iterable_of_graphs_goes_in() -> None:
    dataset = from_pyg((path_of_three() for _ in range(2)), name="TWO")
    assert dataset.name == "TWO"
    assert len(dataset) == 2


@pytest.fixture
def tu_dataset(write_tu: Callable[..., Path], tmp_path: Path) -> Callable[..., TUDataset]:
    """torch-geometric's reading of 0 - 1 - 2 and 3 - 4 with everything that the format knows."""
    write_tu(
        folder=tmp_path / "pyg" / "TINY" / "raw",
        A="1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
        graph_indicator="1\n1\n1\n2\n2\n",
        graph_labels="5\n6\n",
        node_labels="0\n1\n2\n1\n0\n",
        node_attributes="0.5\n1.5\n2.5\n3.5\n4.5\n",
        edge_labels="0\n0\n1\n1\n1\n1\n",
        edge_attributes="0.1\n0.1\n0.2\n0.2\n0.3\n0.3\n",
    )

    def make(**options: bool) -> TUDataset:
        return TUDataset(str(tmp_path / "pyg"), "TINY", **options)

    return make


def test_a_tu_dataset_tells_attributes_from_labels(tu_dataset: Callable[..., TUDataset]) -> None:
    theirs = tu_dataset(use_node_attr=True, use_edge_attr=True)
    dataset = from_pyg(theirs)
    assert from_graphs(theirs).fingerprint == dataset.fingerprint
    assert dataset.name == "TINY"
    assert dataset.node_label.tolist() == [0, 1, 2, 1, 0]
    assert dataset.node_attributes is not None
    assert dataset.node_attributes.tolist() == [[0.5], [1.5], [2.5], [3.5], [4.5]]
    assert dataset.edge_label is not None
    assert dataset.edge_label.tolist() == [0, 0, 1, 1, 1, 1]
    assert dataset.edge_attributes is not None
    lengths = [0.1, 0.1, 0.2, 0.2, 0.3, 0.3]
    np.testing.assert_allclose(dataset.edge_attributes[:, 0], lengths, rtol=1e-6)


def test_a_tu_dataset_that_left_attributes_out_has_labels_only(
    tu_dataset: Callable[..., TUDataset],
) -> None:
    dataset = from_pyg(tu_dataset())
    assert dataset.label_source is LabelSource.LABELS
    assert dataset.node_label.tolist() == [0, 1, 2, 1, 0]
    assert dataset.node_attributes is None
    assert dataset.edge_label is not None
    assert dataset.edge_label.tolist() == [0, 0, 1, 1, 1, 1]
    assert dataset.edge_attributes is None


def test_features_stand_in_the_order_of_a_tu_dataset(
    tu_dataset: Callable[..., TUDataset], tmp_path: Path
) -> None:
    theirs = tu_dataset(use_node_attr=True, use_edge_attr=True)
    ours = load_dataset(str(tmp_path / "pyg" / "TINY" / "raw"))
    np.testing.assert_array_equal(node_features(ours, Features.BOTH), theirs.x.numpy())
    for one, other in zip(to_pyg(ours), theirs, strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.edge_attr, other.edge_attr)


def test_several_labels_a_node_are_one_joint_label(tmp_path: Path) -> None:
    """A TUDataset with two columns of labels (as Cuneiform) splits nodes as our reader does."""
    raw = tmp_path / "TWO" / "raw"
    raw.mkdir(parents=True)
    parts = {
        "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
        "graph_indicator": "1\n1\n2\n2\n",
        "graph_labels": "1\n2\n",
        "node_labels": "0, 0\n0, 1\n1, 1\n0, 1\n",
    }
    for part, content in parts.items():
        (raw / f"TWO_{part}.txt").write_text(content)
    ours = load_dataset(str(tmp_path / "TWO"))
    theirs = from_pyg(TUDataset(str(tmp_path), "TWO"))
    assert ours.label_values == ("0,0", "0,1", "1,1")
    assert theirs.label_source is LabelSource.LABELS
    assert theirs.node_label.tolist() == ours.node_label.tolist() == [0, 1, 2, 1]
