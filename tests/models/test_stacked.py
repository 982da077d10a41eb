"""The stacked IHGNN against the equations on dense matrices, the readable model, and itself."""

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from exact import ExactStore, one_thread  # noqa: F401
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Batch as PygBatch

from ihgnn_cli.data import load_dataset
from ihgnn_cli.data.batching.batches import Batch, GraphStore
from ihgnn_cli.data.build import ListedGraphs, build
from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import Features, node_features
from ihgnn_cli.data.pyg import to_pyg
from ihgnn_cli.models.ihgnn import IHGNN
from ihgnn_cli.models.settings import (
    IHGNNSettings,
    Inputs,
    SortKey,
    SortOrder,
    ThetaInit,
    Variant,
    WeightInit,
)
from ihgnn_cli.models.stacked import StackedIHGNN, readable_weights
from ihgnn_cli.training import stack as stack_module
from ihgnn_cli.training.epoch import Epoch
from ihgnn_cli.training.loss import CrossEntropy
from ihgnn_cli.training.seeds import generator
from ihgnn_cli.training.stack import Member, Stack, predict

CPU = torch.device("cpu")
Edges = Sequence[tuple[int, int]]
Graph = tuple[Sequence[int], Edges]
"""Labels of the nodes, edges between them."""

PAPER: dict[str, Any] = {}
AUTHORS: dict[str, Any] = {
    "sort_key": SortKey.LAST_LAYER,
    "sort_order": SortOrder.DESCENDING,
    "readout_relu": True,
    "theta_init": ThetaInit.GLOROT,
}
# Without separation, nodes with the same closed neighbourhood are equal in the last layer and not
# in the aggregate: by the last layer, their order is anybody's.
CHOICES = [
    pytest.param(variant, options, id=f"{variant}-{name}")
    for variant in Variant
    for name, options in (("paper", PAPER), ("authors", AUTHORS))
    if not (variant is Variant.NO_SEPARATION and options is AUTHORS)
]
SMALL = {"layers": 2, "width": 16, "hidden": 8}

TRIANGLE: Graph = ([0, 1, 2], [(0, 1), (1, 2), (0, 2)])
PATH: Graph = ([0, 0, 1, 2, 0], [(0, 1), (1, 2), (2, 3), (3, 4)])
STAR: Graph = ([1, 0, 0, 0, 2], [(0, 1), (0, 2), (0, 3), (0, 4)])
NO_EDGES: Graph = ([0, 1, 1], [])
SINGLE: Graph = ([2], [])
FIVE = (TRIANGLE, PATH, STAR, NO_EDGES, SINGLE)


def dataset(*graphs: Graph) -> GraphDataset:
    """Graphs with the labels a, b and c; their classes are 0, 1, 0, 1, and so on."""
    sizes = np.array([len(labels) for labels, _ in graphs])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    edges = [
        (start + one, start + other)
        for start, (_, listed) in zip(starts, graphs, strict=False)
        for one, other in listed
    ]
    source, target = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    labels = np.concatenate([np.array(labels, dtype=np.int32) for labels, _ in graphs])
    return build(
        ListedGraphs(
            name="SMALL",
            sizes=sizes,
            source=source,
            target=target,
            classes=(np.arange(len(graphs), dtype=np.int32) % 2, ("no", "yes")),
            node_labels=(labels, ("a", "b", "c")),
            undirected=True,
        )
    )


def exact_store(
    data: GraphDataset,
    features: Features = Features.LABELS,
    max_nodes: int | None = None,
    rounds: int | None = None,
) -> ExactStore:
    return ExactStore(data, features, max_nodes or data.max_nodes, rounds, CPU)


def inputs_of(
    data: GraphDataset, features: Features = Features.LABELS, max_nodes: int | None = None
) -> Inputs:
    attributes = 0
    if features is not Features.LABELS and data.node_attributes is not None:
        attributes = data.node_attributes.shape[1]
    labels = 0 if features is Features.ATTRIBUTES else len(data.label_values)
    edge_labels = len(data.edge_label_values) if data.uses_edge_labels else 0
    sizes = len(data.class_values), max_nodes or data.max_nodes, edge_labels
    return Inputs(labels, attributes, *sizes)


def model_of(made: IHGNNSettings, inputs: Inputs, seeds: Sequence[int] = (0,)) -> StackedIHGNN:
    """At its start, but with running statistics and scales that are not 0 and 1."""
    model = StackedIHGNN(
        made, inputs, [torch.Generator().manual_seed(seed) for seed in seeds]
    ).double()
    drawn = torch.Generator().manual_seed(99)
    for name, value in model.state_dict().items():
        if ".norm." in name:
            value.copy_(torch.rand(value.shape[1:], generator=drawn) + 0.5)
    return model


@cache
def mutag() -> GraphDataset:
    return load_dataset("MUTAG")


@cache
def part_of(name: str, root: Path) -> GraphDataset:
    """Every fifth of the first 200 graphs."""
    return load_dataset(name, data_root=root).select(range(0, 200, 5))


def all_of(data: GraphDataset) -> NDArray[np.int64]:
    return np.arange(len(data))


