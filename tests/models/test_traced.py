"""Graphs for the export have the operations of `Graphs`: by hand, and on the example model."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch
from graph_makers import ALL, CPU, TWO_PARTS, Graph, dataset_of, graphs_of
from torch import Tensor

from ihgnn_cli.models.graphs import Graphs
from ihgnn_cli.models.settings import Inputs
from ihgnn_cli.models.traced import FlatGraphs, PaddedGraphs, TracedGraphs

EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party" / "ihgnn_example_model.py"
PATH: Graph = ([0, 1, 2, 0], [(0, 1), (1, 2), (2, 3)])


def padded(graphs: Graphs, more: int = 1) -> PaddedGraphs:
    """The same graphs with more padding."""
    grown = torch.nn.functional.pad
    x = grown(graphs.padded(graphs.x), (0, 0, 0, more)).flatten(0, 1)
    adjacency = grown(graphs.adjacency, (0, more, 0, more))
    return PaddedGraphs(x, grown(graphs.mask, (0, more)), adjacency)


def flat(graphs: Graphs) -> FlatGraphs:
    def spread(rows: Tensor, messages: Tensor) -> Tensor:
        return rows + graphs.sum_to_nodes(messages[graphs.edge_index[0]])

    return FlatGraphs(
        x=graphs.x,
        edges=graphs.edge_index.flip(1),
        graph=graphs.graph,
        count=len(graphs),
        degree=graphs.degree,
        spread=spread,
    )


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


def test_distances_are_counted_and_cut_and_parts_are_apart() -> None:
    graphs = padded(graphs_of(dataset_of([TWO_PARTS, PATH])), more=0)
    two_parts, path = graphs.distances(2)
    assert path[0, :4].tolist() == [0, 1, 2, 2]
    assert two_parts[0].tolist() == [0, 1, 2, 3, 3, 3]
    assert two_parts[5].tolist() == [3, 3, 3, 3, 3, 0]
    first, second, third = (each[1][0].tolist() for each in graphs.within(3))
    assert (first, second, third) == ([0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0])


def test_rows_are_in_descending_order_of_keys_and_ties_in_that_of_nodes() -> None:
    graphs = padded(graphs_of(dataset_of([PATH, ([0, 1], [])])))
    keys = torch.zeros(10, 6)
    # The first channel decides, then the last; padding never counts.
    keys[:5, 0] = torch.tensor([1.0, 2.0, 1.0, 1.0, 9.0])
    keys[:5, 5] = torch.tensor([0.0, -5.0, 3.0, 0.0, 9.0])
    rows = torch.arange(10.0).unsqueeze(1) + 1
    first, second = graphs.first_in_order(rows, keys, 5)[:, :, 0].tolist()
    assert first == [2, 3, 1, 4, 0]
    assert second == [6, 7, 0, 0, 0]
    assert graphs.first_in_order(rows, keys, 2)[0, :, 0].tolist() == [2, 3]


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
