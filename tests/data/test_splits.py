"""Splits: drawn from a seed, read from a file, chosen by a text."""

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.splits import (
    Split,
    choose,
    holdout,
    protocol_folds,
    read_folds,
    write_folds,
)
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


def parts(found: Split) -> list[list[int]]:
    return [getattr(found, part).tolist() for part in PARTS]


def dataset(graphs: int = 20) -> GraphDataset:
    """Graphs of a single node, of two classes in turn."""
    return GraphDataset(
        name="DOTS",
        node_ptr=np.arange(graphs + 1),
        neighbor_ptr=np.zeros(graphs + 1, dtype=np.int64),
        neighbors=np.zeros(0, dtype=np.int32),
        node_label=np.zeros(graphs, dtype=np.int32),
        label_values=(0,),
        label_source=LabelSource.LABELS,
        graph_class=np.arange(graphs, dtype=np.int32) % 2,
        class_values=("a", "b"),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folds.json"


def message(path: Path, content: object, graphs: int = 4) -> str:
    """What reading this content is refused with, without the path that it starts with."""
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputError) as caught:
        read_folds(path, graphs)
    assert str(caught.value).startswith(str(path))
    return str(caught.value).removeprefix(str(path))


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
        ({"train": [0, 1, 0]}, "Graph 0 stands twice in train. Keep it once."),
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
    with pytest.raises(InputError, match=r"^train is no list of 64-bit integers\. Give the pos"):
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
        "2 to validate and 2 to test leave none of 4 graphs to train on. Use smaller shares."
    )


@pytest.mark.parametrize("share", [0, -0.1, 1, 1.5, float("nan")])
def test_shares_are_between_0_and_1(share: float) -> None:
    with pytest.raises(InputError, match=r"^The share .* of test is not between 0 and 1\. Use 0"):
        holdout(FOUR, 0, test_share=share)
    with pytest.raises(InputError, match=r"^The share .* of validation is not between 0 and 1\."):
        holdout(FOUR, 0, validation_share=share)


def test_seeds_are_not_negative() -> None:
    with pytest.raises(InputError, match=r"^The seed -1 is negative\. Use a whole number from 0"):
        holdout(FOUR, -1)
    with pytest.raises(InputError, match=r"^The seed -1 is negative\."):
        protocol_folds(FOUR, -1, folds=3)


@given(CLASSES, SEEDS, st.integers(3, 10))
def test_folds_test_each_graph_once_and_are_alike(
    classes: np.ndarray, seed: int, folds: int
) -> None:
    folds = min(folds, len(classes))
    found = protocol_folds(classes, seed, folds)
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
    for each in protocol_folds(classes, seed, folds=3):
        each.check(len(classes))
        rest = np.concatenate([each.train, each.validation])
        assert len(each.validation) == max(1, round(0.1 * len(rest)))
        for value in np.unique(classes):
            share = np.count_nonzero(classes[rest] == value) * len(each.validation) / len(rest)
            assert abs(np.count_nonzero(classes[each.validation] == value) - share) < 1


def test_a_seed_gives_the_same_folds_everywhere() -> None:
    found = protocol_folds(np.arange(7) % 2, seed=7, folds=3)
    assert [parts(each) for each in found] == [
        [[0, 4, 5], [3], [1, 2, 6]],
        [[0, 1, 2, 6], [5], [3, 4]],
        [[2, 3, 4, 6], [1], [0, 5]],
    ]


def test_there_are_ten_folds_of_their_own() -> None:
    found = protocol_folds(np.arange(100) % 2, seed=0)
    assert [len(each.test) for each in found] == [10] * 10
    assert len({each.digest for each in found}) == 10


def test_two_folds_of_four_graphs_are_the_least() -> None:
    assert len(protocol_folds(FOUR, 0, folds=2)) == 2


@pytest.mark.parametrize(("graphs", "folds", "least"), [(9, 10, 10), (2, 3, 3), (3, 2, 4)])
def test_too_few_graphs_for_the_folds_are_refused(graphs: int, folds: int, least: int) -> None:
    with pytest.raises(InputError) as caught:
        protocol_folds(np.zeros(graphs, dtype=np.int32), 0, folds)
    assert str(caught.value) == (
        f"{graphs} graphs cannot be split into {folds} folds. "
        f"Give at least {least} graphs, or another split."
    )


@pytest.mark.parametrize(("folds", "told"), [(1, "1 fold"), (0, "0 folds")])
def test_less_than_two_folds_are_refused(folds: int, told: str) -> None:
    with pytest.raises(InputError, match=rf"^Cannot make {told}\. Use at least 2\."):
        protocol_folds(FOUR, 0, folds)


# Files


def test_written_folds_are_read_as_they_were(path: Path) -> None:
    written = protocol_folds(np.arange(30) % 3, seed=5)
    write_folds(written, path)
    assert [each.digest for each in read_folds(path, 30)] == [each.digest for each in written]


