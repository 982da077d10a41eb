"""The best accuracy that 1-WL allows, and how many graphs have twins."""

from pathlib import Path

import numpy as np
import pytest
from graph_makers import HEXAGON, KITE, TWO_TRIANGLES, dataset_of

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits.folds import Fold
from ihgnn_cli.data.splits.split import Split
from ihgnn_cli.data.twins import colorings
from ihgnn_cli.studies.wl_ceiling import Ceiling, accuracy_by_twins, ceiling, twins


def bound_of(data: GraphDataset) -> Ceiling:
    return ceiling(data, colorings(data))


def test_of_two_twins_of_different_class_one_is_wrong() -> None:
    found = bound_of(dataset_of([TWO_TRIANGLES, HEXAGON, KITE], [0, 1, 1]))
    assert found.rounds == pytest.approx([2 / 3] * 6)


def test_the_ceiling_rises_with_the_rounds_that_tell_graphs_apart() -> None:
    end = ([1, 0, 0, 0], [(0, 1), (1, 2), (2, 3)])
    inside = ([0, 1, 0, 0], [(0, 1), (1, 2), (2, 3)])
    assert bound_of(dataset_of([end, inside], [0, 1])).rounds == (0.5, 1, 1, 1, 1, 1)


def test_the_ceiling_by_homophily_has_the_bins_of_evaluate() -> None:
    # One label: homophily 1. The kite: its nodes have (0, 1/2, 1/3, 0) neighbours of equal label.
    found = bound_of(dataset_of([TWO_TRIANGLES, HEXAGON, HEXAGON, KITE], [0, 1, 1, 0])).bins
    told = {each.low: (each.graphs, each.accuracy) for each in found if each.graphs}
    assert len(found) == 10
    assert told == {0.2: (1, 1.0), 0.9: (3, pytest.approx(2 / 3))}


def test_twins_of_the_same_and_of_another_class_are_counted() -> None:
    data = dataset_of([TWO_TRIANGLES, HEXAGON, HEXAGON, KITE], [0, 1, 1, 0])
    found = twins(data, colorings(data)[-1])
    assert (found.same_class, found.other_class) == (0.5, 0.75)


def test_accuracy_is_told_apart_by_twins_in_training() -> None:
    data = dataset_of([TWO_TRIANGLES, HEXAGON, KITE, HEXAGON], [0, 1, 0, 1])
    parts = [((2,), (1,), (0, 3)), ((0,), (3,), (1, 2))]
    folds = [Fold((Split(*map(np.array, part)),)) for part in parts]
    # Fold 0 tests two graphs with a twin (graph 1), fold 1 one with (0 and 3) and one without.
    found = accuracy_by_twins(data, colorings(data)[-1], folds, [[1, 1], [1, 1]])
    assert (found.tested, found.with_twin) == (4, 3)
    assert found.accuracy_with == pytest.approx(2 / 3)
    assert found.accuracy_without == 0


@pytest.mark.parametrize(
    ("name", "bound", "same", "other"),
    [
        ("MUTAG", 100, 12.8, 0),
        ("BZR_MD", 89.2, 41.5, 29.7),
        ("DHFR_MD", 87.0, 46.6, 34.1),
        ("IMDB-BINARY", 88.6, 54.4, 31.8),
        ("IMDB-MULTI", 63.3, 76.6, 74.7),
    ],
)
def test_ceilings_of_the_papers_data_sets(
    real_data: Path, name: str, bound: float, same: float, other: float
) -> None:
    data = load_dataset(name, data_root=real_data)
    assert round(100 * ceiling(data, colorings(data)).rounds[-1], 1) == bound
    found = twins(data, colorings(data)[-1])
    assert (round(100 * found.same_class, 1), round(100 * found.other_class, 1)) == (same, other)
