"""Evaluates a model on some graphs, and reports whether it has seen them before."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, graph_digests
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.recode import Recoded, some_values
from ihgnn_cli.errors import InputError
from ihgnn_cli.homophily.measures import graph_homophily
from ihgnn_cli.inference.conformal import Coverage, measure_coverage
from ihgnn_cli.inference.kinds import Part
from ihgnn_cli.inference.metrics import (
    HomophilyBin,
    HomophilySides,
    Metrics,
    ReliabilityBin,
    accuracy_by_homophily,
    accuracy_by_side,
    measure,
    reliability,
)
from ihgnn_cli.inference.prediction import Classifier
from ihgnn_cli.inference.vocabulary import (
    INSIST,
    UnknownLabels,
    encode_dataset,
    with_model_edges,
)
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.conformal import Conformal
from ihgnn_cli.settings import checked
from ihgnn_cli.words import counted


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The quality of a model on some graphs."""

    dataset: GraphDataset = field(repr=False)
    """Encoded with the model's vocabulary and classes."""
    part: Part
    graphs: NDArray[np.int64] = field(repr=False)
    """The positions of those graphs in the data set."""
    probabilities: NDArray[np.float64] = field(repr=False)
    """[len(graphs), C]"""
    beta: NDArray[np.float64] = field(repr=False)
    """[len(graphs)] node homophily, computed from the data set's own labels."""
    metrics: Metrics
    bins: tuple[HomophilyBin, ...] = field(repr=False)
    sides: HomophilySides = field(repr=False)
    trained_on: int
    """How many of the graphs the model was trained on."""
    selected_on: int | None
    """How many of the graphs were used to choose its epoch. `None` on data other than the model's
    own: there both kinds are recognised by their content and counted in `trained_on`."""
    labels: UnknownLabels
    """The nodes whose label the model does not know; it is encoded as the zero vector."""
    reliability: tuple[ReliabilityBin, ...] = field(repr=False)
    """Accuracy by the probability of the predicted class."""
    truncated: int
    """Graphs with more than m nodes, of which only the first m in sorted order are used. Always 0
    for models that use all nodes."""
    members: int = 1
    """The number of models whose predictions were averaged."""
    uncertainty: NDArray[np.float64] | None = field(default=None, repr=False)
    """[len(graphs)] standard deviation over members of the predicted class's probability."""
    coverage: Coverage | None = field(default=None, repr=False)
    """Conformal prediction sets, if the model or the caller has thresholds."""

    @property
    def unknown_nodes(self) -> int:
        """Number of nodes whose label the model does not know."""
        return self.labels.unknown


def evaluate(
    classifier: Classifier,
    dataset: GraphDataset,
    part: Part | str | None = None,
    *,
    allow_unknown: bool = False,
    conformal: Conformal | None = None,
) -> Evaluation:
    """Evaluate on a part of the model's own data (by default its test graphs), or on other data.

    `allow_unknown` accepts graphs whose labels are nearly all unknown to the model.
    `conformal` has thresholds of prediction sets, by default those that the model carries.
    A model that was trained on all its graphs has no test graphs: the default is all of them.

    Raises:
        InputError: the data has no such part, or the model cannot read it.
    """
    card = classifier.card
    dataset = with_model_edges(card, dataset)
    own = dataset.fingerprint == card.fingerprint
    default = Part.TEST if own and len(card.split.test) else Part.ALL
    chosen: Part = checked("part", part or default, Part)
    unseen = not own or chosen == Part.TEST
    if conformal is not None and not unseen:
        raise InputError(
            "The coverage of prediction sets is measured on graphs that the model has not seen. "
            f"Evaluate its test graphs or other data, not the part {chosen}."
        )
    thresholds = conformal or card.conformal
    graphs = _graphs(card, dataset, chosen, own)
    encoded = encode_dataset(card, dataset)
    labels = UnknownLabels(card, allow_unknown)
    refused = graphs[labels.add(encoded, graphs)]
    if len(refused):
        raise InputError(
            f"The model knows hardly any label of {counted(len(refused), 'graph')}, the first of "
            f"them graph {refused[0]:,}. {labels.sentence}\n{labels.hint}{INSIST}"
        )
    _refuse_unknown_classes(card, encoded, dataset, graphs)
    probabilities, uncertainty = classifier.with_uncertainty(encoded.dataset, graphs)
    truth = encoded.dataset.graph_class[graphs].astype(np.int64)
    beta = graph_homophily(dataset)[graphs]
    trained_on, selected_on = _seen(card, dataset, graphs, own)
    limit, sizes = classifier.node_limit, np.diff(dataset.node_ptr)[graphs]
    return Evaluation(
        dataset=encoded.dataset,
        part=chosen,
        graphs=graphs,
        probabilities=probabilities,
        beta=beta,
        metrics=measure(probabilities, truth),
        bins=tuple(accuracy_by_homophily(probabilities, truth, beta)),
        sides=accuracy_by_side(probabilities, truth, beta),
        trained_on=trained_on,
        selected_on=selected_on,
        labels=labels,
        reliability=reliability(probabilities, truth),
        members=classifier.members,
        uncertainty=uncertainty,
        coverage=measure_coverage(thresholds, probabilities, truth, beta)
        if thresholds is not None and unseen
        else None,
        truncated=0 if limit is None else int(np.count_nonzero(sizes > limit)),
    )


def part_of(card: ModelCard, dataset: GraphDataset, graph: int) -> Part | None:
    """The part of the model's own data set that contains a graph; `None` for other data."""
    if with_model_edges(card, dataset).fingerprint != card.fingerprint:
        return None
    parts = (Part.TRAIN, Part.VALIDATION, Part.TEST)
    return next(part for part in parts if graph in getattr(card.split, part))


def _graphs(card: ModelCard, dataset: GraphDataset, part: Part, own: bool) -> NDArray[np.int64]:
    if part == Part.ALL:
        return np.arange(len(dataset))
    if not own:
        raise InputError(
            f"{dataset.name} is not the data set the model was trained on ({card.dataset_name}, "
            f"or its content has changed), so it has no {part} part. Evaluate all its graphs."
        )
    chosen: NDArray[np.int64] = getattr(card.split, part)
    if not len(chosen):
        raise InputError(
            f"The model has no {part} graphs: it was trained on all graphs of its data. Evaluate "
            "all of them, or other data."
        )
    return chosen


def _refuse_unknown_classes(
    card: ModelCard, encoded: Recoded, dataset: GraphDataset, graphs: NDArray[np.int64]
) -> None:
    unknown = np.intersect1d(encoded.unlabelled, graphs)
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
    """How many of the graphs were used for training, and how many to choose the epoch."""
    if own:
        trained = np.isin(graphs, card.split.train).sum()
        averaged = card.snapshot is not None and card.snapshot.snapshots  # no epoch was chosen
        chose = 0 if averaged else np.isin(graphs, card.split.validation).sum()
        return int(trained), int(chose)
    if card.label_source == LabelSource.DEGREE:
        dataset = dataset.with_degree_labels()
    attributes = card.given_features != Features.LABELS
    digests = graph_digests(dataset, graphs, attributes=attributes)
    return sum(each in card.seen for each in digests), None