def test_a_fold_stands_on_a_line(path: Path) -> None:
    write_folds([split(), split(train=[3, 1], test=[0])], path)
    assert path.read_bytes() == (
        b"[\n"
        b'{"test":[3],"model_selection":[{"train":[0,1],"validation":[2]}]},\n'
        b'{"test":[0],"model_selection":[{"train":[1,3],"validation":[2]}]}\n'
        b"]\n"
    )


@pytest.mark.parametrize("content", [fold(), [fold()], fold(train=[1, 0], comment="mine")])
def test_a_single_fold_may_stand_alone_or_in_a_list(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))
    assert [parts(each) for each in read_folds(path, 4)] == [[[0, 1], [2], [3]]]


def test_a_byte_order_mark_is_no_obstacle(path: Path) -> None:
    path.write_text(json.dumps(fold()), encoding="utf-8-sig")
    assert len(read_folds(path, 4)) == 1


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
        read_folds(path, 4)


FORM = 'Write {"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}.'
INTEGERS = "Write whole numbers, graphs counted from 0."
ONE = "and one is supported. Keep one."
OTHER = "The split may belong to another data set."


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (7, f"7 stands where an object belongs. {FORM}"),
        ("null", f"null stands where an object belongs. {FORM}"),
        ([[0, 1]], f"[0, 1] stands where an object belongs. {FORM}"),
        ({}, f"model_selection is missing. {FORM}"),
        ({"model_selection": fold()["model_selection"]}, f"test is missing. {FORM}"),
        (fold(test=3), f"test is not a list. {FORM}"),
        (fold(test={"3": 3}), f"test is not a list. {FORM}"),
        (fold(validation=None), f"validation is not a list. {FORM}"),
        (fold(model_selection={"train": []}), f"model_selection is not a list. {FORM}"),
        (fold(model_selection=[]), f"model_selection holds 0 splits, {ONE}"),
        (fold(model_selection=[{}, {}]), f"model_selection holds 2 splits, {ONE}"),
        (fold(model_selection=[0]), f"0 stands where an object belongs. {FORM}"),
        (fold(model_selection=[{"train": [0]}]), f"validation is missing. {FORM}"),
        (fold(test=[3.0]), f"test holds 3.0. {INTEGERS}"),
        (fold(test=[float("nan")]), f"test holds NaN. {INTEGERS}"),
        (fold(train=[0, True]), f"train holds true. {INTEGERS}"),
        (fold(train=[0, "1"]), f'train holds "1". {INTEGERS}'),
        (fold(validation=[[2]]), f"validation holds [2]. {INTEGERS}"),
        (fold(test=[]), "test is empty. Put at least one graph into each part."),
        (fold(test=[-1]), "Graph -1 is in test. Graphs are counted from 0."),
        (fold(test=[2, 3]), "Graph 2 is in validation and in test. Keep it in one."),
        (fold(test=[3, 3]), "Graph 3 stands twice in test. Keep it once."),
        (fold(train=[0]), f"Graph 1 is in no part (1 of 4 graphs are in none). {OTHER}"),
        (fold(test=[3, 4]), f"Graph 4 is in test, and the data set's graphs are 0 to 3. {OTHER}"),
        (
            fold(test=[3, 2**80]),
            "test is no list of 64-bit integers. Give the positions of graphs.",
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


def test_a_graph_is_tested_by_one_fold_only(path: Path) -> None:
    first = fold(test=[0], train=[1, 3])
    assert message(path, [first, fold(), first]) == (
        ": graph 0 is in the test part of folds 0 and 2. Put it into exactly one."
    )


def test_a_graph_is_tested_by_some_fold(path: Path) -> None:
    assert message(path, [fold(test=[0], train=[1, 3]), fold()]) == (
        ": graph 1 is in the test part of no fold. Put it into exactly one."
    )


def test_a_missing_file_is_told(path: Path) -> None:
    with pytest.raises(InputError, match=r"^Cannot read .*folds\.json: No such .* Give a JSON fil"):
        read_folds(path, 4)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_folds(tmp_path, 4)
    assert str(caught.value) == f"{tmp_path} is a folder. Give a JSON file of folds."


@pytest.mark.usefixtures("permissions")
def test_a_closed_file_is_told(path: Path) -> None:
    path.touch(mode=0)
    with pytest.raises(InputError, match=r"^Cannot read .*: Permission denied\. Give a JSON file"):
        read_folds(path, 4)


# Choosing


def test_a_holdout_is_chosen_by_its_name() -> None:
    assert choose("holdout", dataset(), 3).digest == holdout(dataset().graph_class, 3).digest


@pytest.mark.parametrize("number", [0, 9])
def test_a_fold_of_the_protocol_is_chosen_by_its_number(number: int) -> None:
    expected = protocol_folds(dataset().graph_class, 3)[number]
    assert choose(f"fold:{number}", dataset(), 3).digest == expected.digest


def test_a_file_of_one_fold_is_chosen_by_its_path(path: Path) -> None:
    write_folds([split()], path)
    assert choose(str(path), dataset(4), 0).digest == split().digest
    assert choose(f"{path}:0", dataset(4), 0).digest == split().digest


def test_a_fold_of_a_file_is_chosen_by_its_number(path: Path) -> None:
    written = protocol_folds(dataset().graph_class, 5)
    write_folds(written, path)
    assert choose(f"{path}:3", dataset(), 0).digest == written[3].digest


@pytest.mark.skipif(os.name == "nt", reason="file names hold no colons there")
@pytest.mark.parametrize("name", ["folds:3", r"C:\folds.json", "fold:3", "holdout"])
def test_a_file_may_be_called_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_folds([split()], Path(name))
    assert choose(f"./{name}", dataset(4), 0).digest == split().digest
    assert choose(f"./{name}:0", dataset(4), 0).digest == split().digest


@pytest.mark.skipif(os.name == "nt", reason="file names hold no colons there")
def test_a_file_named_like_a_numbered_one_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_folds([split()], Path("mine"))
    other = split(validation=[3], test=[2])
    write_folds([other], Path("mine:0"))
    assert choose("mine:0", dataset(4), 0).digest == other.digest


def test_the_home_folder_may_be_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write_folds([split()], tmp_path / "mine.json")
    assert choose("~/mine.json:0", dataset(4), 0).digest == split().digest


def test_a_file_of_several_folds_needs_a_number(path: Path) -> None:
    write_folds(protocol_folds(dataset().graph_class, 0), path)
    with pytest.raises(InputError) as caught:
        choose(str(path), dataset(), 0)
    assert str(caught.value) == f"{path} holds 10 folds. Append :0 to :9 to choose one."


def test_a_number_beyond_the_folds_is_told_with_their_range(path: Path) -> None:
    with pytest.raises(InputError, match=r"^The protocol has no fold 10\. Its folds are 0 to 9\.$"):
        choose("fold:10", dataset(), 0)
    write_folds([split()], path)
    with pytest.raises(InputError, match=r"folds\.json has no fold 1\. Its only fold is 0\.$"):
        choose(f"{path}:1", dataset(4), 0)
    write_folds(protocol_folds(dataset().graph_class, 0), path)
    with pytest.raises(InputError, match=r"folds\.json has no fold 12\. Its folds are 0 to 9\.$"):
        choose(f"{path}:12", dataset(), 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Holdout",
        "fold",
        "fold:",
        "fold:x",
        "fold:-1",
        "fold:²",
        "missing.json",
        "missing.json:3",
        r"C:\missing.json",
        ":3",
        pytest.param("x" * 5000, id="long"),
        pytest.param("fold:" + "9" * 5000, id="large"),
    ],
)
def test_a_text_that_is_no_split_is_told_the_forms(text: str) -> None:
    with pytest.raises(InputError) as caught:
        choose(text, dataset(), 0)
    assert str(caught.value) == (
        f"No split '{text}', and no file of that name. Give holdout, fold:N (N from 0 to 9), "
        "or a file of folds as FILE or FILE:N."
    )


