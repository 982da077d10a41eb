"""DGCNN against its equations in loops; the order of SortPooling by hand."""

import pytest
import torch
from graph_makers import (
    KITE,
    PATH,
    TRIANGLE,
    dataset_of,
    graphs_of,
    logits_of,
    model_of,
)

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.baselines.dgcnn import sort_pool
from ihgnn_cli.models.entries.dgcnn import DGCNNSettings


def _channels_by_hand(model, graph):
    labels, edges = graph
    near = [{at} for at in range(len(labels))]
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    z, found = torch.eye(3)[list(labels)], []
    for layer in model.layers:
        means = torch.stack([z[sorted(each)].mean(0) for each in near])
        z = torch.tanh(means @ layer.weight.T)
        found.append(z)
    return torch.cat(found, dim=1)


def _logits_by_hand(model, graph):
    z = _channels_by_hand(model, graph)
    rows = sorted(z.tolist(), key=lambda row: row[::-1], reverse=True)[: model.taken]
    nodes = torch.zeros(model.taken, z.shape[1])
    nodes[: len(rows)] = torch.tensor(rows)
    nodes = (nodes @ model.of_node.weight.T + model.of_node.bias).clamp(min=0)
    pairs = [torch.maximum(nodes[at], nodes[at + 1]) for at in range(0, model.taken - 1, 2)]
    kernel, bias = model.of_nodes.weight, model.of_nodes.bias
    places = [
        sum(kernel[:, :, step] @ pairs[at + step] for step in range(5)) + bias
        for at in range(len(pairs) - 4)
    ]
    dense = torch.stack(places, dim=1).clamp(min=0).flatten()
    first, second = model.classifier.first, model.classifier.second
    return second.weight @ (first.weight @ dense + first.bias).clamp(min=0) + second.bias


RING: tuple[list[int], list[tuple[int, int]]] = (
    [0, 1, 2, 0, 0, 1, 2, 2, 1, 0, 0, 1, 1],
    [(at, (at + 1) % 13) for at in range(13)] + [(0, 5), (3, 8)],
)


@torch.no_grad()
@pytest.mark.parametrize("taken", [10, 13])  # not all nodes of the ring; all
def test_logits_are_those_of_the_equations(taken):
    dataset = dataset_of([PATH, RING])
    model = model_of("dgcnn", dataset, layers=2, width=4, hidden=6, sort_nodes=taken)
    assert model.taken == taken
    for at, graph in enumerate((PATH, RING)):
        expected = _logits_by_hand(model, graph)
        torch.testing.assert_close(logits_of(model, dataset)[at], expected, rtol=1e-5, atol=1e-5)


def test_nodes_are_sorted_by_the_last_channel_the_largest_first():
    graphs = graphs_of(dataset_of([KITE, TRIANGLE]))
    z = torch.tensor([[1, 0.3], [2, 0.9], [3, -0.5], [4, 0.4], [5, 0.1], [6, 0.2], [7, 0.3]])
    first, second = sort_pool(z, graphs, 5)[:, :, 0].tolist()
    assert first == [2, 4, 1, 3, 0]
    assert second == [7, 6, 5, 0, 0]
    assert sort_pool(z, graphs, 2)[:, :, 0].tolist() == [[2, 4], [7, 6]]


def test_ties_are_broken_by_the_channels_before():
    graphs = graphs_of(dataset_of([KITE]))
    z = torch.tensor([[1, 0.2, 0.5], [2, 0.4, 0.5], [4, 0.2, 0.5], [3, 0.0, 0.6]])
    assert sort_pool(z, graphs, 4)[0, :, 0].tolist() == [3, 2, 4, 1]


def test_what_rounding_makes_of_a_tie_is_a_tie():
    graphs = graphs_of(dataset_of([TRIANGLE]))
    z = torch.tensor([[0.1, 0.5], [0.3, 0.5 - 6e-8], [0.2, 0.5 + 6e-8]])
    assert sort_pool(z, graphs, 3)[0, :, 0].tolist() == pytest.approx([0.3, 0.2, 0.1])


def test_nodes_that_are_left_out_have_no_gradient():
    graphs = graphs_of(dataset_of([KITE]))
    z = torch.tensor([[0.1], [0.4], [0.3], [0.2]], requires_grad=True)
    sort_pool(z, graphs, 2).sum().backward()
    assert z.grad.flatten().tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(("asked", "largest", "taken"), [(30, 500, 30), (30, 17, 17), (30, 4, 10)])
def test_no_more_nodes_are_taken_than_there_are_but_ten_at_least(asked, largest, taken):
    assert DGCNNSettings(sort_nodes=asked).taken(largest) == taken


def test_settings_out_of_range_are_refused():
    with pytest.raises(InputError, match="sort_nodes must be at least 10, not 9"):
        DGCNNSettings(sort_nodes=9)
