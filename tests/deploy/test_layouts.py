"""The models that are exported, in either layout, are the model that was trained."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import (
    ALL,
    AUTHORS,
    KITE,
    LARGE_STAR,
    NO_EDGES,
    PATH,
    SINGLE,
    SMALL,
    STAR,
    TRIANGLE,
    Eager,
    dataset,
    torch_logits,
    untrained,
    with_distances,
)

from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.modules import MODULES
from ihgnn_cli.deploy.verification import reference_of
from ihgnn_cli.inference.metrics import mean_probabilities
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.models.spec import Layout

PAPER: dict[str, Any] = {}

layouts = pytest.mark.parametrize("layout", Layout)


@layouts
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("options", [PAPER, AUTHORS], ids=["paper", "authors"])
def test_the_layouts_are_the_model(
    variant: Variant, options: dict[str, Any], members: int, layout: Layout
) -> None:
    if variant is Variant.NO_SEPARATION and options is AUTHORS:
        pytest.skip("nodes of a triangle are equal in the last layer: no order is right")
    data = dataset(*ALL)
    checkpoint = untrained(data, replace(SMALL, variant=variant, **options), members=members)
    logits = torch_logits(checkpoint, data)
    found = Eager(checkpoint, layout).answers(data, np.arange(len(data)))
    p = mean_probabilities(logits)
    expected = logits[0] if members == 1 else np.log(p)
    np.testing.assert_allclose(found.logits, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.probabilities, p, atol=1e-6)
    assert found.graph_embedding.shape == (len(data), SMALL.hidden)
    assert (found.graph_embedding >= 0).all()


@layouts
@pytest.mark.parametrize("features", [Features.LABELS, Features.BOTH])
@pytest.mark.parametrize("variant", [Variant.FULL, Variant.NO_INTEGRATION, Variant.NO_CONCAT])
def test_the_layouts_read_edge_labels(variant: Variant, features: Features, layout: Layout) -> None:
    data = dataset(*ALL, edge_labels=True)
    checkpoint = untrained(data, replace(SMALL, variant=variant), features, members=2)
    found = Eager(checkpoint, layout).answers(data, np.arange(len(data)))
    p = mean_probabilities(torch_logits(checkpoint, data))
    np.testing.assert_allclose(found.probabilities, p, atol=1e-6)
    assert data.edge_label is not None
    turned = replace(data, edge_label=(data.edge_label + 1) % 3)
    others = Eager(checkpoint, layout).answers(turned, np.arange(len(data)))
    assert np.abs(others.probabilities - found.probabilities).max() > 1e-4


@layouts
def test_the_layouts_read_edge_bins(layout: Layout) -> None:
    data = with_edge_labels(with_distances(dataset(*ALL, edge_labels=True)), use=True, bins=2)
    checkpoint = untrained(data)
    found = Eager(checkpoint, layout).answers(data, np.arange(len(data)))
    p = mean_probabilities(torch_logits(checkpoint, data))
    np.testing.assert_allclose(found.probabilities, p, atol=1e-6)


@layouts
@pytest.mark.parametrize("options", [PAPER, AUTHORS], ids=["paper", "authors"])
@pytest.mark.parametrize("features", Features)
@pytest.mark.parametrize("layers", [0, 1])
def test_the_layouts_read_what_the_model_reads(
    features: Features, layers: int, options: dict[str, Any], layout: Layout
) -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data, replace(SMALL, layers=layers, **options), features)
    found = Eager(checkpoint, layout).answers(data, np.arange(len(data)))
    expected = torch_logits(checkpoint, data)[0]
    np.testing.assert_allclose(found.logits, expected, rtol=1e-5, atol=1e-5)


@layouts
@pytest.mark.parametrize("layers", [0, 2])
def test_degrees_are_counted_and_unseen_ones_are_unknown(layers: int, layout: Layout) -> None:
    seen = dataset(TRIANGLE, PATH, STAR, NO_EDGES, SINGLE, labelled=False)
    assert seen.label_values == (0, 1, 2, 4)
    checkpoint = untrained(seen, replace(SMALL, layers=layers))
    other = dataset(KITE, LARGE_STAR, STAR, labelled=False)
    words = encode_dataset(checkpoint.card, other).dataset
    assert (words.node_label == -1).tolist() == [
        *(False, False, True, False),  # a degree between those that were seen
        *(True, False, False, False, False, False),  # and one above
        *[False] * 5,
    ]
    expected = torch_logits(checkpoint, words)[0]
    found = Eager(checkpoint, layout).answers(words, np.arange(3))
    np.testing.assert_allclose(found.logits, expected, rtol=1e-5, atol=1e-5)
    # Whatever the caller writes as label: degrees are counted inside.
    model, inputs = Eager(checkpoint, layout).model, Eager(checkpoint, layout).inputs
    given = {k: torch.tensor(v) for k, v in inputs(checkpoint.card, words, np.arange(3)).items()}
    given["node_labels"] = torch.where(given["node_labels"] == -1, -1, 0)
    with torch.no_grad():
        np.testing.assert_array_equal(model(**given)["logits"].numpy(), found.logits)


@layouts
def test_answers_do_not_depend_on_the_other_graphs_of_a_batch(layout: Layout) -> None:
    data = dataset(*ALL)
    exported = Eager(untrained(data), layout)
    together = exported.answers(data, np.arange(len(data))).logits
    for graph in range(len(data)):
        alone = exported.answers(data, np.array([graph])).logits[0]
        np.testing.assert_allclose(alone, together[graph], rtol=1e-5, atol=1e-5)


@layouts
@pytest.mark.parametrize("labelled", [True, False])
def test_hubs_have_all_their_neighbours(labelled: bool, layout: Layout) -> None:
    # Beyond 32 neighbours, and beyond 8 for each edge and node, the sparse layout adds the rest.
    stars = [
        ([leaf % 3 for leaf in range(size + 1)], [(0, leaf) for leaf in range(1, size + 1)])
        for size in (3, 31, 32, 33, 40, 41, 42, 400)
    ]
    data = dataset(*stars, labelled=labelled)
    checkpoint = untrained(dataset(*stars[:5], labelled=labelled), max_nodes=50, members=2)
    words = encode_dataset(checkpoint.card, data).dataset
    expected = mean_probabilities(torch_logits(checkpoint, words))
    found = Eager(checkpoint, layout).answers(words, np.arange(len(words))).probabilities
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@layouts
def test_graphs_of_all_sizes_around_m_keep_to_their_rows(layout: Layout) -> None:
    paths = [
        ([node % 3 for node in range(size)], [(node, node + 1) for node in range(size - 1)])
        for size in (1, 31, 69, 70, 71, 100, 2)
    ]
    data = dataset(*paths)
    checkpoint = untrained(data, max_nodes=70)
    expected = torch_logits(checkpoint, data)[0]
    found = Eager(checkpoint, layout).answers(data, np.arange(len(data))).logits
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_graph_without_nodes_among_others_is_the_classifier_on_zeros() -> None:
    data = dataset(PATH, STAR)
    checkpoint = untrained(data)
    model = MODULES[Layout.SPARSE](reference_of(checkpoint).members)
    labels = torch.tensor(data.node_label).long()
    edges = torch.tensor(data.edge_index())
    with torch.no_grad():
        expected = model(labels, edges, torch.tensor([0, 5, 10]))["logits"]
        found = model(labels, edges, torch.tensor([0, 0, 5, 5, 10, 10]))["logits"]
    torch.testing.assert_close(found[[1, 3]], expected)
    readable = reference_of(checkpoint).members.modules[0].classifier
    empty = readable.second(readable.first.bias.relu()).detach()
    torch.testing.assert_close(found[[0, 2, 4]], empty.expand(3, -1))
