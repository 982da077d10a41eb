"""A path of three atoms and a pair of atoms, in the words of a model."""

from dataclasses import replace

import numpy as np
import pytest

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.recode import UNKNOWN, Recoded, recoded, some_values
from ihgnn_cli.errors import InputError

LABELS = LabelSource.LABELS


@pytest.fixture
def two() -> GraphDataset:
    """0 - 1 - 2 of C N C and the class bad, 3 - 4 of O N and the class good."""
    return GraphDataset(
        name="TWO",
        node_ptr=np.array([0, 3, 5]),
        neighbor_ptr=np.array([0, 1, 3, 4, 5, 6]),
        neighbors=np.array([1, 0, 2, 1, 4, 3], dtype=np.int32),
        node_label=np.array([0, 1, 0, 2, 1], dtype=np.int32),
        label_values=("C", "N", "O"),
        label_source=LabelSource.LABELS,
        graph_class=np.array([0, 1], dtype=np.int32),
        class_values=("bad", "good"),
        node_attributes=np.arange(5, dtype=np.float32)[:, None],
    )


def meanings(found: Recoded) -> list[object]:
    """What each node's label says, None where it is unknown."""
    data = found.dataset
    return [None if each < 0 else data.label_values[each] for each in data.node_label.tolist()]


def test_the_same_words_change_nothing(two: GraphDataset) -> None:
    found = recoded(two, two.label_values, LABELS, two.class_values)
    for name, column in two.columns().items():
        np.testing.assert_array_equal(found.dataset.columns()[name], column)
    assert found.dataset.fingerprint == two.fingerprint
    assert np.count_nonzero(found.dataset.node_label == UNKNOWN) == 0
    assert found.unknown_labels == ()
    assert found.unlabelled.size == 0


def test_positions_are_those_in_the_model_s_values(two: GraphDataset) -> None:
    found = recoded(two, ("O", "S", "N", "C"), LABELS, ("good", "bad"))
    assert found.dataset.node_label.tolist() == [3, 2, 3, 0, 2]
    assert found.dataset.label_values == ("O", "S", "N", "C")
    assert found.dataset.graph_class.tolist() == [1, 0]
    assert found.dataset.class_values == ("good", "bad")
    assert meanings(found) == ["C", "N", "C", "O", "N"]


def test_labels_that_the_model_does_not_know_are_counted_and_named(two: GraphDataset) -> None:
    found = recoded(two, ("N",), LABELS, two.class_values)
    assert found.dataset.node_label.tolist() == [UNKNOWN, 0, UNKNOWN, UNKNOWN, 0]
    assert np.count_nonzero(found.dataset.node_label == UNKNOWN) == 3
    assert found.unknown_labels == ("C", "O")


def test_no_label_need_be_known(two: GraphDataset) -> None:
    found = recoded(two, ("S",), LABELS, two.class_values)
    assert meanings(found) == [None] * 5
    assert np.count_nonzero(found.dataset.node_label == UNKNOWN) == 5


def test_graphs_of_classes_that_the_model_does_not_know_are_told(two: GraphDataset) -> None:
    found = recoded(two, two.label_values, LABELS, ("bad", "ugly"))
    assert found.unlabelled.tolist() == [1]
    assert found.dataset.graph_class.tolist() == [0, UNKNOWN]


def test_1_and_the_text_1_mean_the_same(two: GraphDataset) -> None:
    numbers = replace(two, label_values=(1, 2, 3), class_values=(-1, 1))
    found = recoded(numbers, ("3", "2", "1"), LABELS, ("1", "-1"))
    assert found.dataset.node_label.tolist() == [2, 1, 2, 0, 1]
    assert found.dataset.graph_class.tolist() == [1, 0]
    back = recoded(replace(two, label_values=("1", "2", "3")), (3, 2, 1), LABELS, two.class_values)
    assert back.dataset.node_label.tolist() == [2, 1, 2, 0, 1]


def test_a_value_itself_comes_before_its_text(two: GraphDataset) -> None:
    mixed = replace(two, label_values=(1, "1", 2))
    assert recoded(mixed, ("1", 1, 2), LABELS, two.class_values).dataset.node_label.tolist() == [
        1,
        0,
        1,
        2,
        0,
    ]


def test_01_is_not_1(two: GraphDataset) -> None:
    found = recoded(replace(two, label_values=("01", "N", "O")), (1,), LABELS, two.class_values)
    assert np.count_nonzero(found.dataset.node_label == UNKNOWN) == 5


def test_the_rest_stays_as_it_is(two: GraphDataset) -> None:
    found = recoded(two, ("N",), LABELS, ("good",)).dataset
    assert found.name == "TWO"
    for name in ("node_ptr", "neighbor_ptr", "neighbors", "node_attributes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(two, name))


def test_the_given_data_set_is_left_alone(two: GraphDataset) -> None:
    before = two.fingerprint
    recoded(two, ("N",), LABELS, ("good",))
    assert replace(two).fingerprint == before


# Degrees


def test_a_model_of_degrees_sees_degrees_whatever_labels_there_are(two: GraphDataset) -> None:
    found = recoded(two, (1, 2, 3), LabelSource.DEGREE, two.class_values)
    assert found.dataset.node_label.tolist() == [0, 1, 0, 0, 0]
    assert found.dataset.label_source is LabelSource.DEGREE
    assert np.count_nonzero(found.dataset.node_label == UNKNOWN) == 0


def test_a_degree_that_no_graph_had_in_training_is_unknown(two: GraphDataset) -> None:
    found = recoded(two.with_degree_labels(), (1, 3), LabelSource.DEGREE, two.class_values)
    assert found.dataset.node_label.tolist() == [0, UNKNOWN, 0, 0, 0]
    assert found.unknown_labels == (2,)


def test_data_without_labels_does_not_fit_a_model_of_labels(two: GraphDataset) -> None:
    with pytest.raises(InputError) as caught:
        recoded(two.with_degree_labels(), (1, 2), LABELS, two.class_values)
    assert str(caught.value) == (
        "TWO has no node labels, and the model was trained with labels. Give data of the same kind."
    )


# In words


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), ""),
        ((7,), "7"),
        (("C", 7), "C, 7"),
        (tuple(range(5)), "0, 1, 2, 3, 4"),
        (tuple(range(6)), "0, 1, 2, 3, 4 and 1 other"),
        (tuple(range(2000)), "0, 1, 2, 3, 4 and 1,995 others"),
    ],
)
def test_a_few_values_are_told(values: tuple[int | str, ...], expected: str) -> None:
    assert some_values(values) == expected


def test_a_class_that_nobody_knows_stays_unknown(two: GraphDataset) -> None:
    nameless = replace(two, graph_class=np.array([UNKNOWN, UNKNOWN]), class_values=())
    found = recoded(nameless, two.label_values, LABELS, two.class_values)
    assert found.dataset.graph_class.tolist() == [UNKNOWN, UNKNOWN]
    assert found.unlabelled.tolist() == [0, 1]
