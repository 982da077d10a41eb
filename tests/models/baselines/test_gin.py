"""GIN against its equations in dense matrices."""

import pytest
import torch
from graph_makers import (
    KITE,
    PATH,
    dataset_of,
    logits_of,
    model_of,
    with_statistics,
)
from heterophilic import adjacency

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.entries.gin import GINSettings


def _normalized(norm, h):
    return (h - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


def _by_hand(model, graph, eps):
    """The equations, with the weights of a module that has seen its running statistics."""
    a, h = adjacency(graph), torch.eye(3)[list(graph[0])]
    logits = model.scores[0].weight @ h.sum(0) + model.scores[0].bias
    for at, ((first, inner, _, second), norm, _) in enumerate(model.rounds):
        h = (1 + eps[at]) * h + a @ h
        h = _normalized(inner, h @ first.weight.T + first.bias).clamp(min=0)
        h = _normalized(norm, h @ second.weight.T + second.bias).clamp(min=0)
        logits = logits + model.scores[at + 1].weight @ h.sum(0) + model.scores[at + 1].bias
    return logits


@torch.no_grad()
def test_logits_are_those_of_the_equations():
    dataset = dataset_of([PATH, KITE])
    model = with_statistics(model_of("gin", dataset, layers=2, width=5), dataset)
    found = logits_of(model, dataset)
    for at, graph in enumerate((PATH, KITE)):
        torch.testing.assert_close(found[at], _by_hand(model, graph, [0, 0]), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_learned_eps_weighs_the_node_itself():
    dataset = dataset_of([PATH, KITE])
    model = model_of("gin", dataset, layers=2, width=5, learn_eps=True)
    assert model.eps.tolist() == [0, 0]
    model.eps.copy_(torch.tensor([0.5, -0.25]))
    expected = _by_hand(with_statistics(model, dataset), KITE, [0.5, -0.25])
    torch.testing.assert_close(logits_of(model, dataset)[1], expected, rtol=1e-5, atol=1e-5)


def test_eps_is_a_parameter_only_where_it_is_learned():
    dataset = dataset_of([PATH, KITE])
    for learned in (False, True):
        model = model_of("gin", dataset, learn_eps=learned)
        assert ("eps" in dict(model.named_parameters())) == learned


def test_without_rounds_it_counts_labels():
    dataset = dataset_of([([0, 1, 1], []), ([1, 0, 1], [(0, 1), (1, 2)])])
    first, second = logits_of(model_of("gin", dataset, layers=0), dataset)
    torch.testing.assert_close(first, second)


def test_settings_out_of_range_are_refused():
    with pytest.raises(InputError, match="width must be at least 1"):
        GINSettings(width=0)
    with pytest.raises(InputError, match="dropout"):
        GINSettings(dropout=1.0)
