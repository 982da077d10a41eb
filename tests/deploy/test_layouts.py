"""The models that are exported, in either layout, are the model that was trained."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_models import (
    ALL,
    AUTHORS,
    CPU,
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

from ihgnn_cli.data.dataset import GraphDataset
from ihgnn_cli.data.edge_labels import with_edge_labels
from ihgnn_cli.data.features import Features
from ihgnn_cli.deploy.form import Layout
from ihgnn_cli.deploy.inputs import sparse_inputs
from ihgnn_cli.deploy.metadata import LARGEST
from ihgnn_cli.deploy.sparse import Edges, SparseIHGNN, block_ends, neighbor_ends
from ihgnn_cli.inference.metrics import mean_probabilities
from ihgnn_cli.inference.vocabulary import encode_dataset
from ihgnn_cli.models.settings import Variant
from ihgnn_cli.training.checkpoint import Checkpoint

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
        pytest.skip("nodes of a triangle are equal in the last layer: their order is anybody's")
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


@pytest.mark.parametrize(
    ("m", "ends"),
    [
        (1, [1]),
        (32, [32]),
        (48, [48]),
        (49, [32, 49]),
        (96, [32, 96]),
        (97, [32, 64, 97]),
        (620, [32, 64, 128, 256, 620]),
    ],
)
def test_blocks_of_ranks_double_and_end_at_m(m: int, ends: list[int]) -> None:
    assert list(block_ends(m)) == ends


def test_blocks_of_neighbours_reach_as_far_as_degrees_are_known() -> None:
    graphs = (STAR, LARGE_STAR, PATH)
    labelled, degrees = dataset(*graphs), dataset(*graphs, labelled=False)
    assert list(neighbor_ends(untrained(labelled).card)) == [4]
    assert list(neighbor_ends(untrained(degrees).card)) == [4, 16]


@pytest.mark.parametrize("labelled", [True, False])
def test_nodes_with_more_neighbours_than_a_block_lose_none(labelled: bool) -> None:
    # Stars whose centers fill blocks of neighbours exactly, nearly, and go beyond all of them.
    stars = [
        ([leaf % 3 for leaf in range(size + 1)], [(0, leaf) for leaf in range(1, size + 1)])
        for size in (3, 4, 5, 15, 16, 17, 40)
    ]
    data = dataset(*stars, labelled=labelled)
    checkpoint = untrained(dataset(*stars[:5], labelled=labelled), max_nodes=50)
    words = encode_dataset(checkpoint.card, data).dataset
    expected = torch_logits(checkpoint, words)[0]
    found = Eager(checkpoint, Layout.SPARSE).answers(words, np.arange(len(words))).logits
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_graphs_that_reach_other_blocks_and_end_beyond_m_keep_to_their_rows() -> None:
    # Paths of all sizes around the ends of the blocks, and beyond m = 70: blocks of 32, 38.
    paths = [
        ([node % 3 for node in range(size)], [(node, node + 1) for node in range(size - 1)])
        for size in (1, 31, 32, 33, 69, 70, 71, 100, 2)
    ]
    data = dataset(*paths)
    checkpoint = untrained(data, max_nodes=70)
    assert len(SparseIHGNN(checkpoint).members.readout) == 2
    expected = torch_logits(checkpoint, data)[0]
    found = Eager(checkpoint, Layout.SPARSE).answers(data, np.arange(len(data))).logits
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@layouts
def test_the_margin_is_the_smallest_gap_between_keys_of_different_nodes(layout: Layout) -> None:
    data = dataset(*ALL, ([1, 1, 1], [(0, 1), (1, 2), (2, 0)]))
    checkpoint = untrained(data)
    found = Eager(checkpoint, layout).answers(data, np.arange(len(data))).order_margin
    assert found is not None
    # A single node, and a triangle of equal nodes.
    single, equal = ALL.index(SINGLE), len(ALL)
    assert found[[single, equal]].tolist() == [LARGEST, LARGEST]
    h = embeddings(checkpoint, data)
    for graph in set(range(len(ALL))) - {single}:
        rows = np.unique(h[data.node_graph == graph].round(5), axis=0)
        rows = rows[rows[:, -1].argsort()]
        length = np.linalg.norm(rows, axis=1)
        gaps = np.diff(rows[:, -1]) / np.maximum(length[1:], length[:-1])
        assert found[graph] == pytest.approx(gaps.min(), rel=1e-2)


@layouts
def test_equal_keys_of_different_nodes_leave_no_margin(layout: Layout) -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data)
    for name, value in checkpoint.weights.items():
        if name.endswith((".second.weight", ".second.bias")):
            value[..., -1] = 0
    found = Eager(checkpoint, layout).answers(data, np.arange(len(data))).order_margin
    assert found is not None
    assert (found == 0).tolist() == [graph is not SINGLE for graph in ALL]


@layouts
def test_without_sorting_there_is_always_margin(layout: Layout) -> None:
    data = dataset(*ALL)
    checkpoint = untrained(data, replace(SMALL, variant=Variant.NO_CONCAT))
    found = Eager(checkpoint, layout).answers(data, np.arange(len(data))).order_margin
    assert found is not None
    assert (found == LARGEST).all()


def embeddings(checkpoint: Checkpoint, data: GraphDataset) -> NDArray[Any]:
    """H of all nodes."""
    model = SparseIHGNN(checkpoint)
    inputs = sparse_inputs(checkpoint.card, data, np.arange(len(data)))
    inputs = {name: torch.tensor(each) for name, each in inputs.items()}
    none = torch.zeros_like(inputs["node_labels"])
    edges = Edges(inputs["edge_index"], none, model.neighbor_ends)
    row = model.vocabulary.rows(inputs["node_labels"], lambda: edges.degree)
    with torch.no_grad():
        h, _ = model.members.nodes(row, None, edges.spread)
    return h.numpy()


def test_a_graph_without_nodes_is_a_graph_all_the_same() -> None:
    data = dataset(PATH, STAR)
    checkpoint = untrained(data)
    model = SparseIHGNN(checkpoint)
    labels = torch.tensor(data.node_label).long()
    edges = torch.tensor(data.edge_index())
    with torch.no_grad():
        expected = model(labels, edges, torch.tensor([0, 5, 10]))["logits"]
        found = model(labels, edges, torch.tensor([0, 0, 5, 5, 10, 10]))["logits"]
    torch.testing.assert_close(found[[1, 3]], expected)
    bias = (
        checkpoint.weights["classifier.first.bias"][0].relu()
        @ checkpoint.weights["classifier.second.weight"][0]
    )
    empty = (bias + checkpoint.weights["classifier.second.bias"][0]).to(CPU)
    torch.testing.assert_close(found[[0, 2, 4]], empty.expand(3, -1))
