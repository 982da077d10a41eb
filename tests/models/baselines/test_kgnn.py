"""k-GNN: its layers against loops over sets."""

import itertools

import numpy as np
import pytest
import torch
from graph_makers import (
    KITE,
    PATH,
    SINGLE,
    TWO_PARTS,
    dataset_of,
    logits_of,
    model_of,
)

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.entries.kgnn import KGNNSettings


def _array(tensor):
    return tensor.detach().double().numpy()


def _elu(x):
    return np.where(x > 0, x, np.expm1(x))


def _mean(rows, width):
    return np.mean(rows, axis=0) if len(rows) else np.zeros(width)


def _reference(model, graph, width):
    labels, edges = graph
    nodes = len(labels)
    adjacent = {frozenset(each) for each in edges}
    x = np.eye(3)[list(labels)]
    h = x
    for conv in model.convs:
        own, other = _array(conv.lin_root.weight), _array(conv.lin_rel.weight)
        h = np.stack(
            [
                own @ h[u]
                + other @ _mean([h[v] for v in range(nodes) if {u, v} in adjacent], h.shape[1])
                + _array(conv.lin_rel.bias)
                for u in range(nodes)
            ]
        )
        h = _elu(h)
    read = [h.mean(0)]
    for level in model.levels:
        k = level.k
        sets = []
        for each in itertools.combinations(range(nodes), k):
            inside = sum(frozenset(pair) in adjacent for pair in itertools.combinations(each, 2))
            if k == 2 or inside >= 2:
                sets.append(frozenset(each))
        weight = np.hstack([_array(level.state.weight), _array(level.label.weight)])
        of_degree = _array(level.degree.weight)
        starts = []
        for each in sets:
            parts = []
            for u in each:
                degree = sum({u, v} in adjacent for v in each)
                kind = degree - (k - 2)
                parts.append(weight @ np.concatenate([h[u], (1 + degree) * x[u]]))
                parts[-1] += of_degree[:, kind]
            starts.append(np.mean(parts, axis=0))
        beside = [
            [
                j
                for j, other in enumerate(sets)
                if len(each & other) == k - 1 and each ^ other in adjacent
            ]
            for each in sets
        ]
        f = [
            _elu(start[:width] + _mean([starts[j][width:] for j in near], width))
            for start, near in zip(starts, beside, strict=True)
        ]
        for own, other in zip(level.own, level.other, strict=True):
            f = [
                _elu(
                    _array(own.weight) @ mine
                    + _array(own.bias)
                    + _array(other.weight) @ _mean([f[j] for j in near], width)
                )
                for mine, near in zip(f, beside, strict=True)
            ]
        read.append(_mean(f, width))
    vector = np.concatenate(read)
    for at, layer in enumerate((model.mlp[0], model.mlp[3], model.mlp[5])):
        vector = _array(layer.weight) @ (vector if at == 0 else _elu(vector))
        vector += _array(layer.bias)
    return vector


@pytest.mark.parametrize("order", [2, 3])
def test_logits_are_those_of_a_computation_by_hand(order):
    graphs = [KITE, PATH, TWO_PARTS, SINGLE]
    dataset = dataset_of(graphs)
    model = model_of("kgnn", dataset, order=order, width=5, hidden=6, layers=2, set_layers=3)
    expected = np.stack([_reference(model, each, 5) for each in graphs])
    np.testing.assert_allclose(logits_of(model, dataset), expected, rtol=1e-5, atol=1e-5)


def test_which_label_is_in_the_middle_of_a_path_counts_in_its_type():
    # Not seen by the nodes' own layers, whose weights are 0 here.
    middle = [([0, 1, 0], [(0, 1), (1, 2)]), ([0, 0, 1], [(0, 1), (1, 2)])]
    dataset = dataset_of(middle)
    model = model_of("kgnn", dataset)
    with torch.no_grad():
        for parameter in [*model.convs.parameters(), *model.levels[0].parameters()]:
            parameter.zero_()
    first, second = logits_of(model, dataset)
    assert (first - second).abs().max() > 1e-4


@pytest.mark.parametrize("wrong", [{"order": 1}, {"order": 4}, {"layers": 0}, {"set_layers": 0}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        KGNNSettings(**wrong)