def logits_of(model: nn.Module, data: GraphDataset, **store: Any) -> NDArray[np.float64]:
    """[S, G, C] in the order of the data set."""
    return predict(model, exact_store(data, **store), all_of(data)).astype(np.float64)


def step(model: StackedIHGNN, batch: Batch, factor: Tensor | None = None) -> Tensor:
    """[S] mean losses of a training step, by default without dropout; leaves gradients."""
    model.train()
    if factor is None:
        factor = torch.ones(*batch.truth.shape, model.dropped_units, dtype=torch.float64)
    logits = model.train_step(batch, factor, [], CrossEntropy())
    losses = F.cross_entropy(logits.transpose(1, 2), batch.truth, reduction="none")
    return (losses * batch.graph_share).sum(1)


# The equations, graph by graph on dense matrices


def dense_logits(
    weights: dict[str, Tensor], made: IHGNNSettings, max_nodes: int, x: Tensor, adjacency: Tensor
) -> Tensor:
    def mlp(name: str, h: Tensor) -> Tensor:
        own = {key.removeprefix(f"{name}."): value for key, value in weights.items()}
        h = h @ own["first.weight"].T - own["norm.running_mean"]
        h = h / (own["norm.running_var"] + 1e-5).sqrt()
        h = (h * own["norm.weight"] + own["norm.bias"]).relu()
        return h @ own["second.weight"].T + own["second.bias"]

    layers = [mlp("input", x)]
    for k in range(made.layers):
        h, a_h = layers[-1], adjacency @ layers[-1]
        blocks = {
            Variant.NO_INTEGRATION: [h, a_h],
            Variant.NO_SEPARATION: [h + a_h],
        }.get(made.variant, [h, a_h, h + a_h])
        layers.append(mlp(f"convs.{k}.mlp", torch.cat(blocks, 1)))
    if made.variant is Variant.NO_ADAPTIVE:
        h = torch.cat(layers, 1)
    else:
        h = torch.einsum("k,knd->nd", weights["theta"], torch.stack(layers))
    if made.variant is Variant.NO_CONCAT:
        read = h.sum(0)
    else:
        key = (h if made.sort_key is SortKey.AGGREGATED else layers[-1])[:, -1]
        order = key.argsort(descending=made.sort_order is SortOrder.DESCENDING)
        first = h[order][:max_nodes]
        read = torch.cat([first, first.new_zeros(max_nodes - len(first), h.shape[1])]).flatten()
    read = read.relu() if made.readout_relu else read
    first, second = (f"classifier.{name}" for name in ("first", "second"))
    hidden = (weights[f"{first}.weight"] @ read + weights[f"{first}.bias"]).relu()
    return weights[f"{second}.weight"] @ hidden + weights[f"{second}.bias"]


def by_the_equations(
    model: StackedIHGNN, made: IHGNNSettings, data: GraphDataset, max_nodes: int | None = None
) -> NDArray[np.float64]:
    found = []
    members = len(model.classifier.second.bias)
    for member in range(members):
        weights = readable_weights(model.state_dict(), member)
        for graph in range(len(data)):
            one = data.select([graph])
            adjacency = torch.zeros(one.num_nodes, one.num_nodes, dtype=torch.float64)
            adjacency[tuple(torch.tensor(one.edge_index()))] = 1
            x = torch.tensor(node_features(one)).double()
            x[torch.tensor(one.node_label < 0)] = 0
            found.append(
                dense_logits(weights, made, max_nodes or data.max_nodes, x, adjacency).detach()
            )
    return torch.stack(found).view(members, len(data), -1).numpy()


@pytest.mark.parametrize(("variant", "options"), CHOICES)
def test_the_logits_are_those_of_the_equations(variant: Variant, options: dict[str, Any]) -> None:
    made = IHGNNSettings(**SMALL, variant=variant, **options)
    data = dataset(*FIVE)
    model = model_of(made, inputs_of(data), seeds=(1, 2))
    np.testing.assert_allclose(logits_of(model, data), by_the_equations(model, made, data))


@pytest.mark.parametrize("layers", [0, 1, 5])
@pytest.mark.parametrize("variant", [Variant.FULL, Variant.NO_ADAPTIVE])
def test_there_may_be_any_number_of_layers(layers: int, variant: Variant) -> None:
    made = IHGNNSettings(layers=layers, width=16, hidden=8, variant=variant)
    data = dataset(*FIVE)
    model = model_of(made, inputs_of(data))
    np.testing.assert_allclose(logits_of(model, data), by_the_equations(model, made, data))


@pytest.mark.parametrize(("variant", "options"), CHOICES)
def test_a_graph_larger_than_m_keeps_its_first_m_nodes_in_the_order_of_the_sort(
    variant: Variant, options: dict[str, Any]
) -> None:
    made = IHGNNSettings(**SMALL, variant=variant, **options)
    data = dataset(*FIVE)  # of up to 5 nodes
    model = model_of(made, inputs_of(data, max_nodes=2))
    found = logits_of(model, data, max_nodes=2)
    np.testing.assert_allclose(found, by_the_equations(model, made, data, max_nodes=2))


