"""Graphs on which an exported model is compared with its checkpoint: real ones and edge cases."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, offsets
from ihgnn_cli.data.recode import UNKNOWN
from ihgnn_cli.deploy.reference import Reference
from ihgnn_cli.errors import InputError
from ihgnn_cli.inference.vocabulary import encode_dataset, with_model_edges
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.training.checkpoint import Checkpoint

_MIXED = 32
_CLOSEST = 8
# Alternatives for a case of a single graph: nodes are rarely tied in all of them.
_OTHERS = 8
# With every third node unknown, there are neighbours of both kinds.
_UNKNOWN_STEP = 3


@dataclass(frozen=True, eq=False)
class Case:
    """Some graphs, encoded with the model's vocabulary."""

    name: str
    graphs: GraphDataset
    turned: GraphDataset | None = None
    """The same graphs with their nodes in another order, as input for the exported model."""
    others: tuple[GraphDataset, ...] = ()
    """Alternatives, used in turn while rounding decides the node order of all graphs so far."""
    hardest: bool = False
    """Whether the graphs were chosen because rounding may decide their node order."""
    description: str = ""

    @property
    def exported_input(self) -> GraphDataset:
        """The graphs for the exported model."""
        return self.graphs if self.turned is None else self.turned


def cases_of(checkpoint: Checkpoint, dataset: GraphDataset, nodes: int | None = None) -> list[Case]:
    """The cases made from a data set for a model.

    Args:
        checkpoint: the model.
        dataset: the data set, not encoded.
        nodes: the fixed size that the exported model pads to, if any: no case is larger.

    Raises:
        InputError: the model cannot read the data set, or no graph is that small.
    """
    card = checkpoint.card
    dataset = with_model_edges(card, dataset)
    cases = edge_cases(card, dataset, nodes)
    order = _by_size(dataset, nodes)
    mixed = _mixed(dataset, order)
    encoded = encode_dataset(card, mixed).dataset
    cases.append(Case("nodes permuted", encoded, encode_dataset(card, _permuted(mixed)).dataset))
    encoded = encode_dataset(card, dataset).dataset
    gaps = Reference(checkpoint).key_gaps(encoded, order)
    closest = order[np.argsort(gaps, kind="stable")][: min(_CLOSEST, np.isfinite(gaps).sum())]
    if len(closest):
        cases.append(Case("closest sort keys", encoded.select(closest), hardest=True))
    return cases


