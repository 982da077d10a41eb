"""A·h and its gradient, by hand and against dense matrices."""

import torch
from graph_makers import ALL, KITE, NO_EDGES, SINGLE, dataset_of, graphs_of

from ihgnn_cli.models.baselines.neighbors import Neighbors


def test_each_node_gets_the_sum_of_its_neighbours():
    # The kite: 0, 1 and 2 know each other, 3 knows 2.
    graphs = graphs_of(dataset_of([KITE]))
    h = torch.tensor([[1.0, 0.0], [10.0, 1.0], [100.0, 0.0], [1000.0, 5.0]])
    expected = [[110.0, 1.0], [101.0, 0.0], [1011.0, 6.0], [100.0, 0.0]]
    assert Neighbors(graphs).sum(h).tolist() == expected


def test_nodes_without_neighbours_get_zeros():
    for graph in (NO_EDGES, SINGLE):
        graphs = graphs_of(dataset_of([graph]))
        assert Neighbors(graphs).sum(torch.ones(len(graph[0]), 3)).abs().sum() == 0


def test_graphs_of_a_batch_do_not_mix_and_gradients_are_those_of_the_dense_product():
    graphs = graphs_of(dataset_of(ALL))
    dense = torch.zeros(len(graphs.x), len(graphs.x), dtype=torch.float64)
    dense[graphs.edge_index[1], graphs.edge_index[0]] = 1
    torch.manual_seed(0)
    h = torch.randn(len(graphs.x), 4, dtype=torch.float64, requires_grad=True)
    neighbors = Neighbors(graphs)
    torch.testing.assert_close(neighbors.sum(h), dense @ h)
    (found,) = torch.autograd.grad(neighbors.sum(h).tanh().sum(), h)
    (expected,) = torch.autograd.grad((dense @ h).tanh().sum(), h)
    torch.testing.assert_close(found, expected)