def test_m_may_be_beyond_the_largest_graph() -> None:
    made = IHGNNSettings(**SMALL)
    data = dataset(*FIVE)
    model = model_of(made, inputs_of(data, max_nodes=20))
    found = logits_of(model, data, max_nodes=20)
    np.testing.assert_allclose(found, by_the_equations(model, made, data, max_nodes=20))


@pytest.mark.parametrize("graph", [NO_EDGES, SINGLE], ids=["no edges", "a single node"])
@pytest.mark.parametrize("variant", list(Variant))
def test_a_batch_of_a_single_graph_that_has_no_edges(graph: Graph, variant: Variant) -> None:
    made = IHGNNSettings(**SMALL, variant=variant)
    data = dataset(graph)
    model = model_of(made, inputs_of(data))
    np.testing.assert_allclose(logits_of(model, data), by_the_equations(model, made, data))
    loss = step(model, exact_store(data).batch([all_of(data)]))
    assert torch.isfinite(loss).all()
    assert all(torch.isfinite(each.grad).all() for each in model.parameters())


# Unknown labels


def with_labels(data: GraphDataset, labels: Sequence[int]) -> GraphDataset:
    return replace(data, node_label=np.array(labels, dtype=np.int32))


@pytest.mark.parametrize("variant", list(Variant))
def test_an_unknown_label_is_the_zero_vector(variant: Variant) -> None:
    made = IHGNNSettings(**SMALL, variant=variant)
    data = with_labels(dataset(TRIANGLE, SINGLE), [0, -1, 2, -1])
    model = model_of(made, inputs_of(data))
    np.testing.assert_allclose(logits_of(model, data), by_the_equations(model, made, data))


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_an_unknown_label_is_not_taken_for_another_among_colour_classes(layers: int) -> None:
    """A star whose leaves have the highest label and an unknown one, in turn."""
    made = IHGNNSettings(layers=layers, width=16, hidden=8)
    star: Graph = ([0] * 9, [(0, leaf) for leaf in range(1, 9)])
    data = with_labels(dataset(star, star), [0, 2, 2, 2, 2, -1, -1, -1, -1] + [-1] + [2] * 8)
    model = model_of(made, inputs_of(data))
    found = logits_of(model, data, rounds=layers)
    np.testing.assert_allclose(found, by_the_equations(model, made, data), rtol=1e-5)


@pytest.mark.parametrize("layers", [0, 2])
def test_all_labels_may_be_unknown(layers: int) -> None:
    made = IHGNNSettings(layers=layers, width=16, hidden=8)
    data = with_labels(dataset(STAR, PATH), [-1] * 10)
    model = model_of(made, inputs_of(data))
    found = logits_of(model, data, rounds=layers)
    np.testing.assert_allclose(found, by_the_equations(model, made, data), rtol=1e-5)


# Against the readable model


def compare_with_plain(
    made: IHGNNSettings, data: GraphDataset, features: Features = Features.LABELS
) -> None:
    """Losses, gradients and running statistics of a step of three members with unequal batches."""
    inputs = inputs_of(data, features)
    model = model_of(made, inputs, seeds=(0, 1, 2))
    drawn = np.random.default_rng(0)
    chosen = [drawn.permutation(len(data))[:count] for count in (16, 12, 5)]
    plains = [plain_of(model, made, inputs, member) for member in range(3)]
    batch = exact_store(data, features, rounds=made.layers).batch(chosen)
    losses = step(model, batch)
    for member, (plain, graphs) in enumerate(zip(plains, chosen, strict=True)):
        pyg = pyg_batch(data.select(graphs), features)
        labels = getattr(pyg, "edge_label", None)
        loss = F.cross_entropy(plain(pyg.x, pyg.edge_index, pyg.batch, labels), pyg.y)
        loss.backward()
        close(losses[member], loss.detach())
        compare_gradients(model, plain, member)
        plain_after = plain_of(model, made, inputs, member)
        for ours, theirs in zip(plain_after.buffers(), plain.buffers(), strict=True):
            if ours.is_floating_point():  # and no counter of batches
                close(ours, theirs, "running statistics")


def compare_gradients(model: StackedIHGNN, plain: IHGNN, member: int) -> None:
    gradients = {name: each.grad for name, each in model.named_parameters()}
    found = readable_weights(gradients, member)
    expected = dict(plain.named_parameters())
    assert found.keys() == expected.keys()
    for name, parameter in expected.items():
        close(found[name], parameter.grad, name)


def plain_of(model: StackedIHGNN, made: IHGNNSettings, inputs: Inputs, member: int) -> IHGNN:
    """With the parameters and statistics of a member as they are, and without dropout."""
    options = {**vars(made), "dropout": 0.0}
    sizes = inputs.features, inputs.classes, inputs.max_nodes
    plain = IHGNN(*sizes, edge_labels=inputs.edge_labels, **options).double()
    plain.load_state_dict(readable_weights(model.state_dict(), member))
    return plain


def pyg_batch(data: GraphDataset, features: Features = Features.LABELS) -> PygBatch:
    pyg = PygBatch.from_data_list(list(to_pyg(data, features)))
    pyg.x = pyg.x.double()
    pyg.edge_label = None if data.edge_type is None else torch.tensor(data.edge_type)
    return pyg


