"""PPGN: blocks against loops over positions, its readout, its memory."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from graph_makers import (
    KITE,
    NO_EDGES,
    PATH,
    SINGLE,
    STAR,
    TRIANGLE,
    dataset_of,
    graphs_of,
    logits_of,
    model_of,
)

from ihgnn_cli.data.features import Features
from ihgnn_cli.errors import InputError
from ihgnn_cli.models.baselines import ppgn
from ihgnn_cli.models.baselines.ppgn import input_tensor
from ihgnn_cli.models.card import inputs_of
from ihgnn_cli.models.entries.ppgn import PPGNSettings
from ihgnn_cli.training.config import configure
from ihgnn_cli.training.needs import model_bytes, parameter_count


def _array(tensor):
    return tensor.detach().double().numpy()


def _through(linear, vector):
    return _array(linear.weight) @ vector + _array(linear.bias)


def _reference(model, graph):
    """Logits of one graph, without padding, position by position."""
    labels, edges = graph
    nodes = len(labels)
    x = np.zeros((nodes, nodes, 5))
    for a, b in edges:
        x[a, b, 0] = x[b, a, 0] = 1
    for node, label in enumerate(labels):
        x[node, node, 1] = x[node, node, 2 + label] = 1
    read = []
    for block in model.blocks:
        width = len(block.of_product)
        weights, biases = _array(block.of_x), _array(block.of_x_bias)[:, 0]
        sides = []
        for side in (0, 1):
            rows = slice(side * width, (side + 1) * width)
            maps = [(weights[rows], biases[rows])]
            maps += [
                (_array(weight[side]), _array(bias[side])[:, 0])
                for weight, bias in zip(block.deeper, block.deeper_bias, strict=True)
            ]
            taken = x
            for weight, bias in maps:
                taken = np.array(
                    [[np.maximum(weight @ at + bias, 0) for at in row] for row in taken]
                )
            sides.append(taken)
        left, right = sides
        product = np.zeros_like(left)
        for i in range(nodes):
            for j in range(nodes):
                for k in range(nodes):
                    product[i, j] += left[i, k] * right[k, j] / nodes**0.5
        both = np.concatenate([x, product], axis=2)
        last = np.hstack([weights[2 * width :], _array(block.of_product)])
        x = np.array([[last @ at + biases[2 * width :] for at in row] for row in both])
        diagonal = np.max([x[i, i] for i in range(nodes)], axis=0)
        rest = [x[i, j] for i in range(nodes) for j in range(nodes) if i != j]
        off = np.max(rest, axis=0) if rest else np.zeros_like(diagonal)
        read.append(np.concatenate([diagonal, off]))
    if len(model.readers) == 1:
        hidden = np.maximum(_through(model.readers[0].first, read[-1]), 0)
        return _through(model.readers[0].second, hidden)
    return sum(_through(score[1], each) for score, each in zip(model.readers, read, strict=True))


@pytest.mark.parametrize(("suffix", "depth"), [("each", 2), ("last", 1), ("each", 3)])
def test_logits_are_those_of_a_computation_by_hand(suffix, depth):
    graphs = [KITE, PATH, SINGLE, NO_EDGES]
    dataset = dataset_of(graphs)
    model = model_of("ppgn", dataset, layers=2, width=5, suffix=suffix, depth=depth)
    with torch.no_grad():  # biases start as 0, and would not show what padding does
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    expected = np.stack([_reference(model, each) for each in graphs])
    np.testing.assert_allclose(logits_of(model, dataset), expected, rtol=1e-5, atol=1e-5)


def test_the_input_is_the_adjacency_the_identity_and_labels_on_the_diagonal():
    found = input_tensor(graphs_of(dataset_of([([1, 2], [(0, 1)]), SINGLE])))
    assert found.shape == (5, 2, 2, 2)
    assert found[0].tolist() == [[[0, 1], [1, 0]], [[0, 0], [0, 0]]]
    assert found[1].tolist() == [[[1, 0], [0, 1]], [[1, 0], [0, 0]]]
    assert found[2].count_nonzero() == 0
    assert found[3].tolist() == [[[1, 0], [0, 0]], [[0, 0], [0, 0]]]
    assert found[4].tolist() == [[[0, 0], [0, 1]], [[1, 0], [0, 0]]]


def test_graphs_in_small_parts_get_the_same_answers(monkeypatch):
    dataset = dataset_of([TRIANGLE, PATH, STAR, KITE, SINGLE])
    model = model_of("ppgn", dataset)
    whole = logits_of(model, dataset)
    monkeypatch.setattr(ppgn, "_PAIRS_AT_ONCE", 1)
    torch.testing.assert_close(logits_of(model, dataset), whole)


@pytest.mark.parametrize("wrong", [{"layers": 0}, {"depth": 0}, {"dropout": 1.0}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        PPGNSettings(**wrong)


def test_memory_grows_with_the_features_of_all_pairs():
    """Each feature is a channel of the input: n² numbers of a graph."""
    config = configure(model="ppgn", overrides={"batch_size": 1})
    few = dataset_of([PATH, STAR])
    many = replace(few, label_values=tuple(range(103)))
    grown = model_bytes(many, config) - model_bytes(few, config)
    weights = [parameter_count(config, inputs_of(each, Features.LABELS)) for each in (few, many)]
    assert grown == 4 * (100 * 5**2 + 6 * (weights[1] - weights[0]))
