"""GNNML: its supports, and its layers against whole matrices."""

import random

import numpy as np
import pytest
import torch
from graph_makers import (
    KITE,
    NO_EDGES,
    PATH,
    SINGLE,
    dataset_of,
    graphs_of,
    logits_of,
    model_of,
    relabelled,
)

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.baselines import gnnml
from ihgnn_cli.models.baselines.gnnml import graph_supports
from ihgnn_cli.models.entries.gnnml import MODEL, Design, GNNMLSettings, Kind

ONE_EDGE = torch.tensor([[1, 0], [0, 1]])


def _array(tensor):
    return tensor.detach().double().numpy()


def _cycle(nodes):
    return [0] * nodes, [(at, (at + 1) % nodes) for at in range(nodes)]


def _edges(graph):
    both = sorted([*graph[1], *((b, a) for a, b in graph[1])])
    return torch.tensor([[b for _, b in both], [a for a, _ in both]], dtype=torch.long)


def _adjacency(graph):
    found = np.zeros((len(graph[0]), len(graph[0])))
    for a, b in graph[1]:
        found[a, b] = found[b, a] = 1
    return found


def _dense(graph, **chosen):
    """[S, n, n] the supports of one graph as matrices."""
    nodes = len(graph[0])
    sender, received, values = graph_supports(_edges(graph), nodes, **chosen)
    receiver = np.repeat(np.arange(nodes), received.numpy())
    found = np.zeros((values.shape[1], nodes, nodes))
    found[:, receiver, sender.numpy()] = values.numpy().T
    return found


def test_supports_of_one_edge():
    # λ = 0 and 2, with the eigenvectors (1, 1)/√2 and (1, -1)/√2; two bands, at 0 and at 2.
    sender, received, values = graph_supports(ONE_EDGE, 2, bands=2, sharpness=0.5, hops=1)
    assert sender.tolist() == [0, 1, 0, 1]
    assert received.tolist() == [2, 2]
    other = np.exp(-0.5 * 4)  # what a band lets through of the other eigenvalue
    same, across = (1 + other) / 2, (1 - other) / 2
    expected = [[same, same, 1], [across, -across, 0], [across, -across, 0], [same, same, 1]]
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_an_isolated_node_has_its_own_support_only():
    sender, received, values = graph_supports(
        torch.zeros(2, 0, dtype=torch.long), 2, bands=3, sharpness=4.0, hops=1
    )
    assert (sender.tolist(), received.tolist()) == ([0, 1], [1, 1])
    assert values.tolist() == [[1, 1, 1, 1]] * 2


def test_supports_reach_as_far_as_they_may():
    path = ([0] * 4, [(0, 1), (1, 2), (2, 3)])
    far = [abs(i - j) for i in range(4) for j in range(4)]
    for hops in (1, 2, 3):
        joined = _dense(path, bands=2, sharpness=1.0, hops=hops)[0] != 0
        assert joined.ravel().tolist() == [each <= hops for each in far]


def test_supports_are_functions_of_the_laplacian_whatever_the_eigenvectors(monkeypatch):
    # b = 1/2 and one band at λ = 0: exp(-L²/2), here as a power series and on all pairs.
    graph = _cycle(6)  # λ = 1/2 and 3/2 are double
    laplacian = np.eye(6) - _adjacency(graph) / 2
    expected, term = np.eye(6), np.eye(6)
    for at in range(1, 30):
        term = term @ (-laplacian @ laplacian / 2) / at
        expected = expected + term
    chosen = {"bands": 1, "sharpness": 0.5, "hops": 3}
    np.testing.assert_allclose(_dense(graph, **chosen)[0], expected, atol=1e-6)
    monkeypatch.setattr(gnnml, "_AT_ONCE", 7)  # in small parts
    np.testing.assert_allclose(_dense(graph, **chosen)[0], expected, atol=1e-6)


@pytest.mark.parametrize("nodes", [4, 6, 9])
def test_the_order_of_a_cycles_nodes_does_not_matter(nodes):
    drawn = random.Random(nodes)
    labels, edges = _cycle(nodes)
    graph = ([drawn.randrange(3) for _ in labels], edges)
    other = relabelled(graph, drawn.sample(range(nodes), nodes))
    dataset = dataset_of([graph, other])
    first, second = logits_of(model_of("gnnml", dataset), dataset)
    torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-5)


def _through(linear, rows):
    out = rows @ _array(linear.weight).T
    return out if linear.bias is None else out + _array(linear.bias)