def close(found: Tensor, expected: Tensor, name: str = "") -> None:
    """Shares and weights of a batch are 32-bit numbers, so that about 7 digits agree."""
    torch.testing.assert_close(
        found, expected, rtol=1e-5, atol=2e-6, msg=lambda text: f"{name}: {text}"
    )


@pytest.mark.parametrize(("variant", "options"), CHOICES)
def test_a_step_on_mutag_is_that_of_the_readable_model(
    variant: Variant, options: dict[str, Any]
) -> None:
    compare_with_plain(IHGNNSettings(variant=variant, **options), mutag())


LABELLED = [Variant.FULL, Variant.NO_INTEGRATION, Variant.NO_ADAPTIVE]


@pytest.mark.parametrize("variant", LABELLED)
def test_a_step_with_edge_labels_is_that_of_the_readable_model(variant: Variant) -> None:
    compare_with_plain(IHGNNSettings(variant=variant), with_edge_labels(mutag(), use=True))


def test_a_step_with_bonds_is_that_of_the_readable_model(real_data: Path) -> None:
    bonds = with_edge_labels(part_of("BZR_MD", real_data), use=True, background="1")
    compare_with_plain(IHGNNSettings(width=16, hidden=16), bonds)


REAL = [
    ("BZR_MD", Features.LABELS),
    ("IMDB-BINARY", Features.LABELS),
    ("PROTEINS", Features.LABELS),
    ("PROTEINS", Features.ATTRIBUTES),
    ("PROTEINS", Features.BOTH),
]


@pytest.mark.parametrize(("variant", "options"), CHOICES)
@pytest.mark.parametrize(("name", "features"), REAL)
def test_a_step_on_real_data_is_that_of_the_readable_model(
    real_data: Path, name: str, features: Features, variant: Variant, options: dict[str, Any]
) -> None:
    data = part_of(name, real_data)
    made = IHGNNSettings(variant=variant, width=16, hidden=16, **options)
    compare_with_plain(made, data, features)


@pytest.mark.parametrize("variant", list(Variant))
def test_training_is_that_of_the_readable_model_with_adam(variant: Variant) -> None:
    """Five steps, each with all graphs, so that their order does not matter."""
    made = IHGNNSettings(**SMALL, variant=variant, dropout=0.0)
    data = mutag().select(range(30))
    member = Member(seed=3, lr=0.01, train=np.arange(20), validation=np.arange(20, 30))
    stack = stack_of(made, exact_store(data, rounds=2), inputs_of(data), [member], batch_size=20)
    plain = plain_of(stack.model, made, inputs_of(data), 0)
    adam = torch.optim.Adam(plain.parameters(), lr=0.01)
    train, validation = pyg_batch(data.select(range(20))), pyg_batch(data.select(range(20, 30)))
    for _ in range(5):
        (epoch,) = stack.train_epoch()
        plain.train()
        adam.zero_grad()
        loss = F.cross_entropy(plain(train.x, train.edge_index, train.batch), train.y)
        loss.backward()
        adam.step()
        plain.eval()
        with torch.no_grad():
            logits = plain(validation.x, validation.edge_index, validation.batch)
        assert epoch.train_loss == pytest.approx(float(loss.detach()), rel=1e-5)
        expected = float(F.cross_entropy(logits, validation.y))
        assert epoch.validation_loss == pytest.approx(expected, rel=1e-5)
        right = (logits.argmax(1) == validation.y).double().mean()
        assert epoch.validation_accuracy == pytest.approx(float(right))
    after = plain_of(stack.model, made, inputs_of(data), 0).state_dict()
    for name, value in plain.state_dict().items():
        if value.is_floating_point():  # and no counter of batches
            torch.testing.assert_close(after[name], value, rtol=1e-4, atol=1e-4)


# What must not matter


