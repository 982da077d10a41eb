"""Graphs for the export have the operations of `Graphs`: by hand, and on the example model."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from graph_makers import ALL, CPU, Graph, dataset_of, graphs_of

from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs
from ihgnn_cli.models.traced import FlatGraphs, PaddedGraphs, TracedGraphs, ascending_order

EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party" / "ihgnn_example_model.py"
PATH: Graph = ([0, 1, 2, 0], [(0, 1), (1, 2), (2, 3)])


def padded(graphs: Graphs, more: int = 1) -> PaddedGraphs:
    """The same graphs with more padding."""
    grown = torch.nn.functional.pad
    adjacency = grown(graphs.adjacency, (0, more, 0, more)).long()
    found = PaddedGraphs(grown(graphs.mask, (0, more)), adjacency)
    found.x = grown(graphs.padded(graphs.x), (0, 0, 0, more)).flatten(0, 1)
    return found


def flat(graphs: Graphs) -> FlatGraphs:
    found = FlatGraphs(graphs.graph, graphs.edge_index.flip(1), torch.tensor(graphs.node_ptr))
    found.x = graphs.x
    return found


@pytest.mark.parametrize("traced", [padded, flat])
def test_sums_means_maxima_and_edges_are_those_of_graphs(traced) -> None:
    graphs = graphs_of(dataset_of(ALL))
    found: TracedGraphs = traced(graphs)
    drawn = torch.randn(graphs.x.shape, generator=torch.Generator().manual_seed(0))
    # Arbitrary values in padding.
    h, there = torch.full(found.x.shape, 7.0), found.x
    rows = padded(graphs).mask.flatten() if traced is padded else torch.ones(len(h)).bool()
    h[rows] = drawn
    assert torch.equal(there[rows], graphs.x)
    for name in ("sum_nodes", "mean_nodes", "max_nodes"):
        torch.testing.assert_close(getattr(found, name)(h), getattr(graphs, name)(drawn))
    assert torch.equal(found.node_counts, graphs.node_counts)
    assert torch.equal(found.degree[rows], graphs.degree)
    sender = graphs.edge_index[0]
    expected = graphs.sum_to_nodes(drawn[sender])
    torch.testing.assert_close(found.sum_neighbours(h)[rows], expected)
    torch.testing.assert_close(found.sum_to_nodes(h[found.edge_index[0]])[rows], expected)
    number = rows.cumsum(0) - 1
    assert torch.equal(number[found.edge_index], graphs.edge_index)


def test_the_first_rows_are_sorted_by_key_and_equal_keys_by_position() -> None:
    for traced in (padded, flat):
        graphs = traced(graphs_of(dataset_of([PATH, ([0, 1], [])])))
        node = graphs.places[graphs.places > 0] - 1
        keys = torch.full((len(graphs.x),), -9.0)
        keys[node] = torch.tensor([2.0, 1.0, 1.0, 3.0, 5.0, 4.0])
        rows = torch.zeros(len(graphs.x), 1)
        rows[node] = torch.arange(1.0, 7).unsqueeze(1)
        first, second = graphs.first_nodes(rows, keys, 3).tolist()
        assert first == [2, 3, 1]
        assert second == [6, 5, 0]
        both = torch.stack([rows, rows]), torch.stack([keys, -keys])
        assert graphs.first_nodes(*both, 2).tolist() == [[[2, 3], [6, 5]], [[4, 1], [5, 6]]]


def test_equal_keys_stay_in_order_whatever_the_sort_does() -> None:
    key = torch.tensor([[3.0, 1.0, 3.0, 1.0, 1.0], [0.0] * 5])
    assert ascending_order(key).tolist() == [[1, 3, 4, 0, 2], [0, 1, 2, 3, 4]]


@pytest.mark.parametrize("traced", [padded, flat])
def test_layers_of_torch_geometric_in_a_model_of_another_package_run(traced, monkeypatch) -> None:
    about = importlib.util.spec_from_file_location("ihgnn_example_model", EXAMPLE)
    module = importlib.util.module_from_spec(about)
    monkeypatch.setitem(sys.modules, "ihgnn_example_model", module)
    about.loader.exec_module(module)
    spec = module.MODEL
    assert spec.layouts == ("padded", "sparse")
    graphs = graphs_of(dataset_of(ALL))
    model = spec.make(spec.settings(), Inputs(graphs.x.shape[1], 0, 2, 6)).eval().to(CPU)
    torch.testing.assert_close(model(traced(graphs)), model(graphs))
