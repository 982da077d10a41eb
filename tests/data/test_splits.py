"""Splits and folds: drawn from a seed, named by a text, read from a file."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_makers import HEXAGON, KITE, PATH, STAR, TRIANGLE, TWO_TRIANGLES, dataset_of
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from ihgnn_cli.data.kinds import is_drawn
from ihgnn_cli.data.splits import (
    Fold,
    Split,
    draw_folds,
    fold_file,
    grouped,
    holdout,
    inner_folds,
    load_split,
    random_bits,
    read_fold_file,
    stratified,
    write_fold_file,
)
from ihgnn_cli.data.twins import twin_groups
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.folds import make_folds

PUBLISHED = {"DD": 1178, "PROTEINS": 1113, "COLLAB": 5000, "IMDB-BINARY": 1000, "IMDB-MULTI": 1500}
SEEDS = st.integers(0, 2**64)
CLASSES = st.lists(st.integers(0, 5), min_size=9, max_size=80).map(np.array)
DOTS = dataset_of([([0], [])] * 20, classes=[0, 1] * 10)


def split(train: Any = (0, 1), validation: Any = (2,), test: Any = (3,)) -> Split:
    return Split(*(np.asarray(part) for part in (train, validation, test)))


def counts(classes: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    """[parts, classes] how many graphs of each class a part has."""
    return np.array(
        [[np.count_nonzero(classes[p] == v) for v in np.unique(classes)] for p in parts]
    )


# One split


def test_parts_are_sorted_copies_that_cannot_be_written() -> None:
    given_part = np.array([4, 1])
    found = split(train=given_part)
    given_part[0] = 7
    assert found.train.tolist() == [1, 4]
    assert not found.train.flags.writeable
    assert found.digest == split(train=[1, 4]).digest != split(train=[1]).digest
    # sha256sum of {"test":[3],"model_selection":[{"train":[0,1],"validation":[2]}]} on one line
    text = '{"test":[3],"model_selection":[{"train":[0,1],"validation":[2]}]}'
    assert json.dumps(split().as_fold(), separators=(",", ":")) == text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"test": []}, "test is empty"),
        ({"train": [0, -1]}, "Graph -1 is in train"),
        ({"train": [0, 0]}, "Graph 0 appears twice in train"),
        ({"validation": [1]}, "Graph 1 is in train and in validation"),
        ({"train": [0.0, 1.0]}, "train is not a list of 64-bit integers"),
        ({"train": [True, False]}, "train is not a list"),
        ({"train": [2**70]}, "train is not a list"),
    ],
)
def test_parts_hold_each_graph_at_most_once(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        split(**changes)


def test_a_split_belongs_to_a_data_set_of_its_size() -> None:
    split().check(4)
    with pytest.raises(InputError, match=r"Graph 3 is in test, .* 0 to 2\. The split may belong"):
        split().check(3)
    with pytest.raises(InputError, match=r"Graph 4 is in no part \(1 of 5 graphs are in none\)"):
        split().check(5)


@given(CLASSES, SEEDS, st.floats(0.05, 0.4), st.floats(0.05, 0.4))
def test_a_holdout_gives_each_class_its_share(classes, seed, validation, test) -> None:
    found = holdout(classes, seed, validation_share=validation, test_share=test)
    found.check(len(classes))
    sizes = [len(found.train), len(found.validation), len(found.test)]
    assert sizes[1:] == [
        max(1, round(validation * len(classes))),
        max(1, round(test * len(classes))),
    ]
    there = counts(classes, [found.train, found.validation, found.test])
    expected = np.outer(sizes, there.sum(axis=0)) / len(classes)
    assert (np.abs(there - expected) < 2).all()  # within one for each of the two cuts
    assert (np.abs(there - expected)[2] < 1).all()


def test_a_holdout_repeats_and_every_graph_has_the_same_chance() -> None:
    classes = np.arange(12) % 2
    assert holdout(classes, 7).digest == holdout(classes, 7).digest
    tested = sum(np.bincount(holdout(classes, seed).test, minlength=12) for seed in range(600))
    assert tested.min() > 25  # 50 expected, with a standard deviation of 7
    assert tested.max() < 75


@pytest.mark.parametrize(
    ("graphs", "shares", "said"),
    [
        (2, {}, "2 graphs cannot be split"),
        (4, {"validation_share": 0.5, "test_share": 0.5}, "leave none of 4 graphs"),
        (4, {"test_share": 1.0}, "share 1 of test is not between"),
        (4, {"validation_share": float("nan")}, "share nan of validation"),
    ],
)
def test_shares_that_leave_a_part_empty_are_refused(graphs, shares, said) -> None:
    with pytest.raises(InputError, match=said):
        holdout(np.zeros(graphs, dtype=np.int32), 0, **shares)


def test_a_negative_seed_is_refused() -> None:
    for draw in (holdout, draw_folds):
        with pytest.raises(InputError, match="seed -1 is negative"):
            draw(np.zeros(20, dtype=np.int32), -1)


# Drawn folds


@given(CLASSES, SEEDS, st.integers(2, 9), st.integers(1, 4))
def test_folds_test_each_graph_once_and_validate_in_parts_that_are_alike(
    classes, seed, folds, inner
) -> None:
    if folds == 2:
        inner = min(inner, len(classes) // 2)
    inner = min(inner, len(classes) - -(-len(classes) // folds))
    found = draw_folds(classes, seed, folds, inner)
    tests = [each.test for each in found]
    assert sorted(np.concatenate(tests).tolist()) == list(range(len(classes)))
    assert np.ptp([len(test) for test in tests]) <= 1
    assert (np.ptp(counts(classes, tests), axis=0) <= 1).all()
    for each in found:
        rest = np.setdiff1d(np.arange(len(classes)), each.test)
        parts = [one.validation for one in each.splits]
        for one in each.splits:
            one.check(len(classes))
        if inner > 1:
            assert sorted(np.concatenate(parts).tolist()) == rest.tolist()
            assert (np.ptp(counts(classes, parts), axis=0) <= 1).all()
        else:
            assert len(parts[0]) == max(1, round(0.1 * len(rest)))
            share = counts(classes, [rest])[0] * len(parts[0]) / len(rest)
            assert (np.abs(counts(classes, parts)[0] - share) < 1).all()


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3])
def test_outer_folds_are_those_of_one_line_of_scikit_learn(seed: int) -> None:
    classes = np.random.default_rng(1).integers(0, 3, 100)
    drawn = StratifiedKFold(10, shuffle=True, random_state=seed % 2**32).split(classes, classes)
    for inner in (1, 3):  # inner splits change no test part
        found = [each.test.tolist() for each in draw_folds(classes, seed, inner=inner)]
        assert found == [test.tolist() for _, test in drawn] or inner == 3
        drawn = [(None, np.array(test)) for test in found]


def test_a_class_with_fewer_members_than_folds_is_spread() -> None:
    classes = np.array([0] * 9 + [1] * 8 + [2])  # 18 graphs, a class of one
    for seed in (0, 2**40):
        found = draw_folds(classes, seed)
        assert sorted(np.concatenate([each.test for each in found]).tolist()) == list(range(18))
        assert (np.ptp(counts(classes, [each.test for each in found]), axis=0) <= 1).all()
        assert [each.digest for each in found] == [
            each.digest for each in draw_folds(classes, seed)
        ]


@pytest.mark.parametrize(
    ("graphs", "folds", "inner", "said"),
    [
        (9, 10, 1, "9 graphs cannot be split into 10 folds. Give at least 10"),
        (3, 2, 1, "Give at least 4 graphs"),
        (9, 10, 9, "10 folds with 9 inner splits each. Give at least 10"),
        (4, 1, 1, "folds must be at least 2"),
        (4, 2, 0, "inner_folds must be at least 1"),
    ],
)
def test_too_few_graphs_or_folds_are_refused(graphs, folds, inner, said) -> None:
    with pytest.raises(InputError, match=said):
        draw_folds(np.zeros(graphs, dtype=np.int32), 0, folds, inner)


def test_a_split_is_cut_into_inner_folds() -> None:
    base = holdout(np.arange(40) % 2, 0)
    assert inner_folds(np.arange(40) % 2, base, 0, 1) == (base,)
    found = inner_folds(np.arange(40) % 2, base, 0, 4)
    rest = np.union1d(base.train, base.validation)
    assert np.array_equal(np.sort(np.concatenate([each.validation for each in found])), rest)
    assert all(np.array_equal(each.test, base.test) for each in found)
    for inner, said in ((0, "at least 1"), (len(rest) + 1, f"Use 1 to {len(rest)}")):
        with pytest.raises(InputError, match=said):
            inner_folds(np.arange(40) % 2, base, 0, inner)


# Twins


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), min_size=12, max_size=80),
    SEEDS,
    st.integers(2, 4),
)
def test_no_group_is_divided(graphs, seed, parts) -> None:
    classes, groups = np.array(graphs).T
    if len(np.unique(groups)) < parts:
        return
    found = grouped(classes, groups, parts, random_bits(seed))
    assert sorted(np.concatenate(found).tolist()) == list(range(len(graphs)))
    members = [set(groups[part].tolist()) for part in found]
    assert all(members)
    assert sum(map(len, members)) == len(set(groups.tolist()))


def test_groups_of_one_graph_give_stratified_parts() -> None:
    classes = np.repeat([0, 1], [60, 30])
    found = grouped(classes, np.arange(90), 10, random_bits(3))
    assert counts(classes, found).tolist() == [[6, 3]] * 10


def test_validation_graphs_have_no_twin_in_training_either() -> None:
    random = np.random.default_rng(0)
    classes, groups = random.integers(0, 2, 100), random.integers(0, 50, 100)
    for inner in (1, 3):
        folds = draw_folds(classes, 0, 5, inner, groups)
        assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == list(range(100))
        for each in (each for fold in folds for each in fold.splits):
            train, *others = (
                set(groups[part]) for part in (each.train, each.validation, each.test)
            )
            assert not any(train & other for other in others)


@pytest.mark.parametrize(
    ("sizes", "folds", "inner", "said"),
    [
        ([6, 6], 10, 1, "2 groups of twins .* leave out --group-twins"),
        ([3, 3, 3], 3, 3, "need 4. Use fewer --inner-folds"),
        ([3] * 5, 10, 1, "Use 3 to 5 folds"),
        ([9, 1, 1, 1], 2, 1, "leaves 1 group of twins for training and validation"),
    ],
)
def test_too_few_groups_are_refused(sizes, folds, inner, said) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    with pytest.raises(InputError, match=said):
        draw_folds(np.arange(len(groups)) % 2, 0, folds, inner, groups)


def test_folds_of_twins_are_chosen_by_name() -> None:
    few = dataset_of([TWO_TRIANGLES, HEXAGON, KITE, PATH, STAR, TRIANGLE] * 5)
    assert len(np.unique(twin_groups(few))) == 5  # two triangles and a hexagon are twins
    with pytest.raises(InputError, match="5 groups of twins"):
        load_split("fold:3:twins", few, 0)
    many = dataset_of([([0] * size, []) for size in range(1, 13) for _ in range(2)])
    (expected,) = make_folds(many, 7, group_twins=True)[3].splits
    assert load_split("fold:3:twins", many, 7).digest == expected.digest
    assert load_split("fold:3", many, 7).digest != expected.digest


# Names


def test_a_text_names_a_drawn_split() -> None:
    classes = DOTS.graph_class
    assert load_split("holdout", DOTS, 3).digest == holdout(classes, 3).digest
    assert load_split("0.8/0.1/0.1", DOTS, 3).digest == holdout(classes, 3).digest
    for text in ("0.6/0.1/0.3", "60/10/30", ".6/.1/.3"):
        found = load_split(text, DOTS, 3)
        assert (len(found.train), len(found.validation), len(found.test)) == (12, 2, 6)
    assert load_split("fold:9", DOTS, 3).digest == draw_folds(classes, 3)[9].digest
    everything = load_split("all", DOTS, 0)
    assert everything.train.tolist() == list(range(20))
    assert not len(everything.validation) + len(everything.test)
    with pytest.raises(InputError, match="none are left for validation"):
        inner_folds(classes, everything, 0, 1)
    drawn = [
        text
        for text in ("holdout", "all", "fold:3", "1/1/98", "f.json", "fold:3:x")
        if is_drawn(text)
    ]
    assert drawn == ["holdout", "all", "fold:3", "1/1/98"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.8/0.2", "the shares of train, validation and test"),
        ("0.8/0.3/-0.1", "all above 0 and adding up to 1"),
        ("8/1/1", "adding up to 1"),
        ("fold:10", "The protocol has no fold 10. Its folds are 0 to 9."),
        *(
            (text, "Give holdout, shares")
            for text in ("", "fold:x", "missing.json:3:0", "x" * 5000)
        ),
    ],
)
def test_a_text_that_names_no_split_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_split(text, DOTS, 0)


def test_a_text_names_a_split_of_a_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = dataset_of([([0], [])] * 5)
    only = split([3], [4], [0, 1, 2])
    first, second = split([0, 1], [2], [3, 4]), split([2], [0, 1], [3, 4])
    write_fold_file([Fold((only,)), Fold((first, second))], Path("several"))
    for numbers, expected in (("0", only), ("0:0", only), ("1:0", first), ("1:1", second)):
        assert load_split(f"several:{numbers}", data, 0).digest == expected.digest
    for text, said in (
        ("several", "holds 2 folds. Append :0 to :1"),
        ("several:1", "holds 2 splits .* several:1:I with I from 0 to 1"),
        ("several:2", "has no fold 2. Its folds are 0 to 1"),
        ("several:1:2", "Fold 1 of several has no split 2. Its splits are 0 to 1"),
    ):
        with pytest.raises(InputError, match=said):
            load_split(text, data, 0)
    if os.name != "nt":  # a file whose name ends in a number comes first, and any name works
        write_fold_file([Fold((only,))], Path("several:1"))
        assert load_split("several:1", data, 0).digest == only.digest
        write_fold_file([Fold((only,))], Path("holdout"))
        assert load_split("./holdout", data, 0).digest == only.digest


# Files


@pytest.mark.parametrize("inner", [1, 3])
def test_written_folds_are_read_as_they_were(tmp_path, inner) -> None:
    written = draw_folds(np.arange(30) % 3, seed=5, inner=inner)
    write_fold_file(written, tmp_path / "folds")
    found = read_fold_file(tmp_path / "folds", 30)
    assert [each.digest for each in found] == [each.digest for each in written]


def test_a_fold_is_a_line_and_its_digest_knows_the_order_of_its_splits(tmp_path) -> None:
    two = Fold((split(), split(train=[2], validation=[0, 1])))
    assert fold_file([Fold((split(),)), two]) == (
        '[\n{"test":[3],"model_selection":[{"train":[0,1],"validation":[2]}]},\n'
        '{"test":[3],"model_selection":[{"train":[0,1],"validation":[2]},'
        '{"train":[2],"validation":[0,1]}]}\n]\n'
    )
    assert two.digest != Fold(two.splits[::-1]).digest
    assert Fold((split(),)).digest == split().digest
    for splits, said in (((), "no splits"), ((split(), split(test=[4])), "tests other graphs")):
        with pytest.raises(InputError, match=said):
            Fold(splits)
    # a single fold without the list, with other keys, with a byte order mark
    text = json.dumps(split().as_fold() | {"comment": "mine"})
    (tmp_path / "one").write_text(text, encoding="utf-8-sig")
    assert [each.digest for each in read_fold_file(tmp_path / "one", 4)] == [split().digest]


def fold(test: Any = (3,), **inner: Any) -> dict[str, Any]:
    return {
        "test": list(test) if isinstance(test, tuple) else test,
        "model_selection": [{"train": [0, 1], "validation": [2]} | inner],
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ([], "holds no folds"),
        ([7], "fold 0 .*: 7 is not a fold. Write {"),
        ([{}], "fold 0 .*: {} is not a fold"),
        ([fold(), {"test": [3]}], "fold 1 .* is not a fold"),
        ([fold() | {"model_selection": []}], "A fold has no splits"),
        ([fold(test=3)], "3 is not a list of graphs"),
        ([fold(test=[3.0])], r"\[3.0\] is not a list of graphs"),
        ([fold(train=[0, True])], "is not a list of graphs"),
        ([fold(train=[0, "1"])], "is not a list of graphs"),
        ([fold(test=[])], "test is empty"),
        ([fold(test=[2])], "Graph 2 is in validation and in test"),
        ([fold(train=[0])], "Graph 1 is in no part .*may belong to another data set"),
        ([fold(test=[3, 4])], "Graph 4 is in test, .*may belong to another data set"),
        ([fold(test=[3, 2**80])], "test is not a list of 64-bit integers"),
        ([fold((0,), train=[1, 3])] * 2, "graph 0 is in the test part of folds 0 and 1"),
        ([fold(), fold((0,), train=[1, 3])], "graph 1 is in the test part of no fold"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_place(tmp_path, content, said) -> None:
    path = tmp_path / "folds.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputError, match=said) as caught:
        read_fold_file(path, 4)
    assert str(caught.value).startswith(str(path))


def test_a_file_that_cannot_be_read_is_refused(tmp_path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="Cannot read"):
            read_fold_file(path, 4)


@pytest.mark.parametrize("name", list(PUBLISHED))
def test_published_folds_are_read_and_fit_their_data_set_only(real_data, name) -> None:
    file = real_data.parent / "splits" / f"{name}.json"
    if not file.is_file():
        pytest.skip(f"no published folds at {file}")
    found = read_fold_file(file, PUBLISHED[name])
    raw = json.loads(file.read_text())
    assert [each.test.tolist() for each in found] == [sorted(each["test"]) for each in raw]
    assert found[9].splits[0].train.tolist() == sorted(raw[9]["model_selection"][0]["train"])
    with pytest.raises(InputError, match="may belong to another data set"):
        read_fold_file(file, PUBLISHED[name] + 1)


def test_parts_of_any_number_are_cut_off() -> None:
    parts = stratified(np.arange(50) % 5, (20, 10, 10, 10), random_bits(1))
    assert sorted(np.concatenate(parts).tolist()) == list(range(50))
    assert (counts(np.arange(50) % 5, parts) == [[4] * 5, [2] * 5, [2] * 5, [2] * 5]).all()
