"""The best accuracy of any model bounded by 1-WL on some graphs, and the twins that limit it.

Such a model gives twins (graphs with the same 1-WL colouring) the same class. So it is right on at
most the majority class of each set of twins. This is a bound over all graphs at once, with their
classes known: no model that is tested on unseen graphs need come near it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.splits import Fold
from ihgnn_cli.homophily.measures import graph_homophily
from ihgnn_cli.inference.metrics import HomophilyBin, accuracy_by_homophily


@dataclass(frozen=True)
class Ceiling:
    """The bound over all graphs."""

    rounds: tuple[float, ...]
    """Before the first round (node labels alone), and after 1, 2, ... rounds."""
    bins: tuple[HomophilyBin, ...]
    """After the last round, by node homophily."""


@dataclass(frozen=True)
class Twins:
    """Graphs with the same 1-WL colouring as another graph, as shares of all graphs."""

    same_class: float
    """Graphs with a twin of the same class."""
    other_class: float
    """Graphs with a twin of another class."""


@dataclass(frozen=True)
class TwinAccuracy:
    """A classifier on test graphs with a twin among the graphs it learned from, and without."""

    tested: int
    with_twin: int
    accuracy_with: float | None
    """`None` if there are no such graphs."""
    accuracy_without: float | None


def ceiling(dataset: GraphDataset, colorings: Sequence[NDArray[np.int64]]) -> Ceiling:
    """The bound after each round, whose colourings are given, and by homophily."""
    truth, classes = dataset.graph_class, len(dataset.class_values)
    # [rounds][G] the majority class among the twins of each graph
    best = [_table(twins, truth, classes).argmax(axis=1)[twins] for twins in colorings]
    certain = np.eye(classes)[best[-1]]
    bins = accuracy_by_homophily(certain, truth, graph_homophily(dataset))
    return Ceiling(tuple(float((each == truth).mean()) for each in best), tuple(bins))


def twins(dataset: GraphDataset, groups: NDArray[np.int64]) -> Twins:
    """How many graphs have twins: others with the same number."""
    truth = dataset.graph_class
    table = _table(groups, truth, len(dataset.class_values))
    same, all_twins = table[groups, truth], table.sum(axis=1)[groups]
    return Twins(float((same > 1).mean()), float((all_twins > same).mean()))


def accuracy_by_twins(
    dataset: GraphDataset,
    groups: NDArray[np.int64],
    folds: Sequence[Fold],
    predictions: Sequence[Sequence[int]],
) -> TwinAccuracy:
    """Accuracy on test graphs with and without a twin outside the test part of their fold."""
    has, right = [], []
    for fold, predicted in zip(folds, predictions, strict=True):
        learned = np.delete(groups, fold.test)
        has.append(np.isin(groups[fold.test], learned))
        right.append(np.asarray(predicted) == dataset.graph_class[fold.test])
    twin, hit = np.concatenate(has), np.concatenate(right)
    return TwinAccuracy(len(twin), int(twin.sum()), _share(hit[twin]), _share(hit[~twin]))


def _share(hits: NDArray[np.bool_]) -> float | None:
    return float(hits.mean()) if len(hits) else None


def _table(
    groups: NDArray[np.int64], truth: NDArray[np.integer], classes: int
) -> NDArray[np.int64]:
    """[groups, C] number of graphs of each class."""
    table = np.zeros((int(groups.max()) + 1, classes), dtype=np.int64)
    np.add.at(table, (groups, truth), 1)
    return table
