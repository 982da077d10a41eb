"""Node features on one edge between two nodes of different labels."""

from dataclasses import replace

import numpy as np
import pytest

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.features import Features, node_features
from ihgnn_cli.errors import InputError


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
    assert str(caught.value) == "PAIR has no node attributes. Use its labels (labels)."


def test_a_kind_may_be_given_as_text(pair: GraphDataset) -> None:
    expected = node_features(pair, Features.LABELS)
    assert node_features(pair, "labels").tolist() == expected.tolist()  # type: ignore[arg-type]
