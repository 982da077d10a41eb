"""Folds: drawn from a seed, read from a file, written to one."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ihgnn_cli.data.splits.folds import Fold, draw_folds, fold_file, read_fold_file, write_fold_file
from ihgnn_cli.data.splits.split import Split
from ihgnn_cli.errors import InputError

PARTS = ("train", "validation", "test")
PUBLISHED = {
    "DD": 1178,
    "PROTEINS": 1113,
    "COLLAB": 5000,
    "IMDB-BINARY": 1000,
    "IMDB-MULTI": 1500,
}
SEEDS = st.integers(0, 2**64)
CLASSES = st.lists(st.integers(0, 5), min_size=3, max_size=80).map(np.array)
FOUR = np.zeros(4, dtype=np.int32)


def split(train: Any = (0, 1), validation: Any = (2,), test: Any = (3,)) -> Split:
    return Split(*(np.asarray(part) for part in (train, validation, test)))


def fold(**changes: object) -> dict[str, object]:
    """A fold of four graphs; `train` and `validation` are changed where they stand."""
    inner: dict[str, object] = {"train": [0, 1], "validation": [2]}
    inner |= {key: changes.pop(key) for key in tuple(changes) if key in inner}
    return {"test": [3], "model_selection": [inner], **changes}


def split_parts(found: Fold) -> list[list[list[int]]]:
    """The parts of each of the fold's splits."""
    return [[getattr(each, part).tolist() for part in PARTS] for each in found.splits]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folds.json"


def message(path: Path, content: object, graphs: int = 4) -> str:
    """What reading this content is refused with, without the path that it starts with."""
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputError) as caught:
        read_fold_file(path, graphs)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path))


# Fold


def test_a_fold_of_one_split_has_its_digest() -> None:
    assert Fold((split(),)).digest == split().digest


def test_the_digest_of_a_fold_knows_its_splits_and_their_order() -> None:
    one, other = split(), split(train=[2], validation=[0, 1])
    # sha256sum of {"test":[3],"model_selection":[{"train":[0,1],"validation":[2]},
    # {"train":[2],"validation":[0,1]}]} on one line
    assert Fold((one, other)).digest == (
        "045c78e3e652183fbedd58c9b1514b4834f25a5173b3eb6ce9dfa8ceda01c68e"
    )
    assert Fold((other, one)).digest != Fold((one, other)).digest


def test_a_fold_tests_what_its_splits_test() -> None:
    found = Fold((split(test=[5, 3]), split(train=[2], validation=[0], test=[3, 5])))
    assert found.test.tolist() == [3, 5]


@pytest.mark.parametrize("test", [[4], [3, 4]])
def test_the_splits_of_a_fold_test_the_same_graphs(test: list[int]) -> None:
    with pytest.raises(InputError) as caught:
        Fold((split(), split(test=test)))
    assert str(caught.value) == (
        "Split 1 of a fold tests other graphs than split 0. "
        "Give all splits of a fold the same test part."
    )


def test_a_fold_has_a_split() -> None:
    with pytest.raises(InputError, match=r"^A fold has no splits\. Give at least one\.$"):
        Fold(())


# Drawing


@given(CLASSES, SEEDS, st.integers(3, 10))
def test_folds_test_each_graph_once_and_are_alike(
    classes: np.ndarray, seed: int, folds: int
) -> None:
    folds = min(folds, len(classes))
    found = draw_folds(classes, seed, folds)
    assert len(found) == folds
    tested = np.concatenate([each.test for each in found])
    assert sorted(tested.tolist()) == list(range(len(classes)))
    assert np.ptp([len(each.test) for each in found]) <= 1
    for value in np.unique(classes):
        assert np.ptp([np.count_nonzero(classes[each.test] == value) for each in found]) <= 1


@given(CLASSES, SEEDS)
def test_a_stratified_tenth_of_what_a_fold_does_not_test_validates(
    classes: np.ndarray, seed: int
) -> None:
    for drawn in draw_folds(classes, seed, folds=3):
        (each,) = drawn.splits
        each.check(len(classes))
        rest = np.concatenate([each.train, each.validation])
        assert len(each.validation) == max(1, round(0.1 * len(rest)))
        for value in np.unique(classes):
            share = np.count_nonzero(classes[rest] == value) * len(each.validation) / len(rest)
            assert abs(np.count_nonzero(classes[each.validation] == value) - share) < 1


