"""The checkpoint's own model: what it answers, and where the order of its nodes is chance."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from tiny_models import ALL, AUTHORS, CPU, PATH, SMALL, dataset, torch_logits, untrained

from ihgnn_cli.data.batching.batches import GraphStore
from ihgnn_cli.deploy.comparison import compared
from ihgnn_cli.deploy.form import Layout
from ihgnn_cli.deploy.inputs import inputs_for
from ihgnn_cli.deploy.metadata import LARGEST
from ihgnn_cli.deploy.padded import PaddedIHGNN
from ihgnn_cli.deploy.reference import Reference, _margins, _uncertainty
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
def test_the_order_margin_is_that_of_the_exported_module(members: int) -> None:
    data = dataset(*ALL, ALIKE)
    checkpoint = untrained(data, members=members)
    exported = PaddedIHGNN(checkpoint)
    arrays = inputs_for(Layout.PADDED, checkpoint.card, data, np.arange(len(data)))
    found = exported(**{name: torch.from_numpy(each) for name, each in arrays.items()})
    expected = Reference(checkpoint).outputs(data)
    np.testing.assert_allclose(found["order_margin"], expected["order_margin"], 1e-6, 1e-6)
    assert expected["order_margin"][-1] == LARGEST  # all nodes are alike
    assert expected["order_margin"][0] < 1
    if members > 1:
        np.testing.assert_allclose(found["uncertainty"], expected["uncertainty"], atol=1e-6)


def test_an_output_that_rounding_can_change_is_left_open() -> None:
    # Two classes of equal probability: the uncertainty is that of one or the other.
    logits = np.array([[[0.0, 1e-5], [0.0, 1.0]], [[0.0, 0.0], [0.0, 2.0]]])
    spread = _uncertainty(logits)
    assert np.isnan(spread[0])
    p = 1 / (1 + np.exp([-1.0, -2.0]))
    assert spread[1] == pytest.approx(p.std())
    # Lengths that differ by about as much as rounding: the pair counts or it does not.
    h = np.array([[3.0, 0.1], [3.00002, 0.1], [1.0, 5.0]], dtype=np.float32)
    measured = _margins(h, h[:, -1], np.zeros(3, int), 1)[:, 0].tolist()
    assert measured[0] == measured[1] == 0
    assert measured[2] > 0.9
    expected = {"probabilities": np.array([[0.5, 0.5]]), "order_margin": np.array([np.nan])}
    given = {"probabilities": np.array([[0.5, 0.5]]), "order_margin": np.array([7.0])}
    assert not compared(expected, given, 1e-4).beyond(1e-4).any()
    expected["order_margin"][:] = 6.9
    assert compared(expected, given, 1e-4).beyond(1e-4).all()


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
            embedded, _ = model.embed(store.batch([np.array([graph])] * members).rows)
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
