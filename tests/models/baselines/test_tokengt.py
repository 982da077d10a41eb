"""TokenGT: identifiers by hand, the forward pass written out, what holds of its answers."""

import itertools
import random

import numpy as np
import pytest
import torch
from graph_makers import (
    ALL,
    HEXAGON,
    KITE,
    LABELS,
    NO_EDGES,
    PATH,
    SINGLE,
    STAR,
    accuracy_after_training,
    dataset_of,
    graphs_of,
    logits_of,
    model_of,
    relabelled,
)
from plain_transformer import applied, layer_of, logits_of_vector

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.baselines import tokengt
from ihgnn_cli.models.baselines.tokengt import identifiers, laplacian_rows
from ihgnn_cli.models.entries.tokengt import TokenGTSettings


def test_eigenvectors_of_a_path_of_three():
    """Eigenvalues 0, 1 and 2; then zeros."""
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=float)
    root = 2**0.5
    expected = [
        [1 / 2, 1 / root, 1 / 2, 0],
        [root / 2, 0, -root / 2, 0],
        [1 / 2, -1 / root, 1 / 2, 0],
    ]
    np.testing.assert_allclose(laplacian_rows(path, 4), expected, atol=1e-12)


def test_an_eigenspace_of_a_triangle_has_the_basis_that_its_nodes_point_to():
    """0, and 3/2 twice: what is orthogonal to the constant."""
    rows = laplacian_rows(np.ones((3, 3)) - np.eye(3), 3)
    expected = np.array([[1, 1, 1], [2, -1, -1], [0, 1, -1]]).T / np.sqrt([3, 6, 2])
    np.testing.assert_allclose(rows, expected, atol=1e-12)


def test_nodes_without_edges_have_the_unit_vectors():
    np.testing.assert_array_equal(laplacian_rows(np.zeros((3, 3)), 2), np.eye(3)[:, :2])


def test_identifiers_of_small_graphs_are_orthonormal():
    for (found,) in identifiers(graphs_of(dataset_of(ALL)), 8):
        torch.testing.assert_close(found @ found.T, torch.eye(len(found)))


def test_labels_decide_which_of_like_nodes_is_which():
    """The leaves of a star are alike but for their labels, in whatever order they stand."""
    one, other = ([0, 0, 1, 2], [(0, 1), (0, 2), (0, 3)]), ([0, 2, 0, 1], [(0, 1), (0, 2), (0, 3)])
    (found,), (again,) = identifiers(graphs_of(dataset_of([one, other])), 4)
    torch.testing.assert_close(found[[0, 3, 1, 2]], again)


def written_out(model, graph, *, both_directions):
    """The logits of one graph; its identifiers are given by the functions tested above."""
    labels, edges = graph
    ((found,),) = identifiers(graphs_of(dataset_of([graph])), model.settings.identifiers)
    tokens = [model.graph_token]
    for v, label in enumerate(labels):
        twice = torch.cat([found[v], found[v]])
        x = applied(model.encoder, torch.eye(LABELS)[label])
        tokens.append(x + model.identify.weight @ twice + model.types[0])
    for u, v in edges:
        there = model.identify.weight @ torch.cat([found[u], found[v]])
        back = model.identify.weight @ torch.cat([found[v], found[u]])
        ways = [there, back] if both_directions else [(there + back) / 2]
        tokens += [way + model.types[1] for way in ways]
    h = torch.stack(tokens)
    for layer in model.layers:
        h = layer_of(layer, h, torch.zeros(layer.heads, len(h), len(h)))
    return logits_of_vector(model, h[0])


@torch.no_grad()
@pytest.mark.parametrize("both_directions", [False, True])
def test_the_forward_pass_is_the_equations_written_out(both_directions):
    graphs = [KITE, PATH, NO_EDGES, SINGLE, STAR]
    dataset = dataset_of(graphs)
    sizes = {"layers": 2, "width": 6, "heads": 2, "identifiers": 3}
    model = model_of("tokengt", dataset, **sizes, both_directions=both_directions)
    torch.nn.init.normal_(model.types)
    expected = torch.stack(
        [written_out(model, each, both_directions=both_directions) for each in graphs]
    )
    torch.testing.assert_close(logits_of(model, dataset), expected, rtol=1e-5, atol=1e-5)


def test_weights_start_as_in_the_authors_code():
    """0.02 in the layers, too: their code draws them again without the root of the layers."""
    model = model_of("tokengt", dataset_of([KITE]), layers=9, width=64)
    linears = [each for each in model.layers.modules() if isinstance(each, torch.nn.Linear)]
    assert len(linears) == 9 * 5
    for linear in (model.identify, *linears):
        assert float(linear.weight.detach().std()) == pytest.approx(0.02, rel=0.1)
    for table in (model.encoder.weight, model.types, model.graph_token):
        assert float(table.detach().std()) == pytest.approx(0.02, rel=0.3)
    assert not any(each.bias.any() for each in (model.encoder, *linears))


def test_a_step_in_runs_gives_what_it_gives_at_once(monkeypatch):
    dataset = dataset_of(ALL)
    model = model_of("tokengt", dataset)
    at_once = logits_of(model, dataset)
    monkeypatch.setattr(tokengt, "_PAIRS_AT_ONCE", 200)
    lengths = model._lengths(graphs_of(dataset))
    cuts = list(model._cuts(graphs_of(dataset)))
    assert len(cuts) > 2
    assert [start for start, _ in cuts[1:]] == [end for _, end in cuts[:-1]]
    assert all(
        end - start == 1 or (end - start) * max(lengths[start:end]) ** 2 <= 200
        for start, end in cuts
    )
    torch.testing.assert_close(logits_of(model, dataset), at_once)


def test_signs_are_drawn_in_training_only():
    graphs = graphs_of(dataset_of([KITE, PATH]))
    model = model_of("tokengt", dataset_of([KITE, PATH]), dropout=0.0)
    assert torch.equal(model(graphs), model(graphs))
    model.train()
    assert not torch.allclose(model(graphs), model(graphs))


def test_a_graph_of_many_symmetries_gets_one_answer():
    """Renumbered hexagons: two-dimensional eigenspaces and twelve automorphisms."""
    nodes = range(6)
    drawn = random.Random(0)
    others = [relabelled(HEXAGON, drawn.sample(nodes, 6)) for _ in range(12)]
    dataset = dataset_of([HEXAGON, *others])
    logits = logits_of(model_of("tokengt", dataset), dataset)
    torch.testing.assert_close(logits, logits[:1].expand(13, -1), rtol=1e-4, atol=1e-5)


def test_it_learns_paths_and_stars():
    drawn = random.Random(0)
    graphs = []
    for nodes in itertools.islice(itertools.cycle(range(4, 9)), 20):
        path = [(at, at + 1) for at in range(nodes - 1)]
        star = [(0, at) for at in range(1, nodes)]
        labels = [drawn.randrange(LABELS) for _ in range(nodes)]
        graphs += [(labels, path), (labels[::-1], star)]
    dataset = dataset_of(graphs)
    assert accuracy_after_training("tokengt", dataset, steps=150, lr=3e-3, layers=2) >= 0.95


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"width": 32, "heads": 3}, "multiple of heads"),
        ({"layers": 0}, "layers must be at least 1"),
        ({"identifiers": 0}, "identifiers must be at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        TokenGTSettings(**given)
