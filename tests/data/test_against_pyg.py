"""The same graphs, node for node, as torch-geometric's `TUDataset` reads from the same files.

Where `TUDataset` is inexact, the last section says what it does and what we do.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.datasets import TUDataset

from ihgnn_cli.data import GraphDataset, load_dataset
from ihgnn_cli.data.dataset import LabelSource
from ihgnn_cli.data.pyg import from_pyg, to_pyg

MakeTU = Callable[..., TUDataset]


@pytest.fixture(scope="module")
def unpacked(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> MakeTU:
    """`TUDataset` over the real files, which lie where it would have downloaded them to."""
    root = tmp_path_factory.mktemp("pyg")

    def make(name: str, **options: bool) -> TUDataset:
        raw = root / name / "raw"
        if not raw.exists():
            raw.mkdir(parents=True)
            with zipfile.ZipFile(real_data / f"{name}.zip") as archive:
                for member in archive.infolist():
                    if not member.is_dir():
                        (raw / Path(member.filename).name).write_bytes(archive.read(member))
        return TUDataset(str(root), name, **options)

    return make


@pytest.fixture
def with_attributes(unpacked: MakeTU) -> MakeTU:
    return lambda name: unpacked(name, use_node_attr=True, use_edge_attr=True)


# Real data


@pytest.mark.parametrize(
    "name", ["KKI", "BZR_MD", "DHFR_MD", "MUTAG", "PROTEINS", "IMDB-BINARY", "IMDB-MULTI"]
)
def test_each_graph_is_torch_geometric_s(
    with_attributes: MakeTU, real_data: Path, name: str
) -> None:
    theirs = with_attributes(name)
    ours = to_pyg(load_dataset(str(real_data / f"{name}.zip")))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.num_nodes == other.num_nodes
        assert torch.equal(one.edge_index, other.edge_index)
        assert torch.equal(one.y, other.y)
        assert set(one.keys()) == {*other.keys(), "num_nodes"}  # as many kinds of features
        if "x" in one:
            assert torch.equal(one.x, other.x)
        if "edge_attr" in one:
            assert torch.equal(one.edge_attr, other.edge_attr)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("KKI", {"x": 190}),
        ("BZR_MD", {"x": 8, "edge_attr": 1 + 5}),
        ("MUTAG", {"x": 7, "edge_attr": 4}),
        ("PROTEINS", {"x": 1 + 3}),
        ("IMDB-BINARY", {}),
    ],
)
def test_the_comparison_sees_the_features_that_the_data_has(
    real_data: Path, name: str, columns: dict[str, int]
) -> None:
    graph = to_pyg(load_dataset(str(real_data / f"{name}.zip")))[0]
    found = {key: graph[key].shape[1] for key in ("x", "edge_attr") if key in graph}
    assert found == columns


def assert_same_graphs(ours: GraphDataset, theirs: TUDataset) -> None:
    """Sizes, edges and classes in one piece each, for data sets of many edges."""
    assert [graph.num_nodes for graph in theirs] == np.diff(ours.node_ptr).tolist()
    np.testing.assert_array_equal(ours.edge_index(), theirs.edge_index.numpy())
    np.testing.assert_array_equal(ours.edge_ptr, theirs.slices["edge_index"].numpy())
    np.testing.assert_array_equal(ours.graph_class, theirs.y.numpy())


@pytest.mark.long
def test_dd_is_torch_geometric_s(with_attributes: MakeTU, real_data: Path) -> None:
    theirs, ours = with_attributes("DD"), load_dataset(str(real_data / "DD.zip"))
    assert_same_graphs(ours, theirs)
    # Labels run from 0 to 88 and seven of them never occur: theirs are columns of zeros.
    assert theirs.x.shape == (ours.num_nodes, 89)
    assert len(ours.label_values) == 82
    assert torch.equal(theirs.x.sum(dim=1), torch.ones(ours.num_nodes))
    labels = np.array(ours.label_values)[ours.node_label]
    np.testing.assert_array_equal(labels, theirs.x.argmax(dim=1).numpy())


@pytest.mark.long
def test_collab_is_torch_geometric_s(with_attributes: MakeTU, real_data: Path) -> None:
    theirs, ours = with_attributes("COLLAB"), load_dataset(str(real_data / "COLLAB.zip"))
    assert_same_graphs(ours, theirs)
    assert "x" not in theirs[0]
    assert ours.label_source is LabelSource.DEGREE


@pytest.mark.parametrize("name", ["PROTEINS", "BZR_MD", "MUTAG"])
@pytest.mark.parametrize("attributes", [False, True])
def test_what_torch_geometric_read_goes_in(
    unpacked: MakeTU, real_data: Path, name: str, attributes: bool
) -> None:
    taken = from_pyg(unpacked(name, use_node_attr=attributes, use_edge_attr=attributes))
    read = load_dataset(str(real_data / f"{name}.zip"))
    left_out = set() if attributes else {"node_attributes", "edge_attributes"}
    assert taken.label_source is LabelSource.LABELS
    assert taken.columns().keys() == read.columns().keys() - left_out
    for key, column in taken.columns().items():
        np.testing.assert_array_equal(column, read.columns()[key], err_msg=key)


# Where torch-geometric is inexact


@pytest.fixture
def both(write_tu: Callable[..., Path], tmp_path: Path) -> Callable[..., tuple]:
    """A data set made of the given parts, as `TUDataset` reads it and as we do."""

    def make(**parts: str) -> tuple[TUDataset, GraphDataset]:
        folder = write_tu(folder=tmp_path / "TINY" / "raw", **parts)
        return TUDataset(str(tmp_path), "TINY"), load_dataset(str(folder))

    return make


TWO_PAIRS = {
    "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "5\n6\n",
}


def test_labels_that_never_occur_are_columns_of_zeros_there_and_nothing_here(
    both: Callable[..., tuple],
) -> None:
    theirs, ours = both(**TWO_PAIRS, node_labels="3\n7\n7\n3\n")
    assert theirs.x.shape == (4, 5)
    assert theirs.x.argmax(dim=1).tolist() == [0, 4, 4, 0]
    assert to_pyg(ours)[0].x.tolist() == [[1, 0], [0, 1]]
    assert ours.label_values == (3, 7)


def test_labels_of_duplicate_edges_are_summed_there_and_the_first_counts_here(
    both: Callable[..., tuple],
) -> None:
    repeated = {**TWO_PAIRS, "A": "1, 2\n1, 2\n2, 1\n3, 4\n4, 3\n"}
    theirs, ours = both(**repeated, edge_labels="0\n1\n0\n1\n1\n")
    assert theirs[0].edge_attr.tolist() == [[1, 1], [1, 0]]
    assert to_pyg(ours)[0].edge_attr.tolist() == [[1, 0], [1, 0]]
    assert ours.notes.duplicate_edges == ours.notes.conflicting_duplicates == 1


def test_an_edge_in_one_direction_stays_so_there_and_is_undirected_here(
    both: Callable[..., tuple],
) -> None:
    theirs, ours = both(**{**TWO_PAIRS, "A": "1, 2\n3, 4\n4, 3\n"})
    assert theirs[0].edge_index.tolist() == [[0], [1]]
    assert to_pyg(ours)[0].edge_index.tolist() == [[0, 1], [1, 0]]
    assert ours.notes.one_directional == 1


def test_a_last_graph_without_edges_is_missing_there_and_a_graph_here(
    both: Callable[..., tuple],
) -> None:
    single = {"graph_indicator": "1\n1\n2\n2\n3\n", "graph_labels": "5\n6\n5\n"}
    theirs, ours = both(**{**TWO_PAIRS, **single})
    assert [graph.num_nodes for graph in theirs] == [2, 2]
    assert [graph.num_nodes for graph in to_pyg(ours)] == [2, 2, 1]
    assert to_pyg(ours)[2].edge_index.shape == (2, 0)


def test_a_last_line_without_newline_is_missing_there_and_a_line_here(
    both: Callable[..., tuple],
) -> None:
    theirs, ours = both(**{**TWO_PAIRS, "A": "1, 2\n2, 1\n3, 4\n4, 3"})
    assert theirs[1].edge_index.tolist() == [[0], [1]]
    assert to_pyg(ours)[1].edge_index.tolist() == [[0, 1], [1, 0]]
    assert ours.notes.one_directional == 0


def test_nodes_of_a_graph_that_stand_apart_are_mixed_up_there_and_put_together_here(
    both: Callable[..., tuple],
) -> None:
    apart = {**TWO_PAIRS, "A": "1, 3\n3, 1\n2, 4\n4, 2\n", "graph_indicator": "1\n2\n1\n2\n"}
    theirs, ours = both(**apart, node_labels="0\n1\n0\n1\n")
    assert [graph.x.argmax(dim=1).tolist() for graph in theirs] == [[0, 1], [0, 1]]
    assert [graph.x.argmax(dim=1).tolist() for graph in to_pyg(ours)] == [[0, 0], [1, 1]]
    assert [graph.edge_index.tolist() for graph in to_pyg(ours)] == [[[0, 1], [1, 0]]] * 2
    assert ours.notes.reordered_nodes == 2
