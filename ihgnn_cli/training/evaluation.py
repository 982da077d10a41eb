"""Evaluating a model: on which graphs, how good, and whether it has seen them before."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.identity import graph_digests
from ihgnn_cli.data.recode import UNKNOWN, Recoded, recoded, some_values
from ihgnn_cli.errors import InputError
from ihgnn_cli.homophily.measures import graph_homophily
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.settings import checked
from ihgnn_cli.training.kinds import Part
from ihgnn_cli.training.metrics import (
    HomophilyBin,
    HomophilySides,
    Metrics,
    accuracy_by_homophily,
    accuracy_by_side,
    measure,
)
from ihgnn_cli.words import counted

if TYPE_CHECKING:  # an exported model is evaluated without torch
    from ihgnn_cli.training.classifier import Classifier


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How good a model is on some graphs."""

    dataset: GraphDataset
    """With labels and classes as the model knows them."""
    part: Part
    graphs: NDArray[np.int64]
    """The positions of those graphs in the data set."""
    probabilities: NDArray[np.float64]
    """[len(graphs), C]"""
    beta: NDArray[np.float64]
    """[len(graphs)] node homophily by the data set's own labels."""
    metrics: Metrics
    bins: tuple[HomophilyBin, ...]
    sides: HomophilySides
    trained_on: int
    """Graphs among them that the model was trained on."""
    selected_on: int | None
    """Graphs that were used to choose its epoch; `None` on other data than the model's own, where
    both kinds are found by their content and counted above."""
    unknown_nodes: int
    """Nodes with labels that the model does not know: they count as the zero vector."""
    unknown_labels: str
    truncated: int
    """Graphs larger than m: they keep their first m nodes in sorted order. None where nodes are
    summed."""


def evaluate(
    classifier: "Classifier", dataset: GraphDataset, part: Part | str | None = None
) -> Evaluation:
    """Evaluate on a part of the model's own data (by default its test graphs), or on other data.

    Raises:
        InputError: the data has no such part, or does not fit the model.
    """
    card = classifier.card
    own = dataset.fingerprint == card.fingerprint
    chosen: Part = checked("part", part or (Part.TEST if own else Part.ALL), Part)
    graphs = _graphs(card, dataset, chosen, own)
    words = in_words_of(card, dataset)
    _refuse_unknown_classes(card, words, dataset, graphs)
    probabilities = classifier.probabilities(words.dataset, graphs)
    truth = words.dataset.graph_class[graphs].astype(np.int64)
    beta = graph_homophily(dataset)[graphs]
    trained_on, selected_on = _seen(card, dataset, graphs, own)
    nodes = np.isin(dataset.node_graph, graphs)
    unknown = nodes & (words.dataset.node_label == UNKNOWN)
    limit, sizes = classifier.node_limit, np.diff(dataset.node_ptr)[graphs]
    return Evaluation(
        dataset=words.dataset,
        part=chosen,
        graphs=graphs,
        probabilities=probabilities,
        beta=beta,
        metrics=measure(probabilities, truth),
        bins=tuple(accuracy_by_homophily(probabilities, truth, beta)),
        sides=accuracy_by_side(probabilities, truth, beta),
        trained_on=trained_on,
        selected_on=selected_on,
        unknown_nodes=int(np.count_nonzero(unknown)),
        unknown_labels=some_values(words.unknown_labels),
        truncated=0 if limit is None else int(np.count_nonzero(sizes > limit)),
    )


def part_of(card: ModelCard, dataset: GraphDataset, graph: int) -> Part | None:
    """The part of the model's own data that a graph belongs to; `None` on other data."""
    if dataset.fingerprint != card.fingerprint:
        return None
    parts = (Part.TRAIN, Part.VALIDATION, Part.TEST)
    return next(part for part in parts if graph in getattr(card.split, part))


def in_words_of(card: ModelCard, dataset: GraphDataset) -> Recoded:
    """The data set with labels and classes as the model knows them.

    Raises:
        InputError: labels or attributes that the model needs are not there.
    """
    labels = card.label_values, card.label_source
    if card.features != Features.LABELS:
        columns = 0 if dataset.node_attributes is None else dataset.node_attributes.shape[1]
        if columns != card.attributes:
            raise InputError(
                f"The model reads {counted(card.attributes, 'node attribute')}, and "
                f"{dataset.name} has {columns}. Give data of the same kind."
            )
    if card.features == Features.ATTRIBUTES:  # labels are not looked at
        labels = dataset.label_values, dataset.label_source
    return recoded(dataset, *labels, card.class_values)


def _graphs(card: ModelCard, dataset: GraphDataset, part: Part, own: bool) -> NDArray[np.int64]:
    if part == Part.ALL:
        return np.arange(len(dataset))
    if not own:
        raise InputError(
            f"{dataset.name} is not the data that the model was trained on ({card.dataset_name}, "
            f"or its content has changed), so it has no {part} part. Use --split all."
        )
    chosen: NDArray[np.int64] = getattr(card.split, part)
    return chosen


def _refuse_unknown_classes(
    card: ModelCard, words: Recoded, dataset: GraphDataset, graphs: NDArray[np.int64]
) -> None:
    unknown = np.intersect1d(words.unlabelled, graphs)
    if unknown.size:
        values = sorted({str(dataset.class_values[dataset.graph_class[each]]) for each in unknown})
        raise InputError(
            f"{dataset.name} has classes that the model does not know: {some_values(values)}, in "
            f"{counted(len(unknown), 'graph')}. It knows {some_values(card.class_values)}: "
            "evaluate on data with these."
        )


def _seen(
    card: ModelCard, dataset: GraphDataset, graphs: NDArray[np.int64], own: bool
) -> tuple[int, int | None]:
    """How many of the graphs training has used, and how many the choice of the epoch."""
    if own:
        trained = np.isin(graphs, card.split.train).sum()
        return int(trained), int(np.isin(graphs, card.split.validation).sum())
    if card.label_source == LabelSource.DEGREE:
        dataset = dataset.with_degree_labels()
    attributes = card.features != Features.LABELS
    digests = graph_digests(dataset, graphs, attributes=attributes)
    return sum(each in card.seen for each in digests), None