def test_a_folder_is_no_split(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder\. Give a JSON file of folds\.$"):
        choose(str(tmp_path), dataset(), 0)


def test_a_file_of_another_data_set_is_told(path: Path) -> None:
    write_folds([split()], path)
    with pytest.raises(InputError, match=r"fold 0 .*The split may belong to another data set\.$"):
        choose(str(path), dataset(), 0)


# Published folds


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_published_folds_are_read(real_data: Path, path: Path, name: str) -> None:
    file = real_data.parent / "splits" / f"{name}.json"
    if not file.is_file():
        pytest.skip(f"no published folds at {file}")
    found = read_folds(file, PUBLISHED[name])
    assert len(found) == 10
    raw = json.loads(file.read_text())
    assert found[9].test.tolist() == sorted(raw[9]["test"])
    assert found[9].train.tolist() == sorted(raw[9]["model_selection"][0]["train"])
    write_folds(found, path)
    again = read_folds(path, PUBLISHED[name])
    assert [each.digest for each in again] == [each.digest for each in found]


@pytest.mark.parametrize(("name", "other"), list(pairwise(PUBLISHED)))
def test_published_folds_fit_no_other_data_set(real_data: Path, name: str, other: str) -> None:
    file = real_data.parent / "splits" / f"{name}.json"
    if not file.is_file():
        pytest.skip(f"no published folds at {file}")
    with pytest.raises(InputError, match=r"The split may belong to another data set\."):
        read_folds(file, PUBLISHED[other])