def _layer3(layer, h, supports):
    if layer.supports is not None:
        made = layer.supports
        entries = np.moveaxis(supports, 0, -1)
        product = np.tanh(_through(made.left, entries)) * np.tanh(_through(made.right, entries))
        both = np.concatenate([np.maximum(_through(made.direct, entries), 0), product], axis=-1)
        supports = np.moveaxis(np.maximum(_through(made.out, both), 0), -1, 0)
    weights = _array(layer.conv.weight).reshape(len(supports), -1, h.shape[1])
    summed = sum(c @ h @ w.T for c, w in zip(supports, weights, strict=True))
    summed = np.maximum(summed + _array(layer.bias), 0)
    if layer.left is None:
        return summed
    product = np.tanh(_through(layer.left, h)) * np.tanh(_through(layer.right, h))
    return np.hstack([summed, product])


def _layer1(layer, h, adjacency):
    summed = adjacency @ h @ _array(layer.conv.weight).T + _array(layer.bias)
    product = np.maximum(_through(layer.left, h), 0) * np.maximum(_through(layer.right, h), 0)
    return np.hstack([np.maximum(_through(layer.own, h), 0), np.maximum(summed, 0), product])


def _normalized(norm, rows):
    rows = (rows - _array(norm.running_mean)) / np.sqrt(_array(norm.running_var) + norm.eps)
    return rows * _array(norm.weight) + _array(norm.bias)


def _reference(model, graph):
    h = np.eye(3)[list(graph[0])]
    chosen = model.settings
    for at, layer in enumerate(model.layers):
        if chosen.kind == Kind.GNNML1:
            h = _layer1(layer, h, _adjacency(graph))
        else:
            spectrum = {"bands": chosen.bands, "sharpness": chosen.sharpness, "hops": chosen.hops}
            h = _layer3(layer, h, _dense(graph, **spectrum))
        if chosen.design == Design.MUTAG:
            h = _normalized(model.norms[at], h)
    if chosen.design == Design.PROTEINS:
        return _through(model.classifier, np.hstack([h.mean(0), h.max(0)]))
    if chosen.design == Design.ENZYMES:
        read = _normalized(model.read_norm, np.hstack([h.sum(0), h.max(0)]))
        return _through(model.classifier, read)
    hidden = np.maximum(_through(model.classifier.first, h.mean(0)), 0)
    return _through(model.classifier.second, hidden)


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"learn_supports": True},
        {"bands": 2},
        {"hops": 2, "sharpness": 1.0, "learn_supports": True},
        {"kind": Kind.GNNML1},
        {"design": Design.PROTEINS},
        {"design": Design.ENZYMES},
        {"design": Design.ENZYMES, "kind": Kind.GNNML1},
    ],
)
def test_logits_are_those_of_a_computation_by_hand(chosen):
    graphs = [KITE, PATH, NO_EDGES, SINGLE]
    dataset = dataset_of(graphs)
    model = model_of("gnnml", dataset, layers=2, width=4, **chosen)
    with torch.no_grad():  # so that the statistics and the biases count
        for each in [*model.buffers(), *model.parameters()]:
            if each.is_floating_point():
                each.add_(0.1 * torch.rand_like(each))
    expected = np.stack([_reference(model, each) for each in graphs])
    np.testing.assert_allclose(logits_of(model, dataset), expected, rtol=1e-5, atol=1e-5)


def test_defaults_and_grid_have_what_the_authors_scripts_have():
    assert GNNMLSettings() == GNNMLSettings(
        layers=3, width=24, hidden=32, dropout=0.0, learn_supports=False, design=Design.MUTAG
    )
    scripts = [("mutag", 3, 24, 0.0), ("proteins", 2, 64, 0.1), ("enzymes", 4, 64, 0.1)]
    for chosen in scripts:
        for name, value in zip(("design", "layers", "width", "dropout"), chosen, strict=True):
            assert value in MODEL.grid[name]
    assert "learn_supports" not in MODEL.grid


@pytest.mark.parametrize("design", [Design.PROTEINS, Design.ENZYMES])
def test_layers_of_the_other_designs_have_neither_products_nor_normalization(design):
    model = model_of("gnnml", dataset_of([KITE]), design=design, width=4)
    assert len(model.norms) == 0
    assert all(layer.left is None and layer.right is None for layer in model.layers)
    assert model.classifier.in_features == 2 * 4


def test_dropout_is_on_the_inputs_of_layers():
    dataset = dataset_of([KITE])
    model = model_of("gnnml", dataset, design=Design.PROTEINS, dropout=0.5).train()
    torch.manual_seed(0)
    seen = []
    for layer in model.layers:
        layer.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(graphs_of(dataset))
    assert {*seen[0].flatten().tolist()} == {0, 2}  # of labels: left out, or scaled by 1 / (1 - p)


@pytest.mark.parametrize("wrong", [{"layers": 0}, {"bands": 0}, {"hops": 0}, {"sharpness": -1.0}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        GNNMLSettings(**wrong)


def test_an_unknown_design_is_refused():
    with pytest.raises(
        InputError, match="design must be one of mutag, proteins, enzymes, not 'cora'"
    ):
        GNNMLSettings(design="cora")
