"""Compares an exported file with the model as it was trained, on real graphs and edge cases."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ihgnn_cli.data.dataset import GraphDataset, LabelSource, offsets
from ihgnn_cli.data.recode import UNKNOWN
from ihgnn_cli.deploy.golden import TOLERANCE, differences
from ihgnn_cli.deploy.inputs import PADDING, Arrays, sparse_inputs
from ihgnn_cli.deploy.modules import Members
from ihgnn_cli.deploy.onnx_model import PREDICTION_SET, UNCERTAINTY, OnnxClassifier
from ihgnn_cli.errors import IhgnnError, InputError
from ihgnn_cli.inference.metrics import member_probabilities, member_spread
from ihgnn_cli.inference.vocabulary import encode_dataset, with_model_edges
from ihgnn_cli.models.card import ModelCard
from ihgnn_cli.models.ihgnn import IHGNN
from ihgnn_cli.models.settings import ModelSettings, SortKey, Variant
from ihgnn_cli.models.spec import Layout, ModelSpec
from ihgnn_cli.training.checkpoint import Checkpoint
from ihgnn_cli.training.classifier import TorchClassifier
from ihgnn_cli.words import counted

CLOSE = 5e-6
"""Below this gap between the sort keys of two different nodes, rounding decides their order.
Relative to the largest number in H, rounding moved a key by up to 2.2e-6 on COLLAB, and by less
than 6e-7 on four other data sets. Two keys can move in opposite directions."""

_MIXED = 32
# With every third node unknown, there are neighbours of both kinds.
_UNKNOWN_STEP = 3


@dataclass(frozen=True, eq=False)
class Reference:
    """A model, and what it answers as it was trained, independent of the exported module."""

    members: Members
    settings: ModelSettings
    logits: Callable[[GraphDataset], NDArray[np.floating]]
    """[S, G, C] of each member, for encoded graphs."""

    @property
    def card(self) -> ModelCard:
        """The model's inputs and classes."""
        return self.members.card

    def outputs(self, graphs: GraphDataset) -> dict[str, NDArray[Any]]:
        """The outputs of an exported file, [G, ·] or [G].

        NaN in `uncertainty` where rounding can change the predicted class.
        """
        logits = self.logits(graphs).astype(np.float64)
        log_p = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        mean = np.logaddexp.reduce(log_p, axis=0) - np.log(len(logits))
        likely = np.exp(mean)
        several = len(logits) > 1
        found = {"logits": mean if several else logits[0], "probabilities": likely}
        modules = [each for each in self.members.modules if isinstance(each, IHGNN)]
        if modules:
            given = _readable_inputs(self.card, graphs)
            with torch.no_grad():
                hidden = [each.graph_embedding(*given).numpy() for each in modules]
            found["graph_embedding"] = np.mean(hidden, axis=0, dtype=np.float64)
        if several:
            spread = member_spread(member_probabilities(logits))
            ranked = np.sort(likely, axis=1)
            spread[ranked[:, -1] - ranked[:, -2:-1].sum(axis=1) < 2 * TOLERANCE] = np.nan
            found[UNCERTAINTY] = spread
        if self.card.conformal is not None:
            found[PREDICTION_SET] = self.card.conformal.sets(likely).astype(np.uint8)
        return found

    def key_gaps(self, graphs: GraphDataset) -> NDArray[np.float64]:
        """[G] the smallest gap between the sort keys of different nodes, over the members.

        Gaps are relative to the largest number in H; infinite if nothing is sorted or all nodes are
        equal.
        """
        gaps = np.full(len(graphs), np.inf)
        for model in self.members.modules:
            if isinstance(model, IHGNN) and model.settings.variant != Variant.NO_CONCAT:
                with torch.no_grad():
                    x, edge_index, _, label = _readable_inputs(self.card, graphs)
                    h, last = (each.numpy() for each in model.embed(x, edge_index, label))
                key = (h if model.settings.sort_key == SortKey.AGGREGATED else last)[:, -1]
                np.minimum(gaps, _smallest_gaps(h, key, graphs.node_graph, len(graphs)), out=gaps)
        return gaps


def reference_of(checkpoint: Checkpoint) -> Reference:
    """The models of a checkpoint; the reference is the forward pass that they are trained with."""
    config = checkpoint.config
    classifier = TorchClassifier(checkpoint, torch.device("cpu"))
    saved = checkpoint.saved
    modules: tuple[torch.nn.Module, ...] = ()
    if config.spec.traced:
        modules = tuple(IHGNN.of_saved(saved, member) for member in range(saved.members))
    elif config.spec.layouts:
        modules = tuple(saved.modules())
    return Reference(
        members=Members(config.spec, checkpoint.card, modules),
        settings=config.model,
        logits=lambda graphs: classifier.logits(graphs, np.arange(len(graphs))),
    )


