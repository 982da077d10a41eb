"""H2GCN against its equation in dense matrices."""

import pytest
import torch
from graph_makers import (
    HEXAGON,
    PATH,
    dataset_of,
    graphs_of,
    logits_of,
    model_of,
)

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.entries.h2gcn import MODEL, H2GCNSettings
from ihgnn_cli.models.spec import Load


@pytest.mark.parametrize("relu", [True, False])
def test_logits_are_those_of_the_equation(relu):
    dataset = dataset_of([PATH, PATH])
    model = model_of("h2gcn", dataset, layers=2, width=4, hidden=5, relu=relu)
    # Of the path 0 - 1 - 2 - 3 - 4: ends have one neighbour and the others two; at distance two
    # there are 0 - 2 - 4 and 1 - 3.
    half = 0.5**0.5
    one, two = torch.zeros(5, 5), torch.zeros(5, 5)
    for a, b, weight in [(0, 1, half), (1, 2, 0.5), (2, 3, 0.5), (3, 4, half)]:
        one[a, b] = one[b, a] = weight
    for a, b, weight in [(0, 2, half), (2, 4, half), (1, 3, 1.0)]:
        two[a, b] = two[b, a] = weight
    with torch.no_grad():
        r0 = torch.eye(3)[list(PATH[0])] @ model.embed.weight.T
        r0 = r0.clamp(min=0) if relu else r0
        r1 = torch.cat([one @ r0, two @ r0], dim=1)
        r2 = torch.cat([one @ r1, two @ r1], dim=1)
        z = torch.cat([r0, r1, r2], dim=1)
        assert z.shape == (5, 4 + 8 + 16)
        top = model.readout.classifier
        hidden = (top.first.weight @ z.sum(0) + top.first.bias).clamp(min=0)
        expected = top.second.weight @ hidden + top.second.bias
    torch.testing.assert_close(logits_of(model, dataset)[0], expected, rtol=1e-5, atol=1e-5)


def test_each_round_about_doubles_the_memory():
    dataset = dataset_of([PATH, HEXAGON])
    graphs = graphs_of(dataset)
    load = Load(2, 11, graphs.edge_index.shape[1], 6, 61)
    small, large = (
        MODEL.numbers(H2GCNSettings(layers=each, width=256, hidden=1), load) for each in (5, 6)
    )
    assert large / small == pytest.approx(2, abs=0.01)


@pytest.mark.parametrize("settings", [{"layers": 11}, {"layers": -1}, {"width": 0}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        H2GCNSettings(**settings)
