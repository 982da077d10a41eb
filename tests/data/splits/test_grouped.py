"""Folds that keep groups of graphs together."""

import numpy as np
import pytest
from graph_makers import HEXAGON, KITE, PATH, STAR, TRIANGLE, TWO_TRIANGLES, dataset_of
from hypothesis import given, settings
from hypothesis import strategies as st

from ihgnn_cli.data.splits import draw_folds, load_split
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
    with pytest.raises(InputError, match="5 groups of twins cannot be divided into 10 parts"):
        load_split("fold:3:twins", data, 0)
    many = dataset_of([([0] * size, []) for size in range(1, 13) for _ in range(2)])
    (expected,) = make_folds(many, 7, group_twins=True)[3].splits
    assert load_split("fold:3:twins", many, 7).digest == expected.digest
    assert load_split("fold:3", many, 7).digest != expected.digest


def test_a_file_of_folds_cannot_be_regrouped(tmp_path) -> None:
    with pytest.raises(InputError, match="--group-twins draws folds, and --split-file reads them"):
        make_folds(dataset_of([KITE] * 4), 0, file=tmp_path / "folds.json", group_twins=True)