def test_a_seed_gives_the_same_folds_everywhere() -> None:
    found = draw_folds(np.arange(7) % 2, seed=7, folds=3)
    assert [split_parts(each) for each in found] == [
        [[[0, 4, 5], [3], [1, 2, 6]]],
        [[[0, 1, 2, 6], [5], [3, 4]]],
        [[[2, 3, 4, 6], [1], [0, 5]]],
    ]


def test_there_are_ten_folds_of_their_own() -> None:
    found = draw_folds(np.arange(100) % 2, seed=0)
    assert [len(each.test) for each in found] == [10] * 10
    assert len({each.digest for each in found}) == 10


def test_two_folds_of_four_graphs_are_the_least() -> None:
    assert len(draw_folds(FOUR, 0, folds=2)) == 2


@pytest.mark.parametrize(("graphs", "folds", "least"), [(9, 10, 10), (2, 3, 3), (3, 2, 4)])
def test_too_few_graphs_for_the_folds_are_refused(graphs: int, folds: int, least: int) -> None:
    with pytest.raises(InputError) as caught:
        draw_folds(np.zeros(graphs, dtype=np.int32), 0, folds)
    assert str(caught.value) == (
        f"{graphs} graphs cannot be split into {folds} folds. "
        f"Give at least {least} graphs{', or a smaller --folds' if folds > 2 else ''}."
    )


@pytest.mark.parametrize("folds", [1, 0])
def test_less_than_two_folds_are_refused(folds: int) -> None:
    with pytest.raises(InputError, match=rf"^folds must be at least 2, not {folds}\."):
        draw_folds(FOUR, 0, folds)


def test_seeds_are_not_negative() -> None:
    with pytest.raises(InputError, match=r"^The seed -1 is negative\."):
        draw_folds(FOUR, -1, folds=3)


# Drawing several inner splits


@given(st.lists(st.integers(0, 5), min_size=9, max_size=80).map(np.array), SEEDS, st.integers(2, 6))
def test_each_graph_that_is_not_tested_validates_in_one_inner_split(
    classes: np.ndarray, seed: int, inner: int
) -> None:
    for drawn in draw_folds(classes, seed, folds=3, inner=inner):
        assert len(drawn.splits) == inner
        for each in drawn.splits:
            each.check(len(classes))
        validating = np.concatenate([each.validation for each in drawn.splits])
        rest = np.setdiff1d(np.arange(len(classes)), drawn.test)
        assert sorted(validating.tolist()) == rest.tolist()


@given(st.lists(st.integers(0, 5), min_size=9, max_size=80).map(np.array), SEEDS, st.integers(2, 6))
def test_the_parts_that_validate_are_alike(classes: np.ndarray, seed: int, inner: int) -> None:
    for drawn in draw_folds(classes, seed, folds=3, inner=inner):
        validating = [each.validation for each in drawn.splits]
        assert np.ptp([len(part) for part in validating]) <= 1
        for value in np.unique(classes):
            assert np.ptp([np.count_nonzero(classes[part] == value) for part in validating]) <= 1


def test_inner_splits_change_no_test_part() -> None:
    classes = np.arange(50) % 3
    several = draw_folds(classes, seed=4, inner=5)
    for fewer, more in zip(draw_folds(classes, seed=4), several, strict=True):
        assert fewer.test.tolist() == more.test.tolist()


def test_a_seed_gives_the_same_inner_splits_everywhere() -> None:
    found = draw_folds(np.arange(7) % 2, seed=7, folds=3, inner=2)
    assert [split_parts(each) for each in found] == [
        [[[0, 3], [4, 5], [1, 2, 6]], [[4, 5], [0, 3], [1, 2, 6]]],
        [[[1, 2], [0, 5, 6], [3, 4]], [[0, 5, 6], [1, 2], [3, 4]]],
        [[[2, 3], [1, 4, 6], [0, 5]], [[1, 4, 6], [2, 3], [0, 5]]],
    ]


@pytest.mark.parametrize(
    ("graphs", "folds", "inner"), [(4, 2, 2), (6, 2, 3), (10, 10, 9), (5, 3, 3)]
)
def test_the_least_graphs_are_enough_and_one_less_is_told(
    graphs: int, folds: int, inner: int
) -> None:
    # the largest test parts leave 2 of 4, 3 of 6, 9 of 10 and 3 of 5 graphs
    for drawn in draw_folds(np.zeros(graphs, dtype=np.int32), 0, folds, inner):
        for each in drawn.splits:
            each.check(graphs)
    with pytest.raises(InputError) as caught:
        draw_folds(np.zeros(graphs - 1, dtype=np.int32), 0, folds, inner)
    assert str(caught.value) == (
        f"{graphs - 1} graphs cannot be split into {folds} folds with {inner} inner splits each. "
        f"Give at least {graphs} graphs, or a smaller "
        f"{'--folds or --inner-folds' if folds > 2 else '--inner-folds'}."
    )


