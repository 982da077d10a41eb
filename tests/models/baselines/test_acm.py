"""ACM-GCN against its equation in dense matrices."""

import pytest
import torch
from graph_makers import (
    KITE,
    dataset_of,
    logits_of,
    model_of,
)
from heterophilic import adjacency

from ihgnn_cli.errors import InputError
from ihgnn_cli.models.entries.acm import ACMSettings, Order


def _layer(layer, h, p, order):
    """One layer, node by node, from the equation."""
    eye = torch.eye(len(h))
    channels = []
    for channel, filter_ in enumerate((p, eye - p, eye)):
        if order is Order.ACM:
            channels.append((filter_ @ (h @ layer.weight[channel])).clamp(min=0))
        else:
            channels.append(filter_ @ (h @ layer.weight[channel]).clamp(min=0))
    rows = []
    for node in range(len(h)):
        scores = [
            1 / (1 + torch.exp(-(each[node] @ layer.score[channel])))
            for channel, each in enumerate(channels)
        ]
        exponents = [
            torch.exp(sum(scores[b] * layer.mix[b, a] for b in range(3)) / 3) for a in range(3)
        ]
        shares = [each / sum(exponents) for each in exponents]
        rows.append(
            3 * sum(share * each[node] for share, each in zip(shares, channels, strict=True))
        )
    return torch.stack(rows)


@pytest.mark.parametrize("order", Order)
def test_logits_are_those_of_the_equation(order):
    dataset = dataset_of([KITE, KITE])
    model = model_of("acm", dataset, width=4, hidden=5, order=order)
    with torch.no_grad():
        a = adjacency(KITE) + torch.eye(4)
        p = a / a.sum(1, keepdim=True)
        h = _layer(model.layers[0], torch.eye(3)[list(KITE[0])], p, order)
        h = _layer(model.layers[1], h.clamp(min=0), p, order)
        top = model.readout.classifier
        hidden = (top.first.weight @ h.sum(0) + top.first.bias).clamp(min=0)
        expected = top.second.weight @ hidden + top.second.bias
    torch.testing.assert_close(logits_of(model, dataset)[0], expected, rtol=1e-5, atol=1e-5)


def test_the_two_orders_differ():
    dataset = dataset_of([KITE, KITE])
    first, second = (logits_of(model_of("acm", dataset, order=each), dataset) for each in Order)
    assert (first - second).abs().max() > 1e-4


@pytest.mark.parametrize("settings", [{"layers": 0}, {"temperature": 0.0}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        ACMSettings(**settings)