def reference_of_model(model: IHGNN, spec: ModelSpec, card: ModelCard) -> Reference:
    """A model that was trained in a loop of its own; the reference is its own `forward`."""

    def logits(graphs: GraphDataset) -> NDArray[np.floating]:
        with torch.no_grad():
            found: NDArray[np.floating] = model(*_readable_inputs(card, graphs)).numpy()
        return found[None]

    return Reference(Members(spec, card, (model,)), model.settings, logits)


@dataclass(frozen=True)
class Difference:
    """The difference between an exported file and its model on one case."""

    case: str
    graphs: int
    logits: float
    """Largest difference, without near ties; `probabilities` likewise."""
    probabilities: float
    near_ties: int
    """Graphs that differ because rounding decides the order of their nodes. A model differs from
    itself in the same way when a graph's nodes are given in another order."""


@dataclass(frozen=True)
class Parity:
    """The difference between an exported file and its model."""

    cases: tuple[Difference, ...]
    scale: float
    """The largest logit."""
    tolerance: float = TOLERANCE

    @property
    def near_ties(self) -> int:
        """Near ties of all cases."""
        return sum(each.near_ties for each in self.cases)


def verify(reference: Reference, exported: OnnxClassifier, dataset: GraphDataset) -> Parity:
    """Compare an exported file with its model, on the CPU.

    Args:
        reference: the model.
        exported: the file.
        dataset: graphs, not encoded.

    Raises:
        InputError: the model cannot read the graphs, or all of them are too large for the file.
        IhgnnError: an output differs too much, or rounding decides the answer of all graphs.
    """
    _check_empty(exported)
    cases, scale, wrong = [], 0.0, []
    for name, graphs, given in _cases(reference.card, dataset, exported.nodes):
        every = np.arange(len(graphs))
        found = {k: v for k, v in vars(exported.answers(given, every)).items() if v is not None}
        expected = reference.outputs(graphs)
        apart = differences(expected, found, reference.card)
        far = ~(np.max(list(apart.values()), axis=0) <= TOLERANCE)  # NaN counts too
        ties = np.zeros(len(graphs), dtype=bool)
        if far.any():
            ties[far] = reference.key_gaps(graphs.select(np.flatnonzero(far))) < CLOSE
        scale = max(scale, float(np.abs(expected["logits"]).max()))
        largest = [
            float(np.abs(found[each] - expected[each])[~ties].max(initial=0))
            for each in ("logits", "probabilities")
        ]
        cases.append(Difference(name, len(graphs), largest[0], largest[1], int(ties.sum())))
        bad = far & ~ties
        if bad.any():
            wrong.append((name, int(bad.sum()), {k: v[bad].max() for k, v in apart.items()}))
    total = sum(each.graphs for each in cases)
    if wrong:
        worst = max((by, output) for _, _, of in wrong for output, by in of.items())
        raise IhgnnError(
            "The exported model differs from the trained one: "
            f"{counted(sum(count for _, count, _ in wrong), 'graph')} of {total:,} "
            f"({', '.join(name for name, _, _ in wrong)}), by up to {worst[0]:.2g} in {worst[1]} "
            f"(logits up to {scale:.3g}). No file was written. Please report this with the "
            "checkpoint."
        )
    parity = Parity(tuple(cases), scale)
    if parity.near_ties == total:
        raise IhgnnError(
            f"The exported model cannot be verified: in all {total:,} graphs, rounding decides the "
            "order of nodes. No file was written. Use other graphs (--dataset), or --no-verify."
        )
    return parity


def _check_empty(exported: OnnxClassifier) -> None:
    """Check that an empty batch, and a graph without nodes in a batch, are answered.

    Raises:
        IhgnnError: they are not.
    """
    empty = _without_nodes(exported, 0), _without_nodes(exported, 2)
    for count, inputs in zip((0, 2), empty, strict=True):
        answers = [each for each in vars(exported.run(inputs)).values() if each is not None]
        if any(len(each) != count or not np.isfinite(each).all() for each in answers):
            raise IhgnnError(
                f"The exported model gives no answer for {counted(count, 'graph')} without nodes. "
                "No file was written."
            )


def _without_nodes(exported: OnnxClassifier, graphs: int) -> Arrays:
    card, nodes = exported.card, exported.nodes or 0
    if exported.layout == Layout.PADDED:
        inputs: Arrays = {
            "node_labels": np.full((graphs, nodes), PADDING, dtype=np.int64),
            "adjacency": np.zeros((graphs, nodes, nodes), dtype=np.uint8),
        }
        if card.attributes:
            inputs["attributes"] = np.zeros((graphs, nodes, card.attributes), dtype=np.float32)
        return inputs
    inputs = {
        "node_labels": np.zeros(0, dtype=np.int64),
        "edge_index": np.zeros((2, 0), dtype=np.int64),
        "ptr": np.zeros(graphs + 1, dtype=np.int64),
    }
    if card.attributes:
        inputs["attributes"] = np.zeros((0, card.attributes), dtype=np.float32)
    if card.edge_label_values:
        inputs["edge_labels"] = np.zeros(0, dtype=np.int64)
    return inputs