@pytest.mark.parametrize("inner", [0, -1])
def test_less_than_one_inner_split_is_refused(inner: int) -> None:
    with pytest.raises(InputError, match=rf"^inner_folds must be at least 1, not {inner}\."):
        draw_folds(FOUR, 0, folds=2, inner=inner)


# Files


@pytest.mark.parametrize("inner", [1, 3])
def test_written_folds_are_read_as_they_were(path: Path, inner: int) -> None:
    written = draw_folds(np.arange(30) % 3, seed=5, inner=inner)
    write_fold_file(written, path)
    assert [each.digest for each in read_fold_file(path, 30)] == [each.digest for each in written]


def test_a_fold_stands_on_a_line(path: Path) -> None:
    folds = [Fold((split(),)), Fold((split(train=[3, 1], test=[0]),))]
    assert fold_file(folds) == (
        "[\n"
        '{"test":[3],"model_selection":[{"train":[0,1],"validation":[2]}]},\n'
        '{"test":[0],"model_selection":[{"train":[1,3],"validation":[2]}]}\n'
        "]\n"
    )
    write_fold_file(folds, path)
    assert path.read_bytes() == fold_file(folds).encode()


def test_the_splits_of_a_fold_stand_in_one_line(path: Path) -> None:
    write_fold_file([Fold((split(), split(train=[2], validation=[0, 1])))], path)
    assert path.read_bytes() == (
        b"[\n"
        b'{"test":[3],"model_selection":[{"train":[0,1],"validation":[2]},'
        b'{"train":[2],"validation":[0,1]}]}\n'
        b"]\n"
    )
    (found,) = read_fold_file(path, 4)
    assert split_parts(found) == [[[0, 1], [2], [3]], [[2], [0, 1], [3]]]


@pytest.mark.parametrize("content", [fold(), [fold()], fold(train=[1, 0], comment="mine")])
def test_a_single_fold_may_stand_alone_or_in_a_list(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))
    assert [split_parts(each) for each in read_fold_file(path, 4)] == [[[[0, 1], [2], [3]]]]


def test_a_byte_order_mark_is_no_obstacle(path: Path) -> None:
    path.write_text(json.dumps(fold()), encoding="utf-8-sig")
    assert len(read_fold_file(path, 4)) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is not JSON (Expecting value"),
        ("[" * 100_000, "is not JSON ("),
        ("0, 1, 2", "is not JSON (Extra data"),
        ([], "holds no folds. Write a list of {"),
    ],
)
def test_a_file_that_holds_no_folds_is_refused(path: Path, content: object, expected: str) -> None:
    assert message(path, content).startswith(f" {expected}")


def test_a_file_that_is_no_text_is_refused(path: Path) -> None:
    path.write_bytes(b"\x80abc")
    with pytest.raises(InputError, match=r"is not JSON .* Write a list of \{"):
        read_fold_file(path, 4)


FORM = 'Write {"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}.'
INTEGERS = "Write whole numbers, graphs counted from 0."
OTHER = "The split may belong to another data set."


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (7, f"7 is not an object. {FORM}"),
        ("null", f"null is not an object. {FORM}"),
        ([[0, 1]], f"[0, 1] is not an object. {FORM}"),
        ({}, f"model_selection is missing. {FORM}"),
        ({"model_selection": fold()["model_selection"]}, f"test is missing. {FORM}"),
        (fold(test=3), f"test is not a list. {FORM}"),
        (fold(test={"3": 3}), f"test is not a list. {FORM}"),
        (fold(validation=None), f"validation is not a list. {FORM}"),
        (fold(model_selection={"train": []}), f"model_selection is not a list. {FORM}"),
        (fold(model_selection=[]), f"model_selection is empty. {FORM}"),
        (fold(model_selection=[0]), f"0 is not an object. {FORM}"),
        (fold(model_selection=[{"train": [0]}]), f"validation is missing. {FORM}"),
        (fold(test=[3.0]), f"test holds 3.0. {INTEGERS}"),
        (fold(test=[float("nan")]), f"test holds NaN. {INTEGERS}"),
        (fold(train=[0, True]), f"train holds true. {INTEGERS}"),
        (fold(train=[0, "1"]), f'train holds "1". {INTEGERS}'),
        (fold(validation=[[2]]), f"validation holds [2]. {INTEGERS}"),
        (fold(test=[]), "test is empty. Put at least one graph into each part."),
        (fold(test=[-1]), "Graph -1 is in test. Graphs are counted from 0."),
        (fold(test=[2, 3]), "Graph 2 is in validation and in test. Keep it in one."),
        (fold(test=[3, 3]), "Graph 3 appears twice in test. Keep it once."),
        (fold(train=[0]), f"Graph 1 is in no part (1 of 4 graphs are in none). {OTHER}"),
        (fold(test=[3, 4]), f"Graph 4 is in test, and the data set's graphs are 0 to 3. {OTHER}"),
        (
            fold(test=[3, 2**80]),
            "test is not a list of 64-bit integers. Give the positions of graphs.",
        ),
    ],
)
def test_a_malformed_fold_is_told_with_its_number(
    path: Path, content: object, expected: str
) -> None:
    assert message(path, content) == f", fold 0 (counted from 0): {expected}"