def edge_cases(card: ModelCard, dataset: GraphDataset, nodes: int | None = None) -> list[Case]:
    """The cases that golden vectors are made of as well: graphs of the data, and edge cases.

    Arguments and errors are those of `cases_of`.
    """
    dataset = with_model_edges(card, dataset)
    order = _by_size(dataset, nodes)
    small, large = order[: 1 + _OTHERS], order[::-1][: 1 + _OTHERS]
    bare = order[np.diff(dataset.edge_ptr)[order] == 0][: 1 + _OTHERS]
    middle = np.roll(order, -(len(order) // 2))
    pairs = list(zip(middle, np.roll(middle, -1), strict=True))[: 1 + _OTHERS]
    # The first graphs of each list are the case, and the others are alternatives.
    made = {
        ("smallest graph", "the smallest graph of the data"): [
            dataset.select([each]) for each in small
        ],
        ("largest graph", "the largest graph of the data"): [
            dataset.select([each]) for each in large
        ],
        ("graph without edges", "a graph without edges"): [
            _bare(dataset.select([each])) for each in (bare if len(bare) else small)
        ],
        ("mixed sizes", "graphs from small to large in one batch"): [_mixed(dataset, order)],
        ("identical graphs", "a graph, another one, and the first again in one batch"): [
            dataset.select([each, other, each]) for each, other in pairs
        ],
    }
    if nodes is None or nodes > card.max_nodes:
        size = card.max_nodes + 1
        named = "graph larger than m", f"one node more than m = {card.max_nodes:,}"
        made[named] = [_of_size(dataset, each, size) for each in (*large, *small)]
    degrees = card.inputs.labels > 0 and card.label_source == LabelSource.DEGREE
    if degrees:
        size = max(int(value) for value in card.label_values) + 2
        if nodes is None or nodes >= size:
            stars = [_star(_of_size(dataset, each, size)) for each in (*large, *small)]
            made["degree above all seen", "a node adjacent to all others"] = stars
    cases = []
    for (name, description), listed in made.items():
        first, *others = (encode_dataset(card, graphs).dataset for graphs in listed)
        cases.append(Case(name, first, others=tuple(others), description=description))
    if card.inputs.labels and not degrees:
        encoded = encode_dataset(card, _mixed(dataset, order)).dataset
        label = encoded.node_label.copy()
        label[::_UNKNOWN_STEP] = UNKNOWN
        described = "the model does not know the label of every third node"
        graphs = replace(encoded, node_label=label)
        cases.append(Case("unknown labels", graphs, description=described))
    return cases


def _by_size(dataset: GraphDataset, nodes: int | None) -> NDArray[np.int64]:
    """Positions of the graphs of at most this many nodes, the smallest first."""
    sizes = np.diff(dataset.node_ptr)
    order = np.argsort(sizes, kind="stable")
    if nodes is not None:
        order = order[sizes[order] <= nodes]
    if not len(order):
        raise InputError(
            f"All graphs of {dataset.name} have more than {nodes:,} nodes: none can be compared. "
            "Use a larger --max-nodes, other graphs (--dataset), or --no-verify."
        )
    return order


def _mixed(dataset: GraphDataset, order: NDArray[np.int64]) -> GraphDataset:
    spread = np.linspace(0, len(order) - 1, min(len(order), _MIXED)).astype(np.int64)
    return dataset.select(order[spread])


def _bare(dataset: GraphDataset) -> GraphDataset:
    none = np.array([], dtype=np.int64)
    return _with_edges(dataset, none, none, none)


def _of_size(dataset: GraphDataset, graph: int, size: int) -> GraphDataset:
    """One graph with this many nodes: copies of a graph side by side, cut to size."""
    times = -(-size // int(np.diff(dataset.node_ptr)[graph]))
    beside = dataset.select([graph] * times)
    source, target = beside.edge_index()
    inside = (source < size) & (target < size)
    columns = beside.node_attributes
    cut = replace(
        beside,
        node_ptr=np.array([0, size]),
        neighbor_ptr=np.zeros(size + 1, dtype=np.int64),
        node_label=beside.node_label[:size],
        graph_class=beside.graph_class[:1],
        node_attributes=None if columns is None else columns[:size],
    )
    return _with_edges(cut, source[inside], target[inside], _labels(beside)[inside])


def _star(dataset: GraphDataset) -> GraphDataset:
    """The graph, with its first node adjacent to all others."""
    source, target = dataset.edge_index()
    rest = (source > 0) & (target > 0)
    others = np.arange(1, dataset.num_nodes)
    first = np.zeros_like(others)
    labels = np.zeros(2 * len(others), dtype=np.int32)
    return _with_edges(
        dataset,
        np.concatenate([source[rest], first, others]),
        np.concatenate([target[rest], others, first]),
        np.concatenate([_labels(dataset)[rest], labels]),
    )


def _permuted(dataset: GraphDataset) -> GraphDataset:
    """The graphs, with the nodes of each in another order."""
    drawn = np.random.default_rng(0).random(dataset.num_nodes)
    order = np.lexsort((drawn, dataset.node_graph))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    source, target = place[dataset.edge_index()]
    columns = dataset.node_attributes
    moved = replace(
        dataset,
        node_label=dataset.node_label[order],
        node_attributes=None if columns is None else columns[order],
    )
    return _with_edges(moved, source, target, _labels(dataset))


def _labels(dataset: GraphDataset) -> NDArray[np.int32]:
    """[E] edge labels; zeros if they are not used."""
    found = dataset.edge_type
    return np.zeros(len(dataset.neighbors), dtype=np.int32) if found is None else found


def _with_edges(
    dataset: GraphDataset,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    label: NDArray[np.integer],
) -> GraphDataset:
    """The same nodes with these edges, each given in both directions, and their labels."""
    order, used = np.lexsort((target, source)), dataset.uses_edge_labels
    return replace(
        dataset,
        neighbor_ptr=offsets(np.bincount(source, minlength=dataset.num_nodes)),
        neighbors=target[order].astype(np.int32),
        edge_label=label[order].astype(np.int32) if used else None,
        edge_label_values=dataset.edge_label_values if used else (),
        edge_attributes=None,
    )
