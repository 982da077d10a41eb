"""Splits: three parts of the graphs, and the hold-out that is drawn from a seed."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ihgnn_cli.data.splits.split import Split, holdout
from ihgnn_cli.errors import InputError

PARTS = ("train", "validation", "test")
SEEDS = st.integers(0, 2**64)
CLASSES = st.lists(st.integers(0, 5), min_size=3, max_size=80).map(np.array)
FOUR = np.zeros(4, dtype=np.int32)


def split(train: Any = (0, 1), validation: Any = (2,), test: Any = (3,)) -> Split:
    return Split(*(np.asarray(part) for part in (train, validation, test)))


def parts(found: Split) -> list[list[int]]:
    return [getattr(found, part).tolist() for part in PARTS]


# Split


def test_parts_are_ascending_and_read_only() -> None:
    found = split(train=[4, 0, 1])
    assert found.train.tolist() == [0, 1, 4]
    assert found.train.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        found.train[0] = 7


def test_the_arrays_that_were_given_stay_as_they_are() -> None:
    mine = np.array([1, 0])
    found = split(train=mine)
    assert mine.tolist() == [1, 0]
    mine[0] = 5
    assert found.train.tolist() == [0, 1]


def test_a_fold_is_plain_json_in_the_published_form() -> None:
    text = '{"test": [3], "model_selection": [{"train": [0, 1], "validation": [2]}]}'
    assert json.dumps(split().as_fold()) == text


def test_the_digest_knows_the_parts_and_not_their_order() -> None:
    assert split(train=[1, 0]).digest == split().digest
    assert split(validation=[3], test=[2]).digest != split().digest
    # sha256sum of {"test":[3],"model_selection":[{"train":[0,1],"validation":[2]}]}
    assert split().digest == "c3585c3bf5315cc2dc2211f94b2ae80a246970348ac89b0bc65828be1ffa3dd1"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"validation": [1]}, "Graph 1 is in train and in validation. Keep it in one."),
        ({"test": [0]}, "Graph 0 is in train and in test. Keep it in one."),
        ({"test": [2]}, "Graph 2 is in validation and in test. Keep it in one."),
        ({"train": [0, 1, 0]}, "Graph 0 appears twice in train. Keep it once."),
        ({"test": [3, -1]}, "Graph -1 is in test. Graphs are counted from 0."),
        ({"train": []}, "train is empty. Put at least one graph into each part."),
        ({"validation": []}, "validation is empty. Put at least one graph into each part."),
        ({"test": []}, "test is empty. Put at least one graph into each part."),
    ],
)
def test_parts_that_are_none_are_refused(changes: dict[str, list[int]], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        split(**changes)
    assert str(caught.value) == expected


@pytest.mark.parametrize("train", [[0.0, 1.0], [True, False], [[0, 1]], [2**63], [2**70], ["0"]])
def test_parts_are_lists_of_integers(train: list[object]) -> None:
    with pytest.raises(InputError, match=r"^train is not a list of 64-bit integers\. Give the pos"):
        split(train=train)


def test_a_split_of_all_graphs_is_in_order() -> None:
    split().check(4)


def test_a_graph_beyond_the_data_set_is_told() -> None:
    with pytest.raises(InputError) as caught:
        split().check(3)
    assert str(caught.value) == (
        "Graph 3 is in test, and the data set's graphs are 0 to 2. "
        "The split may belong to another data set."
    )


def test_a_graph_in_no_part_is_told() -> None:
    with pytest.raises(InputError) as caught:
        split().check(6)
    assert str(caught.value) == (
        "Graph 4 is in no part (2 of 6 graphs are in none). "
        "The split may belong to another data set."
    )


# Drawing


@given(CLASSES, SEEDS)
def test_a_holdout_holds_each_graph_once(classes: np.ndarray, seed: int) -> None:
    found = holdout(classes, seed)
    found.check(len(classes))
    tenth = max(1, round(0.1 * len(classes)))
    assert [len(part) for part in parts(found)] == [len(classes) - 2 * tenth, tenth, tenth]


@given(CLASSES, SEEDS, st.floats(0.01, 0.45), st.floats(0.01, 0.45))
def test_each_class_has_its_share_of_each_part_to_within_one(
    classes: np.ndarray, seed: int, validation: float, test: float
) -> None:
    try:
        found = holdout(classes, seed, validation_share=validation, test_share=test)
    except InputError:
        assert round(validation * len(classes)) + round(test * len(classes)) >= len(classes) - 1
        return
    found.check(len(classes))
    for value in np.unique(classes):
        for part in parts(found):
            share = np.count_nonzero(classes == value) * len(part) / len(classes)
            assert abs(np.count_nonzero(classes[part] == value) - share) < 1


def test_shares_that_are_whole_are_met() -> None:
    classes = np.repeat([0, 1], [30, 10])
    for seed in range(20):
        found = holdout(classes, seed)
        counts = [np.bincount(classes[part]).tolist() for part in parts(found)]
        assert counts == [[24, 8], [3, 1], [3, 1]]


def test_every_graph_has_the_same_chance_to_test() -> None:
    classes = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    tested = np.zeros(10)
    for seed in range(2000):
        tested[holdout(classes, seed, validation_share=0.3).test] += 1
    assert (abs(tested / 2000 - 0.1) < 0.03).all()  # 4.5 standard deviations


def test_three_graphs_are_enough() -> None:
    assert sorted(parts(holdout(np.array([0, 0, 1]), seed=1))) == [[0], [1], [2]]


def test_a_class_of_its_own_for_each_graph_is_no_obstacle() -> None:
    holdout(np.arange(50), seed=0).check(50)


def test_a_seed_gives_the_same_holdout_everywhere() -> None:
    found = holdout(np.arange(12) % 2, seed=7, validation_share=0.25, test_share=0.25)
    assert parts(found) == [[2, 3, 5, 8, 10, 11], [4, 6, 9], [0, 1, 7]]


def test_seeds_differ() -> None:
    classes = np.arange(100) % 2
    assert len({holdout(classes, seed).digest for seed in range(20)}) == 20


@pytest.mark.parametrize("graphs", [0, 1, 2])
def test_fewer_than_three_graphs_are_refused(graphs: int) -> None:
    with pytest.raises(InputError, match=rf"^{graphs} graphs? cannot be .* at least 3 graphs\."):
        holdout(np.zeros(graphs, dtype=np.int32), seed=0)


def test_shares_leave_a_graph_to_train_on() -> None:
    with pytest.raises(InputError) as caught:
        holdout(FOUR, 0, validation_share=0.5, test_share=0.5)
    assert str(caught.value) == (
        "2 validation and 2 test graphs leave none of 4 graphs for training. Use smaller shares."
    )


@pytest.mark.parametrize("share", [0, -0.1, 1, 1.5, float("nan")])
def test_shares_are_between_0_and_1(share: float) -> None:
    with pytest.raises(InputError, match=r"^The share .* of test is not between 0 and 1\."):
        holdout(FOUR, 0, test_share=share)
    with pytest.raises(InputError, match=r"^The share .* of validation is not between 0 and 1\."):
        holdout(FOUR, 0, validation_share=share)


def test_seeds_are_not_negative() -> None:
    with pytest.raises(InputError, match=r"^The seed -1 is negative\. Use a whole number from 0"):
        holdout(FOUR, -1)