@st.composite
def small_graphs(draw: st.DrawFn, largest: int = 6) -> Graph:
    nodes = draw(st.integers(1, largest))
    labels = draw(st.lists(st.integers(0, 2), min_size=nodes, max_size=nodes))
    pairs = list(combinations(range(nodes), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return labels, edges


LISTS = st.lists(small_graphs(), min_size=1, max_size=5)
MADE = st.sampled_from(
    [IHGNNSettings(**SMALL, variant=p.values[0], **p.values[1]) for p in CHOICES]
)


def same(found: NDArray[np.float64], expected: NDArray[np.float64]) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def permuted(graph: Graph, order: Sequence[int]) -> Graph:
    labels, edges = graph
    place = {node: position for position, node in enumerate(order)}
    return [labels[node] for node in order], [(place[a], place[b]) for a, b in edges]


@settings(max_examples=30)
@given(MADE, LISTS, st.data())
def test_the_order_of_nodes_does_not_matter(
    made: IHGNNSettings, graphs: list[Graph], data: st.DataObject
) -> None:
    moved = [permuted(each, data.draw(st.permutations(range(len(each[0]))))) for each in graphs]
    model = model_of(made, inputs_of(dataset(*graphs)))
    same(logits_of(model, dataset(*moved)), logits_of(model, dataset(*graphs)))


@settings(max_examples=30)
@given(MADE, LISTS, st.data())
def test_answers_come_in_the_order_in_which_graphs_were_asked_for(
    made: IHGNNSettings, graphs: list[Graph], data: st.DataObject
) -> None:
    asked = np.array(data.draw(st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=8)))
    whole = dataset(*graphs)
    model = model_of(made, inputs_of(whole), seeds=(0, 1))
    found = predict(model, exact_store(whole), asked)
    same(found, logits_of(model, whole)[:, asked])


@settings(max_examples=30)
@given(MADE, LISTS)
def test_a_graph_is_answered_alone_as_among_others(
    made: IHGNNSettings, graphs: list[Graph]
) -> None:
    whole = dataset(*graphs)
    model = model_of(made, inputs_of(whole))
    store = exact_store(whole)
    alone = [predict(model, store, np.array([graph])) for graph in range(len(graphs))]
    same(np.concatenate(alone, axis=1), logits_of(model, whole))


@settings(max_examples=30)
@given(MADE, LISTS, st.data())
def test_other_members_and_their_padding_change_nothing(
    made: IHGNNSettings, graphs: list[Graph], data: st.DataObject
) -> None:
    """Losses and gradients of three members with graphs of their own are those of each alone."""
    whole = dataset(*graphs)
    positions = st.lists(st.integers(0, len(graphs) - 1), min_size=1, max_size=6).map(np.array)
    chosen = [data.draw(positions) for _ in range(3)]
    store, inputs = exact_store(whole), inputs_of(whole)
    together = model_of(made, inputs, seeds=(5, 6, 7))
    losses = step(together, store.batch(chosen))
    for member, graphs_of_it in enumerate(chosen):
        alone = model_of(made, inputs, seeds=(5 + member,))
        batch = store.batch([graphs_of_it])
        loss = step(alone, batch)
        torch.testing.assert_close(losses[member : member + 1], loss, rtol=1e-9, atol=1e-9)
        for (name, ours), theirs in zip(
            together.named_parameters(), alone.parameters(), strict=True
        ):
            torch.testing.assert_close(
                ours.grad[member], theirs.grad[0], rtol=1e-8, atol=1e-8, msg=name
            )
        for ours, theirs in zip(together.buffers(), alone.buffers(), strict=True):
            torch.testing.assert_close(ours[member], theirs[0], rtol=1e-9, atol=1e-9)


@settings(max_examples=15)
@given(MADE, LISTS, st.data())
def test_the_order_of_graphs_in_a_batch_does_not_change_a_step(
    made: IHGNNSettings, graphs: list[Graph], data: st.DataObject
) -> None:
    whole = dataset(*graphs)
    order = np.array(data.draw(st.permutations(range(len(graphs)))))
    found = []
    for chosen in (all_of(whole), order):
        model = model_of(made, inputs_of(whole))
        batch = exact_store(whole).batch([chosen])
        loss = step(model, batch)
        found.append([loss, *(each.grad for each in model.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


def alike(nodes: int) -> list[Graph]:
    """Graphs with few colours: a ring, a star, a clique, a path."""
    ring = [(i, (i + 1) % nodes) for i in range(nodes)]
    star = [(0, i) for i in range(1, nodes)]
    clique = list(combinations(range(nodes), 2))
    return [([0] * nodes, edges) for edges in (ring, star, clique, ring[:-1])]


REGULAR = st.integers(3, 8).flatmap(lambda nodes: st.sampled_from(alike(nodes)))


@pytest.mark.parametrize("edge_labels", [False, True])
@settings(max_examples=30)
@given(MADE, st.lists(st.one_of(REGULAR, REGULAR, small_graphs()), min_size=1, max_size=5))
def test_colour_classes_do_what_nodes_do(
    edge_labels: bool, made: IHGNNSettings, graphs: list[Graph]
) -> None:
    whole = dataset(*graphs)
    if edge_labels and made.variant in LABELLED:
        source, target = whole.edge_index()
        label = (np.maximum(source, target) % 2).astype(np.int32)
        whole = replace(
            whole, edge_label=label, edge_label_values=("x", "y"), uses_edge_labels=True
        )
    found: list[list[Tensor]] = []
    for rounds in (None, made.layers):
        model = model_of(made, inputs_of(whole))
        logits = torch.tensor(logits_of(model, whole, rounds=rounds))
        batch = exact_store(whole, rounds=rounds).batch([all_of(whole)])
        loss = step(model, batch)
        found.append([logits, loss, *(each.grad for each in model.parameters()), *model.buffers()])
    # Where all nodes are alike the variance is 0, and the normalization divides the rounding of
    # the 32-bit shares by the root of its epsilon.
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=2e-4)


def test_colour_classes_are_fewer_than_nodes_where_nodes_are_alike() -> None:
    """So that the property above speaks of something."""
    whole = dataset(*alike(8))
    graphs = all_of(whole)
    by_class, by_node = exact_store(whole, rounds=2), exact_store(whole, rounds=None)
    assert by_class.cost(graphs).sum() < by_node.cost(graphs).sum() / 2


# Gradients


@pytest.mark.parametrize("theta", list(ThetaInit))
@pytest.mark.parametrize("variant", list(Variant))
@pytest.mark.parametrize("relu", [False, True])
def test_the_first_step_reaches_every_parameter(
    variant: Variant, theta: ThetaInit, relu: bool
) -> None:
    made = IHGNNSettings(variant=variant, theta_init=theta, readout_relu=relu)
    data = mutag().select(range(16))
    inputs = inputs_of(data)
    model = StackedIHGNN(made, inputs, [generator(seed, "parameters") for seed in (0, 1)]).double()
    batch = exact_store(data).batch([all_of(data)] * 2)
    step(model, batch)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.shape == parameter.shape
        assert (parameter.grad.flatten(1).abs().amax(1) > 0).all(), name
    if variant is not Variant.NO_ADAPTIVE:
        assert (dict(model.named_parameters())["theta"].grad != 0).all()


@pytest.mark.parametrize(("init", "low", "high"), [("mean", 0.25, 0.25), ("ones", 1, 1)])
def test_theta_starts_at_the_mean_or_the_sum_of_the_layers(
    init: str, low: float, high: float
) -> None:
    made = IHGNNSettings(layers=3, theta_init=ThetaInit(init))
    theta = StackedIHGNN(made, Inputs(2, 0, 2, 4), [torch.Generator()]).state_dict()["theta"]
    assert theta.tolist() == [[low, low, high, high]]


def test_glorot_draws_all_weights_within_the_bound_of_their_map_and_sets_biases_to_0() -> None:
    """As in the authors' code: √(6 / (inputs + outputs)), and √(3 / (K + 1)) for theta."""
    made = IHGNNSettings(layers=3, theta_init=ThetaInit.GLOROT, weight_init=WeightInit.GLOROT)
    drawn = [torch.Generator().manual_seed(seed) for seed in range(200)]
    weights = StackedIHGNN(made, Inputs(7, 0, 2, 28), drawn).state_dict()
    bounds = {
        "input.first.weight": 6 / (7 + 32),
        "input.second.weight": 6 / (32 + 32),
        "convs.0.mlp.first.weight": 6 / (96 + 32),
        "convs.2.mlp.second.weight": 6 / (32 + 32),
        "classifier.first.weight": 6 / (28 * 32 + 128),
        "classifier.second.weight": 6 / (128 + 2),
        "theta": 3 / 4,
    }
    for name, square in bounds.items():
        assert weights[name].abs().max() <= math.sqrt(square)
        assert weights[name].std() == pytest.approx(math.sqrt(square / 3), rel=0.05), name
    biases = [value for name, value in weights.items() if name.endswith(("d.bias", "t.bias"))]
    assert len(biases) == 6
    assert not any(bias.any() for bias in biases)


def test_a_member_starts_with_glorot_as_it_would_alone() -> None:
    made = IHGNNSettings(**SMALL, theta_init=ThetaInit.GLOROT, weight_init=WeightInit.GLOROT)
    drawn = [[torch.Generator().manual_seed(seed) for seed in seeds] for seeds in ([1, 2], [2])]
    both, alone = (StackedIHGNN(made, Inputs(3, 0, 2, 4), each).state_dict() for each in drawn)
    for name, value in alone.items():
        torch.testing.assert_close(both[name][1:], value, rtol=0, atol=0)


@pytest.mark.parametrize("relu", [False, True])
def test_theta_at_zero_gives_the_layers_no_gradient(relu: bool) -> None:
    """Why no theta starts there: behind a ReLU, theta itself has none either."""
    made = IHGNNSettings(**SMALL, readout_relu=relu)
    data = dataset(*FIVE)
    model = model_of(made, inputs_of(data))
    model.state_dict()["theta"].zero_()
    step(model, exact_store(data).batch([all_of(data)]))
    for name, parameter in model.named_parameters():
        if name.startswith(("input.", "convs.")):
            assert not parameter.grad.any(), name
    theta = dict(model.named_parameters())["theta"].grad
    assert bool(theta.any()) is not relu


def test_a_step_with_smaller_graphs_keeps_nothing_of_the_gradients_before() -> None:
    made = IHGNNSettings(**SMALL)
    data = dataset(PATH, SINGLE, STAR)
    store = exact_store(data)
    model, fresh = model_of(made, inputs_of(data)), model_of(made, inputs_of(data))
    step(model, store.batch([np.array([0, 2])]))
    for each in (model, fresh):
        step(each, store.batch([np.array([1])]))
    for ours, theirs in zip(model.parameters(), fresh.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)


# Dropout


def test_dropout_multiplies_the_hidden_units_and_their_gradients() -> None:
    made = IHGNNSettings(**SMALL, dropout=0.75)
    data = dataset(*FIVE)
    model = model_of(made, inputs_of(data))
    plain = plain_of(model, made, inputs_of(data), 0)
    kept = torch.tensor([True, False, True, False, True, True, False, True])
    plain.classifier.dropout = _Mask(kept / 0.25)
    pyg = pyg_batch(data)
    expected = F.cross_entropy(plain(pyg.x, pyg.edge_index, pyg.batch), pyg.y)
    expected.backward()
    factor = (kept / 0.25).double().expand(1, 5, 8)
    loss = step(model, exact_store(data).batch([all_of(data)]), factor)
    close(loss[0], expected.detach())
    compare_gradients(model, plain, 0)
    to_hidden = dict(model.named_parameters())["classifier.first.bias"].grad
    assert not to_hidden[0, 0, ~kept].any()


class _Mask(nn.Module):
    def __init__(self, factor: Tensor) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden * self.factor


def test_where_all_units_are_dropped_only_the_last_bias_speaks() -> None:
    made = IHGNNSettings(**SMALL)
    data = dataset(*FIVE)
    model = model_of(made, inputs_of(data))
    bias = model.state_dict()["classifier.second.bias"][0, 0]
    model.train()
    batch = exact_store(data).batch([all_of(data)])
    logits = model.train_step(batch, torch.zeros(1, 5, 8).double(), [], CrossEntropy())
    assert (logits == bias).all()


def test_answers_know_no_dropout() -> None:
    data = dataset(*FIVE)
    some, none = (
        logits_of(model_of(IHGNNSettings(**SMALL, dropout=p), inputs_of(data)), data)
        for p in (0.0, 0.9)
    )
    np.testing.assert_array_equal(some, none)


# Stacks


def stack_of(
    made: IHGNNSettings,
    store: GraphStore,
    inputs: Inputs,
    members: Sequence[Member],
    *,
    batch_size: int,
    places_seed: int = 0,
) -> Stack:
    model = StackedIHGNN(
        made, inputs, [generator(each.seed, "parameters") for each in members]
    ).double()
    sizes = {"batch_size": batch_size, "places_seed": places_seed}
    return Stack(model, store, members, dropout=made.dropout, **sizes)


@pytest.mark.parametrize("variant", list(Variant))
def test_a_member_starts_as_it_would_alone(variant: Variant) -> None:
    made = IHGNNSettings(**SMALL, variant=variant, theta_init=ThetaInit.GLOROT)
    inputs = Inputs(labels=3, attributes=1, classes=2, max_nodes=5)
    together = StackedIHGNN(
        made, inputs, [generator(seed, "parameters") for seed in (4, 5)]
    ).state_dict()
    for member, seed in enumerate((4, 5)):
        alone = StackedIHGNN(made, inputs, [generator(seed, "parameters")]).state_dict()
        for name, value in alone.items():
            assert torch.equal(value[0], together[name][member]), name


def test_members_of_other_seeds_start_elsewhere() -> None:
    model = StackedIHGNN(
        IHGNNSettings(**SMALL), Inputs(3, 0, 2, 5), [generator(seed, "x") for seed in (4, 5)]
    )
    assert not torch.equal(*model.state_dict()["classifier.first.weight"])


THREE = (
    # Of 3, 2 and 4 steps an epoch, the last of them smaller than the others.
    Member(seed=1, lr=0.01, train=np.arange(40), validation=np.arange(150, 160)),
    Member(seed=2, lr=0.001, train=np.arange(60, 85), validation=np.arange(100, 107)),
    Member(seed=3, lr=0.01, train=np.arange(20, 73), validation=np.arange(110, 140)),
)


@pytest.mark.parametrize("variant", [Variant.FULL, Variant.NO_ADAPTIVE, Variant.NO_CONCAT])
def test_a_member_of_a_stack_becomes_what_it_would_become_alone(variant: Variant) -> None:
    data = mutag()
    made = IHGNNSettings(**SMALL, variant=variant)
    inputs = inputs_of(data)

    def trained(members: Sequence[Member]) -> tuple[Stack, list[list[Epoch]], list[list[int]]]:
        store = exact_store(data, rounds=made.layers)
        stack = stack_of(made, store, inputs, members, batch_size=16)
        epochs = [stack.train_epoch() for _ in range(3)]
        order = [
            [graph for graphs in store.asked for graph in graphs[member].tolist()]
            for member in range(len(members))
        ]
        return stack, epochs, order

    together, epochs, order = trained(THREE)
    for number, member in enumerate(THREE):
        alone, expected, (order_alone,) = trained([member])
        assert order[number] == order_alone
        for ours, (theirs,) in zip(epochs, expected, strict=True):
            for each in fields(Epoch):
                found = getattr(ours[number], each.name)
                assert found == pytest.approx(getattr(theirs, each.name), rel=1e-4), each.name
        weights = together.model.state_dict()
        for name, value in alone.model.state_dict().items():
            torch.testing.assert_close(weights[name][number], value[0], rtol=1e-4, atol=1e-6)


def test_an_epoch_trains_on_each_graph_once_in_an_order_of_its_own() -> None:
    data = dataset(*FIVE, *FIVE)
    store = exact_store(data)
    member = Member(seed=0, lr=0.01, train=np.arange(7), validation=np.arange(7, 10))
    stack = stack_of(IHGNNSettings(**SMALL), store, inputs_of(data), [member], batch_size=3)
    orders = []
    for _ in range(2):
        store.asked = []
        stack.train_epoch()
        trained = [graphs.tolist() for (graphs,) in store.asked if graphs.max() < 7]
        assert sorted(len(graphs) for graphs in trained) == [1, 3, 3]
        orders.append([graph for graphs in trained for graph in graphs])
        assert sorted(orders[-1]) == list(range(7))
    assert orders[0] != orders[1]


@pytest.mark.parametrize("aligned", [True, False])
def test_batches_that_train_together_have_the_same_place_in_the_order_of_sizes(
    aligned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_module, "_ALIGN_FROM", 0.0 if aligned else 1e9)
    data = load_dataset("MUTAG")
    members = [
        Member(
            seed=seed, lr=0.01, train=np.arange(seed, 144 + seed), validation=np.arange(150, 160)
        )
        for seed in range(3)
    ]
    store = exact_store(data)

    def trained(some: Sequence[Member], job: int = 0) -> list[list[NDArray[np.int64]]]:
        """The graphs of each step and member, in three epochs."""
        store.asked = []
        made, inputs = IHGNNSettings(**SMALL), inputs_of(data)
        stack = stack_of(made, store, inputs, some, batch_size=16, places_seed=job)
        for _ in range(3):
            stack.train_epoch()
        return [list(step) for step in store.asked if len(step[0]) and step[0].max() < 150]

    steps = trained(members)
    nodes = np.array([[store.row_count(graphs).sum() for graphs in step] for step in steps])
    excess = float((nodes.max(axis=1) / nodes.mean(axis=1)).mean()) - 1
    assert excess < 0.02 if aligned else excess > 0.04, excess
    for number, member in enumerate(members):
        alone = trained([member])
        assert all(np.array_equal(a[0], b[number]) for a, b in zip(alone, steps, strict=True))
    other = trained(members, job=1)  # another job has another order, if places are drawn at all
    same = all(np.array_equal(a[0], b[0]) for a, b in zip(other, steps, strict=True))
    assert same is not aligned
    # Large batches do not always come first.
    largest = [int(epoch.argmax()) for epoch in nodes.sum(axis=1).reshape(3, -1)]
    assert len(set(largest)) > 1


def test_dropout_drops_its_share_and_scales_the_rest_up(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []
    train_step = StackedIHGNN.train_step

    def watched(self: StackedIHGNN, batch: Batch, factor: Tensor, *rest: Any) -> Tensor:
        seen.append(factor)
        return train_step(self, batch, factor, *rest)

    monkeypatch.setattr(StackedIHGNN, "train_step", watched)
    data = dataset(*FIVE * 20)
    made = IHGNNSettings(layers=1, width=4, hidden=64, dropout=0.75)
    member = Member(seed=0, lr=0.01, train=np.arange(90), validation=np.arange(90, 100))
    stack = stack_of(made, exact_store(data), inputs_of(data), [member], batch_size=90)
    for _ in range(2):
        stack.train_epoch()
    for factor in seen:
        assert factor.shape == (1, 90, 64)
        assert set(factor.unique().tolist()) == {0, 4}
        assert 0.23 < float((factor > 0).double().mean()) < 0.27
    assert not torch.equal(*seen)


def test_a_stack_goes_on_from_its_state_as_if_never_stopped() -> None:
    data = mutag()
    made = IHGNNSettings(**SMALL)
    store, inputs = exact_store(data, rounds=2), inputs_of(data)
    whole = stack_of(made, store, inputs, THREE, batch_size=16)
    whole.train_epoch()
    state = deepcopy(whole.state())
    expected = [whole.train_epoch(), whole.train_epoch()]
    again = stack_of(made, store, inputs, THREE, batch_size=16)
    again.restore(state)
    assert [again.train_epoch(), again.train_epoch()] == expected
    for name, value in whole.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], value), name


def test_a_member_learns_what_can_be_learned() -> None:
    """Rings of one label against rings of another."""
    graphs: list[Graph] = [([i % 2] * n, alike(n)[0][1]) for n in (3, 4, 5, 6) for i in range(4)]
    data = dataset(*graphs)  # i % 2 is the class as well
    made = IHGNNSettings(**SMALL)
    member = Member(seed=0, lr=0.01, train=np.arange(12), validation=np.arange(12, 16))
    stack = stack_of(made, exact_store(data, rounds=2), inputs_of(data), [member], batch_size=4)
    last = [stack.train_epoch() for _ in range(30)][-1][0]
    assert last.validation_accuracy == 1
    assert last.validation_loss < 0.1


# Epochs


def epoch(number: int, accuracy: float, loss: float) -> Epoch:
    return Epoch(number, 0.0, 0.0, loss, accuracy)


def test_the_better_epoch_is_more_accurate_on_validation_then_of_lower_loss() -> None:
    first = epoch(1, accuracy=0.8, loss=0.5)
    assert first.better_than(None)
    assert epoch(2, accuracy=0.9, loss=0.7).better_than(first)
    assert epoch(2, accuracy=0.8, loss=0.4).better_than(first)
    assert not epoch(2, accuracy=0.8, loss=0.5).better_than(first)
    assert not epoch(2, accuracy=0.7, loss=0.1).better_than(first)
