"""Folds that keep groups of graphs together."""

import numpy as np
import pytest
from graph_makers import HEXAGON, KITE, PATH, STAR, TRIANGLE, TWO_TRIANGLES, dataset_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ihgnn_cli.data.splits.folds import draw_folds
from ihgnn_cli.data.splits.load import load_split
from ihgnn_cli.data.splits.stratify import grouped, random_bits
from ihgnn_cli.data.twins import twin_groups
from ihgnn_cli.errors import InputError
from ihgnn_cli.studies.folds import make_folds

GRAPHS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), min_size=12, max_size=80)


@settings(max_examples=25)
@given(GRAPHS, st.integers(0, 9), st.integers(2, 4))
def test_every_graph_is_in_one_part_and_no_group_in_two(
    graphs: list[tuple[int, int]], seed: int, parts: int
) -> None:
    classes, groups = np.array(graphs).T
    if len(set(groups.tolist())) < parts:
        with pytest.raises(InputError, match=f"cannot be divided into {parts} parts"):
            grouped(classes, groups, parts, random_bits(seed))
        return
    found = grouped(classes, groups, parts, random_bits(seed))
    assert sorted(np.concatenate(found).tolist()) == list(range(len(graphs)))
    members = [set(groups[part].tolist()) for part in found]
    assert all(members)
    assert sum(map(len, members)) == len(set(groups.tolist()))


def test_groups_of_one_graph_give_stratified_parts() -> None:
    classes = np.repeat([0, 1], [60, 30])
    found = grouped(classes, np.arange(90), 10, random_bits(3))
    assert [np.bincount(classes[part]).tolist() for part in found] == [[6, 3]] * 10


def test_validation_graphs_have_no_twin_in_training_either() -> None:
    random = np.random.default_rng(0)
    classes, groups = random.integers(0, 2, 100), random.integers(0, 50, 100)
    for inner in (1, 3):
        folds = draw_folds(classes, 0, 5, inner, groups)
        assert sorted(np.concatenate([fold.test for fold in folds]).tolist()) == list(range(100))
        for split in (split for fold in folds for split in fold.splits):
            train, *others = (
                set(groups[part]) for part in (split.train, split.validation, split.test)
            )
            assert not any(train & other for other in others)
            assert len(split.validation) > 0


def test_a_training_can_use_a_fold_that_keeps_twins_together() -> None:
    data = dataset_of([TWO_TRIANGLES, HEXAGON, KITE, PATH, STAR, TRIANGLE] * 5)
    assert len(np.unique(twin_groups(data))) == 5
    with pytest.raises(InputError, match=r"and the data has 5 groups of twins\. Use fold:N or"):
        load_split("fold:3:twins", data, 0)
    many = dataset_of([([0] * size, []) for size in range(1, 13) for _ in range(2)])
    (expected,) = make_folds(many, 7, group_twins=True)[3].splits
    assert load_split("fold:3:twins", many, 7).digest == expected.digest
    assert load_split("fold:3", many, 7).digest != expected.digest


@pytest.mark.parametrize(
    ("sizes", "folds", "inner", "said"),
    [
        ([6, 6], 10, 1, "need at least 3 groups of twins, for training, validation and test, and"),
        ([6, 6], 2, 1, "the data has 2. To go on, leave out --group-twins."),
        ([3, 3, 3], 3, 3, "at least 4 .* for 3 inner folds .* use fewer --inner-folds or leave"),
        ([3] * 5, 10, 1, "5 groups of twins cannot be divided into 10 folds. Use 3 to 5 folds, or"),
        # One test part holds a group, the other all others.
        ([9, 1, 1, 1], 2, 1, "One of the 2 folds leaves 1 group of twins for training and valid"),
        ([9, 1, 1], 2, 1, "which need 2. Use 3 folds, or leave out --group-twins."),
    ],
)
def test_too_few_groups_are_refused_with_the_number_that_is_needed(
    sizes: list[int], folds: int, inner: int, said: str
) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    classes = np.arange(len(groups)) % 2
    with pytest.raises(InputError, match=said):
        draw_folds(classes, 0, folds, inner, groups)


@settings(max_examples=50)
@given(st.lists(st.integers(1, 30), min_size=3, max_size=8), st.integers(1, 4), st.data())
def test_the_numbers_of_folds_that_messages_suggest_work(
    sizes: list[int], inner: int, data: st.DataObject
) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    least = max(2, inner) + 1
    if len(sizes) >= least:
        folds = data.draw(st.integers(least, len(sizes)))
        assert len(draw_folds(np.arange(len(groups)) % 2, 0, folds, inner, groups)) == folds


def test_a_file_of_folds_cannot_be_regrouped(tmp_path) -> None:
    with pytest.raises(InputError, match="--group-twins draws folds, and --split-file reads them"):
        make_folds(dataset_of([KITE] * 4), 0, file=tmp_path / "folds.json", group_twins=True)
