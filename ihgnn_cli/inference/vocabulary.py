"""Encodes graphs with the vocabulary of a trained model: whole data sets, or single JSON graphs.

A label that is not in the vocabulary is a zero vector. `UnknownLabels` decides how many of them
are too many for the predictions to mean anything.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.build import simplify, symmetric
from ihgnn_cli.data.dataset import GraphDataset, LabelSource, Value, offsets, vocabulary
from ihgnn_cli.data.edge_labels import refuse_directed, with_edge_bins, without_edges
from ihgnn_cli.data.features import Features
from ihgnn_cli.data.json_graph import GraphError, JsonGraph
from ihgnn_cli.data.recode import (
    UNKNOWN,
    Recoded,
    positions,
    recoded,
    some_values,
    unknown_values,
)
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.node_inputs import with_columns
from ihgnn_cli.words import counted

MANY_UNKNOWN = 0.1
"""Above this share of unknown nodes, predictions come with a warning."""
NEARLY_ALL_UNKNOWN = 0.9
"""Above this share, a graph is not predicted unless the caller insists."""


class UnknownLabelsWarning(UserWarning):
    """More than a tenth of the nodes have labels that the model does not know."""


@dataclass
class UnknownLabels:
    """Counts the nodes whose label a model does not know, and judges graphs with hardly others."""

    card: ModelCard = field(repr=False)
    allowed: bool = False
    """Never refuse a graph."""
    nodes: int = 0
    unknown: int = 0
    graphs: int = 0
    """Graphs with unknown nodes."""
    values: tuple[Value, ...] = ()
    """The labels of the first graphs with unknown nodes."""

    def add(self, encoded: Recoded, graphs: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
        """Count the nodes of encoded graphs, or of some of them.

        Returns:
            For each of them, whether more than 9 in 10 nodes are unknown and that is not allowed.
        """
        chosen = slice(None) if graphs is None else graphs
        unknown = unknown_nodes(self.card, encoded.dataset)[chosen]
        sizes = np.diff(encoded.dataset.node_ptr)[chosen]
        self.nodes += int(sizes.sum())
        self.unknown += int(unknown.sum())
        self.graphs += int(np.count_nonzero(unknown))
        self.values = self.values or encoded.unknown_labels
        return (unknown > NEARLY_ALL_UNKNOWN * sizes) & (not self.allowed)

    def warn(self) -> None:
        """Issue an `UnknownLabelsWarning` if more than 1 in 10 nodes are unknown."""
        if self.many:
            warnings.warn(self.sentence, UnknownLabelsWarning, stacklevel=3)

    @property
    def many(self) -> bool:
        """Whether more than 1 in 10 nodes are unknown."""
        return self.unknown > MANY_UNKNOWN * self.nodes

    @property
    def sentence(self) -> str:
        """What is unknown, and what the model knows."""
        given = f" ({some_values(self.values)})" if self.values else ""
        return (
            f"The {self.card.label_words} of {self.unknown:,} of {counted(self.nodes, 'node')} in "
            f"{counted(self.graphs, 'graph')} are unknown to the model{given} and encoded as the "
            f"zero vector. It knows {some_values(self.card.label_values)}."
        )

    def refusal(self, encoded: Recoded) -> tuple[str, str]:
        """What to say about encoded graphs that are refused, and what to do."""
        found = UnknownLabels(self.card)
        found.add(encoded)
        return found.sentence, f"{found.hint}{INSIST}"

    @property
    def hint(self) -> str:
        """A sentence for those who give positions in place of labels."""
        known = self.card.label_values
        if all(isinstance(each, int) and 0 <= each < len(known) for each in self.values):
            return "Labels are values, not positions in the model's vocabulary. "
        return ""


INSIST = (
    "Give graphs with labels of the model's data, or insist with --allow-unknown "
    "(allow_unknown=True in Python)."
)


def unknown_nodes(card: ModelCard, dataset: GraphDataset) -> NDArray[np.int64]:
    """[G] the number of nodes of each encoded graph whose label the model does not know."""
    if card.features == Features.ATTRIBUTES:
        return np.zeros(len(dataset), dtype=np.int64)
    unknown = dataset.node_label == UNKNOWN
    return np.add.reduceat(unknown, dataset.node_ptr[:-1], dtype=np.int64)


def with_model_edges(card: ModelCard, dataset: GraphDataset) -> GraphDataset:
    """The data set with the edges and edge labels that the model reads.

    Edge labels become positions in the model's vocabulary. The model's background label may be
    missing. Applied twice, nothing more changes.

    Raises:
        InputError: edge labels or the attribute that bins need are missing, depend on the
            direction, or are unknown to the model.
    """
    background, known = card.background_edge_label, card.edge_label_values
    if not card.reads_edge_labels:
        return dataset
    if card.needs_edge_labels and dataset.edge_label is None and dataset.num_edges:
        raise InputError(
            f"The model reads edge labels, and {dataset.name} has none. Give data of the same kind."
        )
    bins = dataset.edge_bins
    if bins is not None and (bins, dataset.background_edge_label) != (card.edge_bins, background):
        raise InputError(
            f"{dataset.name} has edge bins that are not those of the model. Give it without bins."
        )
    if card.needs_edge_labels or background:
        refuse_directed(dataset)
    if background != dataset.background_edge_label:
        dataset = without_edges(dataset, background)
    if card.edge_bins is not None and bins is None:
        dataset = with_edge_bins(dataset, card.edge_bins)
    if not known:
        return dataset
    position = positions(dataset.edge_label_values, known)
    label = np.empty(0, dtype=np.int32) if dataset.edge_label is None else dataset.edge_label
    used = np.unique(label)
    unknown = [dataset.edge_label_values[at] for at in used[position[used] == UNKNOWN].tolist()]
    if unknown:
        _refuse_edges(card, dataset.name, unknown)
    return replace(
        dataset, edge_label=position[label], edge_label_values=known, uses_edge_labels=True
    )


def _refuse_edges(card: ModelCard, name: str, unknown: Sequence[Value]) -> None:
    """Raise an error for edge labels of a data set, or their pairs with bins."""
    known = _own_edge_labels(card)
    labels = unknown if card.edge_bins is None else card.edge_bins.own_labels(unknown)
    texts = set(map(str, known))
    new = [each for each in labels if str(each) not in texts]
    if new:
        raise InputError(
            f"{name} has edge labels that the model does not know: {some_values(new)}. It knows "
            f"{some_values(known)}. Leave out these edges, or train with graphs that have them."
        )
    pairs = " in bin ".join(str(unknown[0]).rsplit(",", 1))
    more = f" and {counted(len(unknown) - 1, 'other pair')}" if len(unknown) > 1 else ""
    raise InputError(
        f"{name} has edge label {pairs} of the attribute{more}, which the training data does not "
        "have. Train on data that has it, or with fewer --edge-bins."
    )


def encode_dataset(card: ModelCard, dataset: GraphDataset) -> Recoded:
    """Encode a data set: labels and classes become positions in the model's vocabulary.

    Raises:
        InputError: the data lacks labels or attributes that the model needs.
    """
    dataset = with_model_edges(card, dataset)
    labels = card.label_values, card.label_source
    if card.given_features != Features.LABELS:
        columns = 0 if dataset.node_attributes is None else dataset.node_attributes.shape[1]
        if columns != card.given_attributes:
            raise InputError(
                f"The model reads {counted(card.given_attributes, 'node attribute')}, and "
                f"{dataset.name} has {columns}. Give data of the same kind."
            )
    if card.features == Features.ATTRIBUTES:  # the model ignores labels
        labels = dataset.label_values, dataset.label_source
    found = recoded(dataset, *labels, card.class_values)
    return replace(found, dataset=with_columns(found.dataset, card.given_features, card.columns))


def check_fits(card: ModelCard, graph: JsonGraph) -> None:
    """Check that a graph has the labels and attributes that the model reads.

    Raises:
        GraphError: something is missing.
    """
    if _reads_labels(card) and graph.node_labels is None:
        raise GraphError(
            "no node_labels, and the model was trained with labels.", "Give each node its label."
        )
    if card.given_features != Features.LABELS:
        columns = len(graph.node_attributes[0]) if graph.node_attributes else 0
        if columns != card.given_attributes:
            raise GraphError(
                f"the model reads {counted(card.given_attributes, 'node attribute')}, "
                f"and there are {columns or 'none'}.",
                f"Give each node a list of {counted(card.given_attributes, 'number')}.",
            )
    if card.reads_edge_labels:
        _check_edges(card, graph)


def _check_edges(card: ModelCard, graph: JsonGraph) -> None:
    if graph.edges and card.edge_bins is not None:
        rows = graph.edge_attributes
        if rows is None or len(rows[0]) != 1:
            there = f"there are {len(rows[0])}" if rows else "there is none"
            raise GraphError(
                f"the model reads one edge attribute, and {there}.",
                "Give each edge one number.",
            )
    if graph.edge_labels is None and graph.edges and card.needs_edge_labels:
        raise GraphError(
            "no edge_labels, and the model was trained with them.", "Give each edge its label."
        )
    given = _given_labels(graph)
    labels = _read_labels(card, [graph], given)
    # Attributes are compared as well: two of them may be in one bin.
    compared = ["labels"] if card.needs_edge_labels or card.background_edge_label else []
    numbers = None
    if card.edge_bins is not None:
        compared.append("attributes")
        numbers = np.array(graph.edge_attributes or (), dtype=np.float32).flatten().tolist()
    known = set(map(str, card.edge_label_values))
    found: dict[tuple[int, int], object] = {}
    for place, (one, other) in enumerate(graph.edges):
        label, own = labels[place], str(given[place])
        number = None if numbers is None else numbers[place]
        left_out = card.background_edge_label and own == card.background_edge_label
        if known and not left_out and str(label) not in known:
            _refuse_edge(card, own, str(label), number)
        read = own if "labels" in compared else "", number
        if found.setdefault((min(one, other), max(one, other)), read) != read:
            raise GraphError(
                f"the edge between {one} and {other} has two {' or '.join(compared)}.",
                "List each edge once.",
            )


def _refuse_edge(card: ModelCard, own: str, label: str, attribute: float | None) -> None:
    """Raise an error for an edge whose label, or its pair with a bin, the model does not know."""
    known = _own_edge_labels(card)
    if own in map(str, known):
        bin_ = label.rpartition(",")[2]
        raise GraphError(
            f"edge label {own} with the attribute {attribute:.7g} (bin {bin_}) does not occur in "
            "the training data.",
            "Train on data in which it does, or with fewer --edge-bins.",
        )
    raise GraphError(
        f"the model does not know the edge label {own}.", f"It knows {some_values(known)}."
    )


def _own_edge_labels(card: ModelCard) -> Sequence[Value]:
    """The edge labels that the model knows, without bins of the attribute."""
    if card.edge_bins is None:
        return card.edge_label_values
    return card.edge_bins.own_labels(card.edge_label_values)


def _given_labels(graph: JsonGraph) -> list[Value]:
    """The label of each listed edge; an edge without one is not a background edge."""
    return graph.edge_labels or [""] * len(graph.edges)


def _read_labels(
    card: ModelCard, graphs: Sequence[JsonGraph], given: list[Value]
) -> Sequence[Value]:
    """The labels of all listed edges that the model reads, computed from the given ones."""
    if card.edge_bins is None:
        return given
    attributes = [row[0] for each in graphs for row in each.edge_attributes or ()]
    return card.edge_bins.joined(given, attributes)


def encode_graphs(card: ModelCard, graphs: Sequence[JsonGraph]) -> Recoded:
    """Encode graphs that passed `check_fits`, as `encode_dataset` does for a data set.

    Labels match by their text, so one graph may write 1 and another "1". Classes are ignored.
    """
    sizes = np.array([each.num_nodes for each in graphs])
    starts = offsets(sizes)
    ends = np.fromiter(chain.from_iterable(chain(*(each.edges for each in graphs))), np.int64)
    ends += np.repeat(starts[:-1], [2 * len(each.edges) for each in graphs])
    neighbor_ptr, neighbors, edge_label = _edges(card, graphs, ends, int(starts[-1]))
    labels, unknown = _labels(card, graphs, np.diff(neighbor_ptr))
    encoded = GraphDataset(
        name="graphs",
        node_ptr=starts,
        neighbor_ptr=neighbor_ptr,
        neighbors=neighbors,
        node_label=labels,
        label_values=card.label_values,
        label_source=card.label_source,
        graph_class=np.full(len(graphs), UNKNOWN, dtype=np.int32),
        class_values=card.class_values,
        node_attributes=None
        if card.given_features == Features.LABELS
        else np.array([row for each in graphs for row in each.node_attributes or ()], np.float32),
        edge_label=edge_label,
        edge_label_values=card.edge_label_values,
        uses_edge_labels=edge_label is not None,
        background_edge_label=card.background_edge_label,
        edge_bins=None if edge_label is None else card.edge_bins,
    )
    encoded = with_columns(encoded, card.given_features, card.columns)
    return Recoded(encoded, unknown, np.arange(len(graphs)))


def _edges(
    card: ModelCard, graphs: Sequence[JsonGraph], ends: NDArray[np.int64], nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32] | None]:
    """`neighbor_ptr` and `neighbors` of the edges that the model reads, and their labels."""
    source, target = ends[::2], ends[1::2]
    if not card.reads_edge_labels:
        return *symmetric(source, target, nodes), None
    given: list[Value] = list(chain.from_iterable(map(_given_labels, graphs)))
    background = card.background_edge_label
    kept = np.array([not background or str(label) != background for label in given], dtype=bool)
    source, target = (each[kept].astype(np.int32) for each in (source, target))
    simple = simplify(source, target, nodes, keep_lines=True, undirected=True)
    if not card.edge_label_values or simple.line is None:
        return simple.neighbor_ptr, simple.neighbors, None
    label = positions(_read_labels(card, graphs, given), card.edge_label_values)[kept]
    return simple.neighbor_ptr, simple.neighbors, label[simple.line]


def _reads_labels(card: ModelCard) -> bool:
    """Whether the model reads labels that the caller has to give."""
    return card.features != Features.ATTRIBUTES and card.label_source == LabelSource.LABELS


def _labels(
    card: ModelCard, graphs: Sequence[JsonGraph], degree: NDArray[np.int64]
) -> tuple[NDArray[np.int32], tuple[Value, ...]]:
    """[N] positions in the model's vocabulary, and the values that are not in it."""
    if card.features == Features.ATTRIBUTES:
        return np.zeros(len(degree), dtype=np.int32), ()
    if card.label_source == LabelSource.DEGREE:
        position, degrees = vocabulary(degree)
        known = positions(degrees, card.label_values)
        return known[position], unknown_values(degrees, known)
    given = [label for each in graphs for label in each.node_labels or ()]
    distinct = list(dict.fromkeys(given))
    known = positions(distinct, card.label_values)
    position_of = dict(zip(distinct, known.tolist(), strict=True))
    labels = np.array([position_of[label] for label in given], dtype=np.int32)
    return labels, unknown_values(distinct, known)
