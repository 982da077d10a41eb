"""The checkpoint's own model: what it answers, and where the order of its nodes is chance."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from tiny_models import ALL, AUTHORS, CPU, PATH, SMALL, dataset, torch_logits, untrained

from ihgnn_cli.data.batching import GraphStore
from ihgnn_cli.deploy.reference import Reference
from ihgnn_cli.models.settings import Variant

# Without separation the nodes of a complete graph are equal in the last layer, and only there.
COMPLETE = ([0, 1, 2], [(0, 1), (1, 2), (0, 2)])
ALIKE = ([1, 1, 1], [(0, 1), (1, 2), (0, 2)])


def test_one_model_answers_with_its_logits() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)
    found = Reference(checkpoint).logits(data)
    np.testing.assert_allclose(found, torch_logits(checkpoint, data)[0], atol=1e-6)


def test_several_answer_with_the_logarithm_of_their_mean_probability() -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data, members=3)
    each = np.exp(torch_logits(checkpoint, data).astype(np.float64))
    mean = (each / each.sum(2, keepdims=True)).mean(0)
    np.testing.assert_allclose(np.exp(Reference(checkpoint).logits(data)), mean, atol=1e-6)


@pytest.mark.parametrize("members", [1, 2])
def test_the_order_is_chance_where_nodes_that_differ_tie(members: int) -> None:
    data = dataset(COMPLETE, PATH, ALIKE)
    tying = replace(SMALL, variant=Variant.NO_SEPARATION, **AUTHORS)
    found = Reference(untrained(data, tying, members=members))
    assert found.order_is_chance(data, np.arange(3)) == [True, False, False]
    assert found.order_is_chance(data, np.array([1, 0])) == [False, True]
    assert found.order_is_chance(data, np.array([], dtype=np.int64)) == []


def test_a_model_that_sums_its_nodes_has_no_order() -> None:
    data = dataset(COMPLETE, PATH)
    summing = Reference(untrained(data, replace(SMALL, variant=Variant.NO_CONCAT)))
    assert summing.order_is_chance(data, np.array([0])) == [False]


@pytest.mark.parametrize("members", [1, 2])
def test_the_smallest_gap_is_that_of_neighbours_in_the_sorted_order(members: int) -> None:
    data = dataset(*ALL, ALIKE)
    checkpoint = untrained(data, members=members)
    store = GraphStore(data, checkpoint.card.features, checkpoint.card.max_nodes, None, CPU)
    model = checkpoint.model(CPU)
    expected = []
    for graph in range(len(data)):
        gaps = [np.inf]
        with torch.no_grad():
            embedded, _ = model.embed(store.batch([np.array([graph])] * members))
        for h in embedded.numpy():
            scale = np.abs(h).max()
            gaps += [
                abs(one[-1] - other[-1]) / scale
                for one, other in combinations(h, 2)
                if np.abs(one - other).max() > 1e-5 * scale
            ]
        expected.append(min(gaps))
    found = Reference(checkpoint).key_gaps(data, np.arange(len(data)))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)
    assert found[-1] == np.inf  # all nodes are alike