def _cases(
    card: ModelCard, dataset: GraphDataset, nodes: int | None
) -> list[tuple[str, GraphDataset, GraphDataset]]:
    """Name, graphs for the reference, and graphs for the file: equal but for the nodes' order."""
    dataset = with_model_edges(card, dataset)
    sizes = np.diff(dataset.node_ptr)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] <= (nodes or sizes.max())]
    if not len(order):
        raise InputError(
            f"All graphs of {dataset.name} have more than {nodes:,} nodes: none can be compared. "
            "Use a larger --max-nodes, other graphs (--dataset), or --no-verify."
        )
    spread = np.linspace(0, len(order) - 1, min(len(order), _MIXED)).astype(np.int64)
    mixed = dataset.select(order[spread])
    none = np.array([], dtype=np.int64)
    cases = {
        "small to large": mixed,
        "without edges": _with_edges(mixed.select([0, len(mixed) - 1]), none, none, none),
    }
    if nodes is None:
        cases["larger than m"] = _of_size(mixed.select([len(mixed) - 1]), card.max_nodes + 1)
    if card.inputs.labels and card.label_source == LabelSource.DEGREE:
        most = max(int(value) for value in card.label_values)
        if nodes is None or most + 2 <= nodes:
            star = _star(_of_size(mixed.select([len(mixed) - 1]), most + 2))
            cases["degree above all seen"] = star
    encoded = {name: encode_dataset(card, each).dataset for name, each in cases.items()}
    found = [(name, each, each) for name, each in encoded.items()]
    permuted = encode_dataset(card, _permuted(mixed)).dataset
    found.append(("nodes permuted", encoded["small to large"], permuted))
    if card.inputs.labels and card.label_source == LabelSource.LABELS:
        label = encoded["small to large"].node_label.copy()
        label[::_UNKNOWN_STEP] = UNKNOWN
        unknown = replace(encoded["small to large"], node_label=label)
        found.append(("unknown labels", unknown, unknown))
    return found


def _of_size(dataset: GraphDataset, size: int) -> GraphDataset:
    """One graph with this many nodes: copies of a graph side by side, cut to size."""
    copies = dataset.select([0] * -(-size // dataset.num_nodes))
    source, target = copies.edge_index()
    inside = (source < size) & (target < size)
    columns = copies.node_attributes
    cut = replace(
        copies,
        node_ptr=np.array([0, size]),
        neighbor_ptr=np.zeros(size + 1, dtype=np.int64),
        node_label=copies.node_label[:size],
        graph_class=copies.graph_class[:1],
        node_attributes=None if columns is None else columns[:size],
    )
    return _with_edges(cut, source[inside], target[inside], _labels(copies)[inside])


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


def _readable_inputs(card: ModelCard, graphs: GraphDataset) -> Sequence[Any]:
    """The arguments of the readable IHGNN: features, edges, graph of each node, edge labels."""
    inputs = sparse_inputs(card, graphs, np.arange(len(graphs)))
    known = card.inputs.labels
    labels = np.where(inputs["node_labels"] < 0, known, inputs["node_labels"])
    x = np.eye(known + 1, dtype=np.float32)[labels, :known]
    if card.attributes:
        x = np.concatenate([inputs["attributes"], x], axis=1)
    edge_labels = inputs.get("edge_labels")
    return (
        torch.from_numpy(x),
        torch.from_numpy(inputs["edge_index"]),
        torch.from_numpy(graphs.node_graph.astype(np.int64)),
        None if edge_labels is None else torch.from_numpy(edge_labels),
    )


def _smallest_gaps(
    h: NDArray[np.float32], key: NDArray[np.float32], graph: NDArray[np.integer], graphs: int
) -> NDArray[np.float64]:
    """[graphs] as in `Reference.key_gaps`, from each node's row, key and graph."""
    order = np.lexsort((key, graph))
    same = graph[order[:-1]] == graph[order[1:]]
    before, after = order[:-1][same], order[1:][same]
    largest = np.zeros(graphs)
    np.maximum.at(largest, graph, np.abs(h).max(1))
    scale = largest[graph[after]]
    differ = np.abs(h[after] - h[before]).max(1) > CLOSE * scale
    gaps = np.full(graphs, np.inf)
    apart = (key[after] - key[before])[differ] / scale[differ]
    np.minimum.at(gaps, graph[after[differ]], apart)
    return gaps
