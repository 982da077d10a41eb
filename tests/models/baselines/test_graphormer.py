"""Graphormer: distances by hand, the forward pass written out, what it learns."""

import itertools
import random

import pytest
import torch
from graph_makers import (
    KITE,
    LABELS,
    PATH,
    SINGLE,
    TWO_PARTS,
    accuracy_after_training,
    dataset_of,
    graphs_of,
    logits_of,
    model_of,
)
from plain_transformer import applied, layer_of, logits_of_vector

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.baselines.graphormer import distances
from ihgnn_cli.models.entries.graphormer import GraphormerSettings


def test_distances_are_counted_and_cut_and_parts_are_apart():
    graphs = graphs_of(dataset_of([PATH, TWO_PARTS]))
    (two_parts,), (path,) = distances(graphs, 3)
    assert path.tolist() == [
        [0, 1, 2, 3, 3],
        [1, 0, 1, 2, 3],
        [2, 1, 0, 1, 2],
        [3, 2, 1, 0, 1],
        [3, 3, 2, 1, 0],
    ]
    assert two_parts.tolist() == [
        [0, 1, 2, 4, 4, 4],
        [1, 0, 1, 4, 4, 4],
        [2, 1, 0, 4, 4, 4],
        [4, 4, 4, 0, 1, 4],
        [4, 4, 4, 1, 0, 4],
        [4, 4, 4, 4, 4, 0],
    ]
    assert path.dtype == torch.uint8


def written_out(model, graph, most_degree, most_distance):
    """The logits of one graph, with Floyd and Warshall's distances."""
    labels, edges = graph
    nodes = range(len(labels))
    apart = {(u, v): 0 if u == v else 10**6 for u in nodes for v in nodes}
    for u, v in edges:
        apart[u, v] = apart[v, u] = 1
    for w, u, v in itertools.product(nodes, nodes, nodes):
        apart[u, v] = min(apart[u, v], apart[u, w] + apart[w, v])
    tokens = [model.virtual_node]
    for v in nodes:
        degree = min(sum(v in edge for edge in edges), most_degree)
        x = torch.eye(LABELS)[labels[v]]
        tokens.append(applied(model.encoder, x) + model.centrality.weight[degree])
    bias = torch.empty(model.layers[0].heads, len(tokens), len(tokens))
    bias[:] = model.spatial.weight[most_distance + 2][:, None, None]
    for (u, v), found in apart.items():
        place = most_distance + 1 if found == 10**6 else min(found, most_distance)
        bias[:, 1 + u, 1 + v] = model.spatial.weight[place]
    h = torch.stack(tokens)
    for layer in model.layers:
        h = layer_of(layer, h, bias)
    return logits_of_vector(model, h[0])


@torch.no_grad()
def test_the_forward_pass_is_the_equations_written_out():
    graphs = [KITE, TWO_PARTS, PATH, SINGLE]
    dataset = dataset_of(graphs)
    model = model_of(
        "graphormer", dataset, layers=2, width=6, heads=2, max_degree=2, max_distance=2
    )
    for table in (model.spatial.weight, model.centrality.weight):
        torch.nn.init.normal_(table)  # at their start they hardly matter
    expected = torch.stack([written_out(model, each, 2, 2) for each in graphs])
    torch.testing.assert_close(logits_of(model, dataset), expected, rtol=1e-5, atol=1e-5)


def test_weights_start_as_in_the_authors_code():
    model = model_of("graphormer", dataset_of([KITE]), layers=9, width=64, heads=4)
    for layer in model.layers:
        for linear in (layer.queries, layer.keys_values, layer.out, layer.first, layer.second):
            assert float(linear.weight.detach().std()) == pytest.approx(0.02 / 3, rel=0.1)
            assert not linear.bias.any()
    for table in (model.centrality.weight, model.spatial.weight, model.encoder.weight):
        assert float(table.detach().std()) == pytest.approx(0.02, rel=0.2)
    assert not model.encoder.bias.any()


def cycles(lengths, seed):
    drawn, edges, start = random.Random(seed), [], 0
    for length in lengths:
        edges += [(start + at, start + (at + 1) % length) for at in range(length)]
        start += length
    return [drawn.randrange(LABELS) for _ in range(start)], edges


def test_it_learns_whether_a_cycle_is_one_or_two():
    graphs = [
        cycles(lengths, seed)
        for seed in range(7)
        for lengths in ((6,), (3, 3), (8,), (4, 4), (10,), (5, 5))
    ]
    dataset = dataset_of(graphs)
    small = {"layers": 2, "dropout": 0.0}
    assert accuracy_after_training("graphormer", dataset, steps=300, lr=1e-4, **small) >= 0.95


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"width": 32, "heads": 5}, "multiple of heads"),
        ({"heads": 0}, "multiple of heads"),
        ({"layers": 0}, "layers must be at least 1"),
        ({"max_degree": 0}, "max_degree must be at least 1"),
        ({"max_distance": 254}, "max_distance must be from 1 to 253"),
    ],
)
def test_settings_out_of_range_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        GraphormerSettings(**given)
