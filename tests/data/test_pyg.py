"""torch-geometric's graphs in and out."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import FakeDataset, TUDataset

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, ReadingNotes
from ihgnn_cli.data.features import Features, node_features
from ihgnn_cli.data.pyg import FeatureColumns, from_pyg, to_pyg
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


def test_there_and_back_with_degrees_is_the_same_data_set(full: GraphDataset) -> None:
    degrees = full.with_degree_labels()
    assert from_pyg(to_pyg(degrees)).fingerprint == degrees.fingerprint
    plain = replace(degrees, node_attributes=None)
    assert from_pyg(to_pyg(plain)).fingerprint == plain.fingerprint


def test_there_and_back_keeps_a_selection_s_vocabularies(full: GraphDataset) -> None:
    chosen = full.select([0])
    assert from_pyg(to_pyg(chosen)).fingerprint == chosen.fingerprint


def test_there_and_back_keeps_a_selection_s_degrees(full: GraphDataset) -> None:
    chosen = full.with_degree_labels().select([0])
    assert chosen.label_values == (0, 1, 2)  # no node of degree 0 is left
    assert from_pyg(to_pyg(chosen)).fingerprint == chosen.fingerprint


def test_bundled_mutag_survives_there_and_back() -> None:
    mutag = load_dataset("MUTAG")
    assert from_pyg(to_pyg(mutag)).fingerprint == mutag.fingerprint


# Node features of plain lists


def test_one_hot_rows_are_labels() -> None:
    dataset = from_pyg([path_of_three(x=torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 1, 0]]))])
    assert dataset.label_source is LabelSource.LABELS
    assert dataset.label_values == (1, 2)
    assert dataset.node_label.tolist() == [0, 1, 0]
    assert dataset.node_attributes is None


@pytest.mark.parametrize("x", [torch.tensor([[7], [-2], [7]]), torch.tensor([7, -2, 7])])
def test_a_column_of_integers_is_labels(x: Tensor) -> None:
    dataset = from_pyg([path_of_three(x=x)])
    assert dataset.label_values == (-2, 7)
    assert dataset.node_label.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "x",
    [
        pytest.param(torch.tensor([[0.5], [1], [2]]), id="one column"),
        pytest.param(torch.tensor([[1.0], [0], [2]]), id="whole numbers as floats"),
        pytest.param(torch.tensor([[0.5, 1], [1, 0], [0, 1]]), id="several columns"),
        pytest.param(torch.tensor([[1, 1], [1, 0], [0, 1]]), id="two ones in a row"),
        pytest.param(torch.tensor([[0, 0], [1, 0], [0, 1]]), id="no one in a row"),
        pytest.param(torch.tensor([[2, 0], [1, 0], [0, 1]]), id="several integers"),
        pytest.param(torch.tensor([[0.5], [1], [2]], dtype=torch.float64), id="64 bits"),
        pytest.param(torch.tensor([[0.5], [1], [2]], dtype=torch.bfloat16), id="bfloat16"),
    ],
)
def test_other_features_are_attributes_and_degrees_the_labels(x: Tensor) -> None:
    dataset = from_pyg([path_of_three(x=x)])
    assert dataset.label_source is LabelSource.DEGREE
    assert dataset.label_values == (1, 2)
    assert dataset.node_attributes is not None
    assert dataset.node_attributes.dtype == np.float32
    assert dataset.node_attributes.tolist() == x.tolist()


@pytest.mark.parametrize("x", [None, torch.empty(3, 0)])
def test_without_features_degrees_are_the_labels(x: Tensor | None) -> None:
    dataset = from_pyg([path_of_three(x=x)])
    assert dataset.label_source is LabelSource.DEGREE
    assert dataset.node_label.tolist() == [0, 1, 0]
    assert dataset.node_attributes is None


def test_labels_are_numbered_over_all_graphs() -> None:
    graphs = [path_of_three(x=torch.tensor([5, 6, 5])), path_of_three(x=torch.tensor([4, 6, 4]))]
    dataset = from_pyg(graphs)
    assert dataset.label_values == (4, 5, 6)
    assert dataset.node_label.tolist() == [1, 2, 1, 0, 2, 0]


def test_integers_can_be_read_as_attributes() -> None:
    graph = path_of_three(x=torch.tensor([7, -2, 7]))
    dataset = from_pyg([graph], node_columns=FeatureColumns.ATTRIBUTES)
    assert dataset.label_source is LabelSource.DEGREE
    assert dataset.node_attributes is not None
    assert dataset.node_attributes.tolist() == [[7], [-2], [7]]


def test_what_must_be_labels_and_is_not_is_refused() -> None:
    graph = path_of_three(x=torch.tensor([[0.5], [1], [2]]))
    with pytest.raises(InputError, match="neither one-hot nor a single integer column"):
        from_pyg([graph], node_columns=FeatureColumns.LABELS)
    one_hot = path_of_three(x=torch.eye(3))
    assert from_pyg([one_hot], node_columns=FeatureColumns.LABELS).label_values == (0, 1, 2)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_features_that_are_not_finite_are_refused(value: float) -> None:
    x = torch.tensor([[value], [1], [2]], dtype=torch.float64)
    with pytest.raises(InputError, match="The features hold NaN or infinity"):
        from_pyg([path_of_three(x=x)])


@pytest.mark.parametrize("key", ["x", "edge_attr"])
def test_features_of_some_graphs_only_are_refused(key: str) -> None:
    rows = {"x": 3, "edge_attr": 4}[key]
    graphs = [path_of_three(**{key: torch.rand(rows, 2)}), path_of_three()]
    with pytest.raises(InputError, match=f"^list: {key} of graph 1 does not have \\d+ rows"):
        from_pyg(graphs)


def test_features_of_different_width_are_refused() -> None:
    graphs = [path_of_three(x=torch.rand(3, width)) for width in (2, 4)]
    with pytest.raises(InputError, match=r"^list: x differs in width between graphs"):
        from_pyg(graphs)


# Edge features


def test_one_hot_edge_features_are_edge_labels() -> None:
    edge_attr = torch.tensor([[0.0, 1], [0, 1], [1, 0], [1, 0]])
    dataset = from_pyg([path_of_three(edge_attr=edge_attr)])
    assert dataset.edge_label is not None
    assert dataset.edge_label.tolist() == [1, 1, 0, 0]
    assert dataset.edge_label_values == (0, 1)
    assert dataset.edge_attributes is None


def test_integers_on_edges_are_edge_labels_unless_read_as_attributes() -> None:
    graph = path_of_three(edge_attr=torch.tensor([5, 5, 3, 3]))
    dataset = from_pyg([graph])
    assert dataset.edge_label is not None
    assert dataset.edge_label.tolist() == [1, 1, 0, 0]
    assert dataset.edge_label_values == (3, 5)
    dataset = from_pyg([graph], edge_columns=FeatureColumns.ATTRIBUTES)
    assert dataset.edge_label is None
    assert dataset.edge_attributes is not None
    assert dataset.edge_attributes.tolist() == [[5], [5], [3], [3]]


def test_other_edge_features_are_edge_attributes() -> None:
    dataset = from_pyg([path_of_three(edge_attr=torch.tensor([[0.5], [0.5], [2], [2]]))])
    assert dataset.edge_label is None
    assert dataset.edge_attributes is not None
    assert dataset.edge_attributes.tolist() == [[0.5], [0.5], [2], [2]]


def test_edge_features_follow_their_edges_into_order() -> None:
    graph = path_of_three(
        edge_index=torch.tensor([[2, 1, 1, 0], [1, 2, 0, 1]]),
        edge_attr=torch.tensor([[2.1], [1.2], [1.0], [0.1]]),
    )
    dataset = from_pyg([graph])
    assert dataset.edge_index().tolist() == BOTH_WAYS
    assert dataset.edge_attributes is not None
    np.testing.assert_allclose(dataset.edge_attributes[:, 0], [0.1, 1.0, 1.2, 2.1], rtol=1e-6)


# Edges


def test_self_loops_are_left_out() -> None:
    graph = path_of_three(edge_index=torch.tensor([[0, 0, 1, 1, 2], [0, 1, 0, 2, 1]]))
    dataset = from_pyg([graph])
    assert dataset.edge_index().tolist() == BOTH_WAYS
    assert dataset.notes == ReadingNotes(self_loops=1)


def test_duplicates_are_merged_and_the_first_counts() -> None:
    graph = path_of_three(
        edge_index=torch.tensor([[0, 1, 1, 2, 0], [1, 0, 2, 1, 1]]),
        edge_attr=torch.tensor([3, 3, 3, 3, 8]),
    )
    dataset = from_pyg([graph])
    assert dataset.edge_index().tolist() == BOTH_WAYS
    assert dataset.edge_label is not None
    assert [dataset.edge_label_values[each] for each in dataset.edge_label] == [3, 3, 3, 3]
    assert dataset.notes == ReadingNotes(duplicate_edges=1, conflicting_duplicates=1)


def test_one_directional_edges_are_made_undirected() -> None:
    graph = path_of_three(
        edge_index=torch.tensor([[0, 1], [1, 2]]), edge_attr=torch.tensor([[0.5], [2.5]])
    )
    dataset = from_pyg([graph])
    assert dataset.edge_index().tolist() == BOTH_WAYS
    assert dataset.edge_attributes is not None
    assert dataset.edge_attributes.tolist() == [[0.5], [0.5], [2.5], [2.5]]
    assert dataset.notes == ReadingNotes(one_directional=2)


def test_graphs_without_edges_have_none() -> None:
    dataset = from_pyg([path_of_three(edge_index=torch.empty(2, 0, dtype=torch.long))] * 2)
    assert dataset.num_edges == 0
    assert dataset.node_ptr.tolist() == [0, 3, 6]
    assert dataset.label_values == (0,)


@pytest.mark.parametrize("wrong", [[[0, 1], [1, 3]], [[0, 1], [1, -1]]])
def test_an_edge_to_a_node_that_is_not_there_is_refused(wrong: list[list[int]]) -> None:
    graphs = [path_of_three(), path_of_three(edge_index=torch.tensor(wrong))]
    with pytest.raises(InputError) as caught:
        from_pyg(graphs)
    assert str(caught.value) == (
        "list: edge_index of graph 1 names a node that does not exist (3 nodes). "
        "Set num_nodes, or correct the edges."
    )


def test_a_transposed_edge_index_is_refused() -> None:
    with pytest.raises(InputError, match=r"edge_index of graph 0 is not \[2, E\]. Transpose it"):
        from_pyg([path_of_three(edge_index=torch.tensor(BOTH_WAYS).t())])


def test_no_edge_index_is_refused() -> None:
    with pytest.raises(InputError, match="graph 0 has no edge_index"):
        from_pyg([path_of_three(edge_index=None)])


def test_a_graph_without_nodes_is_refused() -> None:
    empty = Data(edge_index=torch.empty(2, 0, dtype=torch.long), y=torch.tensor([0]), num_nodes=0)
    with pytest.raises(InputError, match=r"^list: graph 1 has no nodes\. Remove it\.$"):
        from_pyg([path_of_three(), empty])


def test_no_graphs_are_refused() -> None:
    with pytest.raises(InputError, match=r"^EMPTY holds no graphs\. Give at least one\.$"):
        from_pyg([], name="EMPTY")


# Classes


@pytest.mark.parametrize(
    "y", [torch.tensor([4]), torch.tensor(4), torch.tensor([[4]]), torch.tensor([4.0]), 4, 4.0]
)
def test_one_whole_number_is_a_class(y: object) -> None:
    dataset = from_pyg([path_of_three(y=y), path_of_three(y=torch.tensor([-1]))])
    assert dataset.class_values == (-1, 4)
    assert dataset.graph_class.tolist() == [1, 0]


@pytest.mark.parametrize(
    "y",
    [
        pytest.param(None, id="missing"),
        pytest.param(torch.tensor([0.5]), id="regression"),
        pytest.param(torch.tensor([0, 1]), id="several targets"),
        pytest.param(torch.tensor([[0.0, 1.0]]), id="one-hot"),
        pytest.param(torch.tensor([], dtype=torch.long), id="no target"),
        pytest.param(torch.tensor([float("nan")]), id="not a number"),
        pytest.param(torch.tensor([float("inf")]), id="infinity"),
        pytest.param("toxic", id="text"),
    ],
)
def test_anything_else_is_no_class(y: object) -> None:
    with pytest.raises(InputError) as caught:
        from_pyg([path_of_three(), path_of_three(y=y)])
    assert str(caught.value).startswith("list: y of graph 1 is ")
    assert str(caught.value).endswith(
        "not one class. ihgnn classifies graphs; give each graph a single integer y."
    )


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
    dataset = from_pyg(tu_dataset(use_node_attr=True, use_edge_attr=True))
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
    from torch_geometric.datasets import TUDataset

    from ihgnn_cli.data import load_dataset

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
