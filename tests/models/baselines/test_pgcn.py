"""PGCN against its equations in powers of dense matrices."""

import itertools

import pytest
import torch
from graph_makers import (
    KITE,
    NO_EDGES,
    PATH,
    dataset_of,
    graphs_of,
    logits_of,
    model_of,
    with_statistics,
)
from heterophilic import adjacency

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.entries.pgcn import Operator, PGCNSettings, Readout


def _laplacian(graph):
    a = adjacency(graph)
    out = torch.eye(len(a))
    for u, v in a.nonzero().tolist():
        out[u, v] -= 1 / (a[u].sum() * a[v].sum()).sqrt()
    return out


def _normalized(norm, h):
    return (h - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


def _by_hand(model, graph, t):
    x = torch.eye(3)[list(graph[0])]
    if model.project is not None:
        own, of_sum = model.project.weight.split(3, dim=1)
        x = x @ own.T + adjacency(graph) @ x @ of_sum.T + model.project.bias
        x = _normalized(model.project_norm, x)
    blocks = []
    for highest, block in enumerate(model.blocks):
        weights = block.weight.split(x.shape[1], dim=1)
        each = [torch.matrix_power(t, i) @ x @ weights[i].T for i in range(highest + 1)]
        blocks.append(sum(each) + block.bias)
    h = _normalized(model.norm, torch.cat(blocks, dim=1))
    read = torch.cat([h.mean(0), h.sum(0), h.max(0).values])
    read = _normalized(model.read_norm, read)
    for layer in model.hidden:
        read = (layer.weight @ read + layer.bias).clamp(min=0)
    return model.last.weight @ read + model.last.bias


@torch.no_grad()
@pytest.mark.parametrize("project", [True, False])
@pytest.mark.parametrize("readout", list(Readout))
@pytest.mark.parametrize(
    ("operator", "matrix"),
    [(Operator.ADJACENCY, adjacency), (Operator.LAPLACIAN, _laplacian)],
)
def test_logits_are_those_of_the_equations(operator, matrix, readout, project):
    graphs = (PATH, KITE, NO_EDGES)
    dataset = dataset_of(graphs)
    settings = {"operator": operator, "readout": readout, "project": project}
    model = model_of("pgcn", dataset, layers=2, width=4, **settings)
    found = logits_of(with_statistics(model, dataset), dataset)
    for at, graph in enumerate(graphs):
        expected = _by_hand(model, graph, matrix(graph))
        torch.testing.assert_close(found[at], expected, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_powers_of_the_adjacency_count_walks():
    # Of a path a-b-c walks of length 2 that start at an end: back to it, and to the other end.
    dataset = dataset_of([([0, 1, 2], [(0, 1), (1, 2)])])
    model = model_of("pgcn", dataset, layers=2, width=3, project=False)
    for block in model.blocks:
        block.weight.zero_()
        block.bias.zero_()
    model.blocks[2].weight[:, 6:] = torch.eye(3)
    found = model.polynomial(graphs_of(dataset))
    assert found[:, :6].abs().sum() == 0
    assert found[:, 6:].tolist() == [[1, 0, 1], [0, 2, 0], [1, 0, 1]]


@torch.no_grad()
def test_powers_of_the_laplacian_stay_bounded_on_a_dense_graph():
    # All eigenvalues of the Laplacian are in [0, 2], those of A go up to the degree.
    nodes = 100
    complete = ([at % 3 for at in range(nodes)], list(itertools.combinations(range(nodes), 2)))
    dataset = dataset_of([complete])
    largest = {}
    for operator in Operator:
        model = model_of("pgcn", dataset, layers=8, operator=operator)
        largest[operator] = float(model.polynomial(graphs_of(dataset)).abs().max())
    assert largest[Operator.LAPLACIAN] < 2**8 * nodes**0.5
    assert largest[Operator.ADJACENCY] > 1e12


@pytest.mark.parametrize(
    ("readout", "widths"), [(Readout.FUNNEL, [60, 40, 20]), (Readout.RESTRICTED, [60, 8])]
)
def test_classifiers_are_as_wide_as_the_powers_make_them(readout, widths):
    model = model_of("pgcn", dataset_of([PATH]), layers=3, width=5, readout=readout)
    assert [layer.in_features for layer in (*model.hidden, model.last)] == widths


def test_settings_out_of_range_are_refused():
    with pytest.raises(InputError, match="layers must be at least 0, not -1"):
        PGCNSettings(layers=-1)
    with pytest.raises(InputError, match="operator must be one of adjacency, laplacian, not"):
        PGCNSettings(operator="cheese")
    with pytest.raises(InputError, match="readout must be one of funnel, restricted-funnel, not"):
        PGCNSettings(readout="sum")