def test_the_fold_that_is_wrong_is_named(path: Path) -> None:
    told = message(path, [fold(), fold(test=[2])])
    assert told.startswith(", fold 1 (counted from 0): Graph 2 is in validation and in test.")


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (0, f"0 is not an object. {FORM}"),
        ({"train": [0]}, f"validation is missing. {FORM}"),
        (
            {"train": [0, 1], "validation": [1, 2]},
            "Graph 1 is in train and in validation. Keep it in one.",
        ),
        (
            {"train": [0, 3], "validation": [1, 2]},
            "Graph 3 is in train and in test. Keep it in one.",
        ),
        (
            {"train": [0], "validation": [2]},
            f"Graph 1 is in no part (1 of 4 graphs are in none). {OTHER}",
        ),
    ],
)
def test_the_split_of_a_fold_that_is_wrong_is_named(
    path: Path, second: object, expected: str
) -> None:
    content = fold(model_selection=[{"train": [0, 1], "validation": [2]}, second])
    assert message(path, [content]) == f", fold 0 (counted from 0): split 1: {expected}"


def test_a_graph_is_tested_by_one_fold_only(path: Path) -> None:
    first = fold(test=[0], train=[1, 3])
    assert message(path, [first, fold(), first]) == (
        ": graph 0 is in the test part of folds 0 and 2. Put it into exactly one."
    )


def test_a_graph_is_tested_by_some_fold(path: Path) -> None:
    assert message(path, [fold(test=[0], train=[1, 3]), fold()]) == (
        ": graph 1 is in the test part of no fold. Put it into exactly one, "
        "or use the folds that there are with --folds."
    )


def test_a_missing_file_is_told(path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^Cannot read .*folds\.json: No such .* Give a JSON fold"
    ):
        read_fold_file(path, 4)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_fold_file(tmp_path, 4)
    assert str(caught.value) == f"{tmp_path} is a folder. Give a JSON fold file."


@pytest.mark.usefixtures("permissions")
def test_a_closed_file_is_told(path: Path) -> None:
    path.touch(mode=0)
    with pytest.raises(
        InputError, match=r"^Cannot read .*: Permission denied\. Give a JSON fold file\."
    ):
        read_fold_file(path, 4)


# Published folds


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_published_folds_are_read(real_data: Path, path: Path, name: str) -> None:
    file = real_data.parent / "splits" / f"{name}.json"
    if not file.is_file():
        pytest.skip(f"no published folds at {file}")
    found = read_fold_file(file, PUBLISHED[name])
    assert len(found) == 10
    raw = json.loads(file.read_text())
    assert found[9].test.tolist() == sorted(raw[9]["test"])
    assert found[9].splits[0].train.tolist() == sorted(raw[9]["model_selection"][0]["train"])
    write_fold_file(found, path)
    again = read_fold_file(path, PUBLISHED[name])
    assert [each.digest for each in again] == [each.digest for each in found]


@pytest.mark.parametrize(("name", "other"), list(pairwise(PUBLISHED)))
def test_published_folds_fit_no_other_data_set(real_data: Path, name: str, other: str) -> None:
    file = real_data.parent / "splits" / f"{name}.json"
    if not file.is_file():
        pytest.skip(f"no published folds at {file}")
    with pytest.raises(InputError, match=r"The split may belong to another data set\."):
        read_fold_file(file, PUBLISHED[other])
